/* conv2d on CUDA: by cuDNN if possible, else by matrix products over im2col, with the same results.
 *
 * Channels are contiguous in memory (NHWC) if tensor cores are used and the channels fill whole groups of 16 bytes;
 * else x is in planes. The few channels of a batch are padded with zeros to one group if the device's ingest can do it.
 * The weights have the layout of x. Their padding stays zero, because its gradient is computed from the zeros in x. */
#include <stdio.h>

#include <tandem/job.h>

#include "ops/conv2d/conv2d_cuda.h"
#include "runtime/backends/cuda/kit/passes.h"
#include "runtime/backends/cuda/kit/library.h"

/* Byte offsets in scratch, for the most rows: first the masked dy, then room for the bias's sums, then the weights'
 * gradient in bf16. */
typedef struct {
    size_t room, weights, total;
} offsets;

/* Elements in a group of 16 bytes. */
static int64_t group_of(const tdm_kernel_desc *desc) {
    return desc->precision == TDM_BF16 ? 8 : 4;
}

static bool is_filled(const tdm_kernel_desc *desc) {
    return desc->may_fill && !desc->needs_dx[0] && desc->x[0].dim[1] <= group_of(desc);
}

static int64_t stored_channels(const tdm_kernel_desc *desc, tdm_layout layout) {
    return layout == TDM_LAYOUT_NHWC && is_filled(desc) ? group_of(desc) : desc->x[0].dim[1];
}

static tdm_conv_sizes sizes_of(const tdm_kernel_desc *desc, int64_t rows, tdm_layout layout, bool training) {
    const tdm_conv2d_attrs *attrs = desc->attrs;
    const int64_t *x = desc->x[0].dim, *y = desc->y.dim;
    return (tdm_conv_sizes){
        .rows = rows,
        .in = x[1],
        .stored = stored_channels(desc, layout),
        .height = x[2],
        .width = x[3],
        .out = y[1],
        .out_height = y[2],
        .out_width = y[3],
        .groups = attrs->groups,
        .taps = attrs->window.kernel[0] * attrs->window.kernel[1],
        .window = tdm__conv2d_window(attrs),
        .is_uneven = tdm__conv2d_padding_after(attrs, 0) != tdm__conv2d_window(attrs).padding[0] ||
                     tdm__conv2d_padding_after(attrs, 1) != tdm__conv2d_window(attrs).padding[1],
        .number = tdm__cuda_number_of(desc),
        .nhwc = layout != TDM_LAYOUT_PLAIN,
        .bias = desc->param_count > 1,
        .relu = tdm_has_epilogue(desc, TDM_EPILOGUE_RELU),
        .training = training,
        .needs_dx = desc->needs_dx[0],
        .fast = desc->fast,
    };
}

static offsets offsets_of(const tdm_kernel_desc *desc, tdm_layout layout) {
    const tdm_conv_sizes s = sizes_of(desc, desc->y.dim[0], layout, true);
    const int64_t points = tdm__conv_points(&s);
    offsets at = {.room = tdm__cuda_part((size_t)(s.rows * s.out * points) * tdm__cuda_size(s.number))};
    at.weights = at.room + tdm__cuda_part(s.nhwc ? tdm__cuda_mask_room(s.rows * points, s.out, 1)
                                                 : tdm__cuda_mask_room(s.rows, s.out, points));
    at.total = at.weights;
    if (s.number != TDM_CUDA_FLOAT)
        at.total += tdm__cuda_part((size_t)tdm__conv_weight_count(&s) * tdm__cuda_size(s.number));
    return at;
}

static tdm_layout layout_for(const tdm_kernel_desc *desc) {
    const tdm_conv2d_attrs *attrs = desc->attrs;
    const int64_t in = desc->x[0].dim[1], out = desc->y.dim[1];
    const int64_t group = group_of(desc);
    if (desc->precision == TDM_F32 || attrs->is_series || attrs->groups != 1 || out % group != 0)
        return TDM_LAYOUT_PLAIN;
    return is_filled(desc) || in % group == 0 ? TDM_LAYOUT_NHWC : TDM_LAYOUT_PLAIN;
}

