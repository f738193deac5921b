/* maxpool2d: definition. torch.nn.MaxPool2d. */
#include "ops/maxpool2d/maxpool2d.h"

#include "ops/onnx/from_onnx.h"
#include "ops/ops.h"
#include "ops/onnx/window_onnx.h"
#include "runtime/base/field/field_rows.h"

static const tdm_field fields[] = {
    POOL_FIELDS(tdm_maxpool2d_attrs, "padding on each side; it is never the maximum",
                "每侧填充的点数，填充点不参与取最大值"),
    {FIELD_IN(PAIR, tdm_maxpool2d_attrs, pool, dilation, "1"), RANGE(1, TDM_MAX_WINDOW),
     HELP("distance between the points of the window", "窗口各点之间的间距")},
    {0},
};

static tdm_status infer(tdm_infer *infer) {
    const tdm_maxpool2d_attrs *attrs = infer->attrs;
    return tdm__pool_infer(infer, &attrs->pool);
}

static tdm_status onnx(tdm_onnx *to, const tdm_onnx_layer *layer) {
    const tdm_pool_attrs *attrs = &((const tdm_maxpool2d_attrs *)layer->attrs)->pool;
    bool reaches;
    TDM_TRY(tdm__onnx_pool(to, layer, "MaxPool", attrs, 2, &reaches));
    to->calls->integers(to, "dilations", 2, tdm__pool_window(attrs).dilation);
    return TDM_OK;
}

static bool from_onnx(tdm_onnx_reader *from, const tdm_onnx_node *node, int output, tdm_onnx_found *out) {
    return tdm__onnx_is(node, output, "MaxPool", 1) && !tdm__onnx_is_even(from, node, 2) &&
           tdm__onnx_from_pool(from, node, out, 2, TDM_ONNX_LARGEST);
}

const tdm_op_def tdm__maxpool2d_op = {
    .name = "maxpool2d",
    .also_called = "maxpool max_pool2d",
    .doc = "largest value of each window (torch.nn.MaxPool2d)",
    .doc_zh = "每个窗口的最大值（torch.nn.MaxPool2d）",
    .min_inputs = 1,
    .max_inputs = 1,
    .attrs = fields,
    .attrs_bytes = sizeof(tdm_maxpool2d_attrs),
    .infer = infer,
    .onnx = TDM_OF_ONNX(onnx),
    .from_onnx = TDM_OF_ONNX(from_onnx),
};
