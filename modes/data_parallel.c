/* dp: torch.nn.DataParallel. One process, a thread per device.
 *
 *   scatter    the batch's parts go to the replicas (the loader has cut them by `scatter`)
 *   replicate  replica 0's parameters and buffers are copied to the others
 *   forward    all replicas at once
 *   gather     outputs in replica order on output_device
 *   loss       there, over the whole batch, with its gradient
 *   backward   each replica with its part of that gradient
 *   comm       gradients added in replica order onto replica 0
 *   optimizer  one step there
 *
 * With `loss: replica` each replica takes the loss of its own part, and nothing is gathered but numbers. With `update:
 * all` every replica gets the sum of the gradients and updates itself, and nothing is replicated. Replica 0 is the
 * module: only its batch-norm statistics survive. All threads are joined before the first failing replica, in their
 * order, is reported. With one device there are none. On discrete devices the step is one piece of replica 0's work,
 * which the others' queues join and leave. */
#include <math.h>

#include "modes/data_parallel.h"
#include "runtime/base/clock.h"
#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/train/train.h"

static void dp_close(tdm_mode *mode) {
    dp *d = (dp *)mode;
    if (d == NULL) return;
    const tdm_host *host = mode->params.host;
    const tdm_device_ops *ops = mode->params.device;
    tdm__dp_close_devices(d);
    if (d->output_replica != NULL) {
        ops->release(d->output_replica->device, d->output);
        ops->release(d->output_replica->device, d->output_gradient);
        ops->release(d->output_replica->device, d->target);
    }
    if (d->peer_gradient != NULL) ops->release(d->replica[0]->device, d->peer_gradient);
    for (int i = 0; d->replica != NULL && i < d->count; i++) tdm__close_replica(d->replica[i]);
    tdm__delete(host, d->replica);
    tdm__delete(host, d->task);
    tdm__delete(host, d);
}

static int output_index(const tdm_job *job) {
    for (int i = 0; i < job->parallel.device_ids.count; i++) {
        if (job->parallel.device_ids.item[i] == job->parallel.dp.output_device) return i;
    }
    return 0;
}

static bool updates_all(const dp *d) {
    return d->base.params.job->parallel.dp.update == TDM_DP_UPDATE_ALL;
}

static tdm_status open_gathered(dp *d) {
    const tdm_mode_params *params = &d->base.params;
    d->output_replica = d->replica[output_index(params->job)];
    tdm_device *device = d->output_replica->device;
    size_t rows = (size_t)(params->plan->options.rows * d->count);
    size_t bytes = rows * (size_t)params->plan->output_width * params->plan->element_bytes;
    void *memory = NULL;
    TDM_TRY(device->ops->allocate(device, &memory, bytes, "gathered outputs"));
    d->output = memory;
    TDM_TRY(device->ops->allocate(device, &memory, bytes, "gathered gradient"));
    d->output_gradient = memory;
    if (!device->ops->discrete || d->count == 1) return TDM_OK;
    TDM_TRY(device->ops->allocate(device, &memory, rows * tdm__target_bytes(params), "gathered targets"));
    d->target = memory;
    return TDM_OK;
}

static tdm_status open_all(dp *d) {
    const tdm_mode_params *params = &d->base.params;
    TDM_TRY(tdm__new(params->host, &d->replica, (size_t)d->count, sizeof(*d->replica), "replicas"));
    TDM_TRY(tdm__new(params->host, &d->task, (size_t)d->count, sizeof(*d->task), "tasks"));
    for (int i = 0; i < d->count; i++) {
        d->task[i] = (dp_task){.dp = d, .index = i};
        bool updates = i == 0 || updates_all(d);
        tdm_replica_wish wish = {.index = i, .state_count = updates ? params->state_count : 0, .parts = 1};
        TDM_TRY(tdm__open_replica(params, &wish, &d->replica[i]));
    }
    TDM_TRY(tdm__dp_open_devices(d));
    if (d->event != NULL && !d->reaches) {
        void *memory = NULL;
        size_t bytes = params->plan->param_floats * sizeof(float);
        TDM_TRY(params->device->allocate(d->replica[0]->device, &memory, bytes, "another replica's gradients"));
        d->peer_gradient = memory;
    }
    return params->job->parallel.dp.loss == TDM_DP_LOSS_GATHERED ? open_gathered(d) : TDM_OK;
}

