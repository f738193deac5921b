/* relu: definition. torch.nn.ReLU. */
#include "ops/onnx/from_onnx.h"
#include "ops/onnx/onnx.h"
#include "ops/ops.h"

TDM_ONNX_UNARY("Relu")

TDM_FROM_ONNX_UNARY("Relu")

const tdm_op_def tdm__relu_op = {
    .name = "relu",
    .doc = "y = max(0, x) (torch.nn.ReLU)",
    .doc_zh = "y = max(0, x)（torch.nn.ReLU）",
    .min_inputs = 1,
    .max_inputs = 1,
    .flags = TDM_OP_READS_Y | TDM_OP_IN_PLACE, /* backward needs y alone, so y may be written over x */
    .infer = tdm__infer_elementwise,
    .onnx = TDM_OF_ONNX(onnx),
    .from_onnx = TDM_OF_ONNX(from_onnx),
};
