/* concat: definition. torch.cat. */
#include "ops/concat/concat.h"

#include <stdio.h>

#include "ops/onnx/from_onnx.h"
#include "ops/onnx/onnx.h"
#include "ops/ops.h"
#include "runtime/base/field/field_rows.h"

static const tdm_field fields[] = {
    {FIELD(INT, tdm_concat_attrs, dim, "1"), RANGE(-TDM_MAX_DIMS, TDM_MAX_DIMS), FLAGS(MAIN),
     HELP("dimension along which the inputs are joined, as torch.cat counts: 0 is the batch, so 1 is channels or "
          "features, -1 the last",
          "拼接所沿的维，计数同 torch.cat：0 为批次，1 为通道或特征，-1 为最后一维")},
    {0},
};

static tdm_status infer(tdm_infer *infer) {
    const tdm_concat_attrs *attrs = infer->attrs;
    const int ndim = infer->input[0].ndim + 1, dim = tdm__concat_dim(attrs, ndim);
    if (dim < 1 || dim >= ndim)
        TDM_INFER_FAIL(infer, "%s: dim must be 1 to %d for inputs such as %s (0 is the batch), got %lld", infer->layer,
                       ndim - 1, tdm__shape_text(&infer->input[0]).text, (long long)attrs->dim);
    infer->output = infer->input[0];
    for (int k = 1; k < infer->input_count; k++) {
        tdm_shape other = infer->input[k];
        if (other.ndim == infer->output.ndim) {
            infer->output.dim[dim - 1] += other.dim[dim - 1];
            other.dim[dim - 1] = infer->output.dim[dim - 1];
        }
        if (!tdm__shape_equal(&other, &infer->output))
            TDM_INFER_FAIL(infer,
                           "%s needs inputs of the same shape, except along dim %lld, got %s and, as input %d, %s",
                           infer->layer, (long long)attrs->dim, tdm__shape_text(&infer->input[0]).text, k + 1,
                           tdm__shape_text(&infer->input[k]).text);
    }
    infer->flops = 0;
    return TDM_OK;
}

static tdm_status onnx(tdm_onnx *to, const tdm_onnx_layer *layer) {
    to->calls->node(to, "Concat", layer->y, layer->input_count, layer->x);
    to->calls->integer(to, "axis", tdm__concat_dim(layer->attrs, layer->input[0].ndim + 1));
    return TDM_OK;
}

static bool from_onnx(tdm_onnx_reader *from, const tdm_onnx_node *node, int output, tdm_onnx_found *out) {
    tdm_shape shape;
    if (!tdm__onnx_is(node, output, "Concat", 2)) return false;
    if (node->input_count > TDM_MAX_INPUTS) {
        snprintf(out->why, sizeof(out->why), "a layer of tandem joins at most %d values", TDM_MAX_INPUTS);
        return false;
    }
    for (int i = 0; i < node->input_count; i++) {
        if (!from->calls->plain(from, node->input[i], &shape)) return false;
        out->x[out->input_count++] = node->input[i];
    }
    const int64_t axis = from->calls->integer(from, node, "axis", 0);
    from->calls->set_integer(from, "dim", axis < 0 ? axis + shape.ndim + 1 : axis);
    return true;
}

const tdm_op_def tdm__concat_op = {
    .name = "concat",
    .also_called = "cat concatenate",
    .doc = "its inputs one after another along a dimension (torch.cat)",
    .doc_zh = "沿某一维依次拼接各输入（torch.cat）",
    .min_inputs = 2,
    .max_inputs = TDM_MAX_INPUTS,
    .attrs = fields,
    .attrs_bytes = sizeof(tdm_concat_attrs),
    .infer = infer,
    .onnx = TDM_OF_ONNX(onnx),
    .from_onnx = TDM_OF_ONNX(from_onnx),
};
