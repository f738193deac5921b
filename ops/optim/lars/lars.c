/* lars: sgd that multiplies each parameter's gradient by a ratio of norms. The kernels are sgd's; sgd.h has the formula
 * of both, and its source. */
#include "ops/ops.h"
#include "ops/optim/sgd/sgd.h"
#include "runtime/base/isa.h"

static bool takes_norms(const tdm_optimizer_section *section, int dimensions) {
    return dimensions > 1 || !section->exclude_1d;
}

static void prepare(const tdm_optim_settings *settings, void *values) {
    tdm_sgd_values *out = values;
    tdm__sgd_prepare(settings, out);
    out->layerwise = true;
    out->trust_coefficient = (float)settings->section->trust_coefficient;
    out->eps = (float)settings->section->eps;
}

const tdm_optim_def tdm__lars_optim = {
    .name = "lars",
    .doc = "sgd with a learning rate for each parameter, in proportion to its norm (arXiv 1708.03888)",
    .keys = {"momentum", "dampening", "nesterov", "trust_coefficient", "eps", "exclude_1d"},
    .conflict = {TDM_SGD_CONFLICTS},
    .state = {"momentum_buffer"},
    .states = tdm__sgd_states,
    .without = {"optimizer.momentum: 0"},
    .takes_norms = takes_norms,
    .prepare = prepare,
    .cpu = TDM_ISA_KERNELS(tdm__sgd),
};
