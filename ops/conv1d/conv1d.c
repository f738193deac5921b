/* conv1d: definition. torch.nn.Conv1d, zero padding. */
#include "ops/conv1d/conv1d.h"

#include "ops/fields.h"
#include "ops/onnx/from_onnx.h"
#include "ops/onnx/onnx.h"

static const char *const padding_names[] = {"same", "valid", NULL};
static const tdm_field fields[] = {
    {OUT_CHANNELS(tdm_conv1d_attrs)},
    {FIELD(INT, tdm_conv1d_attrs, kernel, NULL), RANGE(1, TDM_MAX_WINDOW), FLAGS(REQUIRED),
     HELP("points of the filters", "卷积核的点数")},
    {FIELD(INT, tdm_conv1d_attrs, stride, "1"), RANGE(1, TDM_MAX_WINDOW),
     HELP("step from one output to the next", "相邻输出之间的步幅")},
    {FIELD(INT, tdm_conv1d_attrs, padding, "0"), RANGE(0, TDM_MAX_WINDOW), .names = padding_names,
     HELP("zeros added at each end; same: as many as keep the length; valid: none",
          "两端各补零的数目；same 表示保持长度，valid 表示不补")},
    {FIELD(INT, tdm_conv1d_attrs, dilation, "1"), RANGE(1, TDM_MAX_WINDOW),
     HELP("distance between the points of the filter", "卷积核各点之间的间距")},
    {CONV_GROUPS(tdm_conv1d_attrs)},
    {LEARNED_BIAS(tdm_conv1d_attrs)},
    {IN_CHANNELS(tdm_conv1d_attrs)},
    {0},
};

static tdm_status infer_points(const tdm_infer *infer, const tdm_conv1d_attrs *attrs, int64_t *out) {
    const tdm_conv2d_attrs image = tdm__conv1d_image(attrs);
    const tdm_window window = tdm__conv2d_window(&image);
    if (attrs->padding != TDM_CONV2D_SAME) return tdm__series_infer_points(infer, &window, out);
    if (attrs->stride != 1)
        TDM_INFER_FAIL(infer, "%s: `padding: same` needs a stride of 1, got %lld", infer->layer,
                       (long long)attrs->stride);
    *out = infer->input[0].dim[1];
    return TDM_OK;
}

static tdm_status infer(tdm_infer *infer) {
    const tdm_conv1d_attrs *attrs = infer->attrs;
    int64_t points;
    TDM_TRY(tdm__infer_check_series(infer));
    const int64_t in = infer->input[0].dim[0];
    TDM_TRY(tdm__infer_check_in(infer, attrs->in, in, "channels"));
    TDM_TRY(tdm__infer_check_groups(infer, attrs->groups, in, attrs->out));
    TDM_TRY(infer_points(infer, attrs, &points));
    infer->output = (tdm_shape){2, {attrs->out, points}};
    const int64_t taps = in / attrs->groups * attrs->kernel;
    infer->flops = 2.0 * (double)taps * (double)attrs->out * (double)points;
    const tdm_shape weight = {3, {attrs->out, in / attrs->groups, attrs->kernel}};
    tdm__infer_weight_and_bias(infer, weight, taps, attrs->bias);
    return TDM_OK;
}

static tdm_status onnx(tdm_onnx *to, const tdm_onnx_layer *layer) {
    const tdm_conv2d_attrs image = tdm__conv1d_image(layer->attrs);
    return tdm__conv2d_onnx(to, layer, &image);
}

static bool from_onnx(tdm_onnx_reader *from, const tdm_onnx_node *node, int output, tdm_onnx_found *out) {
    return tdm__onnx_is(node, output, "Conv", 2) && tdm__conv2d_from_onnx(from, node, out, 1);
}

const tdm_op_def tdm__conv1d_op = {
    .name = "conv1d",
    .also_called = "conv_1d temporal_convolution",
    .doc = "convolution over a series [channels, points] (torch.nn.Conv1d)",
    .doc_zh = "对序列 [通道数, 点数] 的一维卷积（torch.nn.Conv1d）",
    .min_inputs = 1,
    .max_inputs = 1,
    .attrs = fields,
    .attrs_bytes = sizeof(tdm_conv1d_attrs),
    .flags = TDM_OP_READS_X | TDM_OP_ROUNDS_PARAMS,
    .infer = infer,
    .onnx = TDM_OF_ONNX(onnx),
    .from_onnx = TDM_OF_ONNX(from_onnx),
};
