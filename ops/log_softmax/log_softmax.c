/* log_softmax: definition. torch.nn.LogSoftmax(1), over a number for each class. */
#include <stdio.h>

#include "ops/onnx/from_onnx.h"
#include "ops/onnx/onnx.h"
#include "ops/ops.h"

static tdm_status infer(tdm_infer *infer) {
    const tdm_shape *in = &infer->input[0];
    if (in->ndim != 1)
        TDM_INFER_FAIL(
            infer,
            "%s needs an input of one number for each class, got %s; put `flatten` and `linear: <classes>` in front of it",
            infer->layer, tdm__shape_text(in).text);
    infer->output = *in;
    infer->flops = 4.0 * (double)tdm__shape_count(in); /* difference, exp, sum, difference */
    return TDM_OK;
}

static tdm_status onnx(tdm_onnx *to, const tdm_onnx_layer *layer) {
    TDM_ONNX_NODE(to, "LogSoftmax", layer->y, layer->x[0]);
    to->calls->integer(to, "axis", 1);
    return TDM_OK;
}

static bool from_onnx(tdm_onnx_reader *from, const tdm_onnx_node *node, int output, tdm_onnx_found *out) {
    tdm_shape shape;
    if (tdm__onnx_is(node, output, "Softmax", 1) && from->calls->is_output(from, node->output[0]))
        snprintf(out->why, sizeof(out->why),
                 "tandem trains on the numbers in front of it, and its loss has the softmax in it; export the model "
                 "without this node");
    if (!tdm__onnx_is(node, output, "LogSoftmax", 1) || !from->calls->plain(from, node->input[0], &shape)) return false;
    const int64_t axis = from->calls->integer(from, node, "axis", -1);
    out->x[out->input_count++] = node->input[0];
    return shape.ndim == 1 && (axis == -1 || axis == 1);
}

const tdm_op_def tdm__log_softmax_op = {
    .name = "log_softmax",
    .also_called = "LogSoftmax logsoftmax",
    .doc = "y = x - log(sum of exp(x)) over the classes: log-probabilities, for the loss nll (torch.nn.LogSoftmax(1))",
    .doc_zh = "y = x - log(各类别 exp(x) 之和)：对数概率，供损失 nll 使用（torch.nn.LogSoftmax(1)）",
    .min_inputs = 1,
    .max_inputs = 1,
    .flags = TDM_OP_READS_Y | TDM_OP_IN_PLACE, /* a row is read before it is written, and backward needs y alone */
    .infer = infer,
    .onnx = TDM_OF_ONNX(onnx),
    .from_onnx = TDM_OF_ONNX(from_onnx),
};
