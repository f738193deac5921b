/* maxpool1d on CUDA: maxpool2d's. */
#include "ops/maxpool1d/maxpool1d.h"
#include "runtime/backends/cuda/kit/cuda.h"

extern const tdm_kernel tdm__maxpool2d_cuda;

TDM_SERIES_PASSES(maxpool1d, tdm_maxpool2d_attrs, tdm__maxpool2d_cuda)

const tdm_kernel tdm__maxpool1d_cuda = {
    .op = "maxpool1d",
    .variant = "cuda",
    .fits = fits,
    .forward = forward,
    .backward = backward,
    .takes_bf16 = true,
};
