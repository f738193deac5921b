/* dp: torch.nn.DataParallel. One process, a thread per device. A step is:
 *
 *   scatter    the batch's shards go to the replicas (the loader has cut them as `scatter` says)
 *   replicate  replica 0's parameters and buffers are copied to the others
 *   forward    all replicas in parallel
 *   gather     outputs, in replica order, on output_device
 *   loss       there, over the whole batch, with its gradient
 *   backward   all replicas in parallel, each with its rows of that gradient
 *   comm       gradients are added as the canonical tree into replica 0's (each device adds a slice where it can), or
 *              their sum is approximated (compress: powersgd)
 *   optimizer  one update there
 *
 * A step may end at its loss or its gradients, and calls of their own make the rest (`extent`).
 *
 * With `loss: replica` each replica computes the loss of its own shard, and only numbers are gathered. With `update:
 * all` every replica gets the sum of the gradients and makes the update, and nothing is replicated. With `accumulate`
 * forward to backward are done for each micro-batch. Replica 0 is the module: only its running statistics are kept.
 * parallel_apply.h runs a function on all replicas in parallel. */
#include <math.h>

#include "modes/dp.h"
#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/base/system/clock.h"
#include "runtime/base/tree.h"
#include "runtime/optim/optim.h"

/* ---- opening ---- */

static bool gathers(const tdm_job *job) {
    return job->parallel.dp.loss == TDM_DP_LOSS_GATHERED;
}

static size_t dp_gathered_bytes(const tdm_plan *plan, const tdm_job *job, int replicas) {
    int64_t rows = plan->options.rows * replicas;
    if (!gathers(job)) return 0;
    bool gathers_targets = plan->options.ingests && replicas > 1;
    return 2 * tdm__dp_output_bytes(plan, rows) + (gathers_targets ? (size_t)rows * tdm__target_bytes(plan) : 0);
}

/* Bytes between devices in a step: rows, outputs and their gradient, statistics, gradients, parameters or sums back,
 * buffers. */
static int64_t dp_wire_bytes(const tdm_plan *plan, const tdm_job *job, int replicas, int64_t rows) {
    int64_t arena = (int64_t)(plan->trained_floats * sizeof(float));
    int64_t bytes = rows * 4 * tdm__shape_count(&plan->graph->sample);
    if (gathers(job)) bytes += 2 * (int64_t)tdm__dp_output_bytes(plan, rows);
    return bytes + tdm__exchange_bytes(plan, job, replicas) +
           (replicas - 1) *
               (2 * arena + (job->parallel.dp.update == TDM_DP_UPDATE_ROOT ? (int64_t)plan->buffer_bytes : 0));
}

static tdm_status open_replicas(dp *d) {
    const tdm_mode_params *params = &d->base.params;
    TDM_TRY(tdm__new(params->host, &d->replica, (size_t)d->count, sizeof(*d->replica), "replicas"));
    for (int i = 0; i < d->count; i++) {
        bool updates = i == 0 || d->updates_all;
        const tdm_replica_options options = {
            .index = i, .state_count = updates ? params->state_count : 0, .parts = 1, .untimed = i > 0};
        TDM_TRY(tdm__open_replica(params, options, &d->replica[i]));
    }
    return tdm__team_open(&d->team, params->host, d->replica, d->count);
}

/* Of two neighbours the first adds the other's gradients to its own. */
static tdm_status open_peer_gradients(dp *d) {
    const tdm_mode_params *params = &d->base.params;
    TDM_TRY(tdm__new(params->host, &d->peer_gradient, (size_t)d->count, sizeof(*d->peer_gradient), "replicas"));
    for (int i = 0; i + 1 < d->count; i += 2) {
        const size_t bytes = params->plan->trained_floats * sizeof(float);
        TDM_TRY(tdm__device_new(d->replica[i]->device, &d->peer_gradient[i], bytes, "another replica's gradients"));
    }
    return TDM_OK;
}

