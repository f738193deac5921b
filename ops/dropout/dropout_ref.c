/* dropout: reference kernel, also used by default. */
#include <string.h>

#include "ops/dropout/dropout_rows.h"
#include "ops/ops.h"

/* The mask is defined on the plain layout; in another layout each element would have to be looked up. */
static bool fits(const tdm_kernel_desc *desc, tdm_kernel_fit *fit) {
    fit->x_layout[0] = fit->y_layout = TDM_LAYOUT_PLAIN;
    fit->saved_bytes = (size_t)(desc->y.dim[0] * tdm__dropout_width(desc));
    return true;
}

/* y = x * keep / (1 - p) */
static tdm_status forward(const tdm_kernel_args *args) {
    const tdm_dropout_attrs *attrs = args->desc->attrs;
    int64_t count = tdm__elementwise_count(args), width = count / args->rows;
    if (!args->training) {
        if (args->y != args->x[0]) memcpy(args->y, args->x[0], (size_t)count * sizeof(float));
        return TDM_OK;
    }
    for (int64_t n = 0; n < args->rows; n++) tdm__dropout_draw_row(args, (uint8_t *)args->saved + n * width, n, width);
    tdm__dropout_apply(args->y, args->x[0], args->saved, count, tdm__dropout_scale(attrs->p));
    return TDM_OK;
}

/* dx = dy * keep / (1 - p) */
static tdm_status backward(const tdm_kernel_args *args) {
    const tdm_dropout_attrs *attrs = args->desc->attrs;
    tdm__dropout_apply(args->dx[0], args->dy, args->saved, tdm__elementwise_count(args), tdm__dropout_scale(attrs->p));
    return TDM_OK;
}

TDM_REF_KERNEL(dropout, fits);
