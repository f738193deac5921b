/* dropout2d: definition. torch.nn.Dropout2d, but with tandem's own masks (see dropout2d.h). */
#include "ops/dropout2d/dropout2d.h"

#include "ops/onnx/onnx.h"
#include "ops/ops.h"
#include "ops/window.h"
#include "runtime/base/field/field_rows.h"

static const tdm_field fields[] = {
    {FIELD(FLOAT, tdm_dropout_attrs, p, "0.5"), RANGE(0, 1), FLAGS(MAIN),
     HELP("probability that a channel is dropped in training", "训练时丢弃每个通道的概率")},
    {0},
};

static tdm_status infer(tdm_infer *infer) {
    TDM_TRY(tdm__infer_check_image(infer));
    infer->output = infer->input[0];
    infer->flops = (double)tdm__shape_count(&infer->output);
    return TDM_OK;
}

TDM_ONNX_UNARY("Identity")

const tdm_op_def tdm__dropout2d_op = {
    .name = "dropout2d",
    .also_called = "spatial_dropout dropout_2d",
    .doc = "drops whole channels at random in training and scales up the others (torch.nn.Dropout2d)",
    .doc_zh = "训练时随机丢弃整个通道并放大其余通道（torch.nn.Dropout2d）",
    .min_inputs = 1,
    .max_inputs = 1,
    .attrs = fields,
    .attrs_bytes = sizeof(tdm_dropout_attrs),
    .flags = TDM_OP_IN_PLACE,
    .infer = infer,
    .onnx = TDM_OF_ONNX(onnx),
};
