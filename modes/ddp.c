/* ddp: torch.nn.parallel.DistributedDataParallel. One process per device, this is one of them.
 *
 * Before step 1 every rank has rank 0's parameters and buffers (spread). A step: rank 0's buffers to all
 * (broadcast_buffers), forward, loss, backward; each gradient bucket goes into an all-reduce as soon as its last
 * gradient is written, while backward goes on with the layers below; wait; every rank makes the same update. Gradients
 * are seeded with 1 / (rows of the whole step), so sums over ranks need no division. With `accumulate` only the last
 * micro-batch communicates (no_sync before).
 *
 * Where gradients meet: on the CPU in an arena that the communicator shares between ranks where it has such memory, by
 * a thread of their own; on a device with a communicator for its memory, on that one's queue, and the step stays one
 * piece of work; on a device without, in host memory between two pieces (`split`). Everything else that ranks tell each
 * other goes over the communicator in host memory. */
#include <math.h>

#include "modes/parts.h"
#include "runtime/base/clock.h"
#include "runtime/base/log.h"
#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/base/sync.h"
#include "runtime/comm/comm.h"
#include "runtime/train/train.h"

struct ddp;
typedef struct ddp_bucket {
    struct ddp *ddp;
    int index;
    double ms; /* that its all-reduce took */
} ddp_bucket;

typedef struct ddp {
    tdm_mode base;
    tdm_replica *replica;
    tdm_comm *comm;        /* in host memory */
    tdm_comm *device_comm; /* NULL: gradients meet in host memory */
    int world;
    bool split;         /* a step is two pieces of work, and the host has something to do between them */
    float *host_grad;   /* split: where the gradients meet */
    bool owns_grad;     /* it is not the communicator's */
    bool pinned;        /* the device copies to and from it at full speed */
    tdm_worker *worker; /* the communication thread of the CPU; NULL with one rank and on discrete devices */
    ddp_bucket *bucket;
    int queued;
    tdm_rows all; /* of this step, where the replica sees them */
    const tdm_update *update;
    tdm_pendings pending;
} ddp;

enum { QUEUE_ROOM = 60 }; /* less than a worker's queue holds */

static void ddp_close(tdm_mode *mode) {
    ddp *d = (ddp *)mode;
    if (d == NULL) return;
    const tdm_host *host = mode->params.host;
    tdm__worker_close(d->worker);
    if (d->replica != NULL) tdm__replica_forget(d->replica); /* NCCL's communicators do not end before such work */
    if (d->device_comm != NULL) d->device_comm->ops->close(d->device_comm);
    if (d->pinned) d->replica->device->ops->unpin(d->replica->device, d->host_grad);
    tdm__close_replica(d->replica);
    if (d->owns_grad) tdm__delete_pages(host, d->host_grad);
    tdm__delete(host, d->bucket);
    tdm__delete(host, d);
}

/* Host memory for the gradients, shared between the ranks where the communicator has such. */
static tdm_status open_meeting_place(ddp *d, void **grad) {
    const tdm_mode_params *params = &d->base.params;
    size_t bytes = params->plan->param_floats * sizeof(float);
    bool needed = d->split && d->device_comm == NULL;
    if (d->world > 1 && d->comm->ops->allocate != NULL && (needed || !params->device->discrete))
        return d->comm->ops->allocate(d->comm, bytes, grad);
    if (!needed) return TDM_OK;
    TDM_TRY(tdm__new_pages(params->host, grad, bytes, "gradients in host memory"));
    d->owns_grad = true;
    return TDM_OK;
}

/* Copies from and to memory that cannot be pinned (too little may be locked) are slower, and do the same. */
static void pin_meeting_place(ddp *d) {
    tdm_device *device = d->replica->device;
    tdm_error before;
    if (device->ops->pin == NULL) return;
    tdm__error_save(&before);
    d->pinned = device->ops->pin(device, d->host_grad, d->base.params.plan->param_floats * sizeof(float)) == TDM_OK;
    if (!d->pinned)
        TDM_INFO(d->base.params.host, "device", "gradients meet in pageable memory: %s", tdm_error_message());
    (void)tdm__error_restore(&before, NULL);
}

