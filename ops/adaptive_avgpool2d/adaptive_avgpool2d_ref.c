/* adaptive_avgpool2d: reference kernel, for every layout. */
#include "ops/average.h"
#include "ops/ops.h"

static tdm_average_range span(const void *attrs, int axis, int64_t at, int64_t in, int64_t out) {
    (void)attrs, (void)axis;
    return tdm__adaptive_range(at, in, out);
}

static tdm_status forward(const tdm_kernel_args *args) {
    return tdm__average_forward(args, span);
}

static tdm_status backward(const tdm_kernel_args *args) {
    return tdm__average_backward(args, span);
}

TDM_REF_KERNEL(adaptive_avgpool2d, tdm__average_fits);