static tdm_status dp_open(tdm_mode **out, const tdm_mode_params *params) {
    *out = NULL;
    dp *d = NULL;
    TDM_TRY(tdm__new(params->host, &d, 1, sizeof(*d), "mode"));
    d->base = (tdm_mode){&tdm_mode_dp, *params, params->device->discrete ? TDM_MODE_DEPTH : 1, "here"};
    d->count = params->replicas;
    tdm_status status = open_all(d);
    if (status != TDM_OK) {
        tdm_error error;
        tdm__error_save(&error);
        dp_close(&d->base);
        return tdm__error_restore(&error, NULL);
    }
    *out = &d->base;
    return TDM_OK;
}

/* ---- what each replica does ---- */

static tdm_status lap(dp *d, tdm_phase phase) {
    if (d->count == 1 || d->event != NULL) return tdm__replica_lap(d->replica[0], phase);
    d->times->ms[phase] += tdm__lap(&d->at);
    return TDM_OK;
}

static tdm_status begin_one(void *argument) {
    dp_task *task = argument;
    dp *d = task->dp;
    tdm_replica *replica = d->replica[task->index];
    TDM_TRY(tdm__place_batch(replica, d->batch, task->index, 1, &task->all));
    TDM_TRY(tdm__replica_begin(replica, &d->values));
    if (task->index > 0 && d->event != NULL) replica->timed = false; /* the stamps are replica 0's */
    return TDM_OK;
}

static tdm_status replicate_one(void *argument) {
    dp_task *task = argument;
    if (task->index == 0) return TDM_OK;
    return tdm__copy_replica(task->dp->replica[task->index], task->dp->replica[0], false);
}

static tdm_status forward_one(void *argument) {
    dp_task *task = argument;
    if (task->rows.rows == 0) return TDM_OK;
    return tdm__exec_forward(task->dp->replica[task->index], &task->rows, true);
}

static size_t output_bytes(const dp *d, int64_t rows) {
    const tdm_plan *plan = d->base.params.plan;
    return (size_t)(rows * plan->output_width) * plan->element_bytes;
}

static tdm_status backward_one(void *argument) {
    dp_task *task = argument;
    if (task->rows.rows == 0) return TDM_OK;
    dp *d = task->dp;
    tdm_replica *replica = d->replica[task->index];
    TDM_TRY(replica->device->ops->copy(replica->device, NULL, tdm__exec_output_gradient(replica),
                                       d->output_gradient + output_bytes(d, task->output_first),
                                       output_bytes(d, task->rows.rows)));
    return tdm__exec_backward(replica, &task->rows, task->first, NULL);
}

static tdm_status own_passes(void *argument) {
    dp_task *task = argument;
    dp *d = task->dp;
    int64_t micro = d->base.params.job->train.accumulate;
    for (int64_t k = 0; k < micro; k++) {
        if (!tdm__micro_batch(&d->base.params, &task->all, micro, k, &task->rows)) break;
        TDM_TRY(tdm__pass(&d->base.params, d->replica[task->index], &task->rows, k == 0, task->index, NULL));
    }
    return TDM_OK;
}

static tdm_status own_passes_one(void *argument) {
    dp_task *task = argument;
    tdm_replica *replica = task->dp->replica[task->index];
    if (task->all.rows == 0) return TDM_OK;
    if (task->dp->event != NULL) return own_passes(task); /* a part of the captured work of all */
    return tdm__replica_run(replica, tdm__step_key(task->shard, 1), own_passes, task);
}

static tdm_status update_one(void *argument) {
    dp_task *task = argument;
    return tdm__optim_step(task->dp->replica[task->index], task->dp->update);
}

