/* adaptive_avgpool1d on CUDA: adaptive_avgpool2d's. */
#include "ops/adaptive_avgpool1d/adaptive_avgpool1d.h"
#include "runtime/backends/cuda/kit/cuda.h"

extern const tdm_kernel tdm__adaptive_avgpool2d_cuda;

TDM_SERIES_PASSES(adaptive_avgpool1d, tdm_adaptive_avgpool2d_attrs, tdm__adaptive_avgpool2d_cuda)

const tdm_kernel tdm__adaptive_avgpool1d_cuda = {
    .op = "adaptive_avgpool1d",
    .variant = "cuda",
    .fits = fits,
    .forward = forward,
    .backward = backward,
    .takes_bf16 = true,
};
