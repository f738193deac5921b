/* maxpool1d: definition. torch.nn.MaxPool1d. */
#include "ops/maxpool1d/maxpool1d.h"

#include "ops/onnx/from_onnx.h"
#include "ops/ops.h"
#include "ops/onnx/window_onnx.h"
#include "runtime/base/field/field_rows.h"

static const tdm_field fields[] = {
    {FIELD(INT, tdm_maxpool1d_attrs, kernel, NULL), RANGE(1, TDM_MAX_WINDOW), FLAGS(REQUIRED | MAIN),
     HELP("points of the window", "窗口的点数")},
    {FIELD(INT, tdm_maxpool1d_attrs, stride, "null"), RANGE(1, TDM_MAX_WINDOW), FLAGS(NULLABLE), POOL_STRIDE_HELP},
    {FIELD(INT, tdm_maxpool1d_attrs, padding, "0"), RANGE(0, TDM_MAX_WINDOW),
     HELP("padding at each end; it is never the maximum", "两端填充的点数，填充点不参与取最大值")},
    {FIELD(INT, tdm_maxpool1d_attrs, dilation, "1"), RANGE(1, TDM_MAX_WINDOW),
     HELP("distance between the points of the window", "窗口各点之间的间距")},
    {FIELD(BOOL, tdm_maxpool1d_attrs, ceil_mode, "false"), POOL_CEIL_HELP},
    {0},
};

static tdm_status infer(tdm_infer *infer) {
    const tdm_maxpool2d_attrs attrs = tdm__maxpool1d_image(infer->attrs);
    TDM_TRY(tdm__infer_check_series(infer));
    tdm_infer image = *infer;
    image.input[0] = (tdm_shape){3, {infer->input[0].dim[0], 1, infer->input[0].dim[1]}};
    TDM_TRY(tdm__pool_infer(&image, &attrs.pool));
    infer->output = (tdm_shape){2, {image.output.dim[0], image.output.dim[2]}};
    infer->flops = image.flops;
    return TDM_OK;
}

static tdm_status onnx(tdm_onnx *to, const tdm_onnx_layer *layer) {
    const tdm_maxpool2d_attrs image = tdm__maxpool1d_image(layer->attrs);
    bool reaches;
    TDM_TRY(tdm__onnx_pool(to, layer, "MaxPool", &image.pool, 1, &reaches));
    to->calls->integers(to, "dilations", 1, image.pool.dilation + 1);
    return TDM_OK;
}

static bool from_onnx(tdm_onnx_reader *from, const tdm_onnx_node *node, int output, tdm_onnx_found *out) {
    return tdm__onnx_is(node, output, "MaxPool", 1) && tdm__onnx_from_pool(from, node, out, 1, TDM_ONNX_LARGEST);
}

const tdm_op_def tdm__maxpool1d_op = {
    .name = "maxpool1d",
    .also_called = "max_pool1d",
    .doc = "largest value of each window of a series [channels, points] (torch.nn.MaxPool1d)",
    .doc_zh = "序列 [通道数, 点数] 每个窗口的最大值（torch.nn.MaxPool1d）",
    .min_inputs = 1,
    .max_inputs = 1,
    .attrs = fields,
    .attrs_bytes = sizeof(tdm_maxpool1d_attrs),
    .infer = infer,
    .onnx = TDM_OF_ONNX(onnx),
    .from_onnx = TDM_OF_ONNX(from_onnx),
};
