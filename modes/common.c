#include "modes/common.h"

#include <math.h>

#include "runtime/base/system/clock.h"
#include "runtime/base/status.h"
#include "runtime/base/tree.h"
#include "runtime/device/threads.h"
#include "runtime/exec/loss.h"
#include "runtime/exec/own.h"
#include "runtime/optim/optim.h"

double tdm__ms_passed(const tdm_host *host, int64_t *last) {
    int64_t now = tdm__steady_ns(host);
    double ms = (double)(now - *last) * 1e-6;
    *last = now;
    return ms;
}

/* ---- rows ---- */

static const void *target_at(const tdm_mode_params *params, const void *target, int64_t row) {
    if (params->loss->target == TDM_TARGET_CLASS) return (const int64_t *)target + row;
    return (const float *)target + row * params->plan->output_width;
}

bool tdm__micro_batch(const tdm_mode_params *params, const tdm_rows *all, int64_t count, int64_t index, tdm_rows *out) {
    int64_t first = 0;
    const int64_t rows = tdm__chunk(all->rows, (int)count, (int)index, &first);
    if (rows == 0) return false;
    *out = (tdm_rows){.rows = rows,
                      .x = (const char *)all->x + (size_t)first * tdm__plan_batch_row_bytes(params->plan),
                      .target = target_at(params, all->target, first),
                      .position = all->position + first};
    return true;
}

static tdm_hash128 key_of(const tdm_batch *batch, int64_t work) {
    int64_t key[TDM_REPLICAS_MAX + 2] = {work, batch->global_rows};
    for (int i = 0; i < batch->shard_count; i++) key[2 + i] = batch->shard[i].rows;
    return tdm__hash(key, (size_t)(batch->shard_count + 2) * sizeof(*key));
}

tdm_hash128 tdm__step_key(const tdm_batch *batch, const tdm_update *update) {
    return key_of(batch, update->extent);
}

tdm_hash128 tdm__forward_key(const tdm_batch *batch, int64_t micro_batch) {
    return key_of(batch, TDM_TO_LOSS + micro_batch);
}

tdm_hash128 tdm__backward_key(const tdm_batch *batch, int64_t micro_batch) {
    return key_of(batch, -1 - micro_batch);
}

/* ---- the loss ---- */

double tdm__denominator(const tdm_mode_params *params, const tdm_shard *shards, int count) {
    tdm_loss_section section = params->job->loss;
    double own[TDM_REPLICAS_MAX];
    if (params->mixes) section.weight.count = 0;
    for (int i = 0; i < count; i++) {
        own[i] = 0;
        if (shards[i].rows > 0)
            own[i] = params->loss->denominator(&section, shards[i].rows, params->plan->output_width, shards[i].target);
    }
    return tdm__tree_sum(own, count);
}

static tdm_status run_loss(const tdm_mode_params *params, const tdm_loss_args *args) {
    if (params->own_loss != NULL) return tdm__own_loss(params->own_loss, params->loss->target, args);
    return params->loss_run != NULL ? params->loss_run(args)
                                    : tdm__loss_of_rows(params->loss, args->device->threads, args);
}

/* The CPU's losses take floats: the outputs are widened for them, and the gradient is rounded. */
static tdm_status loss_in_floats(const tdm_mode_params *params, tdm_replica *replica, tdm_loss_args args) {
    const tdm_arena_ops *arenas = params->device->arenas;
    const size_t count = (size_t)(args.rows * args.width);
    void *dy = args.dy;
    TDM_TRY(arenas->from_bf16(replica->device, replica->mirror.output, args.y, count));
    args.precision = TDM_F32;
    args.y = replica->mirror.output;
    args.dy = replica->mirror.gradient;
    TDM_TRY(run_loss(params, &args));
    return arenas->to_bf16(replica->device, dy, args.dy, count);
}

tdm_status tdm__loss(const tdm_mode_params *params, tdm_replica *replica, const float *y, const tdm_rows *rows,
                     float *dy, int part) {
    tdm_loss_args args = {.section = &params->job->loss,
                          .weight = replica->loss_weight,
                          .device = replica->device,
                          .precision = params->job->train.precision,
                          .rows = rows->rows,
                          .width = params->plan->output_width,
                          .y = y,
                          .target = rows->target,
                          .values = replica->block->values,
                          .dy = dy,
                          .loss_sum = &replica->block->outcome.loss[part],
                          .correct = &replica->block->outcome.correct};
    if (params->device->enter != NULL) TDM_TRY(params->device->enter(replica->device));
    return tdm__plan_converts(replica->plan) ? loss_in_floats(params, replica, args) : run_loss(params, &args);
}