static bool has_ended(tdm_comm *comm) {
    char why[8];
    return comm->ops->ended != NULL && comm->ops->ended(comm, why, sizeof(why));
}

/* All ranks get the same answer. With backend: auto a refusal (two ranks on one GPU, say) is no failure as long as the
 * job goes on: gradients then meet in host memory. */
static tdm_status open_device_comm(ddp *d) {
    const tdm_mode_params *params = &d->base.params;
    tdm_error before;
    if (d->world == 1 || params->device_comm == NULL) return TDM_OK;
    tdm__error_save(&before);
    tdm_status status = params->device_comm->open(&d->device_comm, d->replica->device, d->comm, d->comm->timeout_ms);
    if (status == TDM_OK || params->job->parallel.ddp.backend != TDM_BACKEND_AUTO || has_ended(d->comm)) return status;
    TDM_WARN(params->host, "comm", "%s is not used, gradients meet in host memory: %s", params->device_comm->name,
             tdm_error_message());
    (void)tdm__error_restore(&before, NULL);
    return TDM_OK;
}

static tdm_status open_all(ddp *d) {
    const tdm_mode_params *params = &d->base.params;
    bool discrete = params->device->discrete;
    void *grad = NULL;
    if (!discrete) TDM_TRY(open_meeting_place(d, &grad));
    tdm_replica_wish wish = {.index = params->rank, .state_count = params->state_count, .grad = grad, .parts = 1};
    TDM_TRY(tdm__open_replica(params, &wish, &d->replica));
    TDM_TRY(open_device_comm(d));
    d->split = d->world > 1 && discrete && (d->device_comm == NULL || params->job->parallel.ddp.check_reduction);
    d->replica->captures_together = d->device_comm != NULL;
    if (discrete) TDM_TRY(open_meeting_place(d, &grad));
    d->host_grad = grad;
    if (discrete && grad != NULL) pin_meeting_place(d);
    TDM_TRY(tdm__new(params->host, &d->bucket, (size_t)params->plan->bucket_count, sizeof(*d->bucket), "buckets"));
    for (int i = 0; i < params->plan->bucket_count; i++) d->bucket[i] = (ddp_bucket){.ddp = d, .index = i};
    const tdm_comm *meeting = d->device_comm != NULL ? d->device_comm : d->comm;
    if (d->world > 1) d->base.gradients = meeting->ops->name;
    d->base.depth = discrete && !d->split ? TDM_MODE_DEPTH : 1;
    if (d->world > 1 && !discrete) TDM_TRY(tdm__worker_open(&d->worker, params->host, "ddp comm"));
    return TDM_OK;
}

static tdm_status ddp_open(tdm_mode **out, const tdm_mode_params *params) {
    *out = NULL;
    ddp *d = NULL;
    TDM_TRY(tdm__new(params->host, &d, 1, sizeof(*d), "mode"));
    d->base = (tdm_mode){&tdm_mode_ddp, *params, 1, "here"};
    d->comm = params->comm;
    d->world = params->replicas;
    tdm_status status = open_all(d);
    if (status != TDM_OK) {
        tdm_error error;
        tdm__error_save(&error);
        ddp_close(&d->base);
        return tdm__error_restore(&error, NULL);
    }
    *out = &d->base;
    return TDM_OK;
}

/* ---- from rank 0 to all ---- */

static tdm_status spread_arena(ddp *d, tdm_arena_kind kind, void *arena, size_t bytes) {
    if (bytes == 0 || arena == NULL) return TDM_OK;
    if (d->device_comm != NULL) {
        TDM_TRY(tdm__broadcast(d->device_comm, (tdm_span){arena, bytes, TDM_DTYPE_U8}, 0));
        return d->device_comm->ops->join(d->device_comm);
    }
    void *host = NULL;
    TDM_TRY(tdm__replica_fetch(d->replica, kind, &host));
    TDM_TRY(tdm__broadcast(d->comm, (tdm_span){host, bytes, TDM_DTYPE_U8}, 0));
    return tdm__replica_put(d->replica, kind);
}

