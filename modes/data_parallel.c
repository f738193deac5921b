/* dp: torch.nn.DataParallel. One process, a thread per device.
 *
 *   scatter    the batch's parts go to the replicas (the loader has cut them by `scatter`)
 *   replicate  replica 0's parameters and buffers are copied to the others
 *   forward    all replicas at once
 *   gather     outputs in replica order on output_device         } loss: replica takes the loss inside each replica
 *   loss       there, over the whole batch, with its gradient    } instead and gathers three numbers
 *   backward   each replica with its part of that gradient
 *   comm       gradients added in replica order onto replica 0
 *   optimizer  one step there                                    } update: all gives every replica the sum and lets
 * each update itself, so nothing is replicated Replica 0 is the module: only its batch-norm statistics survive. All
 * threads are joined before the first failing replica, in their order, is reported. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "modes/parts.h"
#include "runtime/base/clock.h"
#include "runtime/base/status.h"
#include "runtime/base/sync.h"
#include "runtime/train/train.h"

struct dp;
typedef struct dp_task { /* what one thread works on */
    struct dp *dp;
    int index;
    const tdm_shard *shard;
    tdm_rows rows; /* the micro-batch; rows 0: idle */
    bool first, training;
    float seed;
    double loss;
    int64_t correct;
    int64_t output_first; /* row of the gathered outputs */
    double forward_ms, loss_ms, backward_ms;
    double grad_norm;
} dp_task;

typedef struct dp {
    tdm_mode base;
    int count;
    tdm_replica **replica;
    tdm_worker **worker; /* NULL with one replica: it runs on the caller's thread */
    dp_task *task;
    tdm_replica *output_replica;     /* whose device gathers */
    float *output, *output_gradient; /* gathered, [rows of all, width] */
    const tdm_update *update;
} dp;

static void dp_close(tdm_mode *mode) {
    dp *d = (dp *)mode;
    if (d == NULL) return;
    const tdm_host *host = mode->params.host;
    for (int i = 0; d->worker != NULL && i < d->count; i++) tdm__worker_close(d->worker[i]);
    if (d->output_replica != NULL) {
        d->output_replica->device->ops->release(d->output_replica->device, d->output);
        d->output_replica->device->ops->release(d->output_replica->device, d->output_gradient);
    }
    for (int i = 0; d->replica != NULL && i < d->count; i++) tdm__close_replica(d->replica[i]);
    tdm__delete(host, d->replica);
    tdm__delete(host, d->worker);
    tdm__delete(host, d->task);
    tdm__delete(host, d);
}

static int output_index(const tdm_job *job) {
    for (int i = 0; i < job->parallel.device_ids.count; i++) {
        if (job->parallel.device_ids.item[i] == job->parallel.dp.output_device) return i;
    }
    return 0;
}

static tdm_status open_all(dp *d) {
    const tdm_mode_params *params = &d->base.params;
    TDM_TRY(tdm__new(params->host, &d->replica, (size_t)d->count, sizeof(*d->replica), "replicas"));
    TDM_TRY(tdm__new(params->host, &d->worker, (size_t)d->count, sizeof(*d->worker), "threads"));
    TDM_TRY(tdm__new(params->host, &d->task, (size_t)d->count, sizeof(*d->task), "tasks"));
    for (int i = 0; i < d->count; i++) {
        d->task[i] = (dp_task){.dp = d, .index = i};
        bool updates = i == 0 || params->job->parallel.dp.update == TDM_DP_UPDATE_ALL;
        TDM_TRY(tdm__open_replica(params, i, updates ? params->state_count : 0, NULL, &d->replica[i]));
        char name[16];
        snprintf(name, sizeof(name), "dp %d", i);
        if (d->count > 1) TDM_TRY(tdm__worker_open(&d->worker[i], params->host, name));
    }
    if (params->job->parallel.dp.loss != TDM_DP_LOSS_GATHERED) return TDM_OK;
    d->output_replica = d->replica[output_index(params->job)];
    tdm_device *device = d->output_replica->device;
    size_t bytes = (size_t)(params->plan->options.rows * d->count * params->plan->output_width) * sizeof(float);
    void *memory = NULL;
    TDM_TRY(device->ops->allocate(device, &memory, bytes, "gathered outputs"));
    d->output = memory;
    TDM_TRY(device->ops->allocate(device, &memory, bytes, "gathered gradient"));
    d->output_gradient = memory;
    return TDM_OK;
}

