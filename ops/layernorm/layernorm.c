/* layernorm: definition. torch.nn.LayerNorm. */
#include "ops/layernorm/layernorm.h"

#include <stdio.h>
#include <string.h>

#include "ops/fields.h"
#include "ops/onnx/from_onnx.h"
#include "ops/onnx/onnx.h"

static const tdm_field fields[] = {
    {FIELD(INTS, tdm_layernorm_attrs, normalized_shape, "null"), RANGE(1, TDM_MAX_FEATURES), ITEMS(1, TDM_MAX_DIMS - 1),
     FLAGS(NULLABLE | MAIN),
     HELP("the last dimensions of the input, over which it is normalised; null: the last one alone",
          "归一化所跨的输入末尾各维；null 表示仅最后一维")},
    {NORM_EPS(tdm_layernorm_attrs)},
    {FIELD(BOOL, tdm_layernorm_attrs, elementwise_affine, "true"),
     HELP("whether weight and bias are learned, one for each normalised element",
          "是否为每个被归一化的元素学习缩放与偏移")},
    {FIELD(BOOL, tdm_layernorm_attrs, bias, "true"), HELP("whether there is a bias; nothing without elementwise_affine",
                                                          "是否有偏移；没有 elementwise_affine 时无作用")},
    {0},
};

/* The last dimensions of the input that are normalised. */
static tdm_status infer_normalized(const tdm_infer *infer, tdm_shape *out) {
    const tdm_layernorm_attrs *attrs = infer->attrs;
    const tdm_shape *in = &infer->input[0];
    const int given = attrs->normalized_shape.count, last = given > 0 ? given : 1;
    bool same = last <= in->ndim;
    *out = (tdm_shape){.ndim = last};
    for (int i = 0; i < last; i++) {
        out->dim[i] = given > 0 ? attrs->normalized_shape.item[i] : in->dim[in->ndim - 1];
        same = same && out->dim[i] == in->dim[in->ndim - last + i];
    }
    if (!same)
        TDM_INFER_FAIL(infer, "%s: normalized_shape must be the last dimensions of the input %s, got %s", infer->layer,
                       tdm__shape_text(in).text, tdm__shape_text(out).text);
    return TDM_OK;
}

static tdm_status infer(tdm_infer *infer) {
    const tdm_layernorm_attrs *attrs = infer->attrs;
    tdm_shape normalized;
    TDM_TRY(infer_normalized(infer, &normalized));
    if (attrs->elementwise_affine) {
        infer->param[0] = (tdm_param_def){.suffix = "weight", .shape = normalized, .init = TDM_INIT_ONES};
        infer->param[1] = (tdm_param_def){.suffix = "bias", .shape = normalized, .init = TDM_INIT_ZEROS};
        infer->param_count = attrs->bias ? 2 : 1;
    }
    infer->output = infer->input[0];
    infer->flops = 6.0 * (double)tdm__shape_count(&infer->output); /* mean 1, variance 3, scale and shift 2 */
    return TDM_OK;
}

static tdm_status onnx(tdm_onnx *to, const tdm_onnx_layer *layer) {
    const tdm_layernorm_attrs *attrs = layer->attrs;
    const int last = attrs->normalized_shape.count > 0 ? attrs->normalized_shape.count : 1;
    const char *x[1 + TDM_MAX_PARAMS];
    if (layer->param_count == 0)
        TDM_FAIL(TDM_E_UNSUPPORTED, "%s: ONNX has it only with a weight (elementwise_affine: true)", layer->layer);
    to->calls->node(to, "LayerNormalization", layer->y, tdm__onnx_with_params(layer, layer->x[0], x), x);
    to->calls->integer(to, "axis", -last);
    to->calls->number(to, "epsilon", attrs->eps);
    return TDM_OK;
}

/* The last dimensions, from `axis` on, and what every such layer has. */
static bool set_layer(tdm_onnx_reader *from, const char *x, int64_t axis, double eps, tdm_onnx_found *out) {
    tdm_shape shape;
    if (!from->calls->plain(from, x, &shape)) return false;
    const int64_t first = axis < 0 ? axis + shape.ndim : axis - 1; /* without the batch */
    if (first < 0 || first >= shape.ndim) {
        snprintf(out->why, sizeof(out->why), "tandem normalises over dimensions behind the batch");
        return false;
    }
    out->x[0] = x;
    out->input_count = 1;
    if (first < shape.ndim - 1)
        from->calls->set_integers(from, "normalized_shape", (int)(shape.ndim - first), shape.dim + first);
    from->calls->set_number(from, "eps", eps);
    return true;
}

