/* conv2d: definition. torch.nn.Conv2d, zero padding. */
#include "ops/conv2d/conv2d.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ops/fields.h"
#include "ops/onnx/from_onnx.h"
#include "ops/onnx/window_onnx.h"

static const char *const padding_names[] = {"same", "valid", NULL};
static const char *const init_names[] = {"default", "kaiming_fan_out", NULL};
static const tdm_field fields[] = {
    {OUT_CHANNELS(tdm_conv2d_attrs)},
    {FIELD_IN(PAIR, tdm_conv2d_attrs, window, kernel, NULL), RANGE(1, TDM_MAX_WINDOW), FLAGS(REQUIRED),
     HELP("height and width of the filters", "卷积核的高和宽")},
    {FIELD_IN(PAIR, tdm_conv2d_attrs, window, stride, "1"), RANGE(1, TDM_MAX_WINDOW),
     HELP("step from one output to the next", "相邻输出之间的步幅")},
    {FIELD_IN(PAIR, tdm_conv2d_attrs, window, padding, "0"), RANGE(0, TDM_MAX_WINDOW), .names = padding_names,
     HELP("zeros added on each side; same: as many as keep height and width; valid: none",
          "每侧补零的数目；same 表示保持高和宽，valid 表示不补")},
    {FIELD_IN(PAIR, tdm_conv2d_attrs, window, dilation, "1"), RANGE(1, TDM_MAX_WINDOW),
     HELP("distance between the points of the filter", "卷积核各点之间的间距")},
    {CONV_GROUPS(tdm_conv2d_attrs)},
    {LEARNED_BIAS(tdm_conv2d_attrs)},
    {IN_CHANNELS(tdm_conv2d_attrs)},
    {FIELD(ENUM, tdm_conv2d_attrs, init, "default"), .names = init_names,
     HELP("first weights: torch.nn.Conv2d's own, or kaiming_normal_ by fan_out for relu, and a bias of 0",
          "初始权重：torch.nn.Conv2d 自身的，或面向 relu、按 fan_out 的 kaiming_normal_，偏置为 0")},
    {0},
};

static tdm_status infer_points(const tdm_infer *infer, const tdm_conv2d_attrs *attrs, int64_t out[2]) {
    const tdm_window window = tdm__conv2d_window(attrs);
    if (attrs->window.padding[0] != TDM_CONV2D_SAME) return tdm__window_infer(infer, &window, out);
    if (window.stride[0] != 1 || window.stride[1] != 1)
        TDM_INFER_FAIL(infer, "%s: `padding: same` needs a stride of 1, got %lldx%lld", infer->layer,
                       (long long)window.stride[0], (long long)window.stride[1]);
    out[0] = infer->input[0].dim[1];
    out[1] = infer->input[0].dim[2];
    return TDM_OK;
}

static tdm_status infer(tdm_infer *infer) {
    const tdm_conv2d_attrs *attrs = infer->attrs;
    TDM_TRY(tdm__infer_check_image(infer));
    int64_t in = infer->input[0].dim[0];
    TDM_TRY(tdm__infer_check_in(infer, attrs->in, in, "channels"));
    TDM_TRY(tdm__infer_check_groups(infer, attrs->groups, in, attrs->out));
    int64_t out[2];
    TDM_TRY(infer_points(infer, attrs, out));
    infer->output = (tdm_shape){3, {attrs->out, out[0], out[1]}};

    int64_t height = attrs->window.kernel[0], width = attrs->window.kernel[1];
    tdm_shape weight = {4, {attrs->out, in / attrs->groups, height, width}};
    double taps = (double)(in / attrs->groups) * (double)(height * width);
    infer->flops = 2.0 * taps * (double)attrs->out * (double)out[0] * (double)out[1];
    if (taps > 9007199254740992.0)
        TDM_INFER_FAIL(infer, "%s: its weight %s has more elements than any machine can hold", infer->layer,
                       tdm__shape_text(&weight).text);
    tdm__infer_weight_and_bias(infer, weight, (int64_t)taps, attrs->bias);
    if (attrs->init == TDM_CONV2D_INIT_KAIMING)
        tdm__infer_set_again(infer, sqrt(2.0) / sqrt((double)(attrs->out * height * width)));
    return TDM_OK;
}