/* The library that may add the bias to a sum before rounding it. */
static bool has_cudnn(void) {
    const tdm_cuda_libraries *libraries = tdm__cuda_libraries(NULL, 0);
    return libraries != NULL && libraries->dnn.handle != NULL;
}

static bool fits(const tdm_kernel_desc *desc, tdm_kernel_fit *fit) {
    const tdm_layout layout = layout_for(desc);
    const tdm_conv_sizes s = sizes_of(desc, desc->y.dim[0], layout, true);
    fit->x_layout[0] = layout;
    fit->y_layout = s.nhwc ? TDM_LAYOUT_NHWC : TDM_LAYOUT_PLAIN;
    fit->epilogue = TDM_EPILOGUE_RELU;
    if (!desc->training && desc->precision != TDM_BF16 && !has_cudnn()) fit->epilogue |= TDM_EPILOGUE_GIVES_BIAS;
    fit->x_channels = s.stored > s.in ? s.stored : 0;
    fit->weight_channels = s.nhwc ? s.stored : 0;
    fit->scratch_bytes = offsets_of(desc, layout).total;
    return true;
}

static void close_state(void *state) {
    tdm_conv_method *method = state;
    if (method != NULL) method->ops->close(method);
}

static tdm_status open_state(tdm_device *device, const tdm_kernel_desc *desc, int64_t rows, bool training,
                             void **state) {
    const tdm_conv_sizes sizes = sizes_of(desc, rows, desc->x_layout[0], training);
    char why[192] = "";
    tdm_conv_method *method = NULL;
    *state = NULL;
    TDM_CUDA_ENTER(device);
    TDM_MODULE_TRY(tdm__conv_cudnn_open(&method, tdm__cuda_device(device), &sizes, why, sizeof why));
    if (method == NULL) {
        TDM_MODULE_TRY(tdm__conv_im2col_open(&method, tdm__cuda_device(device), &sizes));
        snprintf(method->slow, sizeof method->slow, "runs by im2col, which is slower: cuDNN %s", why);
    }
    *state = method;
    return TDM_OK;
}

static void algorithms(const void *state, tdm_algorithms *out) {
    const tdm_conv_method *method = state;
    method->ops->algorithms(method, out);
    snprintf(out->slow, sizeof out->slow, "%s", method->slow);
}

static tdm_status forward(const tdm_kernel_args *args) {
    tdm_conv_method *method = args->state;
    const tdm_conv_sizes *s = &method->sizes;
    const void *bias = s->bias ? tdm__cuda_parameter(args, 1) : NULL;
    const int64_t points = tdm__conv_points(s);
    bool done = false;
    TDM_CUDA_ENTER(args->device);
    TDM_MODULE_TRY(method->ops->forward(method, args->x[0], tdm__cuda_parameter(args, 0), bias, args->y, &done));
    if (done || (bias == NULL && !s->relu)) return TDM_OK;
    return tdm__cuda_bias(method->device, s->number, args->y, bias, s->nhwc ? s->rows * points : s->rows, s->out,
                          s->nhwc ? 1 : points, s->relu);
}

static tdm_status backward(const tdm_kernel_args *args) {
    tdm_conv_method *method = args->state;
    const tdm_conv_sizes *s = &method->sizes;
    const offsets at = offsets_of(args->desc, args->desc->x_layout[0]);
    const int64_t points = tdm__conv_points(s);
    const bool sums = s->bias && args->dparam[1] != NULL;
    char *scratch = args->scratch;
    TDM_CUDA_ENTER(args->device);
    TDM_MODULE_TRY(tdm__cuda_mask(method->device, s->number, scratch, args->dy, s->relu ? args->y : NULL,
                                  sums ? args->dparam[1] : NULL, scratch + at.room,
                                  s->nhwc ? s->rows * points : s->rows, s->out, s->nhwc ? 1 : points));
    return method->ops->backward(method, args->x[0], tdm__cuda_parameter(args, 0),
                                 s->relu ? scratch : (const void *)args->dy, args->dparam[0], args->dx[0],
                                 scratch + at.weights);
}

const tdm_kernel tdm__conv2d_cuda = {
    .op = "conv2d",
    .variant = "cuda",
    .fits = fits,
    .open = open_state,
    .close = close_state,
    .forward = forward,
    .backward = backward,
    .algorithms = algorithms,
    .takes_bf16 = true,
};