static tdm_status leave_one(void *argument) {
    dp_task *task = argument;
    return tdm__leave_step(task->dp->replica[task->index], task->dp->update, task->index, 1);
}

static tdm_status evaluate_one(void *argument) {
    dp_task *task = argument;
    if (task->shard == NULL) return TDM_OK;
    return tdm__evaluate(task->dp->replica[task->index], task->shard, &task->output);
}

/* ---- gradients ---- */

/* Where every device reaches every gradient: each adds one slice of them all, in replica order. */
static tdm_status reduce_one(void *argument) {
    dp_task *task = argument;
    dp *d = task->dp;
    size_t total = d->base.params.plan->param_floats, slice = tdm__plan_floats(total / (size_t)d->count);
    size_t first = slice * (size_t)task->index, end = first + slice < total ? first + slice : total;
    if (first >= end) return TDM_OK;
    const float *source[TDM_LIST_MAX];
    int active = 0;
    for (int i = 0; i < d->count; i++) {
        if (d->task[i].shard->rows > 0) source[active++] = d->replica[i]->grad + first;
    }
    tdm_device *device = d->replica[task->index]->device;
    float *sum = d->replica[0]->grad + first;
    if (active > 1) TDM_TRY(device->ops->sum(device, sum, source, active, end - first));
    for (int i = 1; updates_all(d) && i < d->count; i++)
        TDM_TRY(device->ops->copy(device, NULL, d->replica[i]->grad + first, sum, (end - first) * sizeof(float)));
    return TDM_OK;
}

/* Else: one after another they come to replica 0's device and are added there. */
static tdm_status reduce_on_root(dp *d) {
    tdm_replica *root = d->replica[0];
    tdm_device *device = root->device;
    size_t count = d->base.params.plan->param_floats;
    for (int i = 1; i < d->count; i++) {
        if (d->task[i].shard->rows == 0) continue;
        TDM_TRY(device->ops->copy(device, NULL, d->peer_gradient, d->replica[i]->grad, count * sizeof(float)));
        const float *const source[2] = {root->grad, d->peer_gradient};
        TDM_TRY(device->ops->sum(device, root->grad, source, 2, count));
    }
    return tdm__dp_meet(d);
}

static tdm_status fetch_gradient_one(void *argument) {
    dp_task *task = argument;
    dp *d = task->dp;
    if (task->index == 0) return TDM_OK;
    tdm_device *device = d->replica[task->index]->device;
    return device->ops->copy(device, NULL, d->replica[task->index]->grad, d->replica[0]->grad,
                             d->base.params.plan->param_floats * sizeof(float));
}

static tdm_status reduce(dp *d) {
    if (d->count == 1) return TDM_OK;
    if (d->event == NULL || d->reaches) return tdm__dp_each(d, reduce_one);
    TDM_TRY(reduce_on_root(d));
    return updates_all(d) ? tdm__dp_each(d, fetch_gradient_one) : TDM_OK;
}

/* ---- the phases of one micro-batch ---- */

static tdm_status gather(dp *d) {
    tdm_device *device = d->output_replica->device;
    int64_t row = 0;
    for (int i = 0; i < d->count; i++) {
        dp_task *task = &d->task[i];
        task->output_first = row;
        if (task->rows.rows == 0) continue;
        TDM_TRY(device->ops->copy(device, NULL, d->output + output_bytes(d, row), tdm__exec_output(d->replica[i]),
                                  output_bytes(d, task->rows.rows)));
        row += task->rows.rows;
    }
    return TDM_OK;
}

/* The rows of a task as the loss sees them: their targets lie beside the gathered outputs. */
static tdm_status rows_for_loss(dp *d, const dp_task *task, tdm_rows *out) {
    *out = task->rows;
    if (d->target == NULL || d->replica[task->index] == d->output_replica) return TDM_OK;
    tdm_device *device = d->output_replica->device;
    size_t bytes = tdm__target_bytes(&d->base.params);
    char *to = d->target + (size_t)task->output_first * bytes;
    out->target = to;
    return device->ops->copy(device, NULL, to, task->rows.target, (size_t)task->rows.rows * bytes);
}

