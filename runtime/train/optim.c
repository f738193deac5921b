/* Optimizers: scalars in double, narrowed to float where ATen narrows them, then one pass over the flat arena.
 * Formulas: torch/optim/{sgd,adam,adamw}.py; the order of operations is in ops/flat and runtime/docs/numerics.md. */
#include <math.h>
#include <stddef.h>

#include "runtime/base/status.h"
#include "runtime/train/train.h"

const char *tdm__optim_name(int type) {
    static const char *const names[] = {"sgd", "adam", "adamw"};
    return names[type];
}

int tdm__optim_state_count(const tdm_job *job) {
    const tdm_schedule_section *schedule = &job->schedule;
    bool cycles = schedule->type == TDM_SCHEDULE_ONECYCLE && schedule->cycle_momentum;
    if (job->optimizer.type == TDM_SGD) return cycles || job->optimizer.momentum != 0 ? 1 : 0;
    return 2;
}

const char *tdm__optim_state_name(int type, int slot) {
    if (type == TDM_SGD) return slot == 0 ? "momentum_buffer" : NULL;
    return slot == 0 ? "exp_avg" : slot == 1 ? "exp_avg_sq" : NULL;
}

static tdm_sgd_args sgd_args(const tdm_update *update) {
    const tdm_optimizer_section *o = update->optimizer;
    return (tdm_sgd_args){.lr = (float)update->lr,
                          .momentum = (float)update->momentum,
                          .one_minus_dampening = (float)(1.0 - o->dampening),
                          .weight_decay = isnan(o->weight_decay) ? 0.0f : (float)o->weight_decay,
                          .nesterov = o->nesterov,
                          .first_step = update->t == 1};
}

static tdm_adam_args adam_args(const tdm_update *update) {
    const tdm_optimizer_section *o = update->optimizer;
    bool decoupled = o->type == TDM_ADAMW;
    double beta1 = update->momentum, beta2 = o->betas.item[1];
    double decay = isnan(o->weight_decay) ? (decoupled ? 0.01 : 0.0) : o->weight_decay;
    double correction1 = 1.0 - pow(beta1, (double)update->t), correction2 = 1.0 - pow(beta2, (double)update->t);
    return (tdm_adam_args){.beta1 = (float)beta1,
                           .one_minus_beta1 = (float)(1.0 - beta1),
                           .beta2 = (float)beta2,
                           .one_minus_beta2 = (float)(1.0 - beta2),
                           .step_size = (float)-(update->lr / correction1),
                           .sqrt_correction = (float)sqrt(correction2),
                           .eps = (float)o->eps,
                           .weight_decay = decoupled ? 0.0f : (float)decay,
                           .decay_factor = decoupled ? (float)(1.0 - update->lr * decay) : 1.0f,
                           .lerp = o->form == TDM_ADAM_LERP};
}

tdm_step_values tdm__optim_values(const tdm_update *update, int64_t denominator) {
    tdm_step_values values = {.step = (uint64_t)update->t,
                              .loss_seed = (float)(1.0 / (double)denominator),
                              .clip_norm = (float)update->clip_norm};
    if (update->optimizer->type == TDM_SGD)
        values.sgd = sgd_args(update);
    else
        values.adam = adam_args(update);
    return values;
}

tdm_status tdm__optim_step(tdm_replica *r, const tdm_update *update) {
    tdm_device *device = r->device;
    const tdm_step_values *values = &r->block->values;
    const tdm_device_ops *ops = device->ops;
    size_t count = r->plan->param_floats;
    if (!isnan(update->clip_norm))
        TDM_TRY(ops->clip(device, values, r->grad, count, r->ranges, (int)r->plan->graph->param_count,
                          &r->block->outcome.grad_norm));
    if (update->optimizer->type == TDM_SGD)
        return ops->sgd(device, values, r->param, r->grad, r->state, r->narrow, count);
    return ops->adam(device, values, r->param, r->grad, r->state, r->state + count, r->narrow, count);
}
