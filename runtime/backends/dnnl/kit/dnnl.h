/* What the kernels of the dnnl module share: oneDNN's objects for one prepared call, errors, threads. */
#ifndef TDM_DNNL_KIT_H
#define TDM_DNNL_KIT_H

#include <signal.h>

#include <tandem/sys/module.h>

#include "runtime/backends/dnnl/kit/dnnl_adapter.h"
#include "runtime/backends/dnnl/kit/passes.h"
#include "runtime/base/round.h"

/* ops/dnnl_kernels.c: those of the module, best first; ends with NULL. */
extern const tdm_kernel *const tdm__dnnl_kernels[];

/* The calls that tandem handed over; valid after init. */
const tdm_host_calls *tdm__dnnl_host(void);
void tdm__dnnl_init(const tdm_host_calls *calls);

#define TDM_DNNL_FAIL(code, ...) return tdm__dnnl_host()->fail((code), __FILE__, __LINE__, NULL, __VA_ARGS__)
#define TDM_DNNL_TRY(expression)                                                                    \
    do {                                                                                            \
        tdm_status try_status_ = (expression);                                                      \
        if (try_status_ != TDM_OK) return tdm__dnnl_host()->frame(try_status_, __FILE__, __LINE__); \
    } while (0)
/* A call of oneDNN as a status of tandem; `what` is for the message: "conv2d forward". */
tdm_status tdm__dnnl_check(dnnl_status_t status, const char *what);

/* Is there address space for what oneDNN makes next? To be asked before; dnnl_out_of_memory if not. */
dnnl_status_t tdm__dnnl_room(void);

/* What belongs to the calling thread, set around everything that oneDNN makes or runs, and put back: OpenMP's number of
 * threads, which is 1 for oneDNN, because it cuts sums for more, and bits would depend on how many there are; kernels
 * share out what is independent (passes.h). And the mask of signals, because oneDNN's machine code (seen in 2.6.3:
 * sgemm) keeps values below the stack pointer, beyond the 128 bytes that a signal leaves alone. A handler that ran in
 * it would write over them, and the code then wherever they point. A signal waits for the end of the call, at most some
 * milliseconds. */
typedef struct tdm_dnnl_caller {
    int threads;
    sigset_t signals;
} tdm_dnnl_caller;
tdm_dnnl_caller tdm__dnnl_enter(void);
void tdm__dnnl_leave(const tdm_dnnl_caller *caller);

typedef struct tdm_dnnl_context {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_attr_t attr;
} tdm_dnnl_context;
dnnl_status_t tdm__dnnl_context_init(tdm_dnnl_context *context);
void tdm__dnnl_context_deinit(tdm_dnnl_context *context); /* zeroed is fine */

/* A made operation with its tensors; running it costs no allocation. */
enum { TDM_DNNL_MAX_ARGS = 5 };
typedef struct tdm_dnnl_call {
    dnnl_primitive_t primitive;
    int count;
    dnnl_exec_arg_t arg[TDM_DNNL_MAX_ARGS];
} tdm_dnnl_call;
/* `arguments`: DNNL_ARG_... in the order of the pointers of `run`, ended by 0. Those that the plan does not have are
 * skipped. */
dnnl_status_t tdm__dnnl_call_init(tdm_dnnl_call *call, const tdm_dnnl_context *context, dnnl_primitive_desc_t plan,
                                  const int *arguments);
dnnl_status_t tdm__dnnl_call_run(tdm_dnnl_call *call, const tdm_dnnl_context *context, const void *const *pointers);
void tdm__dnnl_call_deinit(tdm_dnnl_call *call); /* zeroed is fine */

size_t tdm__dnnl_scratchpad_bytes(dnnl_primitive_desc_t plan);
void tdm__dnnl_plan_free(dnnl_primitive_desc_t plan); /* NULL is fine */

/* Sizes within one block of scratch, each part on a cache line of its own. */
static inline size_t tdm__dnnl_round(size_t bytes) {
    return tdm__round_up(bytes, 64);
}

#endif
