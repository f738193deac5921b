/* ddp: torch.nn.parallel.DistributedDataParallel. One process per device; this one is rank `rank` of `world`.
 *
 * `sync` copies rank 0's parameters, buffers and (if asked) optimizer state to all ranks: after initialisation,
 * after a load or a `tdm_run_write`, before each evaluation, and after an evaluation of averaged weights. (Without
 * broadcast_buffers an evaluation gives the ranks their own buffers back.) A step is:
 *
 *   broadcast    rank 0's buffers go to all ranks (broadcast_buffers)
 *   denominator  the divisor of the mean loss: the labels that count on all ranks, by their weights; of a loss of
 *                numbers all of them. Ranks exchange it only where labels may be ignored or have weights. With
 *                `average: ranks` it is what counts on this rank alone, times the number of ranks. Either way the
 *                ranks' gradients only have to be added: nothing divides their sum
 *   forward      this rank's shard of the batch. With sync_batchnorm ranks exchange statistics in forward and in
 *                backward; a rank that has no rows (join) takes part in that
 *   loss         and its gradient, divided by the denominator
 *   backward     each bucket of gradients is reduced as soon as its last gradient is written, while backward goes on
 *                (if the host reduces a device's gradients: all buckets after backward)
 *   finish       the optimizer's work waits until all sums are complete
 *   optimizer    every rank makes the same update
 *   results      losses, hits and requests to stop are added over ranks, as the canonical tree
 *
 * A step may end at its loss or its gradients (`extent`); backward and update are then calls of their own.
 *
 * With `accumulate` the gradients of all micro-batches are added locally and reduced once, during the last (PyTorch:
 * no_sync for the others). The memory that gradients lie in, and `compress`, decide which reducer sums them
 * (reducers/reducer.h); the reducer broadcasts buffers, too. Step results always go through host memory. Reducers
 * decide when bytes move and from which memory; how backends move them is explained in runtime/comm/README.md. */
#include <math.h>

#include "modes/compress/compress.h"
#include "modes/ddp_results.h"
#include "modes/exchange.h"
#include "modes/pipeline.h"
#include "modes/reducers/reducer.h"
#include "runtime/base/status.h"
#include "runtime/base/system/clock.h"
#include "runtime/comm/comm.h"
#include "runtime/device/device.h"
#include "runtime/optim/optim.h"

typedef struct ddp {
    tdm_mode base;
    int world;
    tdm_replica *replica;
    tdm_pipeline *pipeline;
    tdm_reducer *reducer;
    double denominator; /* of this rank's losses in the step */
    bool is_split;      /* between backward and update the host reduces or checks gradients: a step is two captures */
} ddp;

/* A step while it is submitted. */
typedef struct ddp_step {
    ddp *ddp;
    const tdm_update *update;
    int64_t all_rows; /* of all ranks */
    bool has_rows;    /* this rank has rows in this step */
    bool ends;        /* it makes the last backward */
    bool is_uneven;   /* some rank has fewer micro-batches than rank 0, or none, and the model has buffers */
} ddp_step;

/* ---- opening ---- */

static bool wants_check(const ddp *d) {
    return d->world > 1 && d->base.params.job->parallel.ddp.check_reduction;
}

/* Opens the replica, and the reducer for the memory that its gradients lie in. */
static tdm_status open_reducer(ddp *d) {
    const tdm_mode_params *params = &d->base.params;
    if (d->world > 1 && tdm__device_on_host(params->device))
        return tdm__reducer_open_cpu(&d->reducer, &d->replica, params);
    TDM_TRY(tdm__rank_open_replica(params, NULL, &d->replica));
    if (d->world == 1) return tdm__reducer_open_alone(&d->reducer, params);
    if (params->device_comm != NULL && !tdm__compresses_in_host(params->job))
        TDM_TRY(tdm__reducer_open_device(&d->reducer, d->replica, params));
    return d->reducer != NULL ? TDM_OK : tdm__reducer_open_host(&d->reducer, d->replica, params);
}

