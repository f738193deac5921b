/* adaptive_avgpool2d in the dnnl module. */
#include "ops/avgpool2d/avgpool2d_dnnl.h"

static tdm_status forward(const tdm_kernel_args *args) {
    return tdm__average_dnnl_forward(args, tdm__adaptive_span);
}

static tdm_status backward(const tdm_kernel_args *args) {
    return tdm__average_dnnl_backward(args, tdm__adaptive_span);
}

const tdm_kernel tdm__adaptive_avgpool2d_dnnl = {.op = "adaptive_avgpool2d",
                                                 .variant = "dnnl",
                                                 .fits = tdm__average_dnnl_fits,
                                                 .forward = forward,
                                                 .backward = backward};
