/* conv1d on CUDA: conv2d's, in planes. */
#include "ops/conv1d/conv1d.h"
#include "runtime/backends/cuda/kit/cuda.h"

extern const tdm_kernel tdm__conv2d_cuda;

TDM_SERIES_PASSES(conv1d, tdm_conv2d_attrs, tdm__conv2d_cuda)
TDM_SERIES_STATE(conv1d, tdm_conv2d_attrs, tdm__conv2d_cuda)

static void algorithms(const void *state, tdm_algorithms *out) {
    tdm__conv2d_cuda.algorithms(state, out);
}

const tdm_kernel tdm__conv1d_cuda = {
    .op = "conv1d",
    .variant = "cuda",
    .fits = fits,
    .open = open_state,
    .close = close_state,
    .forward = forward,
    .backward = backward,
    .algorithms = algorithms,
    .takes_bf16 = true,
};
