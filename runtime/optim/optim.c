/* The update: its scalars on the host, its kernel on the device. Which optimizers there are: ops/optims.def.
 */
#include "runtime/optim/optim.h"

#include <math.h>
#include <stddef.h>

#include "runtime/base/status.h"
#include "runtime/device/threads.h"
#include "runtime/exec/own.h"
#include "runtime/graph/graph.h"

unsigned tdm__optim_states_of(const tdm_optim_def *optim, const tdm_job *job) {
    const tdm_schedule_section *schedule = &job->schedule;
    bool cycles = schedule->type == TDM_SCHEDULE_ONECYCLE && schedule->cycle_momentum;
    if (optim->states != NULL) return optim->states(&job->optimizer, cycles);
    unsigned all = 0;
    for (int i = 0; i < TDM_MAX_STATES && optim->state[i] != NULL; i++) all |= 1u << i;
    return all;
}

unsigned tdm__optim_states(const tdm_job *job) {
    return tdm__optim_states_of(tdm_builtin_optims[job->optimizer.type], job);
}

int tdm__optim_state_count(const tdm_job *job) {
    return __builtin_popcount(tdm__optim_states(job));
}

bool tdm__optim_takes_norms(const tdm_job *job) {
    return tdm_builtin_optims[job->optimizer.type]->takes_norms != NULL;
}

tdm_step_values tdm__optim_values(const tdm_update *update, double denominator) {
    const tdm_optim_def *optim = update->optim;
    const tdm_optimizer_section *section = update->optimizer;
    tdm_step_values values = {.step = (uint64_t)update->t,
                              .loss_seed = denominator == 0 ? 0.0f : (float)(1.0 / denominator),
                              .clip_norm = (float)update->clip_norm,
                              .average_weight = update->average_weight,
                              .clip_value = (float)update->clip_value};
    const tdm_optim_settings settings = {.section = section,
                                         .lr = update->lr,
                                         .momentum = update->momentum,
                                         .weight_decay =
                                             isnan(section->weight_decay) ? optim->weight_decay : section->weight_decay,
                                         .t = update->updates};
    optim->prepare(&settings, values.optim);
    return values;
}

tdm_values tdm__optim_all_values(const tdm_update *update, double denominator) {
    const tdm_param_groups *groups = &update->optimizer->groups;
    tdm_values values = {.count = 1 + groups->count, .of[0] = tdm__optim_values(update, denominator)};
    for (int i = 0; i < groups->count; i++) {
        const double weight_decay = groups->item[i].weight_decay;
        tdm_optimizer_section section = *update->optimizer;
        tdm_update of_group = *update;
        if (!isnan(weight_decay)) section.weight_decay = weight_decay;
        of_group.optimizer = &section;
        of_group.lr = update->group_lr[i];
        values.of[i + 1] = tdm__optim_values(&of_group, denominator);
    }
    return values;
}

typedef struct shared_step {
    const tdm_optim_args *all;
    tdm_optim_run *run;
} shared_step;

static void step_part(void *user, size_t begin, size_t end) {
    const shared_step *s = user;
    tdm_optim_args args = *s->all;
    args.count = end - begin;
    args.p += begin;
    args.g += begin;
    for (int i = 0; i < TDM_MAX_STATES; i++)
        if (args.state[i] != NULL) args.state[i] += begin;
    (void)s->run(&args); /* on the CPU nothing can fail */
}

/* A program's own optimizer, over the same. */
static tdm_status own_step(const tdm_update *update, const tdm_plan_run *run, const tdm_optim_args *args) {
    const int group = run->group - 1;
    const double decay = group >= 0 ? update->optimizer->groups.item[group].weight_decay : NAN;
    const double given = update->optimizer->weight_decay;
    const double of_all = isnan(given) ? tdm_builtin_optims[update->optimizer->type]->weight_decay : given;
    tdm_own_update own = {.size = sizeof(own),
                          .count = (int64_t)args->count,
                          .p = args->p,
                          .g = args->g,
                          .step = update->updates,
                          .group = group,
                          .lr = group >= 0 ? update->group_lr[group] : update->lr,
                          .momentum = update->momentum,
                          .weight_decay = isnan(decay) ? of_all : decay};
    for (int i = 0; i < TDM_OWN_STATES; i++) own.state[i] = args->state[i];
    return tdm__own_update(update->own, &own);
}

/* One step over parameters whose settings are the same; or over one, with norms that may be NULL. */
static tdm_status step_run(const tdm_replica *r, const tdm_plan_run *run, const float *norms,
                           const tdm_update *update) {
    const size_t at = tdm__replica_floats_at(r, run->offset);
    tdm_optim_args args = {.device = r->device,
                           .values = &r->block->values[run->group],
                           .p = r->arena.param + at,
                           .g = r->arena.grad + at,
                           .p_norm = norms,
                           .g_norm = norms != NULL ? norms + r->norms.range_count : NULL,
                           .count = run->count};
    if (r->arena.param_bf16 != NULL && !tdm__plan_converts(r->plan)) args.p_bf16 = (uint16_t *)r->arena.param_bf16 + at;
    float *arena = r->arena.state + at;
    for (int i = 0; i < TDM_MAX_STATES; i++) {
        if ((update->states >> i & 1) == 0) continue;
        args.state[i] = arena;
        arena += tdm__replica_trained(r);
    }
    if (update->own != NULL) return own_step(update, run, &args);
    if (r->device->threads == NULL) return update->optim_run(&args);
    shared_step shared = {&args, update->optim_run};
    return tdm__threads_loop(r->device->threads, args.count, step_part, &shared);
}

