/* linear: definition. torch.nn.Linear. */
#include "ops/linear/linear.h"

#include <math.h>

#include "ops/fields.h"
#include "ops/onnx/onnx.h"

static const tdm_field fields[] = {
    {FIELD(INT, tdm_linear_attrs, out, NULL), RANGE(1, TDM_MAX_FEATURES), FLAGS(REQUIRED | MAIN),
     HELP("features of the output", "输出特征数")},
    {LEARNED_BIAS(tdm_linear_attrs)},
    {FIELD(INT, tdm_linear_attrs, in, "null"), RANGE(1, 9007199254740992.0), FLAGS(NULLABLE),
     HELP(
         "features of the input, its last dimension; taken from the previous layer, checked if given; needed for inputs "
         "of three dimensions",
         "输入特征数，即其最后一维；可由上一层得知，写出则检查；输入为三维时必须写出")},
    {FIELD(FLOAT, tdm_linear_attrs, init_std, "null"), RANGE(0, 1e6), FLAGS(NULLABLE | OPEN_MIN),
     HELP("standard deviation of the first weights, with a bias of 0; null: as torch.nn.Linear",
          "初始权重的标准差，偏置为 0；null 表示同 torch.nn.Linear")},
    {0},
};

static tdm_status infer(tdm_infer *infer) {
    const tdm_linear_attrs *attrs = infer->attrs;
    const int last = infer->input[0].ndim - 1;
    const int64_t in = infer->input[0].dim[last];
    /* Of an image its width is seldom meant. */
    if (last > 1 && attrs->in == TDM_INT_NULL)
        TDM_INFER_FAIL(infer,
                       "%s works along the last dimension, and its input is %s; put `flatten` before it, or write "
                       "`in: %lld` if that is meant",
                       infer->layer, tdm__shape_text(&infer->input[0]).text, (long long)in);
    TDM_TRY(tdm__infer_check_in(infer, attrs->in, in, "features"));
    infer->output = infer->input[0];
    infer->output.dim[last] = attrs->out;
    tdm__infer_weight_and_bias(infer, (tdm_shape){2, {attrs->out, in}}, in, attrs->bias);
    if (!isnan(attrs->init_std)) tdm__infer_set_again(infer, attrs->init_std);
    infer->param[1].is_bias = attrs->bias && last == 0; /* else it is not of channels, which are the first dimension */
    infer->flops = 2.0 * (double)in * (double)tdm__shape_count(&infer->output);
    return TDM_OK;
}

/* Gemm takes matrices alone. */
static tdm_status onnx(tdm_onnx *to, const tdm_onnx_layer *layer) {
    const char *x[1 + TDM_MAX_PARAMS];
    if (layer->output.ndim == 1) {
        to->calls->node(to, "Gemm", layer->y, tdm__onnx_with_params(layer, layer->x[0], x), x);
        to->calls->integer(to, "transB", 1);
        return TDM_OK;
    }
    const char *turned = to->calls->value(to);
    const char *product = layer->param_count > 1 ? to->calls->value(to) : layer->y;
    TDM_ONNX_NODE(to, "Transpose", turned, layer->param[0]);
    TDM_ONNX_NODE(to, "MatMul", product, layer->x[0], turned);
    if (layer->param_count > 1) TDM_ONNX_NODE(to, "Add", layer->y, product, layer->param[1]);
    return TDM_OK;
}

const tdm_op_def tdm__linear_op = {
    .name = "linear",
    .also_called = "fc dense",
    .doc = "y = x W^T + b along the last dimension, fully connected (torch.nn.Linear)",
    .doc_zh = "沿最后一维的全连接层 y = x W^T + b（torch.nn.Linear）",
    .min_inputs = 1,
    .max_inputs = 1,
    .attrs = fields,
    .attrs_bytes = sizeof(tdm_linear_attrs),
    .flags = TDM_OP_READS_X | TDM_OP_ROUNDS_PARAMS | TDM_OP_WEIGHS_FEATURES,
    .infer = infer,
    .onnx = onnx,
};
