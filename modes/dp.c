/* dp: torch.nn.DataParallel. One process, a thread per device. A step is:
 *
 *   scatter    the batch's parts go to the replicas (the loader has cut them as `scatter` says)
 *   replicate  replica 0's parameters and buffers are copied to the others
 *   forward    all replicas in parallel
 *   gather     outputs, in replica order, on output_device
 *   loss       there, over the whole batch, with its gradient
 *   backward   all replicas in parallel, each with its part of that gradient
 *   comm       gradients are added in replica order on replica 0
 *   optimizer  one update there
 *
 * With `loss: replica` each replica computes the loss of its own part, and only numbers are gathered. With `update:
 * all` every replica gets the sum of the gradients and makes the update, and nothing is replicated. Replica 0 is the
 * module: only its batch-norm statistics are kept. parallel_apply.h runs a function on all replicas in parallel. */
#include <math.h>

#include "modes/parallel_apply.h"
#include "modes/parts.h"
#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/base/system/clock.h"
#include "runtime/optim/optim.h"

typedef struct dp {
    tdm_mode base;
    int count;
    tdm_replica **replica;
    tdm_team team;
    bool updates_all;
    tdm_replica *output_replica;    /* on output_device; with loss: replica NULL, as the next three */
    char *output, *output_gradient; /* gathered, [rows of all, width] */
    char *target;                   /* targets of the other replicas, gathered; NULL if every device reaches them */
    float *peer_gradient; /* on replica 0's device: another replica's gradients; NULL if it reaches them all */
} dp;

/* A step while it is submitted. */
typedef struct dp_step {
    dp *dp;
    const tdm_batch *batch;
    const tdm_update *update;
    tdm_step_values values;
    int64_t micro_batch;
    tdm_rows all[TDM_LIST_MAX];         /* of each replica, where it sees them */
    tdm_rows rows[TDM_LIST_MAX];        /* of this micro-batch; rows 0: the replica has none */
    int64_t output_first[TDM_LIST_MAX]; /* the first row of each replica among the gathered outputs */
} dp_step;

/* ---- opening ---- */

static bool gathers(const tdm_job *job) {
    return job->parallel.dp.loss == TDM_DP_LOSS_GATHERED;
}

static size_t output_bytes(const tdm_plan *plan, int64_t rows) {
    return (size_t)(rows * plan->output_width) * plan->element_bytes;
}

static size_t dp_gathered_bytes(const tdm_plan *plan, const tdm_job *job, int replicas) {
    int64_t rows = plan->options.rows * replicas;
    if (!gathers(job)) return 0;
    bool gathers_targets = plan->options.ingests && replicas > 1;
    return 2 * output_bytes(plan, rows) + (gathers_targets ? (size_t)rows * tdm__target_bytes(plan) : 0);
}

/* Rows, outputs and their gradient, parameters and gradients, buffers. */
static int64_t dp_wire_bytes(const tdm_plan *plan, const tdm_job *job, int replicas, int64_t rows) {
    int64_t arena = (int64_t)(plan->param_floats * sizeof(float));
    int64_t bytes = rows * 4 * tdm__shape_count(&plan->graph->values[plan->graph->input].shape);
    if (gathers(job)) bytes += 2 * (int64_t)output_bytes(plan, rows);
    return bytes + (replicas - 1) *
                       (2 * arena + (job->parallel.dp.update == TDM_DP_UPDATE_ROOT ? (int64_t)plan->buffer_bytes : 0));
}

static int output_index(const tdm_job *job) {
    for (int i = 0; i < job->parallel.device_ids.count; i++) {
        if (job->parallel.device_ids.item[i] == job->parallel.dp.output_device) return i;
    }
    return 0;
}

