/* dropout: reference kernel, also used by default. */
#include "ops/dropout/dropout_rows.h"
#include "ops/ops.h"

/* y = x * keep / (1 - p) */
static tdm_status forward(const tdm_kernel_args *args) {
    const tdm_dropout_attrs *attrs = args->desc->attrs;
    if (!args->training) return tdm__copy_to_y(args);
    tdm__dropout_draw_rows(args, tdm__dropout_width(args->desc));
    tdm__dropout_apply(args->y, args->x[0], args->saved, tdm__elementwise_count(args), tdm__dropout_scale(attrs->p));
    return TDM_OK;
}

/* dx = dy * keep / (1 - p) */
static tdm_status backward(const tdm_kernel_args *args) {
    const tdm_dropout_attrs *attrs = args->desc->attrs;
    tdm__dropout_apply(args->dx[0], args->dy, args->saved, tdm__elementwise_count(args), tdm__dropout_scale(attrs->p));
    return TDM_OK;
}

TDM_REF_KERNEL(dropout, tdm__dropout_fits);