static tdm_status ddp_open(tdm_mode *mode) {
    ddp *d = (ddp *)mode;
    d->world = mode->params.replicas;
    mode->replica = &d->replica;
    mode->replica_count = 1;
    TDM_TRY(open_reducer(d));
    TDM_TRY(tdm__pipeline_open(&d->pipeline, &mode->params, d->replica, 1));
    d->is_split = wants_check(d) || d->reducer->ops->is_after_backward;
    if (!d->is_split) mode->depth = tdm__pipeline_depth(d->pipeline);
    mode->gradient_backend = d->reducer->backend;
    mode->powersgd = d->reducer->powersgd;
    mode->phases = tdm__pipeline_phases(d->pipeline) | 1u << TDM_PHASE_COMM_EXPOSED;
    /* Queued collectives are timed only while the step waits for them. The part that overlaps backward is not
     * measured. */
    if (!d->reducer->ops->is_queued) mode->phases |= 1u << TDM_PHASE_COMM;
    return TDM_OK;
}

static void ddp_close(tdm_mode *mode) {
    ddp *d = (ddp *)mode;
    tdm__pipeline_close(d->pipeline);
    tdm__reducer_close(d->reducer);
    tdm__close_replica(d->replica);
}

/* ---- the step's work ---- */

static bool has_broadcast(const ddp *d) {
    return d->base.params.plan->buffer_bytes > 0 && d->base.params.job->parallel.ddp.broadcast_buffers;
}

/* If collectives are queued, the broadcast is part of the step's work. */
static tdm_status broadcast_queued(ddp *d) {
    if (!has_broadcast(d) || !d->reducer->ops->is_queued) return TDM_OK;
    TDM_TRY(d->reducer->ops->broadcast(d->reducer, TDM_ARENA_BUFFER));
    return tdm__replica_lap(d->replica, TDM_PHASE_COMM_EXPOSED);
}

static tdm_status bucket_ready(void *user, int bucket) {
    tdm_reducer *reducer = user;
    return reducer->ops->start_bucket(reducer, bucket);
}

static tdm_status exchange(void *user, int stage, char *blocks, size_t bytes) {
    tdm_reducer *reducer = user;
    return reducer->ops->exchange(reducer, stage, blocks, bytes);
}

/* Without this, other stages of this rank would wait for the other ranks, and those for the stage that failed, until
 * the deadline. */
static void stage_failed(void *user) {
    const tdm_reducer *reducer = user;
    tdm_comm_abort(reducer->params->comm, tdm_error_message());
}

static tdm_exec_hooks hooks_of(const ddp *d) {
    return (tdm_exec_hooks){bucket_ready, exchange, stage_failed, d->reducer};
}

static tdm_status forward_alone(void *user) {
    const ddp_step *s = user;
    const tdm_exec_hooks hooks = hooks_of(s->ddp);
    const int64_t micro_batch = s->ddp->base.micro_batch;
    if (micro_batch == 0) TDM_TRY(broadcast_queued(s->ddp));
    return tdm__pipeline_forward(s->ddp->pipeline, micro_batch, s->all_rows, &hooks);
}

static tdm_status end_backward(const ddp_step *s) {
    ddp *d = s->ddp;
    TDM_TRY(d->reducer->ops->finish(d->reducer));
    if (s->is_uneven && d->reducer->ops->is_queued) TDM_TRY(d->reducer->ops->broadcast(d->reducer, TDM_ARENA_BUFFER));
    return tdm__replica_lap(d->replica, TDM_PHASE_COMM_EXPOSED);
}

static tdm_status backward_alone(void *user) {
    const ddp_step *s = user;
    const tdm_exec_hooks hooks = hooks_of(s->ddp);
    const tdm_mode *mode = &s->ddp->base;
    if (!s->has_rows && mode->is_last) TDM_TRY(tdm__reducer_add_nothing(s->ddp->reducer));
    TDM_TRY(tdm__pipeline_backward(s->ddp->pipeline, mode->micro_batch, mode->is_last, s->all_rows, &hooks));
    if (mode->is_last) return end_backward(s);
    return tdm__replica_lap(s->ddp->replica, TDM_PHASE_BACKWARD);
}

static tdm_status forward_backward(void *user) {
    const ddp_step *s = user;
    ddp *d = s->ddp;
    const tdm_exec_hooks hooks = hooks_of(d);
    TDM_TRY(broadcast_queued(d));
    if (!s->has_rows) TDM_TRY(tdm__reducer_add_nothing(d->reducer));
    TDM_TRY(tdm__pipeline_pass(d->pipeline, 0, s->all_rows, &hooks));
    return end_backward(s);
}

static tdm_status update(void *user) {
    const ddp_step *s = user;
    TDM_TRY(tdm__pipeline_update(s->ddp->pipeline, s->update));
    return tdm__replica_lap(s->ddp->replica, TDM_PHASE_OPTIMIZER);
}

