/* What the fake libnccl.so.2 has beyond NCCL: its script. Each knob has an environment variable of its name, read when
 * the library is opened; the functions are for tests that link it. `rank` is that of the communicator, -1: every. */
#ifndef FAKE_NCCL_H
#define FAKE_NCCL_H

#include <nccl.h>

#ifdef __cplusplus
extern "C" {
#endif

CUDA_EMULATED_API void fake_nccl_version(int version);         /* FAKE_NCCL_VERSION; 23007 */
CUDA_EMULATED_API void fake_nccl_pending(int polls);           /* FAKE_NCCL_PENDING; ncclInProgress so many times: 0 */
CUDA_EMULATED_API void fake_nccl_fail_at(int rank, long call); /* FAKE_NCCL_FAIL_AT; an asynchronous ncclRemoteError */
CUDA_EMULATED_API void fake_nccl_refuse_at(int rank, long call); /* FAKE_NCCL_REFUSE_AT; the call itself fails */
CUDA_EMULATED_API void fake_nccl_hang_at(int rank, long call);   /* FAKE_NCCL_HANG_AT; it ends by an abort only */
CUDA_EMULATED_API void fake_nccl_hang_init(int rank);            /* FAKE_NCCL_HANG_INIT; -2: no rank */
/* All knobs as at the beginning. */
CUDA_EMULATED_API void fake_nccl_reset(void);

CUDA_EMULATED_API int fake_nccl_live(void);    /* communicators of this process that are not yet given back */
CUDA_EMULATED_API long fake_nccl_aborts(void); /* ncclCommAbort so far */
CUDA_EMULATED_API long fake_nccl_revokes(void);

#ifdef __cplusplus
}
#endif
#endif
