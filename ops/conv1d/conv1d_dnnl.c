/* conv1d with oneDNN: conv2d's, in planes, which is how values of a series lie in memory. Not in bf16, for which oneDNN
 * wants neighbouring channels. */
#include "ops/conv1d/conv1d.h"
#include "runtime/backends/dnnl/kit/dnnl.h"

extern const tdm_kernel tdm__conv2d_dnnl;

TDM_SERIES_PASSES(conv1d, tdm_conv2d_attrs, tdm__conv2d_dnnl)
TDM_SERIES_STATE(conv1d, tdm_conv2d_attrs, tdm__conv2d_dnnl)

const tdm_kernel tdm__conv1d_dnnl = {
    .op = "conv1d",
    .variant = "dnnl",
    .fits = fits,
    .open = open_state,
    .close = close_state,
    .forward = forward,
    .backward = backward,
};