tdm_status tdm__loss_of_output(const tdm_mode_params *params, tdm_replica *replica, const tdm_rows *rows, int part) {
    if (rows->rows == 0) return TDM_OK;
    return tdm__loss(params, replica, tdm__exec_output(replica), rows, tdm__exec_output_gradient(replica), part);
}

/* ---- a pass ---- */

/* In front of `step`, or at the end: queues the lap of what ran so far, and has replicas exchange statistics. *more:
 * the pass, forward or backward, has stopped here for that; else it has ended. */
static tdm_status exchange(tdm_replica *replica, int step, tdm_phase phase, const tdm_exec_hooks *hooks, bool *more) {
    size_t bytes = 0;
    char *blocks = tdm__exec_statistics(replica, step, &bytes);
    TDM_TRY(tdm__replica_lap(replica, phase));
    *more = blocks != NULL;
    if (blocks == NULL) return TDM_OK;
    TDM_TRY(hooks->exchange(hooks->user, replica->stage, blocks, bytes));
    return tdm__replica_lap(replica, TDM_PHASE_COMM_EXPOSED);
}

tdm_status tdm__pass_forward(tdm_replica *replica, const tdm_rows *rows, int64_t micro_batch,
                             const tdm_exec_hooks *hooks) {
    int step = replica->plan->stages[replica->stage].forward;
    for (bool more = true; more;) {
        TDM_TRY(tdm__exec_forward(replica, rows, micro_batch, &step));
        TDM_TRY(exchange(replica, step, TDM_PHASE_FORWARD, hooks, &more));
    }
    return TDM_OK;
}

tdm_status tdm__pass_backward(tdm_replica *replica, const tdm_rows *rows, int64_t micro_batch,
                              const tdm_exec_hooks *hooks) {
    int step = replica->plan->stages[replica->stage].backward;
    for (bool more = true; more;) {
        TDM_TRY(tdm__exec_backward(replica, rows, micro_batch, hooks, &step));
        TDM_TRY(exchange(replica, step, TDM_PHASE_BACKWARD, hooks, &more));
    }
    return TDM_OK;
}

tdm_status tdm__pass(const tdm_mode_params *params, tdm_replica *replica, const tdm_rows *rows, int64_t micro_batch,
                     int part, const tdm_exec_hooks *hooks) {
    TDM_TRY(tdm__pass_forward(replica, rows, micro_batch, hooks));
    TDM_TRY(tdm__loss_of_output(params, replica, rows, part));
    TDM_TRY(tdm__replica_lap(replica, TDM_PHASE_LOSS));
    return tdm__pass_backward(replica, rows, micro_batch, hooks);
}

/* ---- gradients ---- */

int tdm__bucket_stage(const tdm_plan *plan, int bucket) {
    return plan->nodes[plan->params[plan->buckets[bucket].first_param].node].stage;
}

float *tdm__replica_bucket(const tdm_replica *replica, int bucket) {
    const tdm_replica *stage = replica->stages[tdm__bucket_stage(replica->plan, bucket)];
    return stage->arena.grad + tdm__replica_floats_at(stage, replica->plan->buckets[bucket].offset);
}

/* The gradients of a stage, from its device to the host or back. */
static tdm_status copy_stage(const tdm_replica *stage, float *host, bool to_host) {
    tdm_device *device = stage->device;
    float *whole = host + stage->plan->stages[stage->stage].trained_at;
    const size_t bytes = tdm__replica_trained(stage) * sizeof(float);
    return device->ops->queues->copy(device, NULL, to_host ? whole : stage->arena.grad,
                                     to_host ? stage->arena.grad : whole, bytes);
}

tdm_status tdm__copy_gradients(const tdm_replica *replica, float *host, bool to_host) {
    tdm_replica *const *stage = replica->stages;
    const int count = replica->plan->stage_count;
    for (int k = 0; k < count; k++) TDM_TRY(copy_stage(stage[k], host, to_host));
    for (int k = 0; k < count; k++) TDM_TRY(stage[k]->device->ops->queues->finish(stage[k]->device, NULL));
    return TDM_OK;
}

static void add_times(const tdm_replica *replica, const tdm_times *times, tdm_step_result *result, int from, int to) {
    for (int i = from; i <= to && tdm__replica_in_host(replica); i++) result->times.ms[i] += times->ms[i];
}

void tdm__forward_result(const tdm_replica *replica, const tdm_times *times, tdm_step_result *result) {
    add_times(replica, times, result, TDM_PHASE_FORWARD, TDM_PHASE_LOSS);
}

void tdm__backward_result(const tdm_replica *replica, const tdm_times *times, tdm_step_result *result) {
    add_times(replica, times, result, TDM_PHASE_BACKWARD, TDM_PHASE_COMM_EXPOSED);
}

