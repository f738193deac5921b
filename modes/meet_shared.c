/* Gradients on the CPU: reduced where they lie, by a thread of their own beside backward. The arena is memory that the
 * communicator shares between the ranks where it has such memory (shm); else its all-reduce copies. */
#include "modes/meet.h"
#include "runtime/base/system/clock.h"
#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/base/system/sync.h"
#include "runtime/comm/comm.h"

enum { QUEUE_ROOM = 60 }; /* less than a worker's queue holds */

typedef struct shared_bucket {
    struct shared *meet;
    int index;
    double ms; /* that its all-reduce took */
} shared_bucket;

typedef struct shared {
    tdm_meet base;
    tdm_worker *worker;
    shared_bucket *bucket;
    int queued;
} shared;

static tdm_status reduce(void *argument) {
    shared_bucket *bucket = argument;
    const tdm_meet *meet = &bucket->meet->base;
    int64_t at = tdm__now_ns();
    tdm_status status =
        tdm__all_reduce(meet->params->comm, tdm__bucket_span(meet, meet->replica->grad, bucket->index), TDM_REDUCE_SUM);
    bucket->ms = tdm__lap(&at);
    return status;
}

static tdm_status begin_bucket(tdm_meet *meet, int bucket) {
    shared *m = (shared *)meet;
    if (m->queued == QUEUE_ROOM) {
        TDM_TRY(tdm__worker_wait(m->worker, -1));
        m->queued = 0;
    }
    m->queued++;
    return tdm__worker_start(m->worker, reduce, &m->bucket[bucket]);
}

/* Every wait inside a collective has the communicator's deadline, so this wait ends. */
static tdm_status join(tdm_meet *meet) {
    shared *m = (shared *)meet;
    m->queued = 0;
    TDM_TRY(tdm__worker_wait(m->worker, -1));
    for (int i = 0; i < meet->params->plan->bucket_count; i++) meet->ms += m->bucket[i].ms;
    return TDM_OK;
}

/* The buckets in flight must end before anything is freed. */
static void abort_all(tdm_meet *meet, const char *why) {
    tdm__comm_abort(meet->params->comm, why);
    (void)tdm__worker_wait(((shared *)meet)->worker, -1);
}

static void close(tdm_meet *meet) {
    shared *m = (shared *)meet;
    tdm__worker_close(m->worker);
    tdm__delete(meet->params->host, m->bucket);
    tdm__delete(meet->params->host, m);
}

static const tdm_meet_ops shared_ops = {
    .spread = tdm__meet_spread_host,
    .begin_bucket = begin_bucket,
    .join = join,
    .abort = abort_all,
    .close = close,
};

tdm_status tdm__meet_open_shared(tdm_meet **out, tdm_replica **replica, const tdm_mode_params *params) {
    const tdm_plan *plan = params->plan;
    void *grad = NULL;
    TDM_TRY(tdm__meet_new(out, sizeof(shared), &shared_ops, params));
    shared *m = (shared *)*out;
    if (params->comm->ops->allocate != NULL)
        TDM_TRY(tdm__comm_allocate(params->comm, plan->param_floats * sizeof(float), &grad));
    TDM_TRY(tdm__meet_open_replica(params, grad, replica));
    m->base.replica = *replica;
    TDM_TRY(tdm__new(params->host, &m->bucket, (size_t)plan->bucket_count, sizeof(*m->bucket), "buckets"));
    for (int i = 0; i < plan->bucket_count; i++) m->bucket[i] = (shared_bucket){.meet = m, .index = i};
    return tdm__worker_open(&m->worker, params->host, "ddp comm");
}
