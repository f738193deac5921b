/* gru: definition. torch.nn.GRU with batch_first, in one direction. */
#include "ops/onnx/onnx.h"
#include "ops/ops.h"
#include "ops/recurrent/recurrent.h"

static tdm_status infer(tdm_infer *infer) {
    return tdm__recurrent_infer(infer, 3);
}

static tdm_status onnx(tdm_onnx *to, const tdm_onnx_layer *layer) {
    return tdm__recurrent_onnx(to, layer, true);
}

static bool from_onnx(tdm_onnx_reader *from, const tdm_onnx_node *node, int output, tdm_onnx_found *out) {
    return tdm__recurrent_from_onnx(from, node, output, out, true);
}

const tdm_op_def tdm__gru_op = {
    .name = "gru",
    .doc = "gated recurrent units over a series [steps, features] (torch.nn.GRU, batch_first)",
    .doc_zh = "对序列 [步数, 特征] 的门控循环单元（torch.nn.GRU，batch_first）",
    .min_inputs = 1,
    .max_inputs = 1,
    .attrs = tdm__recurrent_fields,
    .attrs_bytes = sizeof(tdm_recurrent_attrs),
    .flags = TDM_OP_READS_X,
    .infer = infer,
    .onnx = TDM_OF_ONNX(onnx),
    .from_onnx = TDM_OF_ONNX(from_onnx),
};
