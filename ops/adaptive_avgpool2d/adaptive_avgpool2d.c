/* adaptive_avgpool2d: definition. torch.nn.AdaptiveAvgPool2d. */
#include "ops/adaptive_avgpool2d/adaptive_avgpool2d.h"

#include "ops/onnx/from_onnx.h"
#include "ops/ops.h"
#include "ops/onnx/window_onnx.h"
#include "runtime/base/field/field_rows.h"

static const tdm_field fields[] = {
    {ADAPTIVE_OUT("height and width of the output; 1 averages the whole plane",
                  "输出的高和宽；1 表示对整个平面求平均")},
    {0},
};

static tdm_status onnx(tdm_onnx *to, const tdm_onnx_layer *layer) {
    return tdm__onnx_even_windows(to, layer, "AveragePool", 2);
}

static bool from_onnx(tdm_onnx_reader *from, const tdm_onnx_node *node, int output, tdm_onnx_found *out) {
    return output == 0 && tdm__onnx_from_adaptive(from, node, out, 2, "GlobalAveragePool", "ReduceMean", "AveragePool");
}

const tdm_op_def tdm__adaptive_avgpool2d_op = {
    .name = "adaptive_avgpool2d",
    .also_called = "global_avg_pool adaptive_avg_pool2d",
    .doc = "averages the input over windows so that the output gets the given size (torch.nn.AdaptiveAvgPool2d)",
    .doc_zh = "按输出大小划分窗口求平均（torch.nn.AdaptiveAvgPool2d）",
    .min_inputs = 1,
    .max_inputs = 1,
    .attrs = fields,
    .attrs_bytes = sizeof(tdm_adaptive_attrs),
    .infer = tdm__adaptive_infer,
    .onnx = TDM_OF_ONNX(onnx),
    .from_onnx = TDM_OF_ONNX(from_onnx),
};
