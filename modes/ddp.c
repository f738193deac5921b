/* ddp: torch.nn.parallel.DistributedDataParallel. One process per device; this is one of them, rank `rank` of `world`.
 *
 * Before step 1 every rank has rank 0's parameters and buffers (spread). A step:
 *
 *   broadcast  rank 0's buffers to all (broadcast_buffers)
 *   forward    this rank's part of the batch
 *   loss       its gradient is seeded with 1 / (rows of the whole step), so sums over ranks need no division
 *   backward   the gradients of a bucket meet as soon as its last one is written, while backward goes on below
 *   join       what follows runs behind the sums
 *   optimizer  every rank makes the same update
 *
 * With `accumulate` only the last micro-batch communicates (no_sync before). Where the gradients meet is meet.h's.
 * Everything else that ranks tell each other goes over the communicator in host memory. */
#include <math.h>

#include "modes/meet.h"
#include "modes/parts.h"
#include "runtime/base/system/clock.h"
#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/comm/comm.h"
#include "runtime/optim/optim.h"

typedef struct ddp {
    tdm_mode base;
    int world;
    tdm_replica *replica;
    tdm_meet *meet; /* NULL with one rank */
    bool splits;    /* a step is two pieces of work, and the host has something to do between them */
    tdm_pendings pending;
} ddp;

/* One step, while it is submitted. */
typedef struct ddp_step {
    ddp *ddp;
    const tdm_update *update;
    tdm_rows all; /* this rank's, where the replica sees them */
} ddp_step;

/* ---- opening ---- */

static void ddp_close(tdm_mode *mode) {
    ddp *d = (ddp *)mode;
    if (d == NULL) return;
    tdm__meet_close(d->meet);
    tdm__close_replica(d->replica);
    tdm__delete(mode->params.host, d);
}

static bool checks_reduction(const ddp *d) {
    return d->world > 1 && d->base.params.job->parallel.ddp.check_reduction;
}

/* The replica, and where its gradients meet. One rank alone meets nobody. */
static tdm_status open_meeting(ddp *d) {
    const tdm_mode_params *params = &d->base.params;
    if (d->world > 1 && !params->device->discrete) return tdm__meet_open_shared(&d->meet, &d->replica, params);
    TDM_TRY(tdm__meet_open_replica(params, NULL, &d->replica));
    if (d->world > 1 && params->device_comm != NULL) TDM_TRY(tdm__meet_open_device(&d->meet, d->replica, params));
    if (d->world > 1 && d->meet == NULL) TDM_TRY(tdm__meet_open_host(&d->meet, d->replica, params));
    return TDM_OK;
}

static tdm_status open_all(ddp *d) {
    TDM_TRY(open_meeting(d));
    d->splits = checks_reduction(d) || (d->meet != NULL && d->meet->ops->exchange != NULL);
    if (!d->splits) d->base.depth = tdm__replica_depth(d->replica);
    if (d->meet != NULL) d->base.gradients = d->meet->backend;
    return TDM_OK;
}

static tdm_status ddp_open(tdm_mode **out, const tdm_mode_params *params) {
    *out = NULL;
    ddp *d = NULL;
    TDM_TRY(tdm__new(params->host, &d, 1, sizeof(*d), "mode"));
    d->base = (tdm_mode){&tdm_mode_ddp, *params, &d->replica, 1, 1, "here"};
    d->world = params->replicas;
    return tdm__mode_opened(out, &d->base, open_all(d));
}

/* ---- the step's work ---- */

static bool broadcasts(const ddp *d) {
    return d->meet != NULL && d->base.params.plan->buffer_bytes > 0 &&
           d->base.params.job->parallel.ddp.broadcast_buffers;
}

/* A part of the step's work where it can be queued. */
static tdm_status broadcast_queued(ddp *d) {
    if (!broadcasts(d) || !d->meet->ops->is_queued) return TDM_OK;
    TDM_TRY(d->meet->ops->spread(d->meet, TDM_ARENA_BUFFER));
    return tdm__replica_lap(d->replica, TDM_PHASE_COMM_EXPOSED);
}

