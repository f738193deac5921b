/* transpose: definition. x.transpose(1, 2) of PyTorch. */
#include <stdio.h>

#include "ops/onnx/from_onnx.h"
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

/* A change of the order that only moves the batch is no layer. */
static bool from_onnx(tdm_onnx_reader *from, const tdm_onnx_node *node, int output, tdm_onnx_found *out) {
    tdm_onnx_view x;
    int64_t perm[TDM_ONNX_AXES];
    if (!tdm__onnx_is(node, output, "Transpose", 1) || !from->calls->view(from, node->input[0], &x)) return false;
    const int count = from->calls->list(from, node, "perm", TDM_ONNX_AXES, perm);
    if (count >= 0 && count != x.ndim) return false;
    bool in_order = true;
    out->view = x;
    for (int i = 0, last = -1; i < x.ndim; i++) {
        const int64_t at = count < 0 ? x.ndim - 1 - i : perm[i];
        if (at < 0 || at >= x.ndim) return false;
        out->view.axis[i] = x.axis[at];
        if (x.axis[at] < 0) continue;
        in_order = in_order && x.axis[at] > last;
        last = x.axis[at];
    }
    out->x[out->input_count++] = node->input[0];
    out->is_view = in_order;
    if (in_order) return true;
    for (int i = 0; i < x.ndim; i++)
        if (out->view.axis[i] >= 0) out->view.axis[i] = 1 - out->view.axis[i];
    if (x.shape.ndim == 2) return true;
    snprintf(out->why, sizeof(out->why), "tandem changes the order of two dimensions beside the batch only");
    return false;
}

const tdm_op_def tdm__transpose_op = {
    .name = "transpose",
    .also_called = "permute swapaxes swap",
    .doc = "swaps the two dimensions of a series: between conv1d and lstm or gru (x.transpose(1, 2))",
    .doc_zh = "交换序列的两维，用于 conv1d 与 lstm、gru 之间（x.transpose(1, 2)）",
    .min_inputs = 1,
    .max_inputs = 1,
    .infer = infer,
    .onnx = TDM_OF_ONNX(onnx),
    .from_onnx = TDM_OF_ONNX(from_onnx),
};
