/* silu: definition. torch.nn.SiLU. */
#include "ops/onnx/onnx.h"
#include "ops/ops.h"

static tdm_status onnx(tdm_onnx *to, const tdm_onnx_layer *layer) {
    const char *gate = to->calls->value(to);
    TDM_ONNX_NODE(to, "Sigmoid", gate, layer->x[0]);
    TDM_ONNX_NODE(to, "Mul", layer->y, layer->x[0], gate);
    return TDM_OK;
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
    .onnx = onnx,
};