static tdm_status open_gathered(dp *d) {
    const tdm_mode_params *params = &d->base.params;
    d->output_replica = d->replica[output_index(params->job)];
    tdm_device *device = d->output_replica->device;
    int64_t rows = params->plan->options.rows * d->count;
    size_t bytes = output_bytes(params->plan, rows);
    void *memory = NULL;
    TDM_TRY(device->ops->allocate(device, &memory, bytes, "gathered outputs"));
    d->output = memory;
    TDM_TRY(device->ops->allocate(device, &memory, bytes, "gathered gradient"));
    d->output_gradient = memory;
    if (d->count == 1 || tdm__replica_lends(d->output_replica)) return TDM_OK;
    TDM_TRY(device->ops->allocate(device, &memory, (size_t)rows * tdm__target_bytes(params->plan), "gathered targets"));
    d->target = memory;
    return TDM_OK;
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
    if (!d->team.reaches) {
        void *memory = NULL;
        size_t bytes = params->plan->param_floats * sizeof(float);
        TDM_TRY(params->device->allocate(d->replica[0]->device, &memory, bytes, "another replica's gradients"));
        d->peer_gradient = memory;
    }
    return gathers(params->job) ? open_gathered(d) : TDM_OK;
}

static void dp_close(tdm_mode *mode) {
    dp *d = (dp *)mode;
    const tdm_device_ops *ops = mode->params.device;
    tdm__team_close(&d->team);
    if (d->output_replica != NULL) {
        ops->release(d->output_replica->device, d->output);
        ops->release(d->output_replica->device, d->output_gradient);
        ops->release(d->output_replica->device, d->target);
    }
    if (d->peer_gradient != NULL) ops->release(d->replica[0]->device, d->peer_gradient);
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
    return i > 0 ? tdm__copy_replica(s->dp->replica[i], s->dp->replica[0], false) : TDM_OK;
}

/* ---- loss: gathered ---- */

static tdm_status forward_one(void *user, int i) {
    dp_step *s = user;
    if (s->rows[i].rows == 0) return TDM_OK;
    return tdm__exec_forward(s->dp->replica[i], &s->rows[i], true);
}

static tdm_status gather(dp_step *s) {
    dp *d = s->dp;
    const tdm_plan *plan = d->base.params.plan;
    tdm_device *device = d->output_replica->device;
    int64_t row = 0;
    for (int i = 0; i < d->count; i++) {
        s->output_first[i] = row;
        if (s->rows[i].rows == 0) continue;
        TDM_TRY(device->ops->queues->copy(device, NULL, d->output + output_bytes(plan, row),
                                          tdm__exec_output(d->replica[i]), output_bytes(plan, s->rows[i].rows)));
        row += s->rows[i].rows;
    }
    return TDM_OK;
}

/* A replica's rows as the loss sees them: with their targets on the output device. */
static tdm_status gather_target(const dp_step *s, int i, tdm_rows *out) {
    dp *d = s->dp;
    *out = s->rows[i];
    if (d->replica[i] == d->output_replica || d->target == NULL) return TDM_OK;
    tdm_device *device = d->output_replica->device;
    size_t bytes = tdm__target_bytes(d->base.params.plan);
    char *to = d->target + (size_t)s->output_first[i] * bytes;
    out->target = to;
    return device->ops->queues->copy(device, NULL, to, s->rows[i].target, (size_t)out->rows * bytes);
}

static tdm_status loss_of_all(dp_step *s) {
    dp *d = s->dp;
    for (int i = 0; i < d->count; i++) {
        size_t at = output_bytes(d->base.params.plan, s->output_first[i]);
        if (s->rows[i].rows == 0) continue;
        tdm_rows rows;
        TDM_TRY(gather_target(s, i, &rows));
        TDM_TRY(tdm__loss(&d->base.params, d->output_replica, (float *)(void *)(d->output + at), &rows,
                          (float *)(void *)(d->output_gradient + at), i));
    }
    return tdm__queues_sync(&d->team);
}

static tdm_status backward_one(void *user, int i) {
    dp_step *s = user;
    const dp *d = s->dp;
    const tdm_plan *plan = d->base.params.plan;
    tdm_replica *replica = d->replica[i];
    if (s->rows[i].rows == 0) return TDM_OK;
    const char *from = d->output_gradient + output_bytes(plan, s->output_first[i]);
    TDM_TRY(replica->device->ops->queues->copy(replica->device, NULL, tdm__exec_output_gradient(replica), from,
                                               output_bytes(plan, s->rows[i].rows)));
    return tdm__exec_backward(replica, &s->rows[i], s->micro_batch == 0, NULL);
}