/* What the stage has of a run. */
static tdm_plan_run own_part(const tdm_replica *r, const tdm_plan_run *run) {
    const tdm_plan_stage *own = &r->plan->stages[r->stage];
    const size_t end = run->offset + run->count, own_end = own->trained_at + own->trained_floats;
    const size_t first = run->offset > own->trained_at ? run->offset : own->trained_at;
    const size_t last = end < own_end ? end : own_end;
    return (tdm_plan_run){.offset = first, .count = last > first ? last - first : 0, .group = run->group};
}

static tdm_status step_runs(const tdm_replica *r, const tdm_update *update) {
    for (int i = 0; i < r->plan->run_count; i++) {
        const tdm_plan_run run = own_part(r, &r->plan->runs[i]);
        if (run.count > 0) TDM_TRY(step_run(r, &run, NULL, update));
    }
    return TDM_OK;
}

/* Norms have the bits that those of clipping have, so they depend neither on threads nor on stages. */
static tdm_status step_params(const tdm_replica *r, const tdm_update *update) {
    const tdm_plan *plan = r->plan;
    const tdm_arena_ops *arenas = r->device->ops->arenas;
    const size_t count = plan->trained_floats;
    TDM_TRY(arenas->norms(r->device, r->arena.param, count, r->norms.ranges, r->norms.range_count, r->norms.each));
    TDM_TRY(arenas->norms(r->device, r->arena.grad, count, r->norms.ranges, r->norms.range_count,
                          r->norms.each + r->norms.range_count));
    const float *norms = r->norms.each; /* in the order of the ranges */
    for (size_t i = 0; i < plan->graph->param_count; i++) {
        const tdm_plan_param *param = &plan->params[plan->param_of_graph[i]];
        if (plan->frozen[i] || plan->nodes[param->node].stage != r->stage) continue;
        const tdm_plan_run run = {.offset = param->offset, .count = (size_t)param->stored, .group = param->group};
        const bool takes = update->optim->takes_norms(update->optimizer, plan->graph->params[i].def.shape.ndim);
        TDM_TRY(step_run(r, &run, takes ? norms : NULL, update));
        norms++;
    }
    return TDM_OK;
}

static tdm_status step(tdm_replica *r, const tdm_update *update) {
    tdm_device *device = r->device;
    const tdm_device_ops *ops = device->ops;
    if (!isnan(update->clip_value))
        TDM_TRY(ops->arenas->clamp(device, r->block->values, r->arena.grad, tdm__replica_trained(r)));
    if (ops->enter != NULL) TDM_TRY(ops->enter(device));
    TDM_TRY(update->optim->takes_norms != NULL ? step_params(r, update) : step_runs(r, update));
    if (tdm__plan_converts(r->plan)) TDM_TRY(tdm__replica_params_changed(r));
    if (r->arena.average == NULL) return TDM_OK;
    return ops->arenas->average(device, r->block->values, r->arena.average, r->arena.param, tdm__replica_floats(r));
}

tdm_status tdm__optim_step(tdm_replica *r, const tdm_update *update) {
    tdm_device *device = r->device;
    if (!isnan(update->clip_norm))
        TDM_TRY(device->ops->arenas->clip(device, r->block->values, r->arena.grad, tdm__replica_trained(r),
                                          r->norms.ranges, r->norms.range_count, &r->block->outcome.grad_norm));
    return step(r, update);
}

/* ---- several stages ---- */

tdm_status tdm__optim_norms(tdm_replica *r) {
    tdm_device *device = r->device;
    const tdm_device_ops *ops = device->ops;
    TDM_TRY(ops->arenas->norms(device, r->arena.grad, r->plan->trained_floats, r->norms.ranges, r->norms.range_count,
                               r->norms.gradient));
    TDM_TRY(ops->queues->copy(device, NULL, r->mirror.norms, r->norms.gradient,
                              (size_t)r->norms.range_count * sizeof(*r->norms.gradient)));
    return ops->queues->finish(device, NULL);
}

/* In PyTorch's order, as tdm_arena_ops.clip. */
double tdm__optim_norm(const tdm_replica *first) {
    const tdm_plan *plan = first->plan;
    int next[TDM_STAGES_MAX] = {0};
    double squares = 0;
    for (size_t i = 0; i < plan->graph->param_count; i++) {
        const int stage = plan->nodes[plan->params[plan->param_of_graph[i]].node].stage;
        if (plan->frozen[i]) continue;
        const double part = (double)first->stages[stage]->mirror.norms[next[stage]++];
        squares += part * part;
    }
    return (double)(float)sqrt(squares);
}

tdm_status tdm__optim_stage_step(tdm_replica *r, const tdm_update *update, double norm) {
    const float factor = (float)update->clip_norm / ((float)norm + 1e-6f); /* NaN without clipping */
    if (factor < 1.0f)
        TDM_TRY(r->device->ops->arenas->scale(r->device, r->arena.grad, tdm__replica_trained(r), factor));
    return step(r, update);
}