void tdm__update_result(const tdm_replica *replica, const tdm_update *update, const tdm_times *times,
                        const tdm_outcome *outcome, tdm_step_result *result) {
    if (!isnan(update->clip_norm)) result->grad_norm = outcome->grad_norm;
    if (tdm__replica_in_host(replica)) result->times.ms[TDM_PHASE_OPTIMIZER] = times->ms[TDM_PHASE_OPTIMIZER];
}

/* ---- replicas ---- */

size_t tdm__target_bytes(const tdm_plan *plan) {
    const bool is_class = tdm_builtin_losses[plan->options.loss]->target == TDM_TARGET_CLASS;
    return is_class ? sizeof(int64_t) : (size_t)plan->output_width * sizeof(float);
}

/* Devices of this host are listed replica after replica, those of its stages in a row. */
static int device_index(const tdm_mode_params *params, int replica, int stage) {
    const tdm_ints *ids = &params->job->parallel.device_ids;
    const int at = (replica - params->first_rank) * params->plan->stage_count + stage;
    return at < ids->count ? (int)ids->item[at] : at;
}

static void close_device(tdm_device *device) {
    tdm_threads *threads = device->threads;
    device->ops->close(device);
    tdm__threads_close(threads);
}

static tdm_status open_stage(const tdm_mode_params *params, const tdm_replica_options *options, tdm_replica **out) {
    const tdm_job *job = params->job;
    tdm_device_options device_options = {.index = device_index(params, options->index, options->stage),
                                         .precision = job->train.precision,
                                         .deterministic = job->deterministic};
    tdm_device *device = NULL;
    TDM_TRY(tdm__threads_open(&device_options.threads, params->host, params->plan->options.threads,
                              device_options.index, params->thread_begin));
    TDM_TRY_ELSE(params->device->open(&device, params->host, &device_options),
                 tdm__threads_close(device_options.threads));
    TDM_TRY_ELSE(tdm__replica_open(out, params->host, params->plan, device, options), close_device(device));
    return TDM_OK;
}

tdm_status tdm__open_replica(const tdm_mode_params *params, tdm_replica_options options, tdm_replica **out) {
    tdm_status status = TDM_OK;
    *out = NULL;
    options.seed = (uint64_t)params->job->seed;
    options.loss_weight = tdm__loss_weight(params->job);
    options.averages = params->averages && options.index == 0;
    options.takes_norms = params->plan->options.training && tdm__optim_takes_norms(params->job);
    options.rows = params->plan->options.rows * params->job->train.accumulate;
    options.target_bytes = tdm__target_bytes(params->plan);
    for (; status == TDM_OK && options.stage < params->plan->stage_count; options.stage++) {
        tdm_replica *stage = NULL;
        status = open_stage(params, &options, &stage);
        if (options.stage == 0) options.first = *out = stage;
        options.untimed = true; /* the first stage is timed */
    }
    if (status == TDM_OK) return TDM_OK;
    tdm_error error;
    tdm__error_save(&error);
    tdm__close_replica(*out);
    *out = NULL;
    return tdm__error_restore(&error, NULL);
}

void tdm__close_replica(tdm_replica *replica) {
    if (replica == NULL) return;
    for (int k = replica->plan->stage_count - 1; k >= 0; k--) { /* the first owns the list */
        tdm_replica *stage = replica->stages[k];
        if (stage == NULL) continue;
        tdm_device *device = stage->device;
        tdm__replica_close(stage);
        close_device(device);
    }
}

tdm_status tdm__evaluate(tdm_replica *replica, const tdm_shard *shard, const float **output) {
    tdm_rows rows;
    TDM_TRY(tdm__replica_take_samples(replica, shard, &rows));
    TDM_TRY(tdm__exec_evaluate(replica, &rows));
    return tdm__replica_fetch_output(replica, rows.rows, output);
}

static tdm_status copy_module(tdm_replica *to, const tdm_replica *from, size_t floats) {
    tdm_device *device = to->device;
    const tdm_device_ops *ops = device->ops;
    TDM_TRY(ops->queues->copy(device, NULL, to->arena.param, from->arena.param, floats * sizeof(float)));
    TDM_TRY(tdm__replica_params_changed(to));
    return ops->queues->copy(device, NULL, to->arena.buffer, from->arena.buffer, from->plan->buffer_bytes);
}

tdm_status tdm__copy_trained(tdm_replica *to, const tdm_replica *from) {
    return copy_module(to, from, from->plan->trained_floats);
}

tdm_status tdm__copy_replica(tdm_replica *to, const tdm_replica *from, bool with_state) {
    tdm_device *device = to->device;
    TDM_TRY(copy_module(to, from, from->plan->param_floats));
    if (!with_state || to->arena.state_count == 0) return TDM_OK;
    return device->ops->queues->copy(device, NULL, to->arena.state, from->arena.state,
                                     from->plan->trained_floats * sizeof(float) * (size_t)to->arena.state_count);
}
