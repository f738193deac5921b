/* slice: definition. x[:, start:end] of PyTorch. */
#include "ops/slice/slice.h"

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
    .onnx = onnx,
};