static tdm_status dp_open(tdm_mode **out, const tdm_mode_params *params) {
    *out = NULL;
    dp *d = NULL;
    TDM_TRY(tdm__new(params->host, &d, 1, sizeof(*d), "mode"));
    d->base = (tdm_mode){&tdm_mode_dp, *params};
    d->count = params->replicas;
    tdm_status status = open_all(d);
    if (status != TDM_OK) {
        dp_close(&d->base);
        return status;
    }
    *out = &d->base;
    return TDM_OK;
}

/* ---- all replicas at once ---- */

static tdm_status parallel(dp *d, tdm_worker_fn fn) {
    if (d->count == 1) return fn(&d->task[0]);
    tdm_status first = TDM_OK;
    tdm_error error;
    for (int i = 0; i < d->count; i++) {
        tdm_status status = tdm__worker_start(d->worker[i], fn, &d->task[i]);
        if (status != TDM_OK && first == TDM_OK) first = status, tdm__error_save(&error);
    }
    for (int i = 0; i < d->count; i++) {
        tdm_status status = tdm__worker_wait(d->worker[i], -1);
        if (status == TDM_OK || first != TDM_OK) continue;
        char prefix[48];
        snprintf(prefix, sizeof(prefix), "replica %d (%s): ", i, d->replica[i]->device->name);
        tdm__error_save(&error);
        tdm__error_restore(&error, prefix);
        tdm__error_save(&error);
        first = status;
    }
    return first == TDM_OK ? TDM_OK : tdm__error_restore(&error, NULL);
}

static tdm_status replicate_one(void *argument) {
    dp_task *task = argument;
    if (task->index > 0) tdm__copy_replica(task->dp->replica[task->index], task->dp->replica[0], false);
    return TDM_OK;
}

static tdm_status forward_one(void *argument) {
    dp_task *task = argument;
    if (task->rows.rows == 0) return TDM_OK;
    return tdm__exec_forward(task->dp->replica[task->index], &task->rows, task->training);
}

static tdm_status backward_one(void *argument) {
    dp_task *task = argument;
    if (task->rows.rows == 0) return TDM_OK;
    dp *d = task->dp;
    tdm_replica *replica = d->replica[task->index];
    int64_t width = d->base.params.plan->output_width;
    memcpy(tdm__exec_output_gradient(replica), d->output_gradient + task->output_first * width,
           (size_t)(task->rows.rows * width) * sizeof(float));
    return tdm__exec_backward(replica, &task->rows, task->first, NULL);
}

static tdm_status whole_pass_one(void *argument) {
    dp_task *task = argument;
    if (task->rows.rows == 0) return TDM_OK;
    tdm_replica *replica = task->dp->replica[task->index];
    int64_t at = tdm__now_ns();
    TDM_TRY(tdm__exec_forward(replica, &task->rows, true));
    task->forward_ms += tdm__lap(&at);
    TDM_TRY(tdm__loss(&task->dp->base.params, tdm__exec_output(replica), &task->rows, task->seed,
                      tdm__exec_output_gradient(replica), &task->loss, &task->correct));
    task->loss_ms += tdm__lap(&at);
    TDM_TRY(tdm__exec_backward(replica, &task->rows, task->first, NULL));
    task->backward_ms += tdm__lap(&at);
    return TDM_OK;
}

/* Each thread adds one slice of all replicas' gradients, in replica order. */
static tdm_status reduce_one(void *argument) {
    dp_task *task = argument;
    dp *d = task->dp;
    size_t total = d->base.params.plan->param_floats, slice = (total / (size_t)d->count + 15) / 16 * 16;
    size_t first = slice * (size_t)task->index, end = first + slice < total ? first + slice : total;
    if (first >= end) return TDM_OK;
    const float *source[TDM_LIST_MAX];
    int active = 0;
    for (int i = 0; i < d->count; i++) {
        if (d->task[i].shard->rows > 0) source[active++] = d->replica[i]->grad + first;
    }
    tdm_replica *root = d->replica[0];
    if (active > 1) root->device->flat->sum(root->grad + first, source, active, end - first);
    if (d->base.params.job->parallel.dp.update != TDM_DP_UPDATE_ALL) return TDM_OK;
    for (int i = 1; i < d->count; i++)
        memcpy(d->replica[i]->grad + first, root->grad + first, (end - first) * sizeof(float));
    return TDM_OK;
}