/* With several stages the host adds up the norm of the gradients, so it waits for all sums before the update. */
static tdm_status whole_step(void *user) {
    ddp *d = ((const ddp_step *)user)->ddp;
    TDM_TRY(forward_backward(user));
    if (((const ddp_step *)user)->update->extent == TDM_TO_GRADIENTS) return TDM_OK;
    if (d->base.params.plan->stage_count > 1) TDM_TRY(d->reducer->ops->wait(d->reducer, NULL));
    return update(user);
}

/* ---- a step in two captures ---- */

static tdm_status check_reduction(ddp *d) {
    if (!wants_check(d)) return TDM_OK;
    void *grad = NULL;
    TDM_TRY(tdm__replica_fetch(d->replica, TDM_ARENA_GRAD, &grad));
    tdm_hash128 hash = tdm__hash(grad, d->base.params.plan->trained_floats * sizeof(float));
    return tdm__comm_agree(d->base.params.comm, "reduced gradients", hash.high, hash.low);
}

/* `passes`: the work that ends with backward. */
static tdm_status run_reduced(ddp_step *s, tdm_hash128 key, tdm_work passes, tdm_times *times) {
    ddp *d = s->ddp;
    TDM_TRY(tdm__replica_run(d->replica, key, passes, s));
    TDM_TRY(d->reducer->ops->wait(d->reducer, NULL));
    TDM_TRY(tdm__replica_wait_work(d->replica));
    int64_t at = tdm__steady_ns(d->base.params.host);
    TDM_TRY(d->reducer->ops->reduce_all(d->reducer));
    TDM_TRY(check_reduction(d));
    times->ms[TDM_PHASE_COMM_EXPOSED] += tdm__ms_passed(d->base.params.host, &at);
    return TDM_OK;
}

static tdm_status run_split(ddp_step *s, tdm_hash128 key, tdm_times *times) {
    TDM_TRY(run_reduced(s, key, forward_backward, times));
    if (s->update->extent == TDM_TO_GRADIENTS) return TDM_OK;
    return tdm__replica_run(s->ddp->replica, tdm__update_key(), update, s);
}

static tdm_status run(ddp_step *s, const tdm_batch *batch, tdm_times *times) {
    ddp *d = s->ddp;
    const tdm_hash128 key = tdm__step_key(batch, s->update);
    if (s->update->extent == TDM_TO_LOSS) return tdm__replica_run(d->replica, key, forward_alone, s);
    return d->is_split ? run_split(s, key, times) : tdm__replica_run(d->replica, key, whole_step, s);
}

static tdm_status run_backward(ddp_step *s, const tdm_batch *batch, tdm_times *times) {
    ddp *d = s->ddp;
    const tdm_hash128 key = tdm__backward_key(batch, d->base.micro_batch);
    return d->is_split && d->base.is_last ? run_reduced(s, key, backward_alone, times)
                                          : tdm__replica_run(d->replica, key, backward_alone, s);
}

/* ---- a step ---- */

/* By the host, before or after the step's work. Where collectives are queued, forward_backward queues it. */
static tdm_status broadcast_buffers(ddp *d, tdm_times *times) {
    if (d->reducer->ops->is_queued) return TDM_OK;
    int64_t at = tdm__steady_ns(d->base.params.host);
    TDM_TRY(d->reducer->ops->broadcast(d->reducer, TDM_ARENA_BUFFER));
    times->ms[TDM_PHASE_COMM_EXPOSED] += tdm__ms_passed(d->base.params.host, &at);
    return TDM_OK;
}

/* Micro-batches that torch.chunk makes of so many rows. */
static int64_t micro_batches_of(int64_t rows, int64_t micro) {
    const int64_t size = (rows + micro - 1) / micro;
    return size > 0 ? (rows + size - 1) / size : 0;
}

/* Do some ranks run fewer micro-batches than others, so that their batch counters differ? With `join` the first ranks
 * may have a row more than the last ones. */
static bool is_uneven(const ddp *d, const tdm_batch *batch) {
    const int64_t micro = d->base.params.job->train.accumulate, least = batch->global_rows / d->world;
    const int64_t most = (batch->global_rows + d->world - 1) / d->world;
    return d->base.params.plan->buffer_bytes > 0 && micro_batches_of(least, micro) != micro_batches_of(most, micro);
}

