/* transpose: definition. x.transpose(1, 2) of PyTorch. */
#include "ops/onnx/onnx.h"
#include "ops/ops.h"

static tdm_status infer(tdm_infer *infer) {
    const int64_t *in = infer->input[0].dim;
    if (infer->input[0].ndim != 2)
        TDM_INFER_FAIL(infer, "%s needs an input of two dimensions, got %s", infer->layer,
                       tdm__shape_text(&infer->input[0]).text);
    infer->output = (tdm_shape){2, {in[1], in[0]}};
    return TDM_OK;
}

static tdm_status onnx(tdm_onnx *to, const tdm_onnx_layer *layer) {
    TDM_ONNX_NODE(to, "Transpose", layer->y, layer->x[0]);
    to->calls->integers(to, "perm", 3, (const int64_t[]){0, 2, 1});
    return TDM_OK;
}

const tdm_op_def tdm__transpose_op = {
    .name = "transpose",
    .also_called = "permute swapaxes swap",
    .doc = "swaps the two dimensions of a series: between conv1d and lstm or gru (x.transpose(1, 2))",
    .doc_zh = "交换序列的两维，用于 conv1d 与 lstm、gru 之间（x.transpose(1, 2)）",
    .min_inputs = 1,
    .max_inputs = 1,
    .infer = infer,
    .onnx = onnx,
};
