/* add: definition. y = x0 + x1 + ..., for residual connections. */
#include <stdio.h>

#include "ops/onnx/from_onnx.h"
#include "ops/onnx/onnx.h"
#include "ops/ops.h"

static tdm_status infer(tdm_infer *infer) {
    for (int i = 1; i < infer->input_count; i++)
        if (!tdm__shape_equal(&infer->input[0], &infer->input[i]))
            TDM_INFER_FAIL(infer, "%s needs inputs of the same shape, got %s and, as input %d, %s", infer->layer,
                           tdm__shape_text(&infer->input[0]).text, i + 1, tdm__shape_text(&infer->input[i]).text);
    infer->output = infer->input[0];
    infer->flops = (double)(infer->input_count - 1) * (double)tdm__shape_count(&infer->output);
    return TDM_OK;
}

static tdm_status onnx(tdm_onnx *to, const tdm_onnx_layer *layer) {
    const char *sum = layer->x[0];
    for (int i = 1; i < layer->input_count; i++) {
        const char *next = i + 1 == layer->input_count ? layer->y : to->calls->value(to);
        TDM_ONNX_NODE(to, "Add", next, sum, layer->x[i]);
        sum = next;
    }
    return TDM_OK;
}

static bool from_onnx(tdm_onnx_reader *from, const tdm_onnx_node *node, int output, tdm_onnx_found *out) {
    tdm_shape shape;
    if (!tdm__onnx_is(node, output, "Add", 2) && !tdm__onnx_is(node, output, "Sum", 2)) return false;
    if (node->input_count > TDM_MAX_INPUTS) {
        snprintf(out->why, sizeof(out->why), "a layer of tandem adds at most %d values", TDM_MAX_INPUTS);
        return false;
    }
    for (int i = 0; i < node->input_count; i++) {
        if (!from->calls->plain(from, node->input[i], &shape)) return false;
        out->x[out->input_count++] = node->input[i];
    }
    return true;
}

const tdm_op_def tdm__add_op = {
    .name = "add",
    .also_called = "residual sum",
    .doc = "sum of its inputs, element by element (a residual connection)",
    .doc_zh = "各输入逐元素相加（残差连接）",
    .min_inputs = 2,
    .max_inputs = TDM_MAX_INPUTS,
    .flags = TDM_OP_IN_PLACE,
    .infer = infer,
    .onnx = TDM_OF_ONNX(onnx),
    .from_onnx = TDM_OF_ONNX(from_onnx),
};