static tdm_status open_powersgd(dp *d) {
    const tdm_mode_params *params = &d->base.params;
    TDM_TRY(tdm__powersgd_open_here(&d->base.powersgd, params, false));
    for (int i = 0; d->base.powersgd != NULL && i < d->count; i++) {
        tdm__replica_lend(d->replica[i], tdm__powersgd_here_bytes(params->plan, params->job, d->count, 0));
        tdm__replica_set_captures(d->replica[i], TDM_CAPTURES_NEVER);
    }
    return TDM_OK;
}

static tdm_status dp_open(tdm_mode *mode) {
    dp *d = (dp *)mode;
    const tdm_mode_params *params = &mode->params;
    d->count = params->replicas;
    d->updates_all = mode->is_verified = params->job->parallel.dp.update == TDM_DP_UPDATE_ALL;
    mode->scatter = params->job->parallel.dp.scatter;
    TDM_TRY(open_replicas(d));
    mode->replica = d->replica;
    mode->replica_count = d->count;
    mode->depth = tdm__replica_depth(d->replica[0]);
    mode->phases = 1u << TDM_PHASE_SCATTER | 1u << TDM_PHASE_FORWARD | 1u << TDM_PHASE_LOSS | 1u << TDM_PHASE_BACKWARD |
                   1u << TDM_PHASE_COMM | 1u << TDM_PHASE_OPTIMIZER;
    if (gathers(params->job)) mode->phases |= 1u << TDM_PHASE_GATHER;
    if (!d->updates_all) mode->phases |= 1u << TDM_PHASE_REPLICATE;
    if (!d->team.reaches) TDM_TRY(open_peer_gradients(d));
    TDM_TRY(open_powersgd(d));
    return gathers(params->job) ? tdm__dp_open_gathered(d) : TDM_OK;
}

static void dp_close(tdm_mode *mode) {
    dp *d = (dp *)mode;
    const tdm_device_ops *ops = mode->params.device;
    tdm__team_close(&d->team);
    tdm__powersgd_close(d->base.powersgd);
    if (d->output_replica != NULL) {
        ops->release(d->output_replica->device, d->output);
        ops->release(d->output_replica->device, d->output_gradient);
        ops->release(d->output_replica->device, d->target);
    }
    for (int i = 0; d->peer_gradient != NULL && i < d->count; i++)
        ops->release(d->replica[i]->device, d->peer_gradient[i]);
    tdm__delete(mode->params.host, d->peer_gradient);
    for (int i = 0; d->replica != NULL && i < d->count; i++) tdm__close_replica(d->replica[i]);
    tdm__delete(mode->params.host, d->replica);
}

/* ---- scatter and replicate ---- */

static tdm_status scatter_one(void *user, int i) {
    dp_step *s = user;
    TDM_TRY(tdm__replica_take(s->dp->replica[i], &s->batch->shard[i], 1, &s->all[i]));
    return tdm__replica_begin(s->dp->replica[i], &s->values);
}

static tdm_status replicate_one(void *user, int i) {
    const dp_step *s = user;
    return i > 0 ? tdm__copy_trained(s->dp->replica[i], s->dp->replica[0]) : TDM_OK;
}

/* ---- loss: replica ---- */

static tdm_status own_passes_one(void *user, int i) {
    dp_step *s = user;
    const tdm_mode_params *params = &s->dp->base.params;
    int64_t micro = params->job->train.accumulate;
    for (int64_t k = 0; k < micro; k++) {
        if (!tdm__micro_batch(params, &s->all[i], micro, k, &s->rows[i])) break;
        TDM_TRY(tdm__pass(params, s->dp->replica[i], &s->rows[i], k, i, NULL));
    }
    return TDM_OK;
}

static tdm_status own_loss_one(void *user, int i) {
    dp_step *s = user;
    return tdm__loss_of_output(&s->dp->base.params, s->dp->replica[i], &s->rows[i], i);
}

