/* hardswish: definition. torch.nn.Hardswish. */
#include "ops/onnx/onnx.h"
#include "ops/ops.h"

TDM_ONNX_UNARY("HardSwish")

const tdm_op_def tdm__hardswish_op = {
    .name = "hardswish",
    .also_called = "hard_swish",
    .doc = "y = x min(max(0, x + 3), 6) / 6 (torch.nn.Hardswish)",
    .doc_zh = "y = x min(max(0, x + 3), 6) / 6（torch.nn.Hardswish）",
    .min_inputs = 1,
    .max_inputs = 1,
    .flags = TDM_OP_READS_X,
    .infer = tdm__infer_elementwise,
    .onnx = onnx,
};
