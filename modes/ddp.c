/* ddp: torch.nn.parallel.DistributedDataParallel. One process per device, this is one of them.
 *
 * Before step 1 every rank has rank 0's parameters and buffers (spread). A step: rank 0's buffers to all
 * (broadcast_buffers), forward, loss, backward; each gradient bucket goes into an all-reduce on the communication
 * thread as soon as its last gradient is written, while backward goes on with the layers below; wait; every rank makes
 * the same update. Gradients are seeded with 1 / (rows of the whole step), so sums over ranks need no division. With
 * `accumulate` only the last micro-batch communicates (no_sync before). The gradient arena lies in memory that the
 * communicator shares between ranks where it has such, so nothing is copied. */
#include <math.h>

#include "modes/parts.h"
#include "runtime/base/clock.h"
#include "runtime/base/hash.h"
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
    tdm_comm *comm;
    int world;
    tdm_worker *worker; /* the communication thread; NULL with one rank */
    ddp_bucket *bucket;
    int queued;
} ddp;

enum { QUEUE_ROOM = 60 }; /* less than a worker's queue holds */

static void ddp_close(tdm_mode *mode) {
    ddp *d = (ddp *)mode;
    if (d == NULL) return;
    const tdm_host *host = mode->params.host;
    tdm__worker_close(d->worker);
    tdm__close_replica(d->replica);
    tdm__delete(host, d->bucket);
    tdm__delete(host, d);
}

static tdm_status open_all(ddp *d) {
    const tdm_mode_params *params = &d->base.params;
    void *grad = NULL;
    if (d->world > 1 && d->comm->ops->allocate != NULL)
        TDM_TRY(d->comm->ops->allocate(d->comm, params->plan->param_floats * sizeof(float), &grad));
    TDM_TRY(tdm__open_replica(params, params->rank, params->state_count, grad, &d->replica));
    TDM_TRY(tdm__new(params->host, &d->bucket, (size_t)params->plan->bucket_count, sizeof(*d->bucket), "buckets"));
    for (int i = 0; i < params->plan->bucket_count; i++) d->bucket[i] = (ddp_bucket){.ddp = d, .index = i};
    if (d->world > 1) TDM_TRY(tdm__worker_open(&d->worker, params->host, "ddp comm"));
    return TDM_OK;
}

static tdm_status ddp_open(tdm_mode **out, const tdm_mode_params *params) {
    *out = NULL;
    ddp *d = NULL;
    TDM_TRY(tdm__new(params->host, &d, 1, sizeof(*d), "mode"));
    d->base = (tdm_mode){&tdm_mode_ddp, *params};
    d->comm = params->comm;
    d->world = params->replicas;
    tdm_status status = open_all(d);
    if (status != TDM_OK) {
        ddp_close(&d->base);
        return status;
    }
    *out = &d->base;
    return TDM_OK;
}

/* ---- gradients ---- */

static tdm_span gradient_span(const ddp *d, int bucket) {
    const tdm_plan_bucket *b = &d->base.params.plan->buckets[bucket];
    return (tdm_span){d->replica->grad + b->offset, b->count, TDM_DTYPE_F32};
}

static tdm_status reduce_bucket(void *argument) {
    ddp_bucket *bucket = argument;
    int64_t at = tdm__now_ns();
    tdm_status status = tdm__all_reduce(bucket->ddp->comm, gradient_span(bucket->ddp, bucket->index), TDM_REDUCE_SUM);
    bucket->ms = tdm__lap(&at);
    return status;
}

static tdm_status bucket_ready(void *user, tdm_replica *replica, int bucket) {
    ddp *d = user;
    (void)replica;
    if (d->queued == QUEUE_ROOM) {
        TDM_TRY(tdm__worker_wait(d->worker, -1));
        d->queued = 0;
    }
    d->queued++;
    return tdm__worker_start(d->worker, reduce_bucket, &d->bucket[bucket]);
}

/* Every wait inside a collective has the communicator's deadline, so this wait ends. */
static tdm_status wait_for_buckets(ddp *d) {
    if (d->worker == NULL) return TDM_OK;
    d->queued = 0;
    TDM_TRY(tdm__worker_wait(d->worker, -1));
    if (!d->base.params.job->parallel.ddp.check_reduction) return TDM_OK;
    tdm_hash128 hash = tdm__hash(d->replica->grad, d->base.params.plan->param_floats * sizeof(float));
    return tdm__comm_agree(d->comm, "reduced gradients", hash.high, hash.low);
}

