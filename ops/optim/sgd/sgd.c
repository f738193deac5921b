/* sgd: definition, and the scalars of a step. sgd.h has the formula and its source. */
#include "ops/optim/sgd/sgd.h"

#include "runtime/base/isa.h"
#include "ops/ops.h"

_Static_assert(sizeof(tdm_sgd_values) <= TDM_OPTIM_BYTES, "the scalars of a step fit its values");

/* Without momentum there is no buffer, as in PyTorch; a schedule that moves it may bring some. */
unsigned tdm__sgd_states(const tdm_optimizer_section *section, bool cycles) {
    return cycles || section->momentum != 0 ? 1 : 0;
}

void tdm__sgd_prepare(const tdm_optim_settings *settings, void *values) {
    *(tdm_sgd_values *)values = (tdm_sgd_values){.lr = (float)settings->lr,
                                                 .momentum = (float)settings->momentum,
                                                 .one_minus_dampening = (float)(1.0 - settings->section->dampening),
                                                 .weight_decay = (float)settings->weight_decay,
                                                 .nesterov = settings->section->nesterov,
                                                 .first_step = settings->t == 1};
}

bool tdm__sgd_lacks_momentum(const tdm_optimizer_section *section) {
    return section->nesterov && section->momentum == 0.0;
}

bool tdm__sgd_is_dampened(const tdm_optimizer_section *section) {
    return section->nesterov && section->dampening != 0.0;
}

const tdm_optim_def tdm__sgd_optim = {
    .name = "sgd",
    .doc = "stochastic gradient descent with momentum (torch.optim.SGD)",
    .keys = {"momentum", "dampening", "nesterov"},
    .conflict = {TDM_SGD_CONFLICTS},
    .state = {"momentum_buffer"},
    .states = tdm__sgd_states,
    .without = {"optimizer.momentum: 0"},
    .prepare = tdm__sgd_prepare,
    .cpu = TDM_ISA_KERNELS(tdm__sgd),
};
