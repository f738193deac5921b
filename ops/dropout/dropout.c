/* dropout: definition. torch.nn.Dropout, but with tandem's own masks (see dropout.h). */
#include "ops/dropout/dropout.h"

#include "ops/onnx/from_onnx.h"
#include "ops/onnx/onnx.h"
#include "ops/ops.h"
#include "runtime/base/field/field_rows.h"

static const tdm_field fields[] = {
    {FIELD(FLOAT, tdm_dropout_attrs, p, "0.5"), RANGE(0, 1), FLAGS(MAIN),
     HELP("probability that an element is dropped in training", "训练时丢弃每个数的概率")},
    {0},
};

/* Outside training the node gives its input. */
static tdm_status onnx(tdm_onnx *to, const tdm_onnx_layer *layer) {
    const double p = ((const tdm_dropout_attrs *)layer->attrs)->p;
    TDM_ONNX_NODE(to, "Dropout", layer->y, layer->x[0], tdm__onnx_scalar(to, (float)p));
    return TDM_OK;
}

/* Its probability is an input, and an attribute up to opset 11. */
static bool from_onnx(tdm_onnx_reader *from, const tdm_onnx_node *node, int output, tdm_onnx_found *out) {
    double p = 0.5;
    if (!tdm__onnx_is(node, output, "Dropout", 1) || !tdm__onnx_keeps_view(from, node, out)) return false;
    if (from->calls->numbers(from, tdm__onnx_input_of(node, 1), 1, &p) != 1)
        p = from->calls->number(from, node, "ratio", 0.5);
    from->calls->set_number(from, "p", p);
    return true;
}

const tdm_op_def tdm__dropout_op = {
    .name = "dropout",
    .doc = "drops elements at random in training and scales up the others (torch.nn.Dropout)",
    .doc_zh = "训练时随机丢弃并放大其余的数（torch.nn.Dropout）",
    .min_inputs = 1,
    .max_inputs = 1,
    .attrs = fields,
    .attrs_bytes = sizeof(tdm_dropout_attrs),
    .flags = TDM_OP_IN_PLACE,
    .infer = tdm__infer_elementwise,
    .onnx = TDM_OF_ONNX(onnx),
    .from_onnx = TDM_OF_ONNX(from_onnx),
};
