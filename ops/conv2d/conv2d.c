/* conv2d: definition. torch.nn.Conv2d, zero padding. */
#include "ops/conv2d/conv2d.h"

#include "ops/ops.h"

static const tdm_field fields[] = {
    {.key = "out",
     .kind = TDM_FIELD_INT,
     .offset = offsetof(tdm_conv2d_attrs, out),
     .min = 1,
     .max = TDM_MAX_FEATURES,
     .flags = TDM_FIELD_REQUIRED | TDM_FIELD_MAIN,
     .help = "channels of the output",
     .help_zh = "输出通道数"},
    {.key = "kernel",
     .kind = TDM_FIELD_PAIR,
     .offset = offsetof(tdm_conv2d_attrs, window.kernel),
     .min = 1,
     .max = TDM_MAX_WINDOW,
     .flags = TDM_FIELD_REQUIRED,
     .help = "height and width of the filters",
     .help_zh = "卷积核的高和宽"},
    {.key = "stride",
     .kind = TDM_FIELD_PAIR,
     .offset = offsetof(tdm_conv2d_attrs, window.stride),
     .initial = "1",
     .min = 1,
     .max = TDM_MAX_WINDOW,
     .help = "step from one output to the next",
     .help_zh = "相邻输出之间的步幅"},
    {.key = "padding",
     .kind = TDM_FIELD_PAIR,
     .offset = offsetof(tdm_conv2d_attrs, window.padding),
     .initial = "0",
     .min = 0,
     .max = TDM_MAX_WINDOW,
     .help = "zeros added on each side",
     .help_zh = "每侧补零的数目"},
    {.key = "dilation",
     .kind = TDM_FIELD_PAIR,
     .offset = offsetof(tdm_conv2d_attrs, window.dilation),
     .initial = "1",
     .min = 1,
     .max = TDM_MAX_WINDOW,
     .help = "distance between the points of the filter",
     .help_zh = "卷积核各点之间的间距"},
    {.key = "groups",
     .kind = TDM_FIELD_INT,
     .offset = offsetof(tdm_conv2d_attrs, groups),
     .initial = "1",
     .min = 1,
     .max = TDM_MAX_FEATURES,
     .help = "groups of channels that are convolved separately",
     .help_zh = "互不相连的通道分组数"},
    {.key = "bias",
     .kind = TDM_FIELD_BOOL,
     .offset = offsetof(tdm_conv2d_attrs, bias),
     .initial = "true",
     .help = "whether a learnable bias is added",
     .help_zh = "是否加上可学习的偏置"},
    {.key = "in",
     .kind = TDM_FIELD_INT,
     .offset = offsetof(tdm_conv2d_attrs, in),
     .initial = "null",
     .min = 1,
     .max = TDM_MAX_FEATURES,
     .flags = TDM_FIELD_NULLABLE,
     .help = "channels of the input; taken from the previous layer, checked if given",
     .help_zh = "输入通道数；可由上一层得知，写出则检查"},
    {0},
};

static tdm_status infer(tdm_infer *infer) {
    const tdm_conv2d_attrs *attrs = infer->attrs;
    TDM_INFER_TRY(infer, tdm__infer_check_image(infer));
    int64_t in = infer->input[0].dim[0];
    TDM_INFER_TRY(infer, tdm__infer_check_in(infer, attrs->in, in, "channels"));
    if (in % attrs->groups != 0)
        TDM_INFER_FAIL(infer, "%s: groups must divide the channels of the input, got %lld groups and %lld channels",
                       infer->layer, (long long)attrs->groups, (long long)in);
    if (attrs->out % attrs->groups != 0)
        TDM_INFER_FAIL(infer, "%s: groups must divide `out`, got %lld groups and %lld channels", infer->layer,
                       (long long)attrs->groups, (long long)attrs->out);
    int64_t out[2];
    TDM_INFER_TRY(infer, tdm__window_infer(infer, &attrs->window, out));
    infer->output = (tdm_shape){3, {attrs->out, out[0], out[1]}};

    int64_t height = attrs->window.kernel[0], width = attrs->window.kernel[1];
    tdm_shape weight = {4, {attrs->out, in / attrs->groups, height, width}};
    double taps = (double)(in / attrs->groups) * (double)(height * width);
    infer->flops = 2.0 * taps * (double)attrs->out * (double)out[0] * (double)out[1];
    if (taps > 9007199254740992.0)
        TDM_INFER_FAIL(infer, "%s: its weight %s has more elements than any machine can hold", infer->layer,
                       tdm__shape_text(&weight).text);
    tdm__infer_weight_and_bias(infer, weight, (int64_t)taps, attrs->bias);
    return tdm__infer_done(infer);
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
    .flags = TDM_OP_READS_X,
    .infer = infer,
};