static tdm_status gathered_passes(dp_step *s) {
    dp *d = s->dp;
    tdm_replica *root = d->replica[0];
    int64_t micro = d->base.params.job->train.accumulate;
    for (s->micro_batch = 0; s->micro_batch < micro; s->micro_batch++) {
        for (int i = 0; i < d->count; i++) {
            if (!tdm__micro_batch(&d->base.params, &s->all[i], micro, s->micro_batch, &s->rows[i])) s->rows[i].rows = 0;
        }
        TDM_TRY(tdm__parallel_apply(&d->team, forward_one, s));
        TDM_TRY(tdm__replica_lap(root, TDM_PHASE_FORWARD));
        TDM_TRY(gather(s));
        TDM_TRY(tdm__replica_lap(root, TDM_PHASE_GATHER));
        TDM_TRY(loss_of_all(s));
        TDM_TRY(tdm__replica_lap(root, TDM_PHASE_LOSS));
        TDM_TRY(tdm__parallel_apply(&d->team, backward_one, s));
        TDM_TRY(tdm__replica_lap(root, TDM_PHASE_BACKWARD));
    }
    return TDM_OK;
}

/* ---- loss: replica ---- */

static tdm_status own_passes_one(void *user, int i) {
    dp_step *s = user;
    const tdm_mode_params *params = &s->dp->base.params;
    int64_t micro = params->job->train.accumulate;
    for (int64_t k = 0; k < micro; k++) {
        if (!tdm__micro_batch(params, &s->all[i], micro, k, &s->rows[i])) break;
        TDM_TRY(tdm__pass(params, s->dp->replica[i], &s->rows[i], k == 0, i, NULL));
    }
    return TDM_OK;
}

/* The phases are those of replica 0; its wait for the slowest replica counts as backward. */
static tdm_status own_passes(dp_step *s) {
    TDM_TRY(tdm__parallel_apply(&s->dp->team, own_passes_one, s));
    return tdm__replica_lap(s->dp->replica[0], TDM_PHASE_BACKWARD);
}

/* ---- gradients ---- */

/* If every device reaches every gradient, each device adds one slice of all of them, in replica order. */
static tdm_status reduce_one(void *user, int index) {
    const dp_step *s = user;
    const dp *d = s->dp;
    size_t total = d->base.params.plan->param_floats, slice = tdm__plan_floats(total / (size_t)d->count);
    size_t first = slice * (size_t)index, end = first + slice < total ? first + slice : total;
    if (first >= end) return TDM_OK;
    const float *source[TDM_LIST_MAX];
    int active = 0;
    for (int i = 0; i < d->count; i++) {
        if (s->batch->shard[i].rows > 0) source[active++] = d->replica[i]->grad + first;
    }
    tdm_device *device = d->replica[index]->device;
    float *sum = d->replica[0]->grad + first;
    if (active > 1) TDM_TRY(device->ops->arenas->sum(device, sum, source, active, end - first));
    for (int i = 1; d->updates_all && i < d->count; i++)
        TDM_TRY(
            device->ops->queues->copy(device, NULL, d->replica[i]->grad + first, sum, (end - first) * sizeof(float)));
    return TDM_OK;
}

/* If not, they are copied to replica 0's device one after another and added there. */
static tdm_status reduce_on_root(const dp_step *s) {
    dp *d = s->dp;
    tdm_replica *root = d->replica[0];
    tdm_device *device = root->device;
    size_t count = d->base.params.plan->param_floats;
    for (int i = 1; i < d->count; i++) {
        if (s->batch->shard[i].rows == 0) continue;
        TDM_TRY(device->ops->queues->copy(device, NULL, d->peer_gradient, d->replica[i]->grad, count * sizeof(float)));
        const float *const source[2] = {root->grad, d->peer_gradient};
        TDM_TRY(device->ops->arenas->sum(device, root->grad, source, 2, count));
    }
    return tdm__queues_sync(&d->team);
}

static tdm_status fetch_gradient_one(void *user, int i) {
    const dp *d = ((const dp_step *)user)->dp;
    tdm_device *device = d->replica[i]->device;
    if (i == 0) return TDM_OK;
    return device->ops->queues->copy(device, NULL, d->replica[i]->grad, d->replica[0]->grad,
                                     d->base.params.plan->param_floats * sizeof(float));
}