static bool broadcasts(const ddp *d) {
    return d->world > 1 && d->base.params.plan->buffer_bytes > 0 && d->base.params.job->parallel.ddp.broadcast_buffers;
}

/* In host memory, before the step; on the device it is a part of the step's work. */
static tdm_status broadcast_buffers(ddp *d, tdm_pending *pending) {
    const tdm_plan *plan = d->base.params.plan;
    if (!broadcasts(d)) return TDM_OK;
    pending->bytes_moved += (int64_t)plan->buffer_bytes;
    if (d->device_comm != NULL) return TDM_OK;
    int64_t at = tdm__now_ns();
    TDM_TRY(spread_arena(d, TDM_ARENA_BUFFER, d->replica->buffer, plan->buffer_bytes));
    double ms = tdm__lap(&at);
    pending->times.ms[TDM_PHASE_COMM] += ms;
    pending->times.ms[TDM_PHASE_COMM_EXPOSED] += ms;
    return TDM_OK;
}

/* ---- gradients ---- */

static tdm_span gradient_span(const ddp *d, float *grad, int bucket) {
    const tdm_plan_bucket *b = &d->base.params.plan->buckets[bucket];
    return (tdm_span){grad + b->offset, b->count, TDM_DTYPE_F32};
}

static tdm_status reduce_bucket(void *argument) {
    ddp_bucket *bucket = argument;
    ddp *d = bucket->ddp;
    int64_t at = tdm__now_ns();
    tdm_status status = tdm__all_reduce(d->comm, gradient_span(d, d->replica->grad, bucket->index), TDM_REDUCE_SUM);
    bucket->ms = tdm__lap(&at);
    return status;
}

static tdm_status bucket_ready(void *user, tdm_replica *replica, int bucket) {
    ddp *d = user;
    if (d->device_comm != NULL)
        return tdm__all_reduce(d->device_comm, gradient_span(d, replica->grad, bucket), TDM_REDUCE_SUM);
    if (d->queued == QUEUE_ROOM) {
        TDM_TRY(tdm__worker_wait(d->worker, -1));
        d->queued = 0;
    }
    d->queued++;
    return tdm__worker_start(d->worker, reduce_bucket, &d->bucket[bucket]);
}

static tdm_status check_reduction(ddp *d) {
    if (d->world == 1 || !d->base.params.job->parallel.ddp.check_reduction) return TDM_OK;
    void *grad = NULL;
    TDM_TRY(tdm__replica_fetch(d->replica, TDM_ARENA_GRAD, &grad));
    tdm_hash128 hash = tdm__hash(grad, d->base.params.plan->param_floats * sizeof(float));
    return tdm__comm_agree(d->comm, "reduced gradients", hash.high, hash.low);
}

/* Every wait inside a collective has the communicator's deadline, so this wait ends. */
static tdm_status wait_for_buckets(ddp *d) {
    if (d->device_comm != NULL) return d->device_comm->ops->join(d->device_comm);
    if (d->worker == NULL) return TDM_OK;
    d->queued = 0;
    TDM_TRY(tdm__worker_wait(d->worker, -1));
    return check_reduction(d);
}

/* ---- the step's work ---- */

static tdm_status passes(void *user) {
    ddp *d = user;
    const tdm_mode_params *params = &d->base.params;
    tdm_exec_hooks hooks = {bucket_ready, d};
    int64_t micro = params->job->train.accumulate;
    if (d->device_comm != NULL && broadcasts(d)) {
        TDM_TRY(spread_arena(d, TDM_ARENA_BUFFER, d->replica->buffer, params->plan->buffer_bytes));
        TDM_TRY(tdm__replica_lap(d->replica, TDM_PHASE_COMM_EXPOSED));
    }
    int64_t used = 0; /* micro-batches that have rows: the last of them communicates */
    for (tdm_rows rows; used < micro && tdm__micro_batch(params, &d->all, micro, used, &rows);) used++;
    for (int64_t k = 0; k < used; k++) {
        tdm_rows rows;
        (void)tdm__micro_batch(params, &d->all, micro, k, &rows);
        bool communicates = k == used - 1 && (d->worker != NULL || d->device_comm != NULL);
        TDM_TRY(tdm__pass(params, d->replica, &rows, k == 0, 0, communicates ? &hooks : NULL));
    }
    TDM_TRY(wait_for_buckets(d));
    return tdm__replica_lap(d->replica, TDM_PHASE_COMM_EXPOSED);
}

