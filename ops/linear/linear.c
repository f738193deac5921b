/* linear: definition. torch.nn.Linear. */
#include "ops/linear/linear.h"

#include <math.h>
#include <stdio.h>

#include "ops/fields.h"
#include "ops/onnx/from_onnx.h"
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

/* The numbers of a matrix, and whether the node reads it as [in, out]; false: they are no constant. */
static bool find_matrix(tdm_onnx_reader *from, const char *value, bool is_turned, tdm_onnx_weight *out,
                        int64_t *width) {
    tdm_onnx_constant matrix;
    const tdm_onnx_node *turns = tdm__onnx_made_by(from, value, "Transpose", 1);
    int64_t perm[2] = {1, 0};
    const int dims = turns != NULL ? from->calls->list(from, turns, "perm", 2, perm) : -1;
    const bool swaps = turns != NULL && (dims < 0 || (dims == 2 && perm[0] == 1 && perm[1] == 0));
    *out = tdm__onnx_weight_of(swaps ? turns->input[0] : value);
    out->turned = is_turned != swaps;
    if (!from->calls->constant(from, out->value, &matrix) || matrix.shape.ndim != 2) return false;
    *width = matrix.shape.dim[out->turned ? 1 : 0];
    return true;
}

/* The last node of a layer and the one of its product, which may be the same. */
typedef struct product {
    const tdm_onnx_node *node;
    const char *bias; /* "": none */
} product;

/* Only y = x w + b, each as it is. */
static bool is_plain_gemm(tdm_onnx_reader *from, const tdm_onnx_node *node, const char *bias, char why[TDM_ONNX_WHY]) {
    const double alpha = from->calls->number(from, node, "alpha", 1.0),
                 beta = bias[0] != '\0' ? from->calls->number(from, node, "beta", 1.0) : 1.0;
    const bool turns = from->calls->integer(from, node, "transA", 0) != 0;
    if (!turns && alpha == 1.0 && beta == 1.0) return true;
    snprintf(why, TDM_ONNX_WHY, "a linear layer has alpha 1, beta 1 and transA 0, and this node has %g, %g and %d",
             alpha, beta, turns);
    return false;
}

/* Gemm has the bias in it; behind a MatMul it is an Add. */
static bool find_product(tdm_onnx_reader *from, const tdm_onnx_node *node, int output, product *out,
                         char why[TDM_ONNX_WHY]) {
    const char *value, *bias;
    *out = (product){.node = node, .bias = ""};
    if (tdm__onnx_is(node, output, "MatMul", 2)) return true;
    if (tdm__onnx_is(node, output, "Gemm", 2)) {
        out->bias = tdm__onnx_input_of(node, 2);
        return is_plain_gemm(from, node, out->bias, why);
    }
    if (!tdm__onnx_is(node, output, "Add", 2) || !tdm__onnx_split(from, node, &value, &bias)) return false;
    *out = (product){.node = tdm__onnx_made_by(from, value, "MatMul", 2), .bias = bias};
    return out->node != NULL;
}

static bool from_onnx(tdm_onnx_reader *from, const tdm_onnx_node *node, int output, tdm_onnx_found *out) {
    product found;
    tdm_shape shape;
    int64_t width;
    if (!find_product(from, node, output, &found, out->why) || !from->calls->plain(from, found.node->input[0], &shape))
        return false;
    const bool is_gemm = tdm__onnx_is(found.node, 0, "Gemm", 2);
    const bool is_turned = !is_gemm || from->calls->integer(from, found.node, "transB", 0) == 0;
    if (is_gemm && shape.ndim != 1) return false;
    if (!find_matrix(from, found.node->input[1], is_turned, &out->param[0], &width)) {
        snprintf(out->why, sizeof(out->why),
                 "tandem multiplies by weights of its own only, a constant of two dimensions");
        return false;
    }
    out->x[out->input_count++] = found.node->input[0];
    out->param[1] = tdm__onnx_weight_of(found.bias);
    from->calls->set_integer(from, "out", width);
    if (found.bias[0] == '\0') from->calls->set_word(from, "bias", "false");
    if (shape.ndim > 2) from->calls->set_integer(from, "in", shape.dim[shape.ndim - 1]);
    return true;
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
    .onnx = TDM_OF_ONNX(onnx),
    .from_onnx = TDM_OF_ONNX(from_onnx),
};
