/* Compressed gradients for the reducers that sum in host memory. */
#include "modes/compress/compress.h"
#include "modes/reducers/reducer.h"
#include "runtime/base/status.h"

static tdm_status open_narrow(tdm_reducer *reducer) {
    const size_t bytes = reducer->params->plan->trained_floats * sizeof(uint16_t);
    void *narrow = NULL;
    TDM_TRY(tdm__reduced_memory(reducer->params, bytes, "gradients of 16 bits", &narrow));
    reducer->narrow = narrow;
    return TDM_OK;
}

tdm_status tdm__compression_open(tdm_reducer *reducer) {
    const tdm_mode_params *params = reducer->params;
    if (params->job->parallel.ddp.compress.type == TDM_COMPRESS_POWERSGD)
        return tdm__powersgd_open(&reducer->powersgd, params);
    return tdm__compressed_type(params->job, params->replicas) == TDM_DTYPE_F32 ? TDM_OK : open_narrow(reducer);
}

void tdm__compression_close(tdm_reducer *reducer) {
    tdm__reduced_memory_release(reducer->params, reducer->narrow);
    tdm__powersgd_close(reducer->powersgd);
}

tdm_status tdm__reduce_in_host(tdm_reducer *reducer, tdm_span span, int bucket) {
    const tdm_mode_params *params = reducer->params;
    const tdm_flat_kernels *flat = tdm_builtin_flat();
    if (reducer->powersgd != NULL) return tdm__powersgd_reduce(reducer->powersgd, span.data, bucket, reducer->step);
    if (reducer->narrow == NULL) return tdm_comm_all_reduce(params->comm, span, TDM_REDUCE_SUM);
    const tdm_dtype type = tdm__compressed_type(params->job, params->replicas);
    uint16_t *narrow = reducer->narrow + params->plan->buckets[bucket].offset;
    (type == TDM_DTYPE_BF16 ? flat->to_bf16 : flat->to_f16)(narrow, span.data, span.count);
    TDM_TRY(tdm_comm_all_reduce(params->comm, (tdm_span){narrow, span.count, type}, TDM_REDUCE_SUM));
    (type == TDM_DTYPE_BF16 ? flat->from_bf16 : flat->from_f16)(span.data, narrow, span.count);
    return TDM_OK;
}
