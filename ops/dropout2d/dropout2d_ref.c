/* dropout2d: reference kernel, also used by default, for every layout. */
#include "ops/dropout/dropout_rows.h"
#include "ops/dropout2d/dropout2d.h"
#include "ops/ops.h"
#include "runtime/base/planes.h"

static bool fits(const tdm_kernel_desc *desc, tdm_kernel_fit *fit) {
    fit->saved_bytes = (size_t)(desc->y.dim[0] * desc->y.dim[1]);
    return tdm__elementwise_fits(desc, fit);
}

static void apply(const tdm_kernel_args *args, float *out, const float *in) {
    const tdm_dropout_attrs *attrs = args->desc->attrs;
    const tdm_planes planes = tdm__planes_of(&args->desc->y, args->rows, args->desc->y_layout);
    const uint8_t *keep = args->saved;
    const float scale = tdm__dropout_scale(attrs->p);
    for (int64_t plane = 0; plane < planes.count; plane++, keep += planes.inner)
        for (int64_t point = 0; point < planes.height * planes.width; point++, in += planes.inner, out += planes.inner)
            tdm__dropout_apply(out, in, keep, planes.inner, scale);
}

/* y = x * keep / (1 - p) */
static tdm_status forward(const tdm_kernel_args *args) {
    if (!args->training) return tdm__copy_to_y(args);
    tdm__dropout_draw_rows(args, args->desc->y.dim[1]);
    apply(args, args->y, args->x[0]);
    return TDM_OK;
}

/* dx = dy * keep / (1 - p) */
static tdm_status backward(const tdm_kernel_args *args) {
    apply(args, args->dx[0], args->dy);
    return TDM_OK;
}

TDM_REF_KERNEL(dropout2d, fits);
