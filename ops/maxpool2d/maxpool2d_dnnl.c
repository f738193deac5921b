/* maxpool2d in C, for every layout; threads share the planes. oneDNN's pooling does not promise PyTorch's choice among equal maxima. */
#include <stdio.h>

#include "ops/maxpool2d/maxpool2d.h"
#include "ops/maxpool2d/maxpool2d_lanes.h"
#include "runtime/backends/dnnl/kit/dnnl.h"

static bool fits(const tdm_kernel_desc *desc, tdm_kernel_fit *fit) {
    const tdm_maxpool2d_attrs *attrs = desc->attrs;
    const int64_t *y = desc->y.dim;
    const tdm_layout layout = desc->x_layout[0];
    if (layout == TDM_LAYOUT_NHWC && (y[1] == 2 || y[1] == 3)) {
        snprintf(fit->why, sizeof fit->why, "2 or 3 neighbouring channels");
        return false;
    }
    if (!tdm__maxpool2d_fits_byte(attrs)) {
        snprintf(fit->why, sizeof fit->why, "window of more than 255 points");
        return false;
    }
    fit->x_layout[0] = fit->y_layout = layout;
    fit->saved_bytes = (size_t)(y[0] * y[1] * y[2] * y[3]);
    return true;
}

typedef struct {
    const tdm_kernel_args *args;
    tdm_maxpool2d_planes pool;
    int64_t planes;
} call;

static call call_of(const tdm_kernel_args *args) {
    const tdm_kernel_desc *desc = args->desc;
    const tdm_maxpool2d_attrs *attrs = desc->attrs;
    const int64_t *x = desc->x[0].dim, *y = desc->y.dim;
    const tdm_planes planes = tdm__planes_of(&desc->x[0], args->rows, desc->x_layout[0]);
    return (call){.args = args,
                  .pool = {.window = tdm__pool_window(&attrs->pool),
                           .inner = planes.inner,
                           .in = {x[2], x[3]},
                           .out = {y[2], y[3]}},
                  .planes = planes.count};
}

static tdm_status share(call *j, tdm_dnnl_work_fn work) {
    const int64_t numbers = j->planes * j->pool.in[0] * j->pool.in[1] * j->pool.inner;
    return tdm__dnnl_share(j->args->device, tdm__dnnl_threads(j->args->desc->threads, numbers), j->planes, work, j);
}

static void forward_planes(void *data, int64_t begin, int64_t end) {
    const call *j = data;
    uint8_t *winner = j->args->training ? j->args->saved : NULL;
    tdm__maxpool2d_forward_lanes(&j->pool)->forward(&j->pool, j->args->x[0], j->args->y, winner, begin, end);
}

static void backward_planes(void *data, int64_t begin, int64_t end) {
    const call *j = data;
    tdm__maxpool2d_backward_lanes(&j->pool)->backward(&j->pool, j->args->dy, j->args->saved, j->args->dx[0], begin,
                                                      end);
}

static tdm_status forward(const tdm_kernel_args *args) {
    call j = call_of(args);
    return share(&j, forward_planes);
}

static tdm_status backward(const tdm_kernel_args *args) {
    call j = call_of(args);
    return share(&j, backward_planes);
}

const tdm_kernel tdm__maxpool2d_dnnl = {
    .op = "maxpool2d",
    .variant = "dnnl",
    .fits = fits,
    .forward = forward,
    .backward = backward,
};
