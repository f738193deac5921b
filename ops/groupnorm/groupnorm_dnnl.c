/* groupnorm: the kernel of the dnnl module, with the passes of layernorm's. */
#include "ops/groupnorm/groupnorm.h"
#include "ops/layernorm/layernorm_dnnl.h"

static bool fits(const tdm_kernel_desc *desc, tdm_kernel_fit *fit) {
    const tdm_segments of = tdm__groupnorm_segments(desc, desc->y.dim[0]);
    return tdm__segments_dnnl_fits(fit, &of);
}

static tdm_status forward(const tdm_kernel_args *args) {
    const tdm_groupnorm_attrs *attrs = args->desc->attrs;
    const tdm_segments of = tdm__groupnorm_segments(args->desc, args->rows);
    return tdm__segments_dnnl_forward(args, &of, attrs->eps);
}

static tdm_status backward(const tdm_kernel_args *args) {
    const tdm_segments of = tdm__groupnorm_segments(args->desc, args->rows);
    return tdm__segments_dnnl_backward(args, &of);
}

const tdm_kernel tdm__groupnorm_dnnl = {
    .op = "groupnorm", .variant = "dnnl", .fits = fits, .forward = forward, .backward = backward};
