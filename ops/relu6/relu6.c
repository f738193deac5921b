/* relu6: definition. torch.nn.ReLU6. */
#include "ops/onnx/onnx.h"
#include "ops/ops.h"

static tdm_status onnx(tdm_onnx *to, const tdm_onnx_layer *layer) {
    TDM_ONNX_NODE(to, "Clip", layer->y, layer->x[0], tdm__onnx_scalar(to, 0.0f), tdm__onnx_scalar(to, 6.0f));
    return TDM_OK;
}

const tdm_op_def tdm__relu6_op = {
    .name = "relu6",
    .doc = "y = min(max(0, x), 6) (torch.nn.ReLU6)",
    .doc_zh = "y = min(max(0, x), 6)（torch.nn.ReLU6）",
    .min_inputs = 1,
    .max_inputs = 1,
    .flags = TDM_OP_READS_Y | TDM_OP_IN_PLACE, /* backward needs y alone, so y may be written over x */
    .infer = tdm__infer_elementwise,
    .onnx = onnx,
};
