/* What tdm_arena_ops asks of the device. */
#ifndef TDM_CUDA_PASSES_H
#define TDM_CUDA_PASSES_H

#include <tandem/sys/device.h>

#ifdef __cplusplus
extern "C" {
#endif

/* flat.cu */
tdm_status tdm__cuda_sum(tdm_device *device, float *out, const float *const *source, int source_count, size_t count);
tdm_status tdm__cuda_to_bf16(tdm_device *device, void *out, const float *p, size_t count);
tdm_status tdm__cuda_add_bf16(tdm_device *device, void *out, const void *what, size_t count);
tdm_status tdm__cuda_narrow(tdm_device *device, tdm_dtype type, void *out, const float *x, size_t count);
tdm_status tdm__cuda_widen(tdm_device *device, tdm_dtype type, float *out, const void *x, size_t count);
tdm_status tdm__cuda_round(tdm_device *device, tdm_dtype type, float *x, size_t count);
tdm_status tdm__cuda_clip(tdm_device *device, const tdm_step_values *values, float *g, size_t count,
                          const tdm_flat_range *ranges, int range_count, double *norm);
tdm_status tdm__cuda_clamp(tdm_device *device, const tdm_step_values *values, float *g, size_t count);
tdm_status tdm__cuda_norms(tdm_device *device, const float *g, size_t count, const tdm_flat_range *ranges,
                           int range_count, float *norm);
tdm_status tdm__cuda_scale(tdm_device *device, float *g, size_t count, float factor);
tdm_status tdm__cuda_average(tdm_device *device, const tdm_step_values *values, float *average, const float *p,
                             size_t count);
/* ingest.cu */
tdm_status tdm__cuda_ingest(tdm_device *device, tdm_queue *queue, const tdm_ingest *ingest);

#ifdef __cplusplus
}
#endif
#endif
