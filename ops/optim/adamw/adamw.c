/* adamw: adam whose decay is multiplied to the parameters instead of added to the gradients. The kernels are adam's;
 * adam.h has the formula of both. */
#include "runtime/base/isa.h"
#include "ops/ops.h"
#include "ops/optim/adam/adam.h"

static void prepare(const tdm_optim_settings *settings, void *values) {
    tdm_adam_values *out = values;
    tdm__adam_prepare(settings, out);
    out->decay_factor = (float)(1.0 - settings->lr * settings->weight_decay);
}

const tdm_optim_def tdm__adamw_optim = {
    .name = "adamw",
    .doc = "adam with decay of the weights themselves (torch.optim.AdamW)",
    .keys = {"betas", "eps", "form", "amsgrad"},
    .state = {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"},
    .never_negative = {false, true, true},
    .states = tdm__adam_states,
    .without = {NULL, NULL, "optimizer.amsgrad: false"},
    .weight_decay = 0.01,
    .moves_beta1 = true,
    .prepare = prepare,
    .cpu = TDM_ISA_KERNELS(tdm__adam),
};