/* ---- the step ---- */

static tdm_status run_micro_batches(ddp *d, const tdm_shard *shard, float seed, double *loss, tdm_step_result *result) {
    const tdm_mode_params *params = &d->base.params;
    tdm_exec_hooks hooks = {bucket_ready, d};
    int64_t micro = params->job->train.accumulate;
    int64_t used = 0; /* micro-batches that have rows: the last of them communicates */
    for (tdm_rows rows; used < micro && tdm__micro_batch(params, shard, micro, used, &rows);) used++;
    for (int64_t k = 0; k < used; k++) {
        tdm_rows rows;
        (void)tdm__micro_batch(params, shard, micro, k, &rows);
        int64_t at = tdm__now_ns();
        TDM_TRY(tdm__exec_forward(d->replica, &rows, true));
        result->times.ms[TDM_PHASE_FORWARD] += tdm__lap(&at);
        TDM_TRY(tdm__loss(params, tdm__exec_output(d->replica), &rows, seed, tdm__exec_output_gradient(d->replica),
                          loss, &result->correct));
        result->times.ms[TDM_PHASE_LOSS] += tdm__lap(&at);
        bool last = k == used - 1 && d->worker != NULL;
        TDM_TRY(tdm__exec_backward(d->replica, &rows, k == 0, last ? &hooks : NULL));
        result->times.ms[TDM_PHASE_BACKWARD] += tdm__lap(&at);
    }
    return TDM_OK;
}

static tdm_status global_denominator(ddp *d, const tdm_batch *batch, int64_t *out) {
    const tdm_mode_params *params = &d->base.params;
    int64_t width = params->loss->target == TDM_TARGET_CLASS ? 1 : params->plan->output_width;
    *out = batch->global_rows * width;
    if (!params->has_ignored) return TDM_OK;
    *out = tdm__denominator(params, batch->shard, batch->shard_count);
    if (d->world == 1) return TDM_OK;
    return tdm__all_reduce(d->comm, (tdm_span){out, 1, TDM_DTYPE_I64}, TDM_REDUCE_SUM);
}

/* Loss, hits and the wish to stop of all ranks, added in rank order. */
static tdm_status share_result(ddp *d, double loss, int64_t denominator, tdm_step_result *result) {
    double own[3] = {loss, (double)result->correct, result->stop ? 1.0 : 0.0};
    double all[3 * TDM_LIST_MAX];
    if (d->world == 1) {
        result->loss = loss / (double)denominator;
        return TDM_OK;
    }
    TDM_TRY(d->comm->ops->all_gather(d->comm, (tdm_span){own, 3, TDM_DTYPE_F64},
                                     (tdm_span){all, 3 * (size_t)d->world, TDM_DTYPE_F64}));
    double sum = 0, correct = 0, stop = 0;
    for (int r = 0; r < d->world; r++) sum += all[3 * r], correct += all[3 * r + 1], stop += all[3 * r + 2];
    result->loss = sum / (double)denominator;
    result->correct = (int64_t)correct;
    result->stop = stop > 0;
    return TDM_OK;
}

static tdm_status reduce_and_update(ddp *d, const tdm_update *update, tdm_step_result *result) {
    int64_t at = tdm__now_ns();
    TDM_TRY(wait_for_buckets(d));
    result->times.ms[TDM_PHASE_COMM_EXPOSED] += tdm__lap(&at);
    if (d->worker != NULL) {
        for (int i = 0; i < d->base.params.plan->bucket_count; i++) result->times.ms[TDM_PHASE_COMM] += d->bucket[i].ms;
    }
    if (!isnan(update->clip_norm)) result->grad_norm = tdm__clip_grad_norm(d->replica, update->clip_norm);
    tdm__optim_step(d->replica, update);
    result->times.ms[TDM_PHASE_OPTIMIZER] = tdm__lap(&at);
    return TDM_OK;
}

