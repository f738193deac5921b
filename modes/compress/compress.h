/* parallel.ddp.compress: what is summed instead of gradients. bf16 and fp16: each rank rounds its gradient to 16 bits,
 * the sum is made in floats and rounded once. single and dp round at the same points of a step, so that all modes have
 * the same bits. PowerSGD: powersgd.h. */
#ifndef TDM_MODES_COMPRESS_H
#define TDM_MODES_COMPRESS_H

#include "runtime/exec/mode.h"

/* The type of 16 bits that gradients are rounded to; TDM_DTYPE_F32: they are not, or there is one replica. */
tdm_dtype tdm__compressed_type(const tdm_job *job, int replicas);
/* Rounds floats to the type of 16 bits and back. Nothing if the type is F32. */
tdm_status tdm__compress_round(const tdm_replica *replica, tdm_dtype type, float *x, size_t count);
/* Bytes that a rank contributes to the sums of step `step`, counted from 1: in its first steps PowerSGD sends whole
 * gradients. INT64_MAX: once it compresses. */
int64_t tdm__compressed_bytes(const tdm_plan *plan, const tdm_job *job, int replicas, int64_t step);
/* PowerSGD computes its factors in host memory, whatever the device. */
static inline bool tdm__compresses_in_host(const tdm_job *job) {
    return job->parallel.ddp.compress.type == TDM_COMPRESS_POWERSGD;
}

/* Memory of a stage's device for what is sent instead of gradients. */
size_t tdm__compression_memory(const tdm_plan *plan, const tdm_job *job, int replicas, int stage);

#endif
