/* avgpool2d: reference kernel, for every layout. */
#include "ops/average.h"
#include "ops/avgpool2d/avgpool2d.h"
#include "ops/ops.h"

static tdm_status forward(const tdm_kernel_args *args) {
    return tdm__average_forward(args, tdm__avgpool2d_span);
}

static tdm_status backward(const tdm_kernel_args *args) {
    return tdm__average_backward(args, tdm__avgpool2d_span);
}

TDM_REF_KERNEL(avgpool2d, tdm__average_fits);
