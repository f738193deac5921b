/* An optimizer's step: its scalars on the host, its kernel on the device. Which optimizers there are: ops/optims.def.
 */
#include "runtime/optim/optim.h"

#include <math.h>
#include <stddef.h>

#include "runtime/base/status.h"
#include "runtime/graph/graph.h"

int tdm__optim_state_count(const tdm_job *job) {
    const tdm_optim_def *optim = tdm_builtin_optims[job->optimizer.type];
    const tdm_schedule_section *schedule = &job->schedule;
    bool cycles = schedule->type == TDM_SCHEDULE_ONECYCLE && schedule->cycle_momentum;
    if (optim->state_count != NULL) return optim->state_count(&job->optimizer, cycles);
    int count = 0;
    while (count < TDM_MAX_STATES && optim->state[count] != NULL) count++;
    return count;
}

tdm_step_values tdm__optim_values(const tdm_update *update, int64_t denominator) {
    const tdm_optim_def *optim = update->optim;
    const tdm_optimizer_section *section = update->optimizer;
    tdm_step_values values = {.step = (uint64_t)update->t,
                              .loss_seed = (float)(1.0 / (double)denominator),
                              .clip_norm = (float)update->clip_norm,
                              .average_weight = update->average_weight};
    const tdm_optim_settings settings = {.section = section,
                                         .lr = update->lr,
                                         .momentum = update->momentum,
                                         .weight_decay =
                                             isnan(section->weight_decay) ? optim->weight_decay : section->weight_decay,
                                         .t = update->t};
    optim->prepare(&settings, values.optim);
    return values;
}

tdm_status tdm__optim_step(tdm_replica *r, const tdm_update *update) {
    tdm_device *device = r->device;
    const tdm_device_ops *ops = device->ops;
    size_t count = r->plan->param_floats;
    tdm_optim_args args = {.device = device,
                           .values = &r->block->values,
                           .p = r->param,
                           .g = r->grad,
                           .p_bf16 = r->param_bf16,
                           .count = count};
    for (int i = 0; i < r->state_count; i++) args.state[i] = r->state + (size_t)i * count;
    if (!isnan(update->clip_norm))
        TDM_TRY(ops->arenas->clip(device, args.values, r->grad, count, r->ranges, (int)r->plan->graph->param_count,
                                  &r->block->outcome.grad_norm));
    if (ops->enter != NULL) TDM_TRY(ops->enter(device));
    TDM_TRY(update->optim_run(&args));
    return r->average != NULL ? ops->arenas->average(device, args.values, r->average, r->param, count) : TDM_OK;
}
