/* silu: definition. torch.nn.SiLU. */
#include <string.h>

#include "ops/onnx/from_onnx.h"
#include "ops/onnx/onnx.h"
#include "ops/ops.h"

static tdm_status onnx(tdm_onnx *to, const tdm_onnx_layer *layer) {
    const char *gate = to->calls->value(to);
    TDM_ONNX_NODE(to, "Sigmoid", gate, layer->x[0]);
    TDM_ONNX_NODE(to, "Mul", layer->y, layer->x[0], gate);
    return TDM_OK;
}

static bool from_onnx(tdm_onnx_reader *from, const tdm_onnx_node *node, int output, tdm_onnx_found *out) {
    if (!tdm__onnx_is(node, output, "Mul", 2)) return false;
    for (int i = 0; i < 2; i++) {
        const tdm_onnx_node *gate = tdm__onnx_made_by(from, node->input[i], "Sigmoid", 1);
        if (gate != NULL && strcmp(gate->input[0], node->input[1 - i]) == 0)
            return tdm__onnx_keeps_view(from, gate, out);
    }
    return false;
}

const tdm_op_def tdm__silu_op = {
    .name = "silu",
    .also_called = "swish",
    .doc = "y = x / (1 + exp(-x)) (torch.nn.SiLU, also called swish)",
    .doc_zh = "y = x / (1 + exp(-x))（torch.nn.SiLU，又名 swish）",
    .min_inputs = 1,
    .max_inputs = 1,
    .flags = TDM_OP_READS_X,
    .infer = tdm__infer_elementwise,
    .onnx = TDM_OF_ONNX(onnx),
    .from_onnx = TDM_OF_ONNX(from_onnx),
};
