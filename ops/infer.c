/* What the infer functions of all ops share. */
#include "ops/ops.h"

tdm_status tdm__infer_elementwise(tdm_infer *infer) {
    infer->output = infer->input[0];
    infer->flops = (double)tdm__shape_count(&infer->output);
    return TDM_OK;
}

tdm_status tdm__infer_check_in(tdm_infer *infer, int64_t expected, int64_t found, const char *what) {
    if (expected != TDM_INT_NULL && expected != found)
        TDM_INFER_FAIL(infer, "%s: `in` says %lld %s, but its input %s has %lld; correct it or leave it out",
                       infer->layer, (long long)expected, what, tdm__shape_text(&infer->input[0]).text,
                       (long long)found);
    return TDM_OK;
}

tdm_status tdm__infer_check_groups(tdm_infer *infer, int64_t groups, int64_t in, int64_t out) {
    if (in % groups != 0)
        TDM_INFER_FAIL(infer, "%s: groups must divide the channels of the input, got %lld groups and %lld channels",
                       infer->layer, (long long)groups, (long long)in);
    if (out % groups != 0)
        TDM_INFER_FAIL(infer, "%s: groups must divide `out`, got %lld groups and %lld channels", infer->layer,
                       (long long)groups, (long long)out);
    return TDM_OK;
}

void tdm__infer_set_again(tdm_infer *infer, double std) {
    infer->param[0].is_set_again = true;
    infer->param[0].again = TDM_INIT_NORMAL;
    infer->param[0].std = std;
    if (infer->param_count < 2) return;
    infer->param[1].is_set_again = true;
    infer->param[1].again = TDM_INIT_ZEROS;
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