static tdm_status own_forward(dp_step *s) {
    dp *d = s->dp;
    TDM_TRY(tdm__dp_forward(s));
    TDM_TRY(tdm__replica_lap(d->replica[0], TDM_PHASE_FORWARD));
    TDM_TRY(tdm__parallel_apply(&d->team, own_loss_one, s));
    return tdm__replica_lap(d->replica[0], TDM_PHASE_LOSS);
}

/* The phases are those of replica 0; its wait for the slowest replica counts as backward. */
static tdm_status own_passes(dp_step *s) {
    TDM_TRY(tdm__parallel_apply(&s->dp->team, own_passes_one, s));
    return tdm__replica_lap(s->dp->replica[0], TDM_PHASE_BACKWARD);
}

/* ---- passes ---- */

static tdm_status forward(dp_step *s) {
    tdm__dp_micro_batch(s);
    return s->dp->output_replica != NULL ? tdm__dp_gathered_forward(s) : own_forward(s);
}

static tdm_status backward(dp_step *s) {
    TDM_TRY(tdm__dp_backward(s));
    return tdm__replica_lap(s->dp->replica[0], TDM_PHASE_BACKWARD);
}

/* Replicas that need each other's outputs or statistics are in the same micro-batch. */
static tdm_status passes(dp_step *s) {
    const tdm_mode_params *params = &s->dp->base.params;
    if (s->dp->output_replica == NULL && params->plan->statistics_bytes == 0) return own_passes(s);
    for (s->micro_batch = 0; s->micro_batch < params->job->train.accumulate; s->micro_batch++) {
        TDM_TRY(forward(s));
        TDM_TRY(backward(s));
    }
    return TDM_OK;
}

/* ---- the step ---- */

static tdm_status update_one(void *user, int i) {
    const dp_step *s = user;
    return tdm__optim_step(s->dp->replica[i], s->update);
}

static tdm_status update_and_join(dp_step *s) {
    dp *d = s->dp;
    TDM_TRY(d->updates_all ? tdm__parallel_apply(&d->team, update_one, s) : update_one(s, 0));
    TDM_TRY(tdm__queues_join(&d->team));
    return tdm__replica_lap(d->replica[0], TDM_PHASE_OPTIMIZER);
}

static tdm_status reduce(dp_step *s) {
    TDM_TRY(tdm__dp_reduce(s));
    return tdm__replica_lap(s->dp->replica[0], TDM_PHASE_COMM);
}

/* Queues the step, from the replicas' rows to the new parameters, as one piece of replica 0's work. First the
 * other queues wait for replica 0's; at the end replica 0's waits for them. */
static tdm_status work(void *user) {
    dp_step *s = user;
    dp *d = s->dp;
    tdm_replica *root = d->replica[0];
    TDM_TRY(tdm__queues_fork(&d->team));
    if (!d->updates_all) TDM_TRY(tdm__parallel_apply(&d->team, replicate_one, s));
    TDM_TRY(tdm__replica_lap(root, TDM_PHASE_REPLICATE));
    TDM_TRY(s->update->extent == TDM_TO_LOSS ? forward(s) : passes(s));
    if (s->update->extent == TDM_TO_LOSS) return tdm__queues_join(&d->team);
    TDM_TRY(reduce(s));
    return s->update->extent == TDM_TO_GRADIENTS ? tdm__queues_join(&d->team) : update_and_join(s);
}

static tdm_status forward_alone(void *user) {
    dp_step *s = user;
    TDM_TRY(tdm__queues_fork(&s->dp->team));
    TDM_TRY(forward(s));
    return tdm__queues_join(&s->dp->team);
}

static tdm_status backward_alone(void *user) {
    dp_step *s = user;
    TDM_TRY(tdm__queues_fork(&s->dp->team));
    TDM_TRY(backward(s));
    if (s->dp->base.is_last) TDM_TRY(reduce(s));
    return tdm__queues_join(&s->dp->team);
}

