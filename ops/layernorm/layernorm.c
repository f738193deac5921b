/* layernorm: definition. torch.nn.LayerNorm. */
#include "ops/layernorm/layernorm.h"

#include "ops/fields.h"
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
    .onnx = onnx,
};
