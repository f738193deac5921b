/* ddp: torch.nn.parallel.DistributedDataParallel. One process per device; this one is rank `rank` of `world`.
 *
 * After initialisation or a load, and before an evaluation, `sync` copies rank 0's parameters, buffers and (if asked)
 * optimizer state to all ranks. A step is:
 *
 *   broadcast  rank 0's buffers go to all ranks (broadcast_buffers)
 *   forward    this rank's part of the batch; with sync_batchnorm ranks exchange statistics on the way, and in backward
 *   loss       its gradient is divided by the step's denominator (`denominator_of`), so the sum over ranks needs no
 *              division
 *   backward   each bucket of gradients is reduced as soon as its last gradient is written, while backward goes on (if
 *              the host reduces a device's gradients: all buckets after backward)
 *   join       the optimizer's work waits until all sums are complete
 *   optimizer  every rank makes the same update
 *
 * With `accumulate` the gradients of all micro-batches are added locally and reduced once, during the last (PyTorch:
 * no_sync for the others). How gradients are reduced depends on the memory they lie in: see reducer.h. The broadcast of
 * buffers depends on it, too. Step results always go through host memory. */
#include <math.h>

#include "modes/exchange.h"
#include "modes/pipeline.h"
#include "modes/reducer.h"
#include "runtime/base/status.h"
#include "runtime/base/system/clock.h"
#include "runtime/comm/comm.h"
#include "runtime/optim/optim.h"

typedef struct ddp {
    tdm_mode base;
    int world;
    tdm_replica *replica;
    tdm_pipeline *pipeline;
    tdm_reducer *reducer;
    bool splits; /* the host works between backward and update, so a step is two pieces of work */
} ddp;

/* A step while it is submitted. */
typedef struct ddp_step {
    ddp *ddp;
    const tdm_update *update;
    bool has_rows; /* this rank has */
} ddp_step;

/* ---- opening ---- */

static bool checks_reduction(const ddp *d) {
    return d->world > 1 && d->base.params.job->parallel.ddp.check_reduction;
}

/* Opens the replica, and the reducer for the memory that its gradients lie in. */
static tdm_status open_reducer(ddp *d) {
    const tdm_mode_params *params = &d->base.params;
    if (d->world > 1 && params->shares_gradients) return tdm__reducer_open_shared(&d->reducer, &d->replica, params);
    TDM_TRY(tdm__rank_open_replica(params, NULL, &d->replica));
    if (d->world == 1) return tdm__reducer_open_alone(&d->reducer, params);
    if (params->device_comm != NULL) TDM_TRY(tdm__reducer_open_device(&d->reducer, d->replica, params));
    return d->reducer != NULL ? TDM_OK : tdm__reducer_open_host(&d->reducer, d->replica, params);
}