static tdm_status loss_of_all(dp *d) {
    for (int i = 0; i < d->count; i++) {
        dp_task *task = &d->task[i];
        size_t at = output_bytes(d, task->output_first);
        if (task->rows.rows == 0) continue;
        tdm_rows rows;
        TDM_TRY(rows_for_loss(d, task, &rows));
        TDM_TRY(tdm__loss(&d->base.params, d->output_replica, (float *)(void *)(d->output + at), &rows,
                          (float *)(void *)(d->output_gradient + at), i));
    }
    return tdm__dp_meet(d);
}

static tdm_status gathered_passes(dp *d) {
    int64_t micro = d->base.params.job->train.accumulate;
    for (int64_t k = 0; k < micro; k++) {
        for (int i = 0; i < d->count; i++) {
            d->task[i].first = k == 0;
            if (!tdm__micro_batch(&d->base.params, &d->task[i].all, micro, k, &d->task[i].rows))
                d->task[i].rows.rows = 0;
        }
        TDM_TRY(tdm__dp_each(d, forward_one));
        TDM_TRY(lap(d, TDM_PHASE_FORWARD));
        TDM_TRY(gather(d));
        TDM_TRY(lap(d, TDM_PHASE_GATHER));
        TDM_TRY(loss_of_all(d));
        TDM_TRY(lap(d, TDM_PHASE_LOSS));
        TDM_TRY(tdm__dp_each(d, backward_one));
        TDM_TRY(lap(d, TDM_PHASE_BACKWARD));
    }
    return TDM_OK;
}

/* ---- the step ---- */

/* From the replicas' rows to the new parameters. Of discrete devices it is all replica 0's work, which the other queues
 * join at its beginning and leave at its end. */
static tdm_status work(void *user) {
    dp *d = user;
    TDM_TRY(tdm__dp_fork(d));
    if (d->count > 1 && !updates_all(d)) TDM_TRY(tdm__dp_each(d, replicate_one));
    TDM_TRY(lap(d, TDM_PHASE_REPLICATE));
    if (d->output != NULL)
        TDM_TRY(gathered_passes(d));
    else if (d->count == 1)
        TDM_TRY(own_passes(&d->task[0]));
    else
        TDM_TRY(tdm__dp_each(d, own_passes_one)); /* timed by their own laps */
    if (d->count > 1 && d->output == NULL) d->at = tdm__now_ns();
    TDM_TRY(reduce(d));
    TDM_TRY(lap(d, TDM_PHASE_COMM));
    if (updates_all(d))
        TDM_TRY(tdm__dp_each(d, update_one));
    else
        TDM_TRY(update_one(&d->task[0]));
    TDM_TRY(tdm__dp_join(d));
    return lap(d, TDM_PHASE_OPTIMIZER);
}

/* Bytes that cross from one device to another in a step: rows, parameters, outputs and their gradient, gradients. */
static int64_t bytes_moved(const dp *d) {
    const tdm_plan *plan = d->base.params.plan;
    int64_t arena = (int64_t)(plan->param_floats * sizeof(float)), bytes = 0;
    for (int i = 1; i < d->count; i++) {
        int64_t rows = d->task[i].shard->rows;
        bytes += rows * 4 * tdm__shape_count(&plan->graph->values[plan->graph->input].shape);
        if (d->output != NULL) bytes += 2 * (int64_t)output_bytes(d, rows);
        bytes += 2 * arena + (updates_all(d) ? 0 : (int64_t)plan->buffer_bytes);
    }
    return bytes;
}

