/* dropout in the dnnl module: threads share the rows. */
#include <string.h>

#include "ops/dropout/dropout_rows.h"
#include "runtime/backends/dnnl/kit/dnnl.h"

typedef struct {
    const tdm_kernel_args *args;
    const float *in;
    float *out, scale;
    int64_t width;
    bool draws; /* the mask, in forward */
} job;

/* The mask is defined on the plain layout. */
static bool fits(const tdm_kernel_desc *desc, tdm_kernel_fit *fit) {
    fit->x_layout[0] = fit->y_layout = TDM_LAYOUT_PLAIN;
    fit->saved_bytes = (size_t)(desc->y.dim[0] * tdm__dropout_width(desc));
    return true;
}

static void apply_rows(void *data, int64_t begin, int64_t end) {
    const job *j = data;
    for (int64_t n = begin; n < end; n++) {
        uint8_t *keep = (uint8_t *)j->args->saved + n * j->width;
        if (j->draws) tdm__dropout_draw_row(j->args, keep, n, j->width);
        tdm__dropout_apply(j->out + n * j->width, j->in + n * j->width, keep, j->width, j->scale);
    }
}

static tdm_status apply(const tdm_kernel_args *args, const float *in, float *out, bool draws) {
    const tdm_dropout_attrs *attrs = args->desc->attrs;
    job j = {args, in, out, tdm__dropout_scale(attrs->p), tdm__dropout_width(args->desc), draws};
    return tdm__dnnl_share(tdm__dnnl_threads(args->desc->threads, args->rows * j.width), args->rows, apply_rows, &j);
}

static tdm_status forward(const tdm_kernel_args *args) {
    if (args->training) return apply(args, args->x[0], args->y, true);
    const size_t bytes = (size_t)(args->rows * tdm__dropout_width(args->desc)) * sizeof(float);
    if (args->y != args->x[0]) memcpy(args->y, args->x[0], bytes);
    return TDM_OK;
}

static tdm_status backward(const tdm_kernel_args *args) {
    return apply(args, args->dy, args->dx[0], false);
}

const tdm_kernel tdm__dropout_dnnl = {
    .op = "dropout", .variant = "dnnl", .fits = fits, .forward = forward, .backward = backward};
