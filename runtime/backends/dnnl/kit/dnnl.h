/* What the kernels of the dnnl module share: oneDNN's objects for a prepared call, errors, threads. */
#ifndef TDM_DNNL_KIT_H
#define TDM_DNNL_KIT_H

#include <signal.h>

#include "runtime/backends/dnnl/kit/dnnl_adapter.h"
#include "runtime/backends/dnnl/kit/passes.h"
#include "runtime/backends/kit/module_host.h"
#include "runtime/base/round.h"

/* ops/dnnl_kernels.c: the module's kernels, best first; ends with NULL. */
extern const tdm_kernel *const tdm__dnnl_kernels[];

/* Turns a status of oneDNN into tandem's; `what` names the call in the message: "conv2d forward". */
tdm_status tdm__dnnl_check(dnnl_status_t status, const char *what);

/* Checks that there is memory for what oneDNN makes next; dnnl_out_of_memory if not. Call it first. */
dnnl_status_t tdm__dnnl_room(void);

/* As tdm_module.rest. */
void tdm__dnnl_rest(void);

/* The settings of the calling thread that oneDNN needs, set around everything that oneDNN makes or runs, and restored
 * afterwards.
 *
 * OpenMP's number of threads is set to 1: with more, oneDNN splits sums, and the bits would depend on the number.
 * Kernels share out independent work instead (passes.h).
 *
 * Signals are held back, because oneDNN's machine code (seen in 2.6.3: sgemm) keeps values below the stack pointer,
 * beyond the 128 bytes that a signal leaves alone. A handler that ran meanwhile would overwrite them, and the code
 * would then write to wild addresses. A signal waits for the end of the call, at most some milliseconds. */
typedef struct tdm_dnnl_caller {
    int threads;
    sigset_t signals;
} tdm_dnnl_caller;
tdm_dnnl_caller tdm__dnnl_enter(void);
void tdm__dnnl_leave(const tdm_dnnl_caller *caller);
/* As tdm_module.thread_begin: the thread enters, and never leaves. */
void tdm__dnnl_thread_begin(void);

typedef struct tdm_dnnl_context {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_attr_t attr;
} tdm_dnnl_context;
dnnl_status_t tdm__dnnl_context_init(tdm_dnnl_context *context);
void tdm__dnnl_context_deinit(tdm_dnnl_context *context); /* a zeroed one is allowed */

/* A prepared operation with its tensors. Running it allocates nothing. */
enum { TDM_DNNL_MAX_ARGS = 5 };
typedef struct tdm_dnnl_call {
    dnnl_primitive_t primitive;
    int count;
    dnnl_exec_arg_t arg[TDM_DNNL_MAX_ARGS];
} tdm_dnnl_call;
/* Prepares the operation of `plan`. `arguments`: DNNL_ARG_... in the order of the pointers of `run`, ended by 0.
 * Arguments that the plan does not have are skipped. */
dnnl_status_t tdm__dnnl_call_init(tdm_dnnl_call *call, const tdm_dnnl_context *context, dnnl_primitive_desc_t plan,
                                  const int *arguments);
dnnl_status_t tdm__dnnl_call_run(tdm_dnnl_call *call, const tdm_dnnl_context *context, const void *const *pointers);
void tdm__dnnl_call_deinit(tdm_dnnl_call *call); /* a zeroed one is allowed */

/* At most what oneDNN keeps for `count` prepared operations of a plan (kept.c). many: of its code, if that is many small
 * kernels, as for AMX. Below: what it keeps for a reorder, which are 32 KiB, and for all operations together. */
size_t tdm__dnnl_kept_bytes(dnnl_primitive_desc_t plan, size_t many, int64_t count);
enum { TDM_DNNL_REORDER_BYTES = 64 << 10, TDM_DNNL_PROCESS_BYTES = 6 << 20 };

size_t tdm__dnnl_scratchpad_bytes(dnnl_primitive_desc_t plan);
void tdm__dnnl_plan_free(dnnl_primitive_desc_t plan); /* NULL is allowed */

/* Rounds a size so that each part of a block of scratch has its own cache lines. */
static inline size_t tdm__dnnl_round(size_t bytes) {
    return tdm__round_up(bytes, 64);
}

/* The same of numbers, floats. */
static inline int64_t tdm__dnnl_round_floats(int64_t count) {
    return (int64_t)(tdm__dnnl_round((size_t)count * sizeof(float)) / sizeof(float));
}

#endif
