/* rmsprop: definition, and the scalars of a step. rmsprop.h has the formula and its source. */
#include "ops/optim/rmsprop/rmsprop.h"

#include "runtime/base/isa.h"
#include "ops/ops.h"

_Static_assert(sizeof(tdm_rmsprop_values) <= TDM_OPTIM_BYTES, "the scalars of a step fit its values");

enum { SQUARE_AVG = 1, MOMENTUM_BUFFER = 2, GRAD_AVG = 4 };

/* Without momentum there is no buffer, as in PyTorch; a schedule that moves it may bring some. */
static unsigned states(const tdm_optimizer_section *section, bool cycles) {
    return SQUARE_AVG | (cycles || section->momentum != 0 ? MOMENTUM_BUFFER : 0u) | (section->centered ? GRAD_AVG : 0u);
}

static void prepare(const tdm_optim_settings *settings, void *values) {
    const tdm_optimizer_section *section = settings->section;
    *(tdm_rmsprop_values *)values = (tdm_rmsprop_values){.lr = (float)settings->lr,
                                                         .momentum = (float)settings->momentum,
                                                         .alpha = (float)section->alpha,
                                                         .one_minus_alpha = (float)(1.0 - section->alpha),
                                                         .eps = (float)section->eps,
                                                         .weight_decay = (float)settings->weight_decay,
                                                         .centered = section->centered};
}

const tdm_optim_def tdm__rmsprop_optim = {
    .name = "rmsprop",
    .doc = "divides by a running average of the gradient's square (torch.optim.RMSprop)",
    .keys = {"momentum", "alpha", "eps", "centered"},
    .state = {"square_avg", "momentum_buffer", "grad_avg"},
    .never_negative = {true, false, false},
    .states = states,
    .without = {NULL, "optimizer.momentum: 0", "optimizer.centered: false"},
    .prepare = prepare,
    .cpu = TDM_ISA_KERNELS(tdm__rmsprop),
};
