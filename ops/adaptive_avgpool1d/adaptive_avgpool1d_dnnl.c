/* adaptive_avgpool1d in the dnnl module: adaptive_avgpool2d's kernel. */
#include "ops/adaptive_avgpool1d/adaptive_avgpool1d.h"

extern const tdm_kernel tdm__adaptive_avgpool2d_dnnl;

TDM_SERIES_PASSES(adaptive_avgpool1d, tdm_adaptive_avgpool2d_attrs, tdm__adaptive_avgpool2d_dnnl)
const tdm_kernel tdm__adaptive_avgpool1d_dnnl = {
    .op = "adaptive_avgpool1d", .variant = "dnnl", .fits = fits, .forward = forward, .backward = backward};
