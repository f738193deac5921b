/* conv2d on CUDA: cuDNN where it is, matrix products over im2col where not, with the same results.
 *
 * Channels are neighbours in memory (NHWC) where tensor cores are used and the channels make whole groups of four;
 * else planes. */
#include <stdio.h>
#include <stdlib.h>

#include <tandem/job.h>

#include "ops/conv2d/conv2d_cuda.h"
#include "ops/cuda_module/passes.h"
#include "runtime/device/cuda/cuda_private.h"

enum { PART = 256, CHANNEL_GROUP = 4 };

/* Byte offsets in scratch, for the most rows: dy where y > 0, the room of the bias's sums, and the gradient of the
 * weights in another layout. */
typedef struct {
    size_t room, weights, total;
} places;

static size_t rounded(size_t bytes) {
    return (bytes + PART - 1) / PART * PART;
}

static tdm_conv_sizes sizes_of(const tdm_kernel_desc *desc, int64_t rows, tdm_layout layout, bool training) {
    const tdm_conv2d_attrs *attrs = desc->attrs;
    const int64_t *x = desc->x[0].dim, *y = desc->y.dim;
    return (tdm_conv_sizes){
        .rows = rows,
        .in = x[1],
        .height = x[2],
        .width = x[3],
        .out = y[1],
        .out_height = y[2],
        .out_width = y[3],
        .groups = attrs->groups,
        .taps = attrs->window.kernel[0] * attrs->window.kernel[1],
        .window = attrs->window,
        .nhwc = layout == TDM_LAYOUT_NHWC,
        .bias = desc->param_count > 1,
        .relu = desc->relu,
        .training = training,
        .wants_dx = desc->wants_dx[0],
        .fast = desc->fast,
    };
}

static places places_of(const tdm_kernel_desc *desc, tdm_layout layout) {
    const tdm_conv_sizes s = sizes_of(desc, desc->y.dim[0], layout, true);
    const int64_t points = tdm__conv_points(&s);
    const size_t weights = (size_t)tdm__conv_weight_count(&s) * sizeof(float);
    places at = {.room = rounded((size_t)(s.rows * s.out * points) * sizeof(float))};
    at.weights = at.room + rounded(s.nhwc ? tdm__cuda_mask_room(s.rows * points, s.out, 1)
                                          : tdm__cuda_mask_room(s.rows, s.out, points));
    at.total = at.weights + (s.nhwc ? rounded(weights) : 0);
    return at;
}

static bool fits(const tdm_kernel_desc *desc, tdm_kernel_fit *fit) {
    const tdm_conv2d_attrs *attrs = desc->attrs;
    const int64_t in = desc->x[0].dim[1], out = desc->y.dim[1];
    const bool nhwc =
        desc->precision == TDM_TF32 && attrs->groups == 1 && in % CHANNEL_GROUP == 0 && out % CHANNEL_GROUP == 0;
    const tdm_layout layout = nhwc ? TDM_LAYOUT_NHWC : TDM_LAYOUT_PLAIN;
    const tdm_conv_sizes s = sizes_of(desc, desc->y.dim[0], layout, true);
    fit->x_layout[0] = fit->y_layout = layout;
    fit->relu = true;
    fit->saved_bytes = nhwc ? (size_t)tdm__conv_weight_count(&s) * sizeof(float) : 0;
    fit->scratch_bytes = places_of(desc, layout).total;
    return true;
}

static void close_state(void *state) {
    tdm_conv_way *way = state;
    if (way != NULL) way->ops->close(way);
}

static tdm_status open_state(tdm_device *device, const tdm_kernel_desc *desc, int64_t rows, bool training,
                             void **state) {
    const tdm_conv_sizes sizes = sizes_of(desc, rows, desc->x_layout[0], training);
    tdm_conv_way *way = NULL;
    *state = NULL;
    TDM_CUDA_ENTER(device);
    TDM_CUDA_TRY(tdm__conv_cudnn_open(&way, tdm__cuda_device(device), &sizes));
    if (way == NULL) TDM_CUDA_TRY(tdm__conv_im2col_open(&way, tdm__cuda_device(device), &sizes));
    *state = way;
    return TDM_OK;
}

static tdm_status forward(const tdm_kernel_args *args) {
    tdm_conv_way *way = args->state;
    const tdm_conv_sizes *s = &way->sizes;
    const float *bias = s->bias ? args->param[1] : NULL;
    const int64_t points = tdm__conv_points(s);
    bool done = false;
    TDM_CUDA_ENTER(args->device);
    TDM_CUDA_TRY(way->ops->forward(way, args->x[0], args->param[0], bias, args->y, args->saved, &done));
    if (done || (bias == NULL && !s->relu)) return TDM_OK;
    return tdm__cuda_bias(way->device, args->y, bias, s->nhwc ? s->rows * points : s->rows, s->out,
                          s->nhwc ? 1 : points, s->relu);
}

static tdm_status backward(const tdm_kernel_args *args) {
    tdm_conv_way *way = args->state;
    const tdm_conv_sizes *s = &way->sizes;
    const places at = places_of(args->desc, args->desc->x_layout[0]);
    const int64_t points = tdm__conv_points(s);
    char *scratch = args->scratch;
    TDM_CUDA_ENTER(args->device);
    TDM_CUDA_TRY(tdm__cuda_mask(way->device, (float *)scratch, args->dy, s->relu ? args->y : NULL,
                                s->bias ? args->dparam[1] : NULL, scratch + at.room,
                                s->nhwc ? s->rows * points : s->rows, s->out, s->nhwc ? 1 : points));
    return way->ops->backward(way, args->x[0], args->param[0], s->relu ? (const float *)scratch : args->dy,
                              args->dparam[0], args->dx[0], args->saved, scratch + at.weights);
}

const tdm_kernel tdm__conv2d_cuda = {
    .op = "conv2d",
    .variant = "cuda",
    .fits = fits,
    .open = open_state,
    .close = close_state,
    .forward = forward,
    .backward = backward,
};
