/* dropout in the dnnl module: threads share the rows. */
#include "ops/dropout/dropout_rows.h"
#include "runtime/backends/dnnl/kit/dnnl.h"

typedef struct {
    const tdm_kernel_args *args;
    const float *in;
    float *out, scale;
    int64_t width;
    bool draws; /* the mask, in forward */
} call;

static void apply_rows(void *data, int64_t begin, int64_t end) {
    const call *j = data;
    for (int64_t n = begin; n < end; n++) {
        uint8_t *keep = (uint8_t *)j->args->saved + n * j->width;
        if (j->draws) tdm__dropout_draw_row(j->args, keep, n, j->width);
        tdm__dropout_apply(j->out + n * j->width, j->in + n * j->width, keep, j->width, j->scale);
    }
}

static tdm_status apply(const tdm_kernel_args *args, const float *in, float *out, bool draws) {
    const tdm_dropout_attrs *attrs = args->desc->attrs;
    call j = {args, in, out, tdm__dropout_scale(attrs->p), tdm__dropout_width(args->desc), draws};
    return tdm__dnnl_share(args->device, tdm__dnnl_threads(args->desc->threads, args->rows * j.width), args->rows,
                           apply_rows, &j);
}

static tdm_status forward(const tdm_kernel_args *args) {
    return args->training ? apply(args, args->x[0], args->y, true) : tdm__copy_to_y(args);
}

static tdm_status backward(const tdm_kernel_args *args) {
    return apply(args, args->dy, args->dx[0], false);
}

const tdm_kernel tdm__dropout_dnnl = {
    .op = "dropout", .variant = "dnnl", .fits = tdm__dropout_fits, .forward = forward, .backward = backward};
