/* adam: definition, and the scalars of a step. adam.h has the formula and its source. */
#include "ops/optim/adam/adam.h"

#include "runtime/base/isa.h"
#include "ops/ops.h"

_Static_assert(sizeof(tdm_adam_values) <= TDM_OPTIM_BYTES, "the scalars of a step fit its values");

unsigned tdm__adam_states(const tdm_optimizer_section *section, bool cycles) {
    (void)cycles;
    return section->amsgrad ? 7 : 3;
}

void tdm__adam_prepare(const tdm_optim_settings *settings, tdm_adam_values *values) {
    const tdm_optimizer_section *section = settings->section;
    double beta1 = settings->momentum, beta2 = section->betas.item[1];
    double correction1 = 1.0 - pow(beta1, (double)settings->t), correction2 = 1.0 - pow(beta2, (double)settings->t);
    *values = (tdm_adam_values){.beta1 = (float)beta1,
                                .one_minus_beta1 = (float)(1.0 - beta1),
                                .beta2 = (float)beta2,
                                .one_minus_beta2 = (float)(1.0 - beta2),
                                .step_size = (float)-(settings->lr / correction1),
                                .sqrt_correction = (float)sqrt(correction2),
                                .eps = (float)section->eps,
                                .decay_factor = 1.0f,
                                .lerp = section->form == TDM_ADAM_LERP,
                                .amsgrad = section->amsgrad};
}

static void prepare(const tdm_optim_settings *settings, void *values) {
    tdm_adam_values *out = values;
    tdm__adam_prepare(settings, out);
    out->weight_decay = (float)settings->weight_decay;
}

const tdm_optim_def tdm__adam_optim = {
    .name = "adam",
    .doc = "running averages of the gradient and of its square (torch.optim.Adam)",
    .keys = {"betas", "eps", "form", "amsgrad"},
    .state = {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"},
    .never_negative = {false, true, true},
    .states = tdm__adam_states,
    .without = {NULL, NULL, "optimizer.amsgrad: false"},
    .moves_beta1 = true,
    .prepare = prepare,
    .cpu = TDM_ISA_KERNELS(tdm__adam),
};
