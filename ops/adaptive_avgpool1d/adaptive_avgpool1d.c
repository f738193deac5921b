/* adaptive_avgpool1d: definition. torch.nn.AdaptiveAvgPool1d. */
#include "ops/adaptive_avgpool1d/adaptive_avgpool1d.h"

#include "ops/onnx/from_onnx.h"
#include "ops/ops.h"
#include "ops/onnx/window_onnx.h"
#include "runtime/base/field/field_rows.h"

static const tdm_field fields[] = {
    {FIELD(INT, tdm_adaptive_avgpool1d_attrs, out, NULL), RANGE(1, TDM_MAX_WINDOW), FLAGS(REQUIRED | MAIN),
     HELP("points of the output; 1 averages the whole series", "输出的点数；1 表示对整个序列求平均")},
    {0},
};

static tdm_status infer(tdm_infer *infer) {
    const tdm_adaptive_avgpool1d_attrs *attrs = infer->attrs;
    TDM_TRY(tdm__infer_check_series(infer));
    const int64_t channels = infer->input[0].dim[0], points = infer->input[0].dim[1];
    infer->output = (tdm_shape){2, {channels, attrs->out}};
    infer->flops = (double)channels * (double)(points > attrs->out ? points : attrs->out);
    return TDM_OK;
}

static tdm_status onnx(tdm_onnx *to, const tdm_onnx_layer *layer) {
    return tdm__onnx_even_windows(to, layer, "AveragePool", 1);
}

static bool from_onnx(tdm_onnx_reader *from, const tdm_onnx_node *node, int output, tdm_onnx_found *out) {
    return output == 0 && tdm__onnx_from_adaptive(from, node, out, 1, "GlobalAveragePool", "ReduceMean", "AveragePool");
}

const tdm_op_def tdm__adaptive_avgpool1d_op = {
    .name = "adaptive_avgpool1d",
    .also_called = "adaptive_avg_pool1d",
    .doc = "averages a series [channels, points] over windows so that the output gets the given number of points "
           "(torch.nn.AdaptiveAvgPool1d)",
    .doc_zh = "把序列 [通道数, 点数] 按输出点数划分窗口求平均（torch.nn.AdaptiveAvgPool1d）",
    .min_inputs = 1,
    .max_inputs = 1,
    .attrs = fields,
    .attrs_bytes = sizeof(tdm_adaptive_avgpool1d_attrs),
    .infer = infer,
    .onnx = TDM_OF_ONNX(onnx),
    .from_onnx = TDM_OF_ONNX(from_onnx),
};