static tdm_status ddp_open(tdm_mode *mode) {
    ddp *d = (ddp *)mode;
    d->world = mode->params.replicas;
    mode->replica = &d->replica;
    mode->replica_count = 1;
    TDM_TRY(open_reducer(d));
    TDM_TRY(tdm__pipeline_open(&d->pipeline, &mode->params, d->replica, 1));
    d->splits = checks_reduction(d) || d->reducer->ops->reduce_all != NULL;
    if (!d->splits) mode->depth = tdm__pipeline_depth(d->pipeline);
    mode->gradients = d->reducer->backend;
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

static bool broadcasts(const ddp *d) {
    return d->base.params.plan->buffer_bytes > 0 && d->base.params.job->parallel.ddp.broadcast_buffers;
}

/* If collectives are queued, the broadcast is part of the step's work. */
static tdm_status broadcast_queued(ddp *d) {
    if (!broadcasts(d) || !d->reducer->ops->is_queued) return TDM_OK;
    TDM_TRY(d->reducer->ops->broadcast(d->reducer, TDM_ARENA_BUFFER));
    return tdm__replica_lap(d->replica, TDM_PHASE_COMM_EXPOSED);
}

static tdm_status bucket_ready(void *user, int bucket) {
    tdm_reducer *reducer = user;
    return reducer->ops->start_bucket(reducer, bucket);
}

static tdm_status exchange(void *user, char *blocks, size_t bytes) {
    tdm_reducer *reducer = user;
    return reducer->ops->exchange(reducer, blocks, bytes);
}

static tdm_status forward_backward(void *user) {
    const ddp_step *s = user;
    ddp *d = s->ddp;
    const bool overlaps = d->reducer->ops->start_bucket != NULL;
    const tdm_exec_hooks hooks = {overlaps ? bucket_ready : NULL, exchange, d->reducer};
    TDM_TRY(broadcast_queued(d));
    if (s->has_rows) TDM_TRY(tdm__pipeline_pass(d->pipeline, 0, &hooks));
    if (overlaps) TDM_TRY(d->reducer->ops->join(d->reducer));
    return tdm__replica_lap(d->replica, TDM_PHASE_COMM_EXPOSED);
}

static tdm_status update(void *user) {
    const ddp_step *s = user;
    TDM_TRY(tdm__pipeline_update(s->ddp->pipeline, s->update));
    return tdm__replica_lap(s->ddp->replica, TDM_PHASE_OPTIMIZER);
}

static tdm_status whole_step(void *user) {
    TDM_TRY(forward_backward(user));
    return update(user);
}

/* ---- a step in two pieces ---- */

/* Called before the host waits for the device, because that wait has no deadline. `until` NULL: for all queued work. */
static tdm_status wait_for_peers(ddp *d, tdm_device_event *until) {
    return d->reducer->ops->wait != NULL ? d->reducer->ops->wait(d->reducer, until) : TDM_OK;
}

static tdm_status check_reduction(ddp *d) {
    if (!checks_reduction(d)) return TDM_OK;
    void *grad = NULL;
    TDM_TRY(tdm__replica_fetch(d->replica, TDM_ARENA_GRAD, &grad));
    tdm_hash128 hash = tdm__hash(grad, d->base.params.plan->trained_floats * sizeof(float));
    return tdm__comm_agree(d->base.params.comm, "reduced gradients", hash.high, hash.low);
}

static tdm_status run_split(ddp_step *s, tdm_hash128 key, tdm_times *times) {
    ddp *d = s->ddp;
    /* A capture key. The update does not depend on the rows, so its key is a constant. */
    static const tdm_hash128 any_rows = {1, 0};
    TDM_TRY(tdm__replica_run(d->replica, key, forward_backward, s));
    TDM_TRY(wait_for_peers(d, NULL));
    TDM_TRY(tdm__replica_wait_work(d->replica));
    int64_t at = tdm__now_ns();
    if (d->reducer->ops->reduce_all != NULL) TDM_TRY(d->reducer->ops->reduce_all(d->reducer));
    TDM_TRY(check_reduction(d));
    times->ms[TDM_PHASE_COMM_EXPOSED] += tdm__ms_passed(&at);
    return tdm__replica_run(d->replica, any_rows, update, s);
}

/* ---- what ranks exchange around a step ---- */

static bool averages_ranks(const ddp *d) {
    return d->world > 1 && d->base.params.job->parallel.ddp.average == TDM_AVERAGE_RANKS;
}

/* The divisor of this rank's losses: the labels or numbers of all ranks that count, by their weights, added in rank
 * order; or, for a mean of the ranks' means, its own that count times the number of ranks. Without ignored labels the
 * two are equal, because the sampler gives all ranks the same number of rows. */
static tdm_status denominator_of(ddp *d, const tdm_batch *batch, tdm_times *times, double *out) {
    const tdm_mode_params *params = &d->base.params;
    double all[TDM_LIST_MAX];
    *out = params->loss->denominator(&params->job->loss, batch->global_rows, params->plan->output_width, NULL);
    if (!params->has_ignored) return TDM_OK;
    double own = tdm__denominator(params, batch->shard, batch->shard_count);
    *out = averages_ranks(d) ? own * d->world : own;
    if (d->world == 1 || averages_ranks(d)) return TDM_OK;
    int64_t at = tdm__now_ns();
    TDM_TRY(tdm_comm_all_gather(params->comm, (tdm_span){&own, 1, TDM_DTYPE_F64},
                                (tdm_span){all, (size_t)d->world, TDM_DTYPE_F64}));
    *out = 0;
    for (int r = 0; r < d->world; r++) *out += all[r];
    times->ms[TDM_PHASE_COMM_EXPOSED] += tdm__ms_passed(&at);
    return TDM_OK;
}

/* Adds loss, hits, denominators and requests to stop over all ranks, in rank order. For a mean of means each rank
 * divides by its own denominator; a rank whose denominator is 0 adds 0, and if all are 0 there is no mean. */
static tdm_status add_results(ddp *d, const tdm_outcome *outcome, tdm_step_result *result) {
    enum { LOSS, CORRECT, STOP, DENOMINATOR, COUNT };
    double own[COUNT] = {outcome->loss[0], (double)outcome->correct, result->stop ? 1.0 : 0.0, result->denominator};
    double all[COUNT * TDM_LIST_MAX], sum[COUNT] = {0};
    if (d->world == 1) {
        result->loss = own[LOSS] / own[DENOMINATOR];
        result->correct = outcome->correct;
        return TDM_OK;
    }
    if (averages_ranks(d) && result->denominator > 0) own[LOSS] /= own[DENOMINATOR];
    TDM_TRY(tdm_comm_all_gather(d->base.params.comm, (tdm_span){own, COUNT, TDM_DTYPE_F64},
                                (tdm_span){all, COUNT * (size_t)d->world, TDM_DTYPE_F64}));
    for (int i = 0; i < COUNT * d->world; i++) sum[i % COUNT] += all[i];
    if (averages_ranks(d)) {
        int counted = 0; /* ranks that have a mean */
        for (int r = 0; r < d->world; r++) counted += all[COUNT * r + DENOMINATOR] > 0;
        result->denominator = sum[DENOMINATOR];
        result->loss = counted > 0 ? sum[LOSS] * d->world / counted : NAN;
    } else {
        result->loss = sum[LOSS] / own[DENOMINATOR];
    }
    result->correct = (int64_t)sum[CORRECT];
    result->stop = sum[STOP] > 0;
    return TDM_OK;
}

/* ---- a step ---- */

/* If collectives are not queued, the host broadcasts before the step's work. */
static tdm_status broadcast_now(ddp *d, tdm_times *times) {
    if (!broadcasts(d) || d->reducer->ops->is_queued) return TDM_OK;
    int64_t at = tdm__now_ns();
    TDM_TRY(d->reducer->ops->broadcast(d->reducer, TDM_ARENA_BUFFER));
    times->ms[TDM_PHASE_COMM_EXPOSED] += tdm__ms_passed(&at);
    return TDM_OK;
}

/* Bytes that all ranks together send in a step. In a sliced all-reduce each of n ranks sends 2(n-1)/n of the arena, as
 * in a ring. Buffers go to every rank but the first. */
static int64_t ddp_wire_bytes(const tdm_plan *plan, const tdm_job *job, int replicas, int64_t rows) {
    int64_t arena = (int64_t)(plan->trained_floats * sizeof(float));
    (void)rows;
    return (replicas - 1) * (2 * arena + (job->parallel.ddp.broadcast_buffers ? (int64_t)plan->buffer_bytes : 0)) +
           tdm__exchange_bytes(plan, job, replicas);
}

static tdm_status ddp_submit(tdm_mode *mode, const tdm_batch *batch, const tdm_update *update,
                             tdm_step_result *result) {
    ddp *d = (ddp *)mode;
    ddp_step step = {.ddp = d, .update = update, .has_rows = batch->shard[0].rows > 0};
    tdm_hash128 key = tdm__step_key(batch->shard, 1);
    result->bytes_moved = ddp_wire_bytes(mode->params.plan, mode->params.job, d->world, 0) / d->world +
                          tdm__plan_crossing(mode->params.plan, batch->shard[0].rows);
    d->reducer->ms = 0;
    TDM_TRY(broadcast_now(d, &result->times));
    TDM_TRY(denominator_of(d, batch, &result->times, &result->denominator));
    tdm_values values = tdm__optim_all_values(update, result->denominator);
    TDM_TRY(tdm__pipeline_begin(d->pipeline, batch->shard, 1, &values));
    if (d->splits)
        TDM_TRY(run_split(&step, key, &result->times));
    else
        TDM_TRY(tdm__replica_run(d->replica, key, whole_step, &step));
    result->times.ms[TDM_PHASE_COMM] += d->reducer->ms;
    return tdm__pipeline_end(d->pipeline);
}

static tdm_status ddp_collect(tdm_mode *mode, tdm_step_result *result) {
    ddp *d = (ddp *)mode;
    const tdm_outcome *outcome = NULL;
    TDM_TRY(wait_for_peers(d, tdm__replica_awaited(d->replica)));
    TDM_TRY(tdm__pipeline_wait(d->pipeline, &result->times, &outcome));
    if (!isnan(result->grad_norm)) result->grad_norm = outcome->grad_norm; /* NaN: the job does not clip */
    int64_t at = tdm__now_ns();
    TDM_TRY(add_results(d, outcome, result));
    result->times.ms[TDM_PHASE_COMM_EXPOSED] += tdm__ms_passed(&at);
    result->times.ms[TDM_PHASE_COMM] += result->times.ms[TDM_PHASE_COMM_EXPOSED]; /* and what was hidden */
    return TDM_OK;
}

static void ddp_step_failed(tdm_mode *mode, const char *message) {
    tdm_reducer *reducer = ((ddp *)mode)->reducer;
    reducer->ops->abort(reducer, message);
}

/* ---- between steps ---- */

static tdm_status ddp_forward(tdm_mode *mode, const tdm_shard *shards, int count, const float **outputs) {
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
    return wait_for_peers(d, NULL);
}

const tdm_mode_ops tdm_mode_ddp = {
    .name = "ddp",
    .bytes = sizeof(ddp),
    .process_per_device = true,
    .wire_bytes = ddp_wire_bytes,
    .open = ddp_open,
    .close = ddp_close,
    .submit = ddp_submit,
    .collect = ddp_collect,
    .step_failed = ddp_step_failed,
    .forward = ddp_forward,
    .sync = ddp_sync,
};
