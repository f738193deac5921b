/* gelu: definition. torch.nn.GELU. */
#include "ops/gelu/gelu.h"

#include "ops/onnx/onnx.h"
#include "ops/ops.h"
#include "runtime/base/field/field_rows.h"

static const char *const forms[] = {"none", "tanh", NULL};
static const tdm_field fields[] = {
    {FIELD(ENUM, tdm_gelu_attrs, approximate, "none"), .names = forms, FLAGS(MAIN),
     HELP("none: by erf; tanh: by an approximation, as in GPT-2", "none：用 erf；tanh：用近似式，同 GPT-2")},
    {0},
};

/* Opset 17 has no node for it. */
static tdm_status onnx(tdm_onnx *to, const tdm_onnx_layer *layer) {
    const bool by_tanh = ((const tdm_gelu_attrs *)layer->attrs)->approximate == TDM_GELU_TANH;
    const char *x = layer->x[0], *v[8];
    for (int i = 0; i < 8; i++) v[i] = to->calls->value(to);
    if (by_tanh) {
        TDM_ONNX_NODE(to, "Mul", v[0], x, x);
        TDM_ONNX_NODE(to, "Mul", v[1], v[0], tdm__onnx_scalar(to, 0.044715f));
        TDM_ONNX_NODE(to, "Mul", v[2], v[1], x);
        TDM_ONNX_NODE(to, "Add", v[3], v[2], x);
        TDM_ONNX_NODE(to, "Mul", v[4], v[3], tdm__onnx_scalar(to, 0.797884561f));
    } else {
        TDM_ONNX_NODE(to, "Mul", v[4], x, tdm__onnx_scalar(to, 0.707106781f));
    }
    TDM_ONNX_NODE(to, by_tanh ? "Tanh" : "Erf", v[5], v[4]);
    TDM_ONNX_NODE(to, "Add", v[6], v[5], tdm__onnx_scalar(to, 1.0f));
    TDM_ONNX_NODE(to, "Mul", v[7], v[6], x);
    TDM_ONNX_NODE(to, "Mul", layer->y, v[7], tdm__onnx_scalar(to, 0.5f));
    return TDM_OK;
}

const tdm_op_def tdm__gelu_op = {
    .name = "gelu",
    .doc = "y = x P(X <= x) for a normal X (torch.nn.GELU)",
    .doc_zh = "y = x P(X <= x)，X 服从标准正态分布（torch.nn.GELU）",
    .min_inputs = 1,
    .max_inputs = 1,
    .attrs = fields,
    .attrs_bytes = sizeof(tdm_gelu_attrs),
    .flags = TDM_OP_READS_X,
    .infer = tdm__infer_elementwise,
    .onnx = onnx,
};
