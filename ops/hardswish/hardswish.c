/* hardswish: definition. torch.nn.Hardswish. */
#include <math.h>
#include <string.h>

#include "ops/onnx/from_onnx.h"
#include "ops/onnx/onnx.h"
#include "ops/ops.h"

TDM_ONNX_UNARY("HardSwish")

static bool from_onnx(tdm_onnx_reader *from, const tdm_onnx_node *node, int output, tdm_onnx_found *out) {
    if (tdm__onnx_is(node, output, "HardSwish", 1)) return tdm__onnx_keeps_view(from, node, out);
    if (!tdm__onnx_is(node, output, "Mul", 2)) return false;
    for (int i = 0; i < 2; i++) {
        const tdm_onnx_node *gate = tdm__onnx_made_by(from, node->input[i], "HardSigmoid", 1);
        if (gate == NULL || strcmp(gate->input[0], node->input[1 - i]) != 0) continue;
        return fabs(from->calls->number(from, gate, "alpha", 0.2) - 1.0 / 6.0) < 1e-6 &&
               from->calls->number(from, gate, "beta", 0.5) == 0.5 && tdm__onnx_keeps_view(from, gate, out);
    }
    return false;
}

const tdm_op_def tdm__hardswish_op = {
    .name = "hardswish",
    .also_called = "hard_swish",
    .doc = "y = x min(max(0, x + 3), 6) / 6 (torch.nn.Hardswish)",
    .doc_zh = "y = x min(max(0, x + 3), 6) / 6（torch.nn.Hardswish）",
    .min_inputs = 1,
    .max_inputs = 1,
    .flags = TDM_OP_READS_X,
    .infer = tdm__infer_elementwise,
    .onnx = TDM_OF_ONNX(onnx),
    .from_onnx = TDM_OF_ONNX(from_onnx),
};