static tdm_status update(void *user) {
    ddp *d = user;
    TDM_TRY(tdm__optim_step(d->replica, d->update));
    return tdm__replica_lap(d->replica, TDM_PHASE_OPTIMIZER);
}

static tdm_status passes_and_update(void *user) {
    TDM_TRY(passes(user));
    return update(user);
}

/* The gradients come to host memory, meet there, and go back. */
static tdm_status reduce_in_host(ddp *d, tdm_pending *pending) {
    const tdm_plan *plan = d->base.params.plan;
    tdm_device *device = d->replica->device;
    size_t bytes = plan->param_floats * sizeof(float);
    int64_t at = tdm__now_ns();
    TDM_TRY(device->ops->copy(device, NULL, d->host_grad, d->replica->grad, bytes));
    TDM_TRY(device->ops->finish(device, NULL));
    for (int i = 0; i < plan->bucket_count; i++)
        TDM_TRY(tdm__all_reduce(d->comm, gradient_span(d, d->host_grad, i), TDM_REDUCE_SUM));
    TDM_TRY(device->ops->copy(device, NULL, d->replica->grad, d->host_grad, bytes));
    TDM_TRY(device->ops->finish(device, NULL));
    double ms = tdm__lap(&at);
    pending->times.ms[TDM_PHASE_COMM] += ms;
    pending->times.ms[TDM_PHASE_COMM_EXPOSED] += ms;
    return TDM_OK;
}

/* Before the device is waited for, which has no deadline. `until` NULL: for all that was put. */
static tdm_status wait_for_device_comm(ddp *d, tdm_device_event *until) {
    return d->device_comm != NULL ? d->device_comm->ops->wait(d->device_comm, until) : TDM_OK;
}

static tdm_status run_split(ddp *d, tdm_hash128 key, tdm_pending *pending) {
    TDM_TRY(tdm__replica_run(d->replica, key, passes, d));
    TDM_TRY(wait_for_device_comm(d, NULL));
    TDM_TRY(tdm__replica_pause(d->replica));
    if (d->device_comm == NULL) TDM_TRY(reduce_in_host(d, pending));
    TDM_TRY(check_reduction(d));
    static const tdm_hash128 any_rows = {1, 0};
    return tdm__replica_run(d->replica, any_rows, update, d);
}

static tdm_status run(ddp *d, const tdm_batch *batch, const tdm_step_values *values, tdm_pending *pending) {
    TDM_TRY(tdm__place_batch(d->replica, batch, 0, 1, &d->all));
    TDM_TRY(tdm__replica_begin(d->replica, values));
    tdm_hash128 key = tdm__step_key(batch->shard, 1);
    if (d->split)
        TDM_TRY(run_split(d, key, pending));
    else
        TDM_TRY(tdm__replica_run(d->replica, key, passes_and_update, d));
    for (int i = 0; d->worker != NULL && i < d->base.params.plan->bucket_count; i++)
        pending->times.ms[TDM_PHASE_COMM] += d->bucket[i].ms;
    return tdm__leave_step(d->replica, d->update, 0, 1);
}