static tdm_status update_alone(void *user) {
    dp_step *s = user;
    TDM_TRY(tdm__queues_fork(&s->dp->team));
    return update_and_join(s);
}

static tdm_status end_one(void *user, int i) {
    return tdm__replica_end(((const dp_step *)user)->dp->replica[i]);
}

static tdm_status begin_one(void *user, int i) {
    const dp_step *s = user;
    return tdm__replica_again(s->dp->replica[i], &s->values);
}

static tdm_status dp_submit(tdm_mode *mode, const tdm_batch *batch, const tdm_update *update, tdm_step_result *result) {
    dp *d = (dp *)mode;
    dp_step step = {.dp = d, .batch = batch, .update = update};
    int64_t at = tdm__steady_ns(d->base.params.host);
    int64_t rows = 0;
    for (int i = 1; i < d->count; i++) rows += batch->shard[i].rows;
    result->bytes_moved = dp_wire_bytes(mode->params.plan, mode->params.job, d->count, rows);
    result->denominator = tdm__denominator(&mode->params, batch->shard, batch->shard_count);
    step.values = tdm__optim_all_values(update, result->denominator);
    TDM_TRY(tdm__apply_in_turn(&d->team, scatter_one, &step));
    TDM_TRY(tdm__queues_join(&d->team));
    result->times.ms[TDM_PHASE_SCATTER] = tdm__ms_passed(d->base.params.host, &at);
    TDM_TRY(tdm__replica_run(d->replica[0], tdm__step_key(batch, update), work, &step));
    TDM_TRY(tdm__queues_fork(&d->team));
    return tdm__apply_in_turn(&d->team, end_one, &step);
}

/* Times are replica 0's. */
static tdm_status wait_for_all(dp *d, tdm_times *times, const tdm_outcome **outcome) {
    for (int i = 0; i < d->count; i++) {
        tdm_times unused = {{0}};
        TDM_TRY(tdm__replica_wait(d->replica[i], i == 0 ? times : &unused, &outcome[i]));
    }
    return TDM_OK;
}

static void take_losses(const dp *d, const tdm_outcome *const *outcome, tdm_step_result *result) {
    double loss[TDM_REPLICAS_MAX];
    result->correct = 0;
    for (int i = 0; i < d->count; i++) {
        int where = d->output_replica != NULL ? d->output_replica->index : i;
        loss[i] = outcome[where]->loss[i];
        result->correct += outcome[i]->correct;
    }
    result->loss = tdm__tree_sum(loss, d->count) / result->denominator;
}

static tdm_status dp_collect(tdm_mode *mode, tdm_step_result *result) {
    dp *d = (dp *)mode;
    const tdm_outcome *outcome[TDM_REPLICAS_MAX];
    TDM_TRY(wait_for_all(d, &result->times, outcome));
    take_losses(d, outcome, result);
    if (!isnan(result->grad_norm)) result->grad_norm = outcome[0]->grad_norm;
    return TDM_OK;
}

/* More work of the step that was collected last, as one piece. */
static tdm_status run_alone(dp_step *step, tdm_hash128 key, tdm_work alone, tdm_times *times,
                            const tdm_outcome **outcome) {
    dp *d = step->dp;
    TDM_TRY(tdm__apply_in_turn(&d->team, begin_one, step));
    TDM_TRY(tdm__queues_join(&d->team));
    TDM_TRY(tdm__replica_run(d->replica[0], key, alone, step));
    TDM_TRY(tdm__queues_fork(&d->team));
    TDM_TRY(tdm__apply_in_turn(&d->team, end_one, step));
    tdm__times_init(times, d->base.phases);
    return wait_for_all(d, times, outcome);
}