static tdm_status reduce(dp_step *s) {
    dp *d = s->dp;
    if (d->count == 1) return TDM_OK;
    if (d->team.reaches) return tdm__parallel_apply(&d->team, reduce_one, s);
    TDM_TRY(reduce_on_root(s));
    return d->updates_all ? tdm__parallel_apply(&d->team, fetch_gradient_one, s) : TDM_OK;
}

/* ---- the step ---- */

static tdm_status update_one(void *user, int i) {
    const dp_step *s = user;
    return tdm__optim_step(s->dp->replica[i], s->update);
}

/* Queues the step, from the replicas' rows to the new parameters. It is one piece of replica 0's work, and the other
 * replicas' queues join its end. */
static tdm_status work(void *user) {
    dp_step *s = user;
    dp *d = s->dp;
    tdm_replica *root = d->replica[0];
    TDM_TRY(tdm__queues_fork(&d->team));
    if (!d->updates_all) TDM_TRY(tdm__parallel_apply(&d->team, replicate_one, s));
    TDM_TRY(tdm__replica_lap(root, TDM_PHASE_REPLICATE));
    TDM_TRY(d->output_replica != NULL ? gathered_passes(s) : own_passes(s));
    TDM_TRY(reduce(s));
    TDM_TRY(tdm__replica_lap(root, TDM_PHASE_COMM));
    TDM_TRY(d->updates_all ? tdm__parallel_apply(&d->team, update_one, s) : update_one(s, 0));
    TDM_TRY(tdm__queues_join(&d->team));
    return tdm__replica_lap(root, TDM_PHASE_OPTIMIZER);
}

static tdm_status end_one(void *user, int i) {
    return tdm__replica_end(((const dp_step *)user)->dp->replica[i]);
}

static tdm_status dp_submit(tdm_mode *mode, const tdm_batch *batch, const tdm_update *update, tdm_step_result *result) {
    dp *d = (dp *)mode;
    dp_step step = {.dp = d, .batch = batch, .update = update};
    int64_t at = tdm__now_ns();
    int64_t rows = 0;
    for (int i = 1; i < d->count; i++) rows += batch->shard[i].rows;
    result->bytes_moved = dp_wire_bytes(mode->params.plan, mode->params.job, d->count, rows);
    result->denominator = tdm__denominator(&mode->params, batch->shard, batch->shard_count);
    step.values = tdm__optim_values(update, result->denominator);
    TDM_TRY(tdm__apply_in_turn(&d->team, scatter_one, &step));
    TDM_TRY(tdm__queues_join(&d->team));
    result->times.ms[TDM_PHASE_SCATTER] = tdm__lap(&at);
    TDM_TRY(tdm__replica_run(d->replica[0], tdm__step_key(batch->shard, d->count), work, &step));
    TDM_TRY(tdm__queues_fork(&d->team));
    return tdm__apply_in_turn(&d->team, end_one, &step);
}

static tdm_status dp_collect(tdm_mode *mode, tdm_step_result *result) {
    dp *d = (dp *)mode;
    const tdm_outcome *outcome[TDM_LIST_MAX];
    double sum = 0;
    for (int i = 0; i < d->count; i++) {
        tdm_times unused = {{0}};
        TDM_TRY(tdm__replica_wait(d->replica[i], i == 0 ? &result->times : &unused, &outcome[i]));
    }
    for (int i = 0; i < d->count; i++) {
        int where = d->output_replica != NULL ? d->output_replica->index : i;
        sum += outcome[where]->loss[i];
        result->correct += outcome[i]->correct;
    }
    result->loss = sum / (double)result->denominator;
    if (!isnan(result->grad_norm)) result->grad_norm = outcome[0]->grad_norm;
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

static tdm_status dp_forward(tdm_mode *mode, const tdm_shard *shards, int count, const float **outputs) {
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
    .gathered_bytes = dp_gathered_bytes,
    .wire_bytes = dp_wire_bytes,
    .open = dp_open,
    .close = dp_close,
    .submit = dp_submit,
    .collect = dp_collect,
    .forward = dp_forward,
    .sync = dp_sync,
};