/* Bytes that all ranks together send in a step. In an all-reduce by segments each of n ranks sends 2(n-1)/n of what it
 * adds, as in a ring. Buffers go to every rank but the first. */
static int64_t sent_bytes(const tdm_plan *plan, const tdm_job *job, int replicas, int64_t summed_bytes) {
    const int64_t buffers = job->parallel.ddp.broadcast_buffers ? (int64_t)plan->buffer_bytes : 0;
    const int64_t hashes = job->parallel.ddp.check_reduction ? replicas * (int64_t)sizeof(tdm_hash128) : 0;
    return (replicas - 1) * (2 * summed_bytes + buffers + hashes) + tdm__exchange_bytes(plan, job, replicas);
}

static int64_t ddp_wire_bytes(const tdm_plan *plan, const tdm_job *job, int replicas, int64_t rows) {
    (void)rows;
    return sent_bytes(plan, job, replicas, tdm__compressed_bytes(plan, job, replicas, INT64_MAX));
}

/* This rank's share of what all ranks send in a step, which is equal for each. Before PowerSGD begins, gradients are
 * sent whole. */
static int64_t moved_bytes(const ddp *d, int64_t step) {
    const tdm_plan *plan = d->base.params.plan;
    const tdm_job *job = d->base.params.job;
    const int64_t summed_bytes = tdm__compressed_bytes(plan, job, d->world, step);
    return sent_bytes(plan, job, d->world, summed_bytes) / d->world;
}

static ddp_step step_of(ddp *d, const tdm_batch *batch, const tdm_update *update) {
    return (ddp_step){.ddp = d,
                      .update = update,
                      .all_rows = batch->global_rows,
                      .has_rows = batch->shard[0].rows > 0,
                      .ends = update->extent != TDM_TO_LOSS && d->base.is_last,
                      .is_uneven = is_uneven(d, batch)};
}

/* A batch norm counts the micro-batches it has seen, and some ranks had fewer. Without broadcast_buffers, too, all take
 * rank 0's buffers, counters and statistics: otherwise the counters would stay different. */
static tdm_status make_even(const ddp_step *s, tdm_times *times) {
    return s->is_uneven && s->ends ? broadcast_buffers(s->ddp, times) : TDM_OK;
}

static tdm_status ddp_submit(tdm_mode *mode, const tdm_batch *batch, const tdm_update *update,
                             tdm_step_result *result) {
    ddp *d = (ddp *)mode;
    ddp_step step = step_of(d, batch, update);
    result->bytes_moved = moved_bytes(d, update->t) + tdm__plan_crossing(mode->params.plan, batch->shard[0].rows);
    d->reducer->ms = 0;
    d->reducer->step = update->t;
    if (has_broadcast(d)) TDM_TRY(broadcast_buffers(d, &result->times));
    TDM_TRY(tdm__ddp_denominator(&mode->params, batch, &result->times, &d->denominator));
    result->denominator = d->denominator;
    tdm_values values = tdm__optim_all_values(update, result->denominator);
    TDM_TRY(tdm__pipeline_begin(d->pipeline, batch->shard, 1, &values));
    TDM_TRY(run(&step, batch, &result->times));
    TDM_TRY(make_even(&step, &result->times));
    result->times.ms[TDM_PHASE_COMM] += d->reducer->ms;
    return tdm__pipeline_end(d->pipeline);
}

static tdm_status ddp_collect(tdm_mode *mode, tdm_step_result *result) {
    ddp *d = (ddp *)mode;
    const tdm_outcome *outcome = NULL;
    TDM_TRY(d->reducer->ops->wait(d->reducer, tdm__replica_awaited(d->replica)));
    TDM_TRY(tdm__pipeline_wait(d->pipeline, &result->times, &outcome));
    if (!isnan(result->grad_norm)) result->grad_norm = outcome->grad_norm; /* NaN: the job does not clip */
    int64_t at = tdm__steady_ns(d->base.params.host);
    TDM_TRY(tdm__ddp_add_results(&mode->params, outcome, result));
    result->times.ms[TDM_PHASE_COMM_EXPOSED] += tdm__ms_passed(d->base.params.host, &at);
    /* Until here COMM has only the part that backward hid. */
    result->times.ms[TDM_PHASE_COMM] += result->times.ms[TDM_PHASE_COMM_EXPOSED];
    return TDM_OK;
}