tdm_status tdm__conv2d_onnx(tdm_onnx *to, const tdm_onnx_layer *layer, const tdm_conv2d_attrs *attrs) {
    const tdm_window window = tdm__conv2d_window(attrs);
    const int64_t after[2] = {tdm__conv2d_padding_after(attrs, 0), tdm__conv2d_padding_after(attrs, 1)};
    const int axes = attrs->is_series ? 1 : 2;
    const char *x[1 + TDM_MAX_PARAMS];
    to->calls->node(to, "Conv", layer->y, tdm__onnx_with_params(layer, layer->x[0], x), x);
    tdm__onnx_window(to, &window, after, axes);
    to->calls->integers(to, "dilations", axes, window.dilation + 2 - axes);
    to->calls->integer(to, "group", attrs->groups);
    return TDM_OK;
}

static tdm_status onnx(tdm_onnx *to, const tdm_onnx_layer *layer) {
    return tdm__conv2d_onnx(to, layer, layer->attrs);
}

bool tdm__conv2d_from_onnx(tdm_onnx_reader *from, const tdm_onnx_node *node, tdm_onnx_found *out, int axes) {
    tdm_window window = {.stride = {1, 1}, .dilation = {1, 1}};
    tdm_onnx_constant weight;
    tdm_shape shape;
    int64_t before[2], after[2];
    if (!from->calls->plain(from, node->input[0], &shape) || shape.ndim != 1 + axes) return false;
    if (!from->calls->constant(from, node->input[1], &weight) || weight.shape.ndim != 2 + axes) {
        snprintf(out->why, sizeof(out->why), "its weights are no constant of %d dimensions", 2 + axes);
        return false;
    }
    memcpy(window.kernel, weight.shape.dim + 2, (size_t)axes * sizeof(*window.kernel));
    (void)from->calls->list(from, node, "strides", axes, window.stride);
    (void)from->calls->list(from, node, "dilations", axes, window.dilation);
    bool known =
        tdm__onnx_sizes_fit(&window, axes) && tdm__onnx_pads(from, node, axes, shape.dim + 1, &window, before, after);
    const bool even = known && memcmp(before, after, (size_t)axes * sizeof(*before)) == 0;
    bool same = known && !even;
    for (int i = 0; i < axes && same; i++) {
        const int64_t all = window.dilation[i] * (window.kernel[i] - 1);
        same = window.stride[i] == 1 && before[i] == all / 2 && after[i] == all - all / 2;
    }
    if (!even && !same) {
        snprintf(out->why, sizeof(out->why), "its padding differs in front and behind; tandem pads both sides alike");
        return false;
    }
    const char *bias = tdm__onnx_input_of(node, 2);
    out->x[out->input_count++] = node->input[0];
    out->param[0] = tdm__onnx_weight_of(node->input[1]);
    out->param[1] = tdm__onnx_weight_of(bias);
    from->calls->set_integer(from, "out", weight.shape.dim[0]);
    tdm__onnx_set_sizes(from, "kernel", axes, window.kernel);
    tdm__onnx_set_sizes(from, "stride", axes, window.stride);
    if (same)
        from->calls->set_word(from, "padding", "same");
    else
        tdm__onnx_set_sizes(from, "padding", axes, before);
    tdm__onnx_set_sizes(from, "dilation", axes, window.dilation);
    from->calls->set_integer(from, "groups", from->calls->integer(from, node, "group", 1));
    if (bias[0] == '\0') from->calls->set_word(from, "bias", "false");
    return true;
}

static bool from_onnx(tdm_onnx_reader *from, const tdm_onnx_node *node, int output, tdm_onnx_found *out) {
    return tdm__onnx_is(node, output, "Conv", 2) && tdm__conv2d_from_onnx(from, node, out, 2);
}

const tdm_op_def tdm__conv2d_op = {
    .name = "conv2d",
    .also_called = "conv convolution",
    .doc = "convolution over height and width (torch.nn.Conv2d)",
    .doc_zh = "二维卷积（torch.nn.Conv2d）",
    .min_inputs = 1,
    .max_inputs = 1,
    .attrs = fields,
    .attrs_bytes = sizeof(tdm_conv2d_attrs),
    .flags = TDM_OP_READS_X | TDM_OP_ROUNDS_PARAMS,
    .infer = infer,
    .onnx = TDM_OF_ONNX(onnx),
    .from_onnx = TDM_OF_ONNX(from_onnx),
};
