/* What the infer functions of all ops share. */
#include "ops/ops.h"
#include "runtime/base/memory.h"

/* The most elements in one tensor of one row: 2^40 floats are 4 TiB, and leave room for batches in 64 bits. */
static const size_t most_elements = (size_t)1 << 40;

static bool is_storable(const tdm_shape *shape) {
    size_t count = 1;
    for (int i = 0; i < shape->ndim; i++)
        if (!tdm__mul_fits(count, (size_t)shape->dim[i], &count) || count > most_elements) return false;
    return true;
}

tdm_shape_text tdm__shape_text(const tdm_shape *shape) {
    tdm_shape_text out;
    tdm__shape_print(out.text, sizeof out.text, shape);
    return out;
}

tdm_status tdm__infer_done(tdm_infer *infer) {
    if (!is_storable(&infer->output))
        TDM_INFER_FAIL(infer, "%s: its output %s has more elements than any machine can hold", infer->layer,
                       tdm__shape_text(&infer->output).text);
    for (int i = 0; i < infer->param_count; i++)
        if (!is_storable(&infer->param[i].shape))
            TDM_INFER_FAIL(infer, "%s: its %s %s has more elements than any machine can hold", infer->layer,
                           infer->param[i].suffix, tdm__shape_text(&infer->param[i].shape).text);
    return TDM_OK;
}

tdm_status tdm__infer_check_in(tdm_infer *infer, int64_t expected, int64_t found, const char *what) {
    if (expected != TDM_INT_NULL && expected != found)
        TDM_INFER_FAIL(infer, "%s: `in` says %lld %s, but its input %s has %lld; correct it or leave it out",
                       infer->layer, (long long)expected, what, tdm__shape_text(&infer->input[0]).text,
                       (long long)found);
    return TDM_OK;
}

void tdm__infer_weight_and_bias(tdm_infer *infer, tdm_shape weight, int64_t fan_in, bool bias) {
    infer->param[0] =
        (tdm_param_def){.suffix = "weight", .shape = weight, .init = TDM_INIT_UNIFORM_FAN_IN, .fan_in = fan_in};
    infer->param_count = 1;
    if (!bias) return;
    infer->param[1] = (tdm_param_def){.suffix = "bias",
                                      .shape = {1, {weight.dim[0]}},
                                      .init = TDM_INIT_UNIFORM_FAN_IN,
                                      .fan_in = fan_in,
                                      .is_bias = true};
    infer->param_count = 2;
}
