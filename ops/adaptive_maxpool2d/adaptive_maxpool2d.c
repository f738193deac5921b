/* adaptive_maxpool2d: definition. torch.nn.AdaptiveMaxPool2d. */
#include "ops/adaptive_maxpool2d/adaptive_maxpool2d.h"

#include "ops/onnx/from_onnx.h"
#include "ops/ops.h"
#include "ops/onnx/window_onnx.h"
#include "ops/window.h"
#include "runtime/base/field/field_rows.h"

static const tdm_field fields[] = {
    {ADAPTIVE_OUT("height and width of the output; 1 takes the maximum of the whole plane",
                  "输出的高和宽；1 表示取整个平面的最大值")},
    {0},
};

static tdm_status infer(tdm_infer *infer) {
    TDM_TRY(tdm__adaptive_infer(infer));
    const int64_t *in = infer->input[0].dim;
    if (in[1] > INT32_MAX / in[2]) /* winners are kept in 32 bits */
        TDM_INFER_FAIL(infer, "%s: its input may have at most %d points, got %s", infer->layer, INT32_MAX,
                       tdm__shape_text(&infer->input[0]).text);
    return TDM_OK;
}

static tdm_status onnx(tdm_onnx *to, const tdm_onnx_layer *layer) {
    return tdm__onnx_even_windows(to, layer, "MaxPool", 2);
}

static bool from_onnx(tdm_onnx_reader *from, const tdm_onnx_node *node, int output, tdm_onnx_found *out) {
    return output == 0 && tdm__onnx_from_adaptive(from, node, out, 2, "GlobalMaxPool", "ReduceMax", "MaxPool");
}

const tdm_op_def tdm__adaptive_maxpool2d_op = {
    .name = "adaptive_maxpool2d",
    .also_called = "global_max_pool adaptive_max_pool2d",
    .doc = "largest value of windows so that the output gets the given size (torch.nn.AdaptiveMaxPool2d)",
    .doc_zh = "按输出大小划分窗口取最大值（torch.nn.AdaptiveMaxPool2d）",
    .min_inputs = 1,
    .max_inputs = 1,
    .attrs = fields,
    .attrs_bytes = sizeof(tdm_adaptive_attrs),
    .infer = infer,
    .onnx = TDM_OF_ONNX(onnx),
    .from_onnx = TDM_OF_ONNX(from_onnx),
};
