/* Reduces in host memory, in place: a thread reduces buckets while backward runs. If the communicator has memory that
 * the ranks share (shm), the gradient arena lies there; otherwise the communicator copies. */
#include "modes/compress/compress.h"
#include "modes/reducers/reducer.h"
#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/base/system/clock.h"
#include "runtime/base/system/sync.h"
#include "runtime/comm/comm.h"

enum { QUEUED_MAX = 60 }; /* less than a worker's queue holds */

typedef struct cpu_bucket {
    struct cpu_reducer *reducer;
    int index;
    int64_t began, ended; /* its all-reduce, tdm__steady_ns */
} cpu_bucket;

typedef struct cpu_reducer {
    tdm_reducer base;
    tdm_worker *worker;
    tdm_comm **exchange; /* of each stage; NULL: there are no statistics */
    cpu_bucket *bucket;
    int queued;
} cpu_reducer;

static tdm_status reduce(void *argument) {
    cpu_bucket *bucket = argument;
    tdm_reducer *reducer = &bucket->reducer->base;
    bucket->began = tdm__steady_ns(reducer->params->host);
    tdm_status status = tdm__reduce_in_host(reducer, tdm__bucket_here(reducer, bucket->index), bucket->index);
    bucket->ended = tdm__steady_ns(reducer->params->host);
    return status;
}

static tdm_status start_bucket(tdm_reducer *reducer, int bucket) {
    cpu_reducer *r = (cpu_reducer *)reducer;
    if (r->queued == QUEUED_MAX) {
        TDM_TRY(tdm__worker_wait(r->worker));
        r->queued = 0;
    }
    r->queued++;
    return tdm__worker_start(r->worker, reduce, &r->bucket[bucket]);
}

/* What the all-reduces took until `end`, in milliseconds. */
static double ms_before(const cpu_reducer *r, int64_t end) {
    double ms = 0;
    for (int i = 0; i < r->base.params->plan->bucket_count; i++) {
        const cpu_bucket *bucket = &r->bucket[i];
        const int64_t until = bucket->ended < end ? bucket->ended : end;
        if (until > bucket->began) ms += (double)(until - bucket->began) / 1e6;
    }
    return ms;
}

/* This wait ends, because every wait inside a collective has the communicator's deadline. */
static tdm_status finish(tdm_reducer *reducer) {
    cpu_reducer *r = (cpu_reducer *)reducer;
    const int64_t waits_from = tdm__steady_ns(reducer->params->host);
    r->queued = 0;
    TDM_TRY(tdm__worker_wait(r->worker));
    reducer->ms += ms_before(r, waits_from);
    return TDM_OK;
}

static tdm_status exchange(tdm_reducer *reducer, int stage, char *blocks, size_t bytes) {
    return tdm__reducer_gather(((cpu_reducer *)reducer)->exchange[stage], blocks, bytes);
}

/* The buckets in flight must end before anything is freed. */
static void abort_all(tdm_reducer *reducer, const char *why) {
    tdm_comm_abort(reducer->params->comm, why);
    (void)tdm__worker_wait(((cpu_reducer *)reducer)->worker);
}

static void close(tdm_reducer *reducer) {
    cpu_reducer *r = (cpu_reducer *)reducer;
    tdm__worker_close(r->worker);
    tdm__exchange_close(r->exchange, reducer->params);
    tdm__compression_close(reducer);
    tdm__delete(reducer->params->host, r->bucket);
    tdm__delete(reducer->params->host, r);
}

static const tdm_reducer_ops cpu_ops = {
    .broadcast = tdm__reducer_broadcast_host,
    .start_bucket = start_bucket,
    .finish = finish,
    .reduce_all = tdm__reducer_skip,
    .exchange = exchange,
    .wait = tdm__reducer_skip_wait,
    .abort = abort_all,
    .close = close,
};

tdm_status tdm__reducer_open_cpu(tdm_reducer **out, tdm_replica **replica, const tdm_mode_params *params) {
    const tdm_plan *plan = params->plan;
    void *grad = NULL;
    TDM_TRY(tdm__reducer_new(out, sizeof(cpu_reducer), &cpu_ops, params));
    cpu_reducer *r = (cpu_reducer *)*out;
    if (params->comm->ops->allocate != NULL)
        TDM_TRY(tdm__comm_allocate(params->comm, plan->trained_floats * sizeof(float), &grad));
    TDM_TRY(tdm__rank_open_replica(params, grad, replica));
    r->base.replica = *replica;
    TDM_TRY(tdm__new(params->host, &r->bucket, (size_t)plan->bucket_count, sizeof(*r->bucket), "buckets"));
    TDM_TRY(tdm__compression_open(&r->base));
    for (int k = 0; k < plan->stage_count; k++)
        tdm__replica_lend((*replica)->stages[k], tdm__compression_memory(plan, params->job, params->replicas, k));
    for (int i = 0; i < plan->bucket_count; i++) r->bucket[i] = (cpu_bucket){.reducer = r, .index = i};
    TDM_TRY(tdm__exchange_open(&r->exchange, params));
    return tdm__worker_open(&r->worker, params->host, TDM_THREAD_REDUCE, 0, (*replica)->device->index);
}