static tdm_status bucket_ready(void *user, tdm_replica *replica, int bucket) {
    tdm_meet *meet = user;
    (void)replica;
    return meet->ops->begin_bucket(meet, bucket);
}

static tdm_status passes(void *user) {
    ddp_step *s = user;
    ddp *d = s->ddp;
    const tdm_mode_params *params = &d->base.params;
    const bool meets = d->meet != NULL && d->meet->ops->begin_bucket != NULL; /* beside backward */
    const tdm_exec_hooks hooks = {bucket_ready, d->meet};
    const int64_t micro = params->job->train.accumulate;
    tdm_rows rows;
    int64_t used = 0; /* micro-batches that have rows: the last of them communicates */
    TDM_TRY(broadcast_queued(d));
    while (used < micro && tdm__micro_batch(params, &s->all, micro, used, &rows)) used++;
    for (int64_t k = 0; k < used; k++) {
        (void)tdm__micro_batch(params, &s->all, micro, k, &rows);
        TDM_TRY(tdm__pass(params, d->replica, &rows, k == 0, 0, meets && k == used - 1 ? &hooks : NULL));
    }
    if (meets) TDM_TRY(d->meet->ops->join(d->meet));
    return tdm__replica_lap(d->replica, TDM_PHASE_COMM_EXPOSED);
}

static tdm_status update(void *user) {
    const ddp_step *s = user;
    TDM_TRY(tdm__optim_step(s->ddp->replica, s->update));
    return tdm__replica_lap(s->ddp->replica, TDM_PHASE_OPTIMIZER);
}

static tdm_status passes_and_update(void *user) {
    TDM_TRY(passes(user));
    return update(user);
}

/* ---- the step in two pieces ---- */

/* Before the device is waited for, which has no deadline. `until` NULL: for all that was put. */
static tdm_status wait_for_peers(ddp *d, tdm_device_event *until) {
    return d->meet != NULL && d->meet->ops->wait != NULL ? d->meet->ops->wait(d->meet, until) : TDM_OK;
}

static tdm_status check_reduction(ddp *d) {
    if (!checks_reduction(d)) return TDM_OK;
    void *grad = NULL;
    TDM_TRY(tdm__replica_fetch(d->replica, TDM_ARENA_GRAD, &grad));
    tdm_hash128 hash = tdm__hash(grad, d->base.params.plan->param_floats * sizeof(float));
    return tdm__comm_agree(d->base.params.comm, "reduced gradients", hash.high, hash.low);
}

static tdm_status run_split(ddp_step *s, tdm_hash128 key, tdm_times *times) {
    ddp *d = s->ddp;
    static const tdm_hash128 any_rows = {1, 0}; /* the update is the same work whatever the rows were */
    TDM_TRY(tdm__replica_run(d->replica, key, passes, s));
    TDM_TRY(wait_for_peers(d, NULL));
    TDM_TRY(tdm__replica_pause(d->replica));
    int64_t at = tdm__now_ns();
    if (d->meet->ops->exchange != NULL) TDM_TRY(d->meet->ops->exchange(d->meet));
    times->ms[TDM_PHASE_COMM_EXPOSED] += tdm__lap(&at);
    TDM_TRY(check_reduction(d));
    return tdm__replica_run(d->replica, any_rows, update, s);
}

/* ---- what ranks tell each other around a step ---- */

static bool averages_ranks(const ddp *d) {
    return d->world > 1 && d->base.params.job->parallel.ddp.average == TDM_AVERAGE_RANKS;
}

/* What this rank's losses are divided by: the samples of all ranks that count, or, for a mean of the ranks' means, its
 * own ones times the ranks. Without ignored labels the two are one, since the sampler gives all ranks as many rows. */
