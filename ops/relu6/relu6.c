/* relu6: definition. torch.nn.ReLU6. */
#include <stdio.h>

#include "ops/onnx/from_onnx.h"
#include "ops/onnx/onnx.h"
#include "ops/ops.h"

static tdm_status onnx(tdm_onnx *to, const tdm_onnx_layer *layer) {
    TDM_ONNX_NODE(to, "Clip", layer->y, layer->x[0], tdm__onnx_scalar(to, 0.0f), tdm__onnx_scalar(to, 6.0f));
    return TDM_OK;
}

/* Its bounds are inputs, and attributes up to opset 10. */
static bool from_onnx(tdm_onnx_reader *from, const tdm_onnx_node *node, int output, tdm_onnx_found *out) {
    if (!tdm__onnx_is(node, output, "Clip", 1) || !tdm__onnx_keeps_view(from, node, out)) return false;
    const bool by_attributes =
        from->calls->number(from, node, "min", -1.0) == 0.0 && from->calls->number(from, node, "max", -1.0) == 6.0;
    if (by_attributes || (tdm__onnx_is_scalar(from, tdm__onnx_input_of(node, 1), 0.0) &&
                          tdm__onnx_is_scalar(from, tdm__onnx_input_of(node, 2), 6.0)))
        return true;
    snprintf(out->why, sizeof(out->why), "tandem clips from 0 to 6 only, as a layer of its own");
    return false;
}

const tdm_op_def tdm__relu6_op = {
    .name = "relu6",
    .doc = "y = min(max(0, x), 6) (torch.nn.ReLU6)",
    .doc_zh = "y = min(max(0, x), 6)（torch.nn.ReLU6）",
    .min_inputs = 1,
    .max_inputs = 1,
    .flags = TDM_OP_READS_Y | TDM_OP_IN_PLACE, /* backward needs y alone, so y may be written over x */
    .infer = tdm__infer_elementwise,
    .onnx = TDM_OF_ONNX(onnx),
    .from_onnx = TDM_OF_ONNX(from_onnx),
};
