/* Passes beside matrix products and convolutions, for what the libraries do not do reliably: bias and relu, and the
 * start of backward. `y` is [outer][channels][inner]: inner is 1 for features and for channels last, and the number of
 * points for planes. Activations are float or bf16; sums are in float. */
#ifndef TDM_CUDA_KIT_PASSES_H
#define TDM_CUDA_KIT_PASSES_H

#include "runtime/backends/cuda/kit/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* y = y + bias[channel] (bias NULL: none), then max(0, y) if `clamp`, which lets NaN through. */
tdm_status tdm__cuda_bias(tdm_cuda_device *device, tdm_cuda_number number, void *y, const void *bias, int64_t outer,
                          int64_t channels, int64_t inner, bool clamp);

/* masked = 0 where y <= 0, else dy, if y is not NULL; sums[channel] = the sum of (masked) dy if sums is not NULL, in a
 * fixed order. `room` has tdm__cuda_mask_room bytes, a number that grows with outer. */
tdm_status tdm__cuda_mask(tdm_cuda_device *device, tdm_cuda_number number, void *masked, const void *dy, const void *y,
                          float *sums, void *room, int64_t outer, int64_t channels, int64_t inner);
size_t tdm__cuda_mask_room(int64_t outer, int64_t channels, int64_t inner);

#ifdef __cplusplus
}
#endif
#endif