static tdm_status denominator_of(ddp *d, const tdm_batch *batch, int64_t *out) {
    const tdm_mode_params *params = &d->base.params;
    int64_t width = params->loss->target == TDM_TARGET_CLASS ? 1 : params->plan->output_width;
    *out = batch->global_rows * width;
    if (!params->has_ignored) return TDM_OK;
    *out = tdm__denominator(params, batch->shard, batch->shard_count);
    if (averages_ranks(d)) *out *= d->world;
    if (d->world == 1 || averages_ranks(d)) return TDM_OK;
    return tdm__all_reduce(d->base.params.comm, (tdm_span){out, 1, TDM_DTYPE_I64}, TDM_REDUCE_SUM);
}

/* Loss, hits and the wish to stop of all ranks, added in rank order. Each rank divides by its own denominator where
 * these are not the same; one that has nothing to divide by adds 0, and where none has, there is no mean. */
static tdm_status share_result(ddp *d, const tdm_outcome *outcome, tdm_step_result *result) {
    enum { LOSS, CORRECT, STOP, DENOMINATOR, COUNT };
    double own[COUNT] = {outcome->loss[0], (double)outcome->correct, result->stop ? 1.0 : 0.0,
                         (double)result->denominator};
    double all[COUNT * TDM_LIST_MAX], sum[COUNT] = {0};
    if (d->world == 1) {
        result->loss = own[LOSS] / own[DENOMINATOR];
        result->correct = outcome->correct;
        return TDM_OK;
    }
    if (averages_ranks(d) && result->denominator > 0) own[LOSS] /= own[DENOMINATOR];
    TDM_TRY(tdm__all_gather(d->base.params.comm, (tdm_span){own, COUNT, TDM_DTYPE_F64},
                            (tdm_span){all, COUNT * (size_t)d->world, TDM_DTYPE_F64}));
    for (int i = 0; i < COUNT * d->world; i++) sum[i % COUNT] += all[i];
    if (averages_ranks(d)) {
        int counted = 0; /* ranks that have a mean */
        for (int r = 0; r < d->world; r++) counted += all[COUNT * r + DENOMINATOR] > 0;
        result->denominator = (int64_t)sum[DENOMINATOR];
        result->loss = counted > 0 ? sum[LOSS] * d->world / counted : NAN;
    } else {
        result->loss = sum[LOSS] / own[DENOMINATOR];
    }
    result->correct = (int64_t)sum[CORRECT];
    result->stop = sum[STOP] > 0;
    return TDM_OK;
}

/* ---- a step ---- */

/* Before the step's work, where it cannot be a part of that. */
static tdm_status broadcast_now(ddp *d, tdm_times *times) {
    if (!broadcasts(d) || d->meet->ops->is_queued) return TDM_OK;
    int64_t at = tdm__now_ns();
    TDM_TRY(d->meet->ops->spread(d->meet, TDM_ARENA_BUFFER));
    times->ms[TDM_PHASE_COMM_EXPOSED] += tdm__lap(&at);
    return TDM_OK;
}

/* In an all-reduce by slices each rank sends as much as in a ring. */
static int64_t bytes_moved(const ddp *d) {
    const tdm_plan *plan = d->base.params.plan;
    int64_t arena = (int64_t)(plan->param_floats * sizeof(float));
    return 2 * arena * (d->world - 1) / d->world + (broadcasts(d) ? (int64_t)plan->buffer_bytes : 0);
}

static tdm_status submit(ddp_step *s, const tdm_batch *batch, tdm_pending *pending) {
    ddp *d = s->ddp;
    tdm_hash128 key = tdm__step_key(batch->shard, 1);
    pending->bytes_moved = bytes_moved(d);
    if (d->meet != NULL) d->meet->ms = 0;
    TDM_TRY(broadcast_now(d, &pending->times));
    TDM_TRY(denominator_of(d, batch, &pending->denominator));
    tdm_step_values values = tdm__optim_values(s->update, pending->denominator);
    TDM_TRY(tdm__replica_take(d->replica, batch->shard, 1, &s->all));
    TDM_TRY(tdm__replica_begin(d->replica, &values));
    if (d->splits)
        TDM_TRY(run_split(s, key, &pending->times));
    else
        TDM_TRY(tdm__replica_run(d->replica, key, passes_and_update, s));
    if (d->meet != NULL) pending->times.ms[TDM_PHASE_COMM] += d->meet->ms;
    return tdm__replica_leave(d->replica);
}

