/* Reduces in the device's memory: a communicator for that memory (NCCL) makes its calls on a queue of its own, which
 * the replica's queue and this one order with events. The calls are part of the step's work and are captured with it.
 */
#include "modes/compress/compress.h"
#include "modes/reducers/reducer.h"
#include "runtime/base/log.h"
#include "runtime/base/memory.h"
#include "runtime/base/status.h"

typedef struct device_reducer {
    tdm_reducer base;
    tdm_comm *comm;
} device_reducer;

static tdm_comm *comm_of(const tdm_reducer *reducer) {
    return ((const device_reducer *)reducer)->comm;
}

static tdm_dtype type_of(const tdm_reducer *reducer) {
    return tdm__compressed_type(reducer->params->job, reducer->params->replicas);
}

/* The sums of 16 bits become floats again behind the last of them. */
static tdm_status finish(tdm_reducer *reducer) {
    tdm_device *device = reducer->replica->device;
    TDM_TRY(comm_of(reducer)->ops->join(comm_of(reducer)));
    if (reducer->narrow == NULL) return TDM_OK;
    return device->ops->arenas->widen(device, type_of(reducer), reducer->replica->grad, reducer->narrow,
                                      reducer->params->plan->trained_floats);
}

static tdm_status broadcast(tdm_reducer *reducer, tdm_arena_kind kind) {
    size_t bytes = 0;
    void *arena = tdm__replica_arena(reducer->replica, kind, &bytes);
    TDM_TRY(tdm_comm_broadcast(comm_of(reducer), (tdm_span){arena, bytes, TDM_DTYPE_U8}, 0));
    return comm_of(reducer)->ops->join(comm_of(reducer));
}

/* The bucket is rounded on the device's own queue, which the communicator follows. */
static tdm_status start_bucket(tdm_reducer *reducer, int bucket) {
    tdm_device *device = reducer->replica->device;
    tdm_span span = tdm__bucket_here(reducer, bucket);
    if (reducer->narrow != NULL) {
        uint16_t *narrow = reducer->narrow + reducer->params->plan->buckets[bucket].offset;
        TDM_TRY(device->ops->arenas->narrow(device, type_of(reducer), narrow, span.data, span.count));
        span = (tdm_span){narrow, span.count, type_of(reducer)};
    }
    return tdm_comm_all_reduce(comm_of(reducer), span, TDM_REDUCE_SUM);
}

/* Of the only stage: replicas of several do not reduce here. */
static tdm_status exchange(tdm_reducer *reducer, int stage, char *blocks, size_t bytes) {
    (void)stage;
    TDM_TRY(tdm__reducer_gather(comm_of(reducer), blocks, bytes));
    return finish(reducer);
}

static tdm_status wait(tdm_reducer *reducer, tdm_device_event *until) {
    return comm_of(reducer)->ops->wait(comm_of(reducer), until);
}

static void abort_all(tdm_reducer *reducer, const char *why) {
    tdm_comm_abort(comm_of(reducer), why);
}

static void close(tdm_reducer *reducer) {
    device_reducer *r = (device_reducer *)reducer;
    tdm__replica_forget(reducer->replica); /* NCCL requires captured work that calls it to be freed first */
    tdm_comm_close(r->comm);
    reducer->replica->device->ops->release(reducer->replica->device, reducer->narrow);
    tdm__delete(reducer->params->host, r);
}

static const tdm_reducer_ops device_ops = {
    .is_queued = true,
    .broadcast = broadcast,
    .start_bucket = start_bucket,
    .finish = finish,
    .exchange = exchange,
    .wait = wait,
    .abort = abort_all,
    .close = close,
};

/* All ranks get the same answer. With `backend: auto` a communicator that cannot be opened is no failure, unless the
 * job has ended. */
static tdm_status open_comm(device_reducer *r, tdm_replica *replica, const tdm_mode_params *params) {
    tdm_error before;
    char why[8];
    tdm__error_save(&before);
    tdm_status status = params->device_comm->open(&r->comm, replica->device, params->comm, params->comm->timeout_ms);
    if (status == TDM_OK || params->job->parallel.ddp.backend != TDM_BACKEND_AUTO ||
        params->comm->ops->ended(params->comm, why, sizeof(why)))
        return status;
    TDM_WARN(params->host, "comm", "%s is not used, gradients are reduced in host memory: %s",
             params->device_comm->name, tdm_error_message());
    (void)tdm__error_restore(&before, NULL);
    return TDM_OK;
}

tdm_status tdm__reducer_open_device(tdm_reducer **out, tdm_replica *replica, const tdm_mode_params *params) {
    TDM_TRY(tdm__reducer_new(out, sizeof(device_reducer), &device_ops, params));
    device_reducer *r = (device_reducer *)*out;
    r->base.replica = replica;
    TDM_TRY(open_comm(r, replica, params));
    if (r->comm == NULL) {
        close(&r->base);
        *out = NULL;
        return TDM_OK;
    }
    r->base.backend = r->comm->ops->name;
    if (type_of(&r->base) != TDM_DTYPE_F32)
        TDM_TRY(tdm__replica_allocate(replica, params->plan->trained_floats * sizeof(uint16_t), &r->base.narrow,
                                      "gradients of 16 bits"));
    tdm__replica_set_captures(replica, TDM_CAPTURES_TOGETHER);
    return TDM_OK;
}