/* The step of the micro-batch that goes alone. */
static dp_step micro_step(dp *d, const tdm_batch *batch, const tdm_update *update, const tdm_step_result *result) {
    dp_step step = {.dp = d, .batch = batch, .update = update, .micro_batch = d->base.micro_batch};
    step.values = tdm__optim_all_values(update, result->denominator);
    for (int i = 0; i < d->count; i++) tdm__replica_rows(d->replica[i], &batch->shard[i], 1, &step.all[i]);
    tdm__dp_micro_batch(&step);
    return step;
}

static tdm_status dp_forward(tdm_mode *mode, const tdm_batch *batch, const tdm_update *update,
                             tdm_step_result *result) {
    dp *d = (dp *)mode;
    dp_step step = micro_step(d, batch, update, result);
    const tdm_outcome *outcome[TDM_REPLICAS_MAX];
    tdm_times times;
    TDM_TRY(run_alone(&step, tdm__forward_key(batch, mode->micro_batch), forward_alone, &times, outcome));
    tdm__forward_result(d->replica[0], &times, result);
    take_losses(d, outcome, result);
    return TDM_OK;
}

static tdm_status dp_backward(tdm_mode *mode, const tdm_batch *batch, const tdm_update *update,
                              tdm_step_result *result) {
    dp *d = (dp *)mode;
    dp_step step = micro_step(d, batch, update, result);
    const tdm_outcome *outcome[TDM_REPLICAS_MAX];
    tdm_times times;
    TDM_TRY(run_alone(&step, tdm__backward_key(batch, mode->micro_batch), backward_alone, &times, outcome));
    tdm__backward_result(d->replica[0], &times, result);
    return TDM_OK;
}

static tdm_status dp_update(tdm_mode *mode, const tdm_update *update, tdm_step_result *result) {
    dp *d = (dp *)mode;
    dp_step step = {.dp = d, .update = update, .values = tdm__optim_all_values(update, result->denominator)};
    const tdm_outcome *outcome[TDM_REPLICAS_MAX];
    tdm_times times;
    TDM_TRY(run_alone(&step, tdm__update_key(), update_alone, &times, outcome));
    tdm__update_result(d->replica[0], update, &times, outcome[0], result);
    return TDM_OK;
}

/* ---- between steps ---- */

typedef struct dp_evaluation {
    const dp *dp;
    const tdm_shard *shards;
    int count;
    const float **outputs;
} dp_evaluation;

static tdm_status evaluate_one(void *user, int i) {
    const dp_evaluation *e = user;
    return i < e->count ? tdm__evaluate(e->dp->replica[i], &e->shards[i], &e->outputs[i]) : TDM_OK;
}

static tdm_status dp_evaluate(tdm_mode *mode, const tdm_shard *shards, int count, const float **outputs) {
    dp *d = (dp *)mode;
    dp_evaluation evaluation = {d, shards, count, outputs};
    return tdm__parallel_apply(&d->team, evaluate_one, &evaluation);
}

static tdm_status dp_sync(tdm_mode *mode, bool with_state) {
    dp *d = (dp *)mode;
    for (int i = 1; i < d->count; i++) {
        TDM_TRY(tdm__copy_replica(d->replica[i], d->replica[0], with_state));
        tdm_device *device = d->replica[i]->device;
        TDM_TRY(device->ops->queues->finish(device, NULL));
    }
    return TDM_OK;
}

const tdm_mode_ops tdm_mode_dp = {
    .name = "dp",
    .bytes = sizeof(dp),
    .compression_memory = tdm__powersgd_here_bytes,
    .gathered_bytes = dp_gathered_bytes,
    .wire_bytes = dp_wire_bytes,
    .open = dp_open,
    .close = dp_close,
    .submit = dp_submit,
    .collect = dp_collect,
    .forward = dp_forward,
    .backward = dp_backward,
    .update = dp_update,
    .evaluate = dp_evaluate,
    .sync = dp_sync,
    .list_state = tdm__powersgd_list,
    .gather_state = tdm__powersgd_gather,
    .share_state = tdm__powersgd_share,
};
