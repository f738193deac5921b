/* maxpool1d in the dnnl module: maxpool2d's kernel. */
#include "ops/maxpool1d/maxpool1d.h"

extern const tdm_kernel tdm__maxpool2d_dnnl;

TDM_SERIES_PASSES(maxpool1d, tdm_maxpool2d_attrs, tdm__maxpool2d_dnnl)
const tdm_kernel tdm__maxpool1d_dnnl = {
    .op = "maxpool1d", .variant = "dnnl", .fits = fits, .forward = forward, .backward = backward};
