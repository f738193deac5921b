/* tanh: definition. torch.nn.Tanh. */
#include "ops/onnx/from_onnx.h"
#include "ops/onnx/onnx.h"
#include "ops/ops.h"

TDM_ONNX_UNARY("Tanh")

TDM_FROM_ONNX_UNARY("Tanh")

const tdm_op_def tdm__tanh_op = {
    .name = "tanh",
    .doc = "y = tanh(x) (torch.nn.Tanh)",
    .doc_zh = "y = tanh(x)（torch.nn.Tanh）",
    .min_inputs = 1,
    .max_inputs = 1,
    .flags = TDM_OP_READS_Y | TDM_OP_IN_PLACE, /* backward needs y alone, so y may be written over x */
    .infer = tdm__infer_elementwise,
    .onnx = TDM_OF_ONNX(onnx),
    .from_onnx = TDM_OF_ONNX(from_onnx),
};
