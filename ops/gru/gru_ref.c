/* gru: reference kernel, also the one that runs on the CPU. */
#include "ops/ops.h"
#include "ops/recurrent/recurrent.h"

static bool fits(const tdm_kernel_desc *desc, tdm_kernel_fit *fit) {
    return tdm__recurrent_fits(desc, fit, true);
}

static tdm_status forward(const tdm_kernel_args *args) {
    return tdm__recurrent_forward(args, true);
}

static tdm_status backward(const tdm_kernel_args *args) {
    return tdm__recurrent_backward(args, true);
}

TDM_REF_KERNEL(gru, fits);
