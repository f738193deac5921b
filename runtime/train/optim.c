/* Optimizers: scalars in double, narrowed to float where ATen narrows them, then one pass over the flat arena.
 * Formulas: torch/optim/{sgd,adam,adamw}.py; the order of operations is in ops/flat and runtime/docs/numerics.md. */
#include <math.h>
#include <stddef.h>

#include "runtime/train/train.h"

const char *tdm__optim_name(int type) {
    static const char *const names[] = {"sgd", "adam", "adamw"};
    return names[type];
}

int tdm__optim_state_count(const tdm_optimizer_section *optimizer) {
    if (optimizer->type == TDM_SGD) return optimizer->momentum != 0 ? 1 : 0;
    return 2;
}

const char *tdm__optim_state_name(int type, int slot) {
    if (type == TDM_SGD) return slot == 0 ? "momentum_buffer" : NULL;
    return slot == 0 ? "exp_avg" : slot == 1 ? "exp_avg_sq" : NULL;
}

static void sgd_step(tdm_replica *replica, const tdm_update *update) {
    const tdm_optimizer_section *o = update->optimizer;
    tdm_sgd_args args = {.lr = (float)update->lr,
                         .momentum = (float)update->momentum,
                         .one_minus_dampening = (float)(1.0 - o->dampening),
                         .weight_decay = isnan(o->weight_decay) ? 0.0f : (float)o->weight_decay,
                         .nesterov = o->nesterov,
                         .first_step = update->t == 1};
    replica->device->flat->sgd(&args, replica->param, replica->grad, replica->state, replica->plan->param_floats);
}

static void adam_step(tdm_replica *replica, const tdm_update *update) {
    const tdm_optimizer_section *o = update->optimizer;
    bool decoupled = o->type == TDM_ADAMW;
    double beta1 = update->momentum, beta2 = o->betas.item[1];
    double decay = isnan(o->weight_decay) ? (decoupled ? 0.01 : 0.0) : o->weight_decay;
    double correction1 = 1.0 - pow(beta1, (double)update->t), correction2 = 1.0 - pow(beta2, (double)update->t);
    tdm_adam_args args = {.beta1 = (float)beta1,
                          .one_minus_beta1 = (float)(1.0 - beta1),
                          .beta2 = (float)beta2,
                          .one_minus_beta2 = (float)(1.0 - beta2),
                          .step_size = (float)-(update->lr / correction1),
                          .sqrt_correction = (float)sqrt(correction2),
                          .eps = (float)o->eps,
                          .weight_decay = decoupled ? 0.0f : (float)decay,
                          .decay_factor = decoupled ? (float)(1.0 - update->lr * decay) : 1.0f,
                          .lerp = o->form == TDM_ADAM_LERP};
    size_t count = replica->plan->param_floats;
    replica->device->flat->adam(&args, replica->param, replica->grad, replica->state, replica->state + count, count);
}

void tdm__optim_step(tdm_replica *replica, const tdm_update *update) {
    if (update->optimizer->type == TDM_SGD)
        sgd_step(replica, update);
    else
        adam_step(replica, update);
}

double tdm__clip_grad_norm(tdm_replica *replica, double max_norm) {
    const tdm_plan *plan = replica->plan;
    const tdm_flat_kernels *flat = replica->device->flat;
    double squares = 0;
    for (size_t i = 0; i < plan->graph->param_count; i++) { /* PyTorch's order of parameters */
        const tdm_plan_param *param = &plan->params[plan->param_of_graph[i]];
        float norm = (float)sqrt(flat->sum_squares(replica->grad + param->offset, (size_t)param->count));
        squares += (double)norm * (double)norm;
    }
    float total = (float)sqrt(squares);
    float factor = (float)max_norm / (total + 1e-6f);
    flat->scale(replica->grad, factor < 1.0f ? factor : 1.0f, plan->param_floats);
    return (double)total;
}