/* The peers learn why; the first failure is the one to report. */
static tdm_status abandon(ddp *d) {
    tdm_error error;
    tdm__error_save(&error);
    tdm__pending_abandon(&d->pending, &d->replica, 1);
    if (d->meet != NULL) d->meet->ops->abort(d->meet, error.message);
    return tdm__error_restore(&error, NULL);
}

static tdm_status ddp_submit(tdm_mode *mode, const tdm_batch *batch, const tdm_update *update) {
    ddp *d = (ddp *)mode;
    static const tdm_phase phases[] = {TDM_PHASE_FORWARD,      TDM_PHASE_LOSS,      TDM_PHASE_BACKWARD,
                                       TDM_PHASE_COMM_EXPOSED, TDM_PHASE_OPTIMIZER, TDM_PHASE_COMM};
    /* What queued collectives take is known where the step waits for them, not where backward hides them. */
    int phase_count = d->meet != NULL && d->meet->ops->is_queued ? 5 : 6;
    ddp_step step = {.ddp = d, .update = update};
    tdm_status status = submit(&step, batch, tdm__pending_add(&d->pending, batch, update, phases, phase_count));
    return status == TDM_OK ? TDM_OK : abandon(d);
}

static tdm_status await(ddp *d, tdm_times *times, const tdm_outcome **outcome) {
    TDM_TRY(wait_for_peers(d, tdm__replica_awaited(d->replica)));
    return tdm__replica_settle(d->replica, times, outcome);
}

static tdm_status ddp_collect(tdm_mode *mode, tdm_step_result *result) {
    ddp *d = (ddp *)mode;
    const tdm_pending *pending = NULL;
    const tdm_outcome *outcome = NULL;
    TDM_TRY(tdm__pending_take(&d->pending, &pending));
    tdm__result_begin(result, pending);
    if (await(d, &result->times, &outcome) != TDM_OK) return abandon(d);
    if (pending->clips) result->grad_norm = outcome->grad_norm;
    int64_t at = tdm__now_ns();
    if (share_result(d, outcome, result) != TDM_OK) return abandon(d);
    result->times.ms[TDM_PHASE_COMM_EXPOSED] += tdm__lap(&at);
    return TDM_OK;
}

/* ---- between steps ---- */

static tdm_status ddp_forward(tdm_mode *mode, const tdm_shard *shards, int count, const float **outputs) {
    ddp *d = (ddp *)mode;
    if (count != 1) TDM_FAIL(TDM_E_INTERNAL, "ddp: one shard a process, got %d", count);
    return tdm__evaluate(d->replica, &shards[0], &outputs[0]);
}

static tdm_status spread_arena(ddp *d, tdm_arena_kind kind) {
    size_t bytes = 0;
    if (tdm__replica_arena(d->replica, kind, &bytes) == NULL || bytes == 0) return TDM_OK;
    return d->meet->ops->spread(d->meet, kind);
}

static tdm_status ddp_spread(tdm_mode *mode, bool with_state) {
    ddp *d = (ddp *)mode;
    if (d->meet == NULL) return TDM_OK;
    TDM_TRY(spread_arena(d, TDM_ARENA_PARAM));
    TDM_TRY(tdm__replica_params_changed(d->replica));
    TDM_TRY(spread_arena(d, TDM_ARENA_BUFFER));
    if (with_state) TDM_TRY(spread_arena(d, TDM_ARENA_STATE));
    return wait_for_peers(d, NULL);
}

const tdm_mode_ops tdm_mode_ddp = {
    .name = "ddp",
    .doc = "one process per device; gradient buckets all-reduced during backward",
    .open = ddp_open,
    .submit = ddp_submit,
    .collect = ddp_collect,
    .forward = ddp_forward,
    .spread = ddp_spread,
    .close = ddp_close,
};
