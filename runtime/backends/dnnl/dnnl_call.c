/* Prepared calls of oneDNN, and its errors as statuses. */
#include "runtime/backends/dnnl/kit/dnnl.h"

#include <execinfo.h>

tdm_status tdm__dnnl_check(dnnl_status_t status, const char *what) {
    switch (status) {
    case dnnl_success:
        return TDM_OK;
    case dnnl_out_of_memory:
        TDM_MODULE_FAIL(
            TDM_E_MEMORY,
            "%s: oneDNN is out of memory (it does not say how much it needed); make train.batch.per_device or "
            "eval.batch smaller, or train.accumulate larger, or write parallel.kernels: ref",
            what);
    case dnnl_unimplemented:
        TDM_MODULE_FAIL(TDM_E_UNSUPPORTED, "%s: this oneDNN does not support it", what);
    default:
        TDM_MODULE_FAIL(TDM_E_DEVICE, "%s: oneDNN failed with status %d", what, (int)status);
    }
}

dnnl_status_t tdm__dnnl_context_init(tdm_dnnl_context *context) {
    *context = (tdm_dnnl_context){0};
    /* The C library loads its unwinder when the first exception passes, and ends the process if there is no memory for
     * it. This loads it early, while there is memory. */
    void *frame;
    (void)backtrace(&frame, 1);
    dnnl_status_t status = tdm__dnnl_room();
    if (status == dnnl_success) status = TDM_DNNL(dnnl_engine_create)(&context->engine, dnnl_cpu, 0);
    if (status == dnnl_success)
        status = TDM_DNNL(dnnl_stream_create)(&context->stream, context->engine, dnnl_stream_default_flags);
    if (status == dnnl_success) status = TDM_DNNL(dnnl_primitive_attr_create)(&context->attr);
    if (status != dnnl_success) return status;
    return TDM_DNNL(dnnl_primitive_attr_set_scratchpad_mode)(context->attr, dnnl_scratchpad_mode_user);
}

void tdm__dnnl_context_deinit(tdm_dnnl_context *context) {
    if (context->attr != NULL) dnnl_primitive_attr_destroy(context->attr);
    if (context->stream != NULL) dnnl_stream_destroy(context->stream);
    if (context->engine != NULL) dnnl_engine_destroy(context->engine);
    *context = (tdm_dnnl_context){0};
}

dnnl_status_t tdm__dnnl_call_init(tdm_dnnl_call *call, const tdm_dnnl_context *context, dnnl_primitive_desc_t plan,
                                  const int *arguments) {
    *call = (tdm_dnnl_call){0};
    for (; arguments[call->count] != 0; call->count++) {
        dnnl_exec_arg_t *arg = &call->arg[call->count];
        const tdm_dnnl_ref desc = tdm__dnnl_argument(plan, arguments[call->count]);
        arg->arg = arguments[call->count];
        if (desc == NULL || tdm__dnnl_bytes(desc) == 0) continue;
        const dnnl_status_t status =
            TDM_DNNL(dnnl_memory_create)(&arg->memory, desc, context->engine, DNNL_MEMORY_NONE);
        if (status != dnnl_success) return status;
    }
    const dnnl_status_t room = tdm__dnnl_room();
    return room == dnnl_success ? TDM_DNNL(dnnl_primitive_create)(&call->primitive, plan) : room;
}

dnnl_status_t tdm__dnnl_call_run(tdm_dnnl_call *call, const tdm_dnnl_context *context, const void *const *pointers) {
    dnnl_exec_arg_t present[TDM_DNNL_MAX_ARGS];
    int count = 0;
    for (int i = 0; i < call->count; i++) {
        if (call->arg[i].memory == NULL) continue;
        const dnnl_status_t status =
            TDM_DNNL(dnnl_memory_set_data_handle)(call->arg[i].memory, (void *)(uintptr_t)pointers[i]);
        if (status != dnnl_success) return status;
        present[count++] = call->arg[i];
    }
    return TDM_DNNL(dnnl_primitive_execute)(call->primitive, context->stream, count, present);
}

void tdm__dnnl_call_deinit(tdm_dnnl_call *call) {
    for (int i = 0; i < TDM_DNNL_MAX_ARGS; i++)
        if (call->arg[i].memory != NULL) dnnl_memory_destroy(call->arg[i].memory);
    if (call->primitive != NULL) dnnl_primitive_destroy(call->primitive);
    *call = (tdm_dnnl_call){0};
}

size_t tdm__dnnl_scratchpad_bytes(dnnl_primitive_desc_t plan) {
    const tdm_dnnl_ref desc = tdm__dnnl_argument(plan, DNNL_ARG_SCRATCHPAD);
    return desc != NULL ? tdm__dnnl_bytes(desc) : 0;
}

void tdm__dnnl_plan_free(dnnl_primitive_desc_t plan) {
    if (plan != NULL) dnnl_primitive_desc_destroy(plan);
}
