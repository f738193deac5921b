/* slice: definition. x[:, start:end] of PyTorch. */
#include "ops/slice/slice.h"

#include <stdio.h>

#include "ops/onnx/from_onnx.h"
#include "ops/onnx/onnx.h"
#include "ops/ops.h"
#include "runtime/base/field/field_rows.h"
#include "runtime/base/status.h"

static const tdm_field fields[] = {
    {FIELD(INT, tdm_slice_attrs, start, NULL), RANGE(0, 9007199254740992.0), FLAGS(REQUIRED | MAIN),
     HELP("the first item, from 0", "第一项，从 0 起")},
    {FIELD(INT, tdm_slice_attrs, end, "null"), RANGE(1, 9007199254740992.0), FLAGS(NULLABLE),
     HELP("the item behind the last; null: all that follow", "最后一项之后；null 表示其后全部")},
    {0},
};

static tdm_status infer(tdm_infer *infer) {
    const tdm_slice_attrs *attrs = infer->attrs;
    const int64_t found = infer->input[0].dim[0];
    const int64_t end = attrs->end == TDM_INT_NULL ? found : attrs->end;
    if (attrs->start >= end || end > found)
        TDM_INFER_FAIL(infer, "%s needs 0 <= start < end <= %lld, the first dimension of its input, got %lld to %lld",
                       infer->layer, (long long)found, (long long)attrs->start, (long long)end);
    infer->output = infer->input[0];
    infer->output.dim[0] = end - attrs->start;
    infer->picks = true;
    infer->picks_first = attrs->start;
    for (int i = 1; i < infer->input[0].ndim; i++) infer->picks_first *= infer->input[0].dim[i];
    return TDM_OK;
}

static tdm_status onnx(tdm_onnx *to, const tdm_onnx_layer *layer) {
    const tdm_slice_attrs *attrs = layer->attrs;
    const int64_t end = attrs->start + layer->output.dim[0], axis = 1;
    TDM_ONNX_NODE(to, "Slice", layer->y, layer->x[0], to->calls->indices(to, 1, &attrs->start),
                  to->calls->indices(to, 1, &end), to->calls->indices(to, 1, &axis));
    return TDM_OK;
}

tdm_status tdm_builtin_input_attrs(tdm_zone *zone, int64_t first, int64_t count, const void **out) {
    tdm_slice_attrs *attrs;
    TDM_TRY(tdm__zone_new(zone, &attrs, 1, sizeof(*attrs)));
    *attrs = (tdm_slice_attrs){first, first + count};
    *out = attrs;
    return TDM_OK;
}

/* Items of the first dimension, in the way of Slice up to opset 9 or of later ones, or one part of a Split. */
static bool find_items(tdm_onnx_reader *from, const tdm_onnx_node *node, int64_t *start, int64_t *end) {
    int64_t axis[TDM_ONNX_AXES], step = 1;
    int count;
    if (node->input_count == 1) {
        count = from->calls->list(from, node, "axes", TDM_ONNX_AXES, axis);
        return count == 1 && axis[0] == 1 && from->calls->list(from, node, "starts", 1, start) == 1 &&
               from->calls->list(from, node, "ends", 1, end) == 1;
    }
    const char *steps = tdm__onnx_input_of(node, 4);
    if (steps[0] != '\0' && from->calls->integers(from, steps, 1, &step) != 1) return false;
    count = from->calls->integers(from, tdm__onnx_input_of(node, 3), TDM_ONNX_AXES, axis);
    return count == 1 && axis[0] == 1 && step == 1 && from->calls->integers(from, node->input[1], 1, start) == 1 &&
           from->calls->integers(from, tdm__onnx_input_of(node, 2), 1, end) == 1;
}

static bool find_part(tdm_onnx_reader *from, const tdm_onnx_node *node, int output, int64_t items, int64_t *start,
                      int64_t *end) {
    int64_t sizes[TDM_ONNX_FEW];
    const int64_t parts = node->output_count;
    const bool has_attr = from->calls->has(from, node, "split"),
               is_equal = !has_attr && tdm__onnx_input_of(node, 1)[0] == '\0';
    if (from->calls->integer(from, node, "axis", 0) != 1) return false;
    if (is_equal) {
        const int64_t each = (items + parts - 1) / parts; /* the last may be smaller */
        *start = output * each;
        *end = *start + each;
        return from->calls->integer(from, node, "num_outputs", parts) == parts;
    }
    const int count = has_attr ? from->calls->list(from, node, "split", TDM_ONNX_FEW, sizes)
                               : from->calls->integers(from, tdm__onnx_input_of(node, 1), TDM_ONNX_FEW, sizes);
    *end = 0;
    for (int i = 0; i <= output; i++) {
        if (i >= count || sizes[i] < 0 || sizes[i] > items - *end) return false;
        *start = *end;
        *end += sizes[i];
    }
    return true;
}

static bool from_onnx(tdm_onnx_reader *from, const tdm_onnx_node *node, int output, tdm_onnx_found *out) {
    int64_t start, end;
    tdm_shape shape;
    const bool slices = tdm__onnx_is(node, output, "Slice", 1), splits = tdm__onnx_is(node, 0, "Split", 1);
    if ((!slices && !splits) || !from->calls->plain(from, node->input[0], &shape)) return false;
    const int64_t items = shape.dim[0];
    if (slices ? !find_items(from, node, &start, &end) : !find_part(from, node, output, items, &start, &end)) {
        snprintf(
            out->why, sizeof(out->why),
            "tandem takes neighbouring items of the first dimension behind the batch only, whose positions are known "
            "from numbers in the file, at most %d",
            TDM_ONNX_FEW);
        return false;
    }
    if (start < 0) start += items;
    if (end < 0) end += items;
    out->x[out->input_count++] = node->input[0];
    from->calls->set_integer(from, "start", start);
    from->calls->set_integer(from, "end", end < items ? end : items);
    return true;
}

const tdm_op_def tdm__slice_op = {
    .name = "slice",
    .also_called = "narrow columns split",
    .doc = "some items of the first dimension: y = x[:, start:end]",
    .doc_zh = "取第一维的一段：y = x[:, start:end]",
    .min_inputs = 1,
    .max_inputs = 1,
    .attrs = fields,
    .attrs_bytes = sizeof(tdm_slice_attrs),
    .infer = infer,
    .onnx = TDM_OF_ONNX(onnx),
    .from_onnx = TDM_OF_ONNX(from_onnx),
};