/* Is it the mean of a value over its last dimensions? How many; -1: no. */
static int mean_of(tdm_onnx_reader *from, const char *mean, const char *value, int ndim) {
    int64_t axes[TDM_ONNX_AXES];
    bool chosen[TDM_ONNX_AXES] = {false};
    const tdm_onnx_node *node = tdm__onnx_made_by(from, mean, "ReduceMean", 1);
    if (node == NULL || strcmp(node->input[0], value) != 0 || from->calls->integer(from, node, "keepdims", 1) == 0)
        return -1;
    const int count = tdm__onnx_axes(from, node, 1, ndim, axes);
    for (int i = 0; i < count; i++) chosen[axes[i]] = true;
    for (int i = 0; i < count; i++)
        if (!chosen[ndim - 1 - i]) return -1;
    return count;
}

static bool is_square(tdm_onnx_reader *from, const char *value, const char *of) {
    const tdm_onnx_node *pow = tdm__onnx_made_by(from, value, "Pow", 2),
                        *mul = tdm__onnx_made_by(from, value, "Mul", 2);
    if (pow != NULL) return strcmp(pow->input[0], of) == 0 && tdm__onnx_is_scalar(from, pow->input[1], 2.0);
    return mul != NULL && strcmp(mul->input[0], of) == 0 && strcmp(mul->input[1], of) == 0;
}

/* (x - mean) / sqrt(mean of the square of that + eps), as exporters of opsets before 17 write it. `last`: the
 * dimensions that it is over. */
typedef struct normalised {
    const char *x;
    double eps;
    int last;
} normalised;

static bool is_normalised(tdm_onnx_reader *from, const tdm_onnx_node *node, normalised *out) {
    const char *variance, *constant;
    tdm_shape shape;
    if (strcmp(node->op, "Div") != 0 || node->input_count != 2) return false;
    const tdm_onnx_node *distance = tdm__onnx_made_by(from, node->input[0], "Sub", 2),
                        *root = tdm__onnx_made_by(from, node->input[1], "Sqrt", 1);
    const tdm_onnx_node *sum = root != NULL ? tdm__onnx_made_by(from, root->input[0], "Add", 2) : NULL;
    if (distance == NULL || sum == NULL || !tdm__onnx_split(from, sum, &variance, &constant)) return false;
    const tdm_onnx_node *mean = tdm__onnx_made_by(from, variance, "ReduceMean", 1);
    out->x = distance->input[0];
    if (mean == NULL || !from->calls->plain(from, out->x, &shape)) return false;
    out->last = mean_of(from, distance->input[1], out->x, shape.ndim + 1);
    return out->last > 0 && from->calls->numbers(from, constant, 1, &out->eps) == 1 &&
           is_square(from, mean->input[0], node->input[0]) &&
           mean_of(from, variance, mean->input[0], shape.ndim + 1) == out->last;
}

/* The same times a weight, plus a bias. */
static bool is_written_out(tdm_onnx_reader *from, const tdm_onnx_node *node, tdm_onnx_found *out) {
    const char *inner, *weight = NULL, *bias = NULL;
    normalised found;
    if (strcmp(node->op, "Add") == 0 && node->input_count == 2 && tdm__onnx_split(from, node, &inner, &bias))
        node = tdm__onnx_made_by(from, inner, "Mul", 2);
    if (node != NULL && strcmp(node->op, "Mul") == 0 && tdm__onnx_split(from, node, &inner, &weight))
        node = tdm__onnx_made_by(from, inner, "Div", 2);
    if (node == NULL || !is_normalised(from, node, &found) || !set_layer(from, found.x, -found.last, found.eps, out))
        return false;
    if (weight == NULL) from->calls->set_word(from, "elementwise_affine", "false");
    if (weight != NULL && bias == NULL) from->calls->set_word(from, "bias", "false");
    out->param[0] = tdm__onnx_weight_of(weight);
    out->param[1] = tdm__onnx_weight_of(bias);
    return true;
}

static bool from_onnx(tdm_onnx_reader *from, const tdm_onnx_node *node, int output, tdm_onnx_found *out) {
    if (output != 0) return false;
    if (!tdm__onnx_is(node, 0, "LayerNormalization", 2)) return is_written_out(from, node, out);
    const char *bias = tdm__onnx_input_of(node, 2);
    if (!set_layer(from, node->input[0], from->calls->integer(from, node, "axis", -1),
                   from->calls->number(from, node, "epsilon", (double)1e-5f), out))
        return false;
    out->param[0] = tdm__onnx_weight_of(node->input[1]);
    out->param[1] = tdm__onnx_weight_of(bias);
    if (bias[0] == '\0') from->calls->set_word(from, "bias", "false");
    return true;
}

const tdm_op_def tdm__layernorm_op = {
    .name = "layernorm",
    .also_called = "ln layer_norm",
    .doc = "normalises each row over its last dimensions (torch.nn.LayerNorm)",
    .doc_zh = "在每个样本的末尾各维上归一化（torch.nn.LayerNorm）",
    .min_inputs = 1,
    .max_inputs = 1,
    .attrs = fields,
    .attrs_bytes = sizeof(tdm_layernorm_attrs),
    .flags = TDM_OP_READS_X,
    .infer = infer,
    .onnx = TDM_OF_ONNX(onnx),
    .from_onnx = TDM_OF_ONNX(from_onnx),
};
