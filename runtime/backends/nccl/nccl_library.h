/* libnccl.so.2, opened at run time: nothing in tandem links it. */
#ifndef TDM_COMM_NCCL_LIBRARY_H
#define TDM_COMM_NCCL_LIBRARY_H

#include <nccl.h>

#include <stdbool.h>
#include <stddef.h>

#include <tandem/sys/op.h>

/* 2.19 is the first version in which a thread other than the owner may abort a communicator (NVIDIA/nccl#992). Without
 * that a job could not survive a lost peer. */
enum { TDM_NCCL_VERSION_LEAST = 21900, TDM_NCCL_VERSION_MANY_RANKS = 23003, TDM_NCCL_VERSION_REVOKE = 22809 };
enum { TDM_NCCL_TEXT = 400, TDM_NCCL_VERSION_TEXT = 24 };

typedef struct tdm_nccl_library {
    int version; /* as NCCL_VERSION_CODE */
#define TDM_NCCL_SYMBOL(name) __typeof__(nccl##name) *name;
#define TDM_NCCL_OPTIONAL(name, type) type;
#include "runtime/backends/nccl/nccl_symbols.def"
#undef TDM_NCCL_SYMBOL
#undef TDM_NCCL_OPTIONAL
} tdm_nccl_library;

/* Returns the library. The first call that finds a usable one opens it, and it is never closed. It is searched in the
 * folders of TANDEM_CUDA_LIBRARIES, then by the system's loader. NULL: `why` gets the reason as a sentence. Any thread.
 */
const tdm_nccl_library *tdm__nccl_library(char *why, size_t bytes);

void tdm__nccl_version_print(char out[TDM_NCCL_VERSION_TEXT], int version); /* prints "2.32.3" */
/* Returns, as a sentence, the known problem of this version after a failure; NULL: none. */
const char *tdm__nccl_version_trouble(int version);

/* The table of calls that tandem handed over; valid after init. */
const tdm_host_calls *tdm__nccl_host(void);
void tdm__nccl_set_host(const tdm_host_calls *calls);
/* Returns a variable of the environment; NULL if it is not set. */
const char *tdm__nccl_variable(const char *name);

#define TDM_NCCL_FAIL(code, ...) return tdm__nccl_host()->fail((code), __FILE__, __LINE__, NULL, __VA_ARGS__)
#define TDM_NCCL_TRY(expression)                                                                    \
    do {                                                                                            \
        tdm_status try_status_ = (expression);                                                      \
        if (try_status_ != TDM_OK) return tdm__nccl_host()->frame(try_status_, __FILE__, __LINE__); \
    } while (0)

#endif
