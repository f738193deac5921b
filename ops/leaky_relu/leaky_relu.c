/* leaky_relu: definition. torch.nn.LeakyReLU. */
#include "ops/leaky_relu/leaky_relu.h"

#include "ops/onnx/from_onnx.h"
#include "ops/onnx/onnx.h"
#include "ops/ops.h"
#include "runtime/base/field/field_rows.h"

static const tdm_field fields[] = {
    {FIELD(FLOAT, tdm_leaky_relu_attrs, negative_slope, "0.01"), RANGE(0, 1e6), FLAGS(MAIN),
     HELP("slope for x below 0 (at least 0)", "x 小于 0 时的斜率（不小于 0）")},
    {0},
};

static tdm_status onnx(tdm_onnx *to, const tdm_onnx_layer *layer) {
    TDM_ONNX_NODE(to, "LeakyRelu", layer->y, layer->x[0]);
    to->calls->number(to, "alpha", ((const tdm_leaky_relu_attrs *)layer->attrs)->negative_slope);
    return TDM_OK;
}

static bool from_onnx(tdm_onnx_reader *from, const tdm_onnx_node *node, int output, tdm_onnx_found *out) {
    if (!tdm__onnx_is(node, output, "LeakyRelu", 1) || !tdm__onnx_keeps_view(from, node, out)) return false;
    from->calls->set_number(from, "negative_slope", from->calls->number(from, node, "alpha", 0.01));
    return true;
}

const tdm_op_def tdm__leaky_relu_op = {
    .name = "leaky_relu",
    .also_called = "leakyrelu lrelu",
    .doc = "y = x where x > 0, else negative_slope x (torch.nn.LeakyReLU)",
    .doc_zh = "x > 0 时 y = x，否则 y = negative_slope x（torch.nn.LeakyReLU）",
    .min_inputs = 1,
    .max_inputs = 1,
    .attrs = fields,
    .attrs_bytes = sizeof(tdm_leaky_relu_attrs),
    .flags = TDM_OP_READS_Y | TDM_OP_IN_PLACE, /* backward needs y alone, so y may be written over x */
    .infer = tdm__infer_elementwise,
    .onnx = TDM_OF_ONNX(onnx),
    .from_onnx = TDM_OF_ONNX(from_onnx),
};