static tdm_status broadcast_buffers(ddp *d, tdm_step_result *result) {
    const tdm_plan *plan = d->base.params.plan;
    if (d->world == 1 || plan->buffer_bytes == 0 || !d->base.params.job->parallel.ddp.broadcast_buffers) return TDM_OK;
    int64_t at = tdm__now_ns();
    TDM_TRY(tdm__broadcast(d->comm, (tdm_span){d->replica->buffer, plan->buffer_bytes, TDM_DTYPE_U8}, 0));
    double ms = tdm__lap(&at);
    result->times.ms[TDM_PHASE_COMM] += ms;
    result->times.ms[TDM_PHASE_COMM_EXPOSED] += ms;
    result->bytes_moved += (int64_t)plan->buffer_bytes;
    return TDM_OK;
}

static tdm_status ddp_step(tdm_mode *mode, const tdm_batch *batch, const tdm_update *update, tdm_step_result *result) {
    ddp *d = (ddp *)mode;
    static const tdm_phase phases[] = {TDM_PHASE_FORWARD, TDM_PHASE_LOSS,         TDM_PHASE_BACKWARD,
                                       TDM_PHASE_COMM,    TDM_PHASE_COMM_EXPOSED, TDM_PHASE_OPTIMIZER};
    *result = (tdm_step_result){.rows = batch->global_rows, .grad_norm = NAN, .stop = update->stop};
    tdm__times_init(&result->times, phases, 6);
    d->replica->step = (uint64_t)update->t;
    TDM_TRY(broadcast_buffers(d, result));
    int64_t denominator = 0;
    TDM_TRY(global_denominator(d, batch, &denominator));
    double loss = 0;
    tdm_status status = run_micro_batches(d, &batch->shard[0], (float)(1.0 / (double)denominator), &loss, result);
    if (status != TDM_OK) {
        tdm_error
            error; /* the buckets under way must end before anything is freed; the first failure is the one told */
        tdm__error_save(&error);
        if (d->worker != NULL) {
            d->comm->ops->abort(d->comm);
            (void)tdm__worker_wait(d->worker, -1);
        }
        return tdm__error_restore(&error, NULL);
    }
    TDM_TRY(reduce_and_update(d, update, result));
    /* A ring's worth: what each rank sends in an all-reduce by slices. */
    int64_t arena = (int64_t)(mode->params.plan->param_floats * sizeof(float));
    result->bytes_moved += 2 * arena * (d->world - 1) / d->world;
    int64_t at = tdm__now_ns();
    status = share_result(d, loss, denominator, result);
    result->times.ms[TDM_PHASE_COMM_EXPOSED] += tdm__lap(&at);
    return status;
}

static tdm_status ddp_forward(tdm_mode *mode, const tdm_shard *shards, int count, const float **outputs) {
    ddp *d = (ddp *)mode;
    if (count != 1) TDM_FAIL(TDM_E_INTERNAL, "ddp: one shard a process, got %d", count);
    tdm_rows rows = {
        .rows = shards[0].rows, .x = shards[0].x, .target = shards[0].target, .position = shards[0].position};
    TDM_TRY(tdm__exec_forward(d->replica, &rows, false));
    outputs[0] = tdm__exec_output(d->replica);
    return TDM_OK;
}

static tdm_status ddp_spread(tdm_mode *mode, bool with_state) {
    ddp *d = (ddp *)mode;
    const tdm_plan *plan = mode->params.plan;
    if (d->world == 1) return TDM_OK;
    TDM_TRY(tdm__broadcast(d->comm, (tdm_span){d->replica->param, plan->param_floats, TDM_DTYPE_F32}, 0));
    if (plan->buffer_bytes > 0)
        TDM_TRY(tdm__broadcast(d->comm, (tdm_span){d->replica->buffer, plan->buffer_bytes, TDM_DTYPE_U8}, 0));
    if (!with_state || d->replica->state_count == 0) return TDM_OK;
    size_t count = plan->param_floats * (size_t)d->replica->state_count;
    return tdm__broadcast(d->comm, (tdm_span){d->replica->state, count, TDM_DTYPE_F32}, 0);
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
    .step = ddp_step,
    .forward = ddp_forward,
    .spread = ddp_spread,
    .replica = ddp_replica,
    .replica_count = ddp_replica_count,
    .close = ddp_close,
};