/* ---- what ranks tell each other around it ---- */

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
    return tdm__all_reduce(d->comm, (tdm_span){out, 1, TDM_DTYPE_I64}, TDM_REDUCE_SUM);
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
    TDM_TRY(d->comm->ops->all_gather(d->comm, (tdm_span){own, COUNT, TDM_DTYPE_F64},
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

/* The buckets under way must end before anything is freed; the first failure is the one told. */
static tdm_status abandon(ddp *d) {
    tdm_error error;
    tdm__error_save(&error);
    tdm__pending_abandon(&d->pending, &d->replica, 1);
    tdm__comm_abort(d->device_comm, error.message); /* the peers learn why */
    if (d->worker != NULL) {
        tdm__comm_abort(d->comm, error.message);
        (void)tdm__worker_wait(d->worker, -1);
    }
    return tdm__error_restore(&error, NULL);
}

static tdm_status submit(ddp *d, const tdm_batch *batch, tdm_pending *pending) {
    TDM_TRY(broadcast_buffers(d, pending));
    TDM_TRY(denominator_of(d, batch, &pending->denominator));
    tdm_step_values values = tdm__optim_values(d->update, pending->denominator);
    /* A ring's worth: what each rank sends in an all-reduce by slices. */
    int64_t arena = (int64_t)(d->base.params.plan->param_floats * sizeof(float));
    pending->bytes_moved += 2 * arena * (d->world - 1) / d->world;
    return run(d, batch, &values, pending);
}

static tdm_status ddp_submit(tdm_mode *mode, const tdm_batch *batch, const tdm_update *update) {
    ddp *d = (ddp *)mode;
    static const tdm_phase phases[] = {TDM_PHASE_FORWARD,      TDM_PHASE_LOSS,      TDM_PHASE_BACKWARD,
                                       TDM_PHASE_COMM_EXPOSED, TDM_PHASE_OPTIMIZER, TDM_PHASE_COMM};
    /* What a communicator on the device takes is known where the step waits for it, not where it is hidden. */
    int phase_count = d->device_comm != NULL ? 5 : 6;
    d->update = update;
    tdm_status status = submit(d, batch, tdm__pending_add(&d->pending, batch, update, phases, phase_count));
    return status == TDM_OK ? TDM_OK : abandon(d);
}

static tdm_status await(ddp *d, tdm_times *times, const tdm_outcome **outcome) {
    TDM_TRY(wait_for_device_comm(d, tdm__replica_awaited(d->replica)));
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

static tdm_status ddp_forward(tdm_mode *mode, const tdm_shard *shards, int count, const float **outputs) {
    ddp *d = (ddp *)mode;
    if (count != 1) TDM_FAIL(TDM_E_INTERNAL, "ddp: one shard a process, got %d", count);
    return tdm__evaluate(d->replica, &shards[0], &outputs[0]);
}

static tdm_status ddp_spread(tdm_mode *mode, bool with_state) {
    ddp *d = (ddp *)mode;
    const tdm_plan *plan = mode->params.plan;
    tdm_replica *r = d->replica;
    if (d->world == 1) return TDM_OK;
    size_t arena = plan->param_floats * sizeof(float);
    TDM_TRY(spread_arena(d, TDM_ARENA_PARAM, r->param, arena));
    TDM_TRY(tdm__replica_params_changed(r));
    TDM_TRY(spread_arena(d, TDM_ARENA_BUFFER, r->buffer, plan->buffer_bytes));
    if (with_state) TDM_TRY(spread_arena(d, TDM_ARENA_STATE, r->state, arena * (size_t)r->state_count));
    return wait_for_device_comm(d, NULL);
}

static tdm_replica *ddp_replica(tdm_mode *mode, int i) {
    (void)i;
    return ((ddp *)mode)->replica;
}

static int ddp_replica_count(const tdm_mode *mode) {
    (void)mode;
    return 1;
}

const tdm_mode_ops tdm_mode_ddp = {
    .name = "ddp",
    .doc = "one process per device; gradient buckets all-reduced while backward goes on",
    .open = ddp_open,
    .submit = ddp_submit,
    .collect = ddp_collect,
    .forward = ddp_forward,
    .spread = ddp_spread,
    .replica = ddp_replica,
    .replica_count = ddp_replica_count,
    .close = ddp_close,
};