/* Around a piece of the step that was begun before. */
static tdm_status begin_alone(ddp *d, const tdm_update *update, double denominator, tdm_times *times) {
    const tdm_values values = tdm__optim_all_values(update, denominator);
    tdm__times_init(times, d->base.phases);
    return tdm__pipeline_again(d->pipeline, &values);
}

static tdm_status end_alone(ddp *d, tdm_times *times, const tdm_outcome **outcome) {
    TDM_TRY(tdm__pipeline_end(d->pipeline));
    TDM_TRY(d->reducer->ops->wait(d->reducer, tdm__replica_awaited(d->replica)));
    return tdm__pipeline_wait(d->pipeline, times, outcome);
}

static tdm_status ddp_forward(tdm_mode *mode, const tdm_batch *batch, const tdm_update *update,
                              tdm_step_result *result) {
    ddp *d = (ddp *)mode;
    ddp_step step = step_of(d, batch, update);
    const tdm_outcome *outcome = NULL;
    tdm_times times;
    TDM_TRY(begin_alone(d, update, d->denominator, &times));
    TDM_TRY(tdm__replica_run(d->replica, tdm__forward_key(batch, mode->micro_batch), forward_alone, &step));
    TDM_TRY(end_alone(d, &times, &outcome));
    tdm__forward_result(d->replica, &times, result);
    result->denominator = d->denominator;
    return tdm__ddp_add_results(&mode->params, outcome, result);
}

static tdm_status ddp_backward(tdm_mode *mode, const tdm_batch *batch, const tdm_update *update,
                               tdm_step_result *result) {
    ddp *d = (ddp *)mode;
    ddp_step step = step_of(d, batch, update);
    const tdm_outcome *outcome = NULL;
    tdm_times times;
    d->reducer->ms = 0;
    TDM_TRY(begin_alone(d, update, result->denominator, &times));
    TDM_TRY(run_backward(&step, batch, &times));
    TDM_TRY(make_even(&step, &times));
    TDM_TRY(end_alone(d, &times, &outcome));
    times.ms[TDM_PHASE_COMM] += d->reducer->ms + times.ms[TDM_PHASE_COMM_EXPOSED];
    tdm__backward_result(d->replica, &times, result);
    return TDM_OK;
}

static tdm_status ddp_update(tdm_mode *mode, const tdm_update *update, tdm_step_result *result) {
    return tdm__pipeline_update_alone(((ddp *)mode)->pipeline, update, result);
}

static void ddp_step_failed(tdm_mode *mode, const char *message) {
    tdm_reducer *reducer = ((ddp *)mode)->reducer;
    reducer->ops->abort(reducer, message);
}

/* ---- between steps ---- */

static tdm_status ddp_evaluate(tdm_mode *mode, const tdm_shard *shards, int count, const float **outputs) {
    if (count != 1) TDM_FAIL(TDM_E_INTERNAL, "ddp: one shard a process, got %d", count);
    return tdm__evaluate(((ddp *)mode)->replica, &shards[0], &outputs[0]);
}

static tdm_status broadcast_arena(ddp *d, tdm_arena_kind kind) {
    if (tdm__replica_arena_bytes(d->replica, kind) == 0) return TDM_OK;
    return d->reducer->ops->broadcast(d->reducer, kind);
}

static tdm_status ddp_sync(tdm_mode *mode, bool with_state) {
    ddp *d = (ddp *)mode;
    TDM_TRY(broadcast_arena(d, TDM_ARENA_PARAM));
    TDM_TRY(tdm__replica_params_changed(d->replica));
    TDM_TRY(broadcast_arena(d, TDM_ARENA_BUFFER));
    if (with_state) TDM_TRY(broadcast_arena(d, TDM_ARENA_STATE));
    return d->reducer->ops->wait(d->reducer, NULL);
}

const tdm_mode_ops tdm_mode_ddp = {
    .name = "ddp",
    .bytes = sizeof(ddp),
    .process_per_device = true,
    .compression_memory = tdm__compression_memory,
    .wire_bytes = ddp_wire_bytes,
    .open = ddp_open,
    .close = ddp_close,
    .submit = ddp_submit,
    .collect = ddp_collect,
    .forward = ddp_forward,
    .backward = ddp_backward,
    .update = ddp_update,
    .step_failed = ddp_step_failed,
    .evaluate = ddp_evaluate,
    .sync = ddp_sync,
    .list_state = tdm__powersgd_list,
    .gather_state = tdm__powersgd_gather,
    .share_state = tdm__powersgd_share,
};