static tdm_status submit(dp *d, const tdm_batch *batch, tdm_pending *pending) {
    pending->denominator = tdm__denominator(&d->base.params, batch->shard, batch->shard_count);
    d->values = tdm__optim_values(d->update, pending->denominator);
    d->batch = batch;
    d->times = &pending->times;
    d->at = tdm__now_ns();
    for (int i = 0; i < d->count; i++) d->task[i] = (dp_task){.dp = d, .index = i, .shard = &batch->shard[i]};
    pending->bytes_moved = bytes_moved(d);
    TDM_TRY(tdm__dp_in_turn(d, begin_one));
    TDM_TRY(tdm__dp_join(d));
    pending->times.ms[TDM_PHASE_SCATTER] = tdm__lap(&d->at);
    if (d->count == 1 || d->event != NULL)
        TDM_TRY(tdm__replica_run(d->replica[0], tdm__step_key(batch->shard, d->count), work, d));
    else
        TDM_TRY(work(d));
    TDM_TRY(tdm__dp_fork(d));
    return tdm__dp_in_turn(d, leave_one);
}

static tdm_status dp_submit(tdm_mode *mode, const tdm_batch *batch, const tdm_update *update) {
    dp *d = (dp *)mode;
    static const tdm_phase phases[] = {TDM_PHASE_SCATTER, TDM_PHASE_FORWARD,   TDM_PHASE_LOSS,   TDM_PHASE_BACKWARD,
                                       TDM_PHASE_COMM,    TDM_PHASE_OPTIMIZER, TDM_PHASE_GATHER, TDM_PHASE_REPLICATE};
    d->update = update;
    tdm_status status = submit(d, batch, tdm__pending_add(&d->pending, batch, update, phases, 8));
    if (status != TDM_OK) tdm__pending_abandon(&d->pending, d->replica, d->count);
    return status;
}

static tdm_status collect(dp *d, tdm_step_result *result) {
    const tdm_pending *pending = NULL;
    const tdm_outcome *outcome[TDM_LIST_MAX];
    double sum = 0;
    TDM_TRY(tdm__pending_take(&d->pending, &pending));
    tdm__result_begin(result, pending);
    for (int i = 0; i < d->count; i++) {
        tdm_times others = {{0}};
        TDM_TRY(tdm__replica_settle(d->replica[i], i == 0 ? &result->times : &others, &outcome[i]));
    }
    for (int i = 0; i < d->count; i++) {
        int where = d->output != NULL ? d->output_replica->index : i;
        sum += outcome[where]->loss[i];
        result->correct += outcome[i]->correct;
    }
    result->loss = sum / (double)pending->denominator;
    if (pending->clips) result->grad_norm = outcome[0]->grad_norm;
    return TDM_OK;
}

static tdm_status dp_collect(tdm_mode *mode, tdm_step_result *result) {
    dp *d = (dp *)mode;
    tdm_status status = collect(d, result);
    if (status != TDM_OK) tdm__pending_abandon(&d->pending, d->replica, d->count);
    return status;
}

static tdm_status dp_forward(tdm_mode *mode, const tdm_shard *shards, int count, const float **outputs) {
    dp *d = (dp *)mode;
    for (int i = 0; i < d->count; i++)
        d->task[i] = (dp_task){.dp = d, .index = i, .shard = i < count ? &shards[i] : NULL};
    TDM_TRY(tdm__dp_each(d, evaluate_one));
    for (int i = 0; i < count; i++) outputs[i] = d->task[i].output;
    return TDM_OK;
}

static tdm_status dp_spread(tdm_mode *mode, bool with_state) {
    dp *d = (dp *)mode;
    for (int i = 1; i < d->count; i++) {
        TDM_TRY(tdm__copy_replica(d->replica[i], d->replica[0], with_state));
        tdm_device *device = d->replica[i]->device;
        TDM_TRY(device->ops->finish(device, NULL));
    }
    return TDM_OK;
}

static tdm_replica *dp_replica(tdm_mode *mode, int i) {
    return ((dp *)mode)->replica[i];
}

static int dp_replica_count(const tdm_mode *mode) {
    return ((const dp *)mode)->count;
}

const tdm_mode_ops tdm_mode_dp = {
    .name = "dp",
    .doc = "one process, a thread per device; outputs, gradients and the update on one of them",
    .open = dp_open,
    .submit = dp_submit,
    .collect = dp_collect,
    .forward = dp_forward,
    .spread = dp_spread,
    .replica = dp_replica,
    .replica_count = dp_replica_count,
    .close = dp_close,
};
