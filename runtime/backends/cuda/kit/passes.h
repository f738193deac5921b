/* Passes that go with matrix products and convolutions, where the libraries have none that is ours to trust: bias and
 * relu, and what backward begins with. `y` is [outer][channels][inner]: rows of features and channels that are
 * neighbours have inner 1, planes have their points there. Activations are floats or bf16; sums are taken in float. */
#ifndef TDM_CUDA_KIT_PASSES_H
#define TDM_CUDA_KIT_PASSES_H

#include "runtime/backends/cuda/kit/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* y = y + bias[channel] (NULL: none), then max(0, y) if `relu`, through which NaN passes. */
tdm_status tdm__cuda_bias(tdm_cuda_device *device, tdm_cuda_number number, void *y, const void *bias, int64_t outer,
                          int64_t channels, int64_t inner, bool relu);

/* masked = dy where y > 0, if y is not NULL; sums[channel] = the sum of (masked) dy, if sums is not NULL. In a fixed
 * order. `room` has tdm__cuda_mask_room bytes, which grow with outer. */
tdm_status tdm__cuda_mask(tdm_cuda_device *device, tdm_cuda_number number, void *masked, const void *dy, const void *y,
                          float *sums, void *room, int64_t outer, int64_t channels, int64_t inner);
size_t tdm__cuda_mask_room(int64_t outer, int64_t channels, int64_t inner);

#ifdef __cplusplus
}
#endif
#endif