static tdm_status update_one(void *argument) {
    dp_task *task = argument;
    tdm_replica *replica = task->dp->replica[task->index];
    const tdm_update *update = task->dp->update;
    if (!isnan(update->clip_norm)) task->grad_norm = tdm__clip_grad_norm(replica, update->clip_norm);
    tdm__optim_step(replica, update);
    return TDM_OK;
}

/* ---- the phases of one micro-batch ---- */

static void gather(dp *d) {
    int64_t width = d->base.params.plan->output_width, row = 0;
    for (int i = 0; i < d->count; i++) {
        dp_task *task = &d->task[i];
        task->output_first = row;
        if (task->rows.rows == 0) continue;
        memcpy(d->output + row * width, tdm__exec_output(d->replica[i]),
               (size_t)(task->rows.rows * width) * sizeof(float));
        row += task->rows.rows;
    }
}

static tdm_status loss_of_all(dp *d) {
    int64_t width = d->base.params.plan->output_width;
    for (int i = 0; i < d->count; i++) {
        dp_task *task = &d->task[i];
        int64_t at = task->output_first * width;
        if (task->rows.rows > 0)
            TDM_TRY(tdm__loss(&d->base.params, d->output + at, &task->rows, task->seed, d->output_gradient + at,
                              &task->loss, &task->correct));
    }
    return TDM_OK;
}

static tdm_status gathered_pass(dp *d, tdm_times *times) {
    int64_t at = tdm__now_ns();
    TDM_TRY(parallel(d, forward_one));
    times->ms[TDM_PHASE_FORWARD] += tdm__lap(&at);
    gather(d);
    times->ms[TDM_PHASE_GATHER] += tdm__lap(&at);
    TDM_TRY(loss_of_all(d));
    times->ms[TDM_PHASE_LOSS] += tdm__lap(&at);
    TDM_TRY(parallel(d, backward_one));
    times->ms[TDM_PHASE_BACKWARD] += tdm__lap(&at);
    return TDM_OK;
}

static tdm_status replica_pass(dp *d, tdm_times *times) {
    TDM_TRY(parallel(d, whole_pass_one));
    times->ms[TDM_PHASE_FORWARD] = d->task[0].forward_ms;
    times->ms[TDM_PHASE_LOSS] = d->task[0].loss_ms;
    times->ms[TDM_PHASE_BACKWARD] = d->task[0].backward_ms;
    return TDM_OK;
}

/* ---- the step ---- */

static void scatter(dp *d, const tdm_batch *batch, int64_t t) {
    int64_t denominator = tdm__denominator(&d->base.params, batch->shard, batch->shard_count);
    for (int i = 0; i < d->count; i++) {
        d->task[i] = (dp_task){.dp = d,
                               .index = i,
                               .shard = &batch->shard[i],
                               .training = true,
                               .seed = (float)(1.0 / (double)denominator)};
        d->replica[i]->step = (uint64_t)t;
    }
}

static tdm_status run_micro_batches(dp *d, tdm_times *times) {
    const tdm_mode_params *params = &d->base.params;
    int64_t micro = params->job->train.accumulate;
    for (int64_t k = 0; k < micro; k++) {
        for (int i = 0; i < d->count; i++) {
            d->task[i].first = k == 0;
            if (!tdm__micro_batch(params, d->task[i].shard, micro, k, &d->task[i].rows)) d->task[i].rows.rows = 0;
        }
        if (params->job->parallel.dp.loss == TDM_DP_LOSS_GATHERED)
            TDM_TRY(gathered_pass(d, times));
        else
            TDM_TRY(replica_pass(d, times));
    }
    return TDM_OK;
}

