/* sigmoid: definition. torch.nn.Sigmoid. */
#include "ops/onnx/from_onnx.h"
#include "ops/onnx/onnx.h"
#include "ops/ops.h"

TDM_ONNX_UNARY("Sigmoid")

TDM_FROM_ONNX_UNARY("Sigmoid")

const tdm_op_def tdm__sigmoid_op = {
    .name = "sigmoid",
    .also_called = "logistic",
    .doc = "y = 1 / (1 + exp(-x)) (torch.nn.Sigmoid)",
    .doc_zh = "y = 1 / (1 + exp(-x))（torch.nn.Sigmoid）",
    .min_inputs = 1,
    .max_inputs = 1,
    .flags = TDM_OP_READS_Y | TDM_OP_IN_PLACE, /* backward needs y alone, so y may be written over x */
    .infer = tdm__infer_elementwise,
    .onnx = TDM_OF_ONNX(onnx),
    .from_onnx = TDM_OF_ONNX(from_onnx),
};
