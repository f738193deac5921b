/* avgpool2d: definition. torch.nn.AvgPool2d. */
#include "ops/avgpool2d/avgpool2d.h"

#include "ops/onnx/from_onnx.h"
#include "ops/ops.h"
#include "ops/onnx/window_onnx.h"
#include "runtime/base/field/field_rows.h"

static const tdm_field fields[] = {
    POOL_FIELDS(tdm_avgpool2d_attrs, "zeros added on each side", "每侧补零的数目"),
    {FIELD(BOOL, tdm_avgpool2d_attrs, count_include_pad, "true"),
     HELP("whether padded zeros count in the mean", "求平均时是否计入填充的零")},
    {0},
};

static tdm_status infer(tdm_infer *infer) {
    const tdm_avgpool2d_attrs *attrs = infer->attrs;
    return tdm__pool_infer(infer, &attrs->pool);
}

static tdm_status onnx(tdm_onnx *to, const tdm_onnx_layer *layer) {
    const tdm_avgpool2d_attrs *attrs = layer->attrs;
    const bool pads = attrs->pool.padding[0] > 0 || attrs->pool.padding[1] > 0;
    const bool counts = attrs->count_include_pad && pads;
    bool reaches;
    TDM_TRY(tdm__onnx_pool(to, layer, "AveragePool", &attrs->pool, 2, &reaches));
    if (reaches && counts)
        TDM_FAIL(
            TDM_E_UNSUPPORTED,
            "%s: ONNX does not have a last window that reaches beyond the padding (ceil_mode) where padding counts; "
            "`count_include_pad: false` does without",
            layer->layer);
    to->calls->integer(to, "count_include_pad", counts);
    return TDM_OK;
}

static bool from_onnx(tdm_onnx_reader *from, const tdm_onnx_node *node, int output, tdm_onnx_found *out) {
    return tdm__onnx_is(node, output, "AveragePool", 1) && !tdm__onnx_is_even(from, node, 2) &&
           tdm__onnx_from_pool(from, node, out, 2, TDM_ONNX_MEAN);
}

const tdm_op_def tdm__avgpool2d_op = {
    .name = "avgpool2d",
    .also_called = "avgpool avg_pool2d",
    .doc = "mean of each window (torch.nn.AvgPool2d)",
    .doc_zh = "每个窗口的平均值（torch.nn.AvgPool2d）",
    .min_inputs = 1,
    .max_inputs = 1,
    .attrs = fields,
    .attrs_bytes = sizeof(tdm_avgpool2d_attrs),
    .infer = infer,
    .onnx = TDM_OF_ONNX(onnx),
    .from_onnx = TDM_OF_ONNX(from_onnx),
};
