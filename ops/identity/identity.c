/* identity: definition. torch.nn.Identity: the same numbers. It costs nothing: the plan gives y the memory of x. */
#include "ops/onnx/onnx.h"
#include "ops/ops.h"

static tdm_status infer(tdm_infer *infer) {
    infer->output = infer->input[0];
    infer->flops = 0;
    return TDM_OK;
}

TDM_ONNX_UNARY("Identity")

const tdm_op_def tdm__identity_op = {
    .name = "identity",
    .doc = "y = x (torch.nn.Identity)",
    .doc_zh = "y = x（torch.nn.Identity）",
    .min_inputs = 1,
    .max_inputs = 1,
    .flags = TDM_OP_ALIAS,
    .infer = infer,
    .onnx = onnx,
};