static tdm_status update_all(dp *d, const tdm_update *update, tdm_step_result *result) {
    d->update = update;
    if (d->base.params.job->parallel.dp.update == TDM_DP_UPDATE_ALL)
        TDM_TRY(parallel(d, update_one));
    else
        TDM_TRY(update_one(&d->task[0]));
    if (!isnan(update->clip_norm)) result->grad_norm = d->task[0].grad_norm;
    return TDM_OK;
}

static void add_up(dp *d, const tdm_batch *batch, tdm_step_result *result) {
    double sum = 0;
    for (int i = 0; i < d->count; i++) {
        sum += d->task[i].loss;
        result->correct += d->task[i].correct;
    }
    result->loss = sum / (double)tdm__denominator(&d->base.params, batch->shard, batch->shard_count);
}

/* Bytes that cross from one device to another in a step: rows, parameters, outputs and their gradient, gradients. */
static int64_t bytes_moved(const dp *d) {
    const tdm_plan *plan = d->base.params.plan;
    int64_t arena = (int64_t)(plan->param_floats * sizeof(float)), bytes = 0;
    bool all = d->base.params.job->parallel.dp.update == TDM_DP_UPDATE_ALL;
    for (int i = 1; i < d->count; i++) {
        int64_t rows = d->task[i].shard->rows;
        bytes += rows * 4 * tdm__shape_count(&plan->graph->values[plan->graph->input].shape);
        if (d->output != NULL) bytes += rows * 8 * plan->output_width;
        bytes += 2 * arena + (all ? 0 : (int64_t)plan->buffer_bytes);
    }
    return bytes;
}

static tdm_status dp_step(tdm_mode *mode, const tdm_batch *batch, const tdm_update *update, tdm_step_result *result) {
    dp *d = (dp *)mode;
    static const tdm_phase phases[] = {TDM_PHASE_SCATTER, TDM_PHASE_FORWARD,   TDM_PHASE_LOSS,   TDM_PHASE_BACKWARD,
                                       TDM_PHASE_COMM,    TDM_PHASE_OPTIMIZER, TDM_PHASE_GATHER, TDM_PHASE_REPLICATE};
    *result = (tdm_step_result){.rows = batch->global_rows, .grad_norm = NAN, .stop = update->stop};
    tdm_times *times = &result->times;
    const struct tdm_job *job = mode->params.job;
    tdm__times_init(times, phases, 8);
    int64_t at = tdm__now_ns();
    scatter(d, batch, update->t);
    times->ms[TDM_PHASE_SCATTER] = tdm__lap(&at);
    if (d->count > 1 && job->parallel.dp.update == TDM_DP_UPDATE_ROOT) TDM_TRY(parallel(d, replicate_one));
    times->ms[TDM_PHASE_REPLICATE] = tdm__lap(&at);
    TDM_TRY(run_micro_batches(d, times));
    at = tdm__now_ns();
    if (d->count > 1) TDM_TRY(parallel(d, reduce_one));
    times->ms[TDM_PHASE_COMM] = tdm__lap(&at);
    add_up(d, batch, result);
    TDM_TRY(update_all(d, update, result));
    times->ms[TDM_PHASE_OPTIMIZER] = tdm__lap(&at);
    result->bytes_moved = bytes_moved(d);
    return TDM_OK;
}

static tdm_status dp_forward(tdm_mode *mode, const tdm_shard *shards, int count, const float **outputs) {
    dp *d = (dp *)mode;
    for (int i = 0; i < d->count; i++) {
        d->task[i] = (dp_task){.dp = d, .index = i};
        if (i < count)
            d->task[i].rows = (tdm_rows){
                .rows = shards[i].rows, .x = shards[i].x, .target = shards[i].target, .position = shards[i].position};
    }
    TDM_TRY(parallel(d, forward_one));
    for (int i = 0; i < count; i++) outputs[i] = tdm__exec_output(d->replica[i]);
    return TDM_OK;
}

static tdm_status dp_spread(tdm_mode *mode, bool with_state) {
    dp *d = (dp *)mode;
    for (int i = 1; i < d->count; i++) tdm__copy_replica(d->replica[i], d->replica[0], with_state);
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
    .step = dp_step,
    .forward = dp_forward,
    .spread = dp_spread,
    .replica = dp_replica,
    .replica_count = dp_replica_count,
    .close = dp_close,
};
