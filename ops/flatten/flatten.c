/* flatten: definition. torch.nn.Flatten: the same numbers as one row of features. */
#include "ops/onnx/onnx.h"
#include "ops/ops.h"

static tdm_status infer(tdm_infer *infer) {
    infer->output = (tdm_shape){1, {tdm__shape_count(&infer->input[0])}};
    infer->flops = 0;
    return TDM_OK;
}

TDM_ONNX_UNARY("Flatten")

const tdm_op_def tdm__flatten_op = {
    .name = "flatten",
    .also_called = "reshape view",
    .doc = "channels x height x width as one list of features (torch.nn.Flatten)",
    .doc_zh = "展平为一维特征（torch.nn.Flatten）",
    .min_inputs = 1,
    .max_inputs = 1,
    .flags = TDM_OP_ALIAS,
    .infer = infer,
    .onnx = onnx,
};
