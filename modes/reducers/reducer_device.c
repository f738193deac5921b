/* Reduces in the device's memory: a communicator for that memory (NCCL) makes its calls on a queue of its own, which
 * the replica's queue and this one order with events. The calls are part of the step's work and are captured with it.
 * A replica of several stages has a communicator for each, of all ranks' stages with that number. */
#include "modes/compress/compress.h"
#include "modes/reducers/reducer.h"
#include "runtime/base/log.h"
#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/comm/comm.h"

/* A stage of the replica, and what sums its gradients over all ranks. */
typedef struct device_stage {
    tdm_replica *replica;
    tdm_comm *comm;
    uint16_t *narrow; /* its gradients of 16 bits; NULL: none */
} device_stage;

typedef struct device_reducer {
    tdm_reducer base;
    device_stage stage[TDM_STAGES_MAX];
    int count;
} device_reducer;

static tdm_dtype type_of(const tdm_reducer *reducer) {
    return tdm__compressed_type(reducer->params->job, reducer->params->replicas);
}

/* The sums of 16 bits become floats again behind the last of them. */
static tdm_status finish_stage(const tdm_reducer *reducer, const device_stage *stage) {
    tdm_device *device = stage->replica->device;
    TDM_TRY(tdm__comm_join(stage->comm));
    if (stage->narrow == NULL) return TDM_OK;
    return device->ops->arenas->widen(device, type_of(reducer), stage->replica->arena.grad, stage->narrow,
                                      tdm__replica_trained(stage->replica));
}

static tdm_status finish(tdm_reducer *reducer) {
    const device_reducer *r = (const device_reducer *)reducer;
    for (int k = 0; k < r->count; k++) TDM_TRY(finish_stage(reducer, &r->stage[k]));
    return TDM_OK;
}

static tdm_status broadcast(tdm_reducer *reducer, tdm_arena_kind kind) {
    const device_reducer *r = (const device_reducer *)reducer;
    for (int k = 0; k < r->count; k++) {
        size_t bytes = 0;
        void *arena = tdm__replica_arena(r->stage[k].replica, kind, &bytes);
        if (bytes == 0) continue;
        TDM_TRY(tdm_comm_broadcast(r->stage[k].comm, (tdm_span){arena, bytes, TDM_DTYPE_U8}, 0));
        TDM_TRY(tdm__comm_join(r->stage[k].comm));
    }
    return TDM_OK;
}

/* The bucket is rounded on the device's own queue, which the communicator follows. */
static tdm_status start_bucket(tdm_reducer *reducer, int bucket) {
    const tdm_plan *plan = reducer->params->plan;
    const device_stage *stage = &((const device_reducer *)reducer)->stage[tdm__bucket_stage(plan, bucket)];
    tdm_device *device = stage->replica->device;
    tdm_span span = tdm__bucket_here(reducer, bucket);
    if (stage->narrow != NULL) {
        uint16_t *narrow = stage->narrow + tdm__replica_floats_at(stage->replica, plan->buckets[bucket].offset);
        TDM_TRY(device->ops->arenas->narrow(device, type_of(reducer), narrow, span.data, span.count));
        span = (tdm_span){narrow, span.count, type_of(reducer)};
    }
    return tdm_comm_all_reduce(stage->comm, span, TDM_REDUCE_SUM);
}

static tdm_status exchange(tdm_reducer *reducer, int stage, char *blocks, size_t bytes) {
    tdm_comm *comm = ((const device_reducer *)reducer)->stage[stage].comm;
    TDM_TRY(tdm__reducer_gather(comm, blocks, bytes));
    return tdm__comm_join(comm);
}

/* `until` is the first stage's; the others have such an event of their own. */
static tdm_status wait(tdm_reducer *reducer, tdm_device_event *until) {
    const device_reducer *r = (const device_reducer *)reducer;
    for (int k = 0; k < r->count; k++) {
        const device_stage *stage = &r->stage[k];
        if (k > 0 && until != NULL) until = tdm__replica_awaited(stage->replica);
        TDM_TRY(tdm__comm_wait(stage->comm, until));
    }
    return TDM_OK;
}

static void abort_all(tdm_reducer *reducer, const char *why) {
    const device_reducer *r = (const device_reducer *)reducer;
    for (int k = 0; k < r->count; k++) tdm_comm_abort(r->stage[k].comm, why);
}

static void close(tdm_reducer *reducer) {
    device_reducer *r = (device_reducer *)reducer;
    for (int k = 0; k < r->count; k++) {
        const device_stage *stage = &r->stage[k];
        tdm__replica_forget(stage->replica); /* NCCL requires captured work that calls it to be freed first */
        tdm_comm_close(stage->comm);
        stage->replica->device->ops->release(stage->replica->device, stage->narrow);
    }
    reducer->params->device->release_host(reducer->replica->device, reducer->minus_zeros);
    tdm__delete(reducer->params->host, r);
}

static const tdm_reducer_ops device_ops = {
    .is_queued = true,
    .broadcast = broadcast,
    .start_bucket = start_bucket,
    .finish = finish,
    .reduce_all = tdm__reducer_skip,
    .exchange = exchange,
    .wait = wait,
    .abort = abort_all,
    .close = close,
};

/* All ranks get the same answer. With `backend: auto` a communicator that cannot be opened is no failure, unless the
 * job has ended. */
static tdm_status open_comm(device_stage *stage, const tdm_mode_params *params) {
    tdm_error before;
    char why[8];
    tdm__error_save(&before);
    tdm_status status =
        params->device_comm->open(&stage->comm, stage->replica->device, params->comm, params->comm->timeout_ms);
    if (status == TDM_OK || params->job->parallel.ddp.backend != TDM_BACKEND_AUTO ||
        tdm__comm_ended(params->comm, why, sizeof(why)))
        return status;
    TDM_WARN(params->host, "comm", "%s is not used, gradients are reduced in host memory: %s",
             params->device_comm->name, tdm_error_message());
    (void)tdm__error_restore(&before, NULL);
    return TDM_OK;
}

/* stage->comm is NULL if there is none. */
static tdm_status open_stage(device_reducer *r, tdm_replica *replica) {
    device_stage *stage = &r->stage[r->count++];
    stage->replica = replica;
    TDM_TRY(open_comm(stage, r->base.params));
    if (stage->comm == NULL || type_of(&r->base) == TDM_DTYPE_F32) return TDM_OK;
    return tdm__replica_allocate(replica, tdm__replica_trained(replica) * sizeof(uint16_t), &stage->narrow,
                                 "gradients of 16 bits");
}

tdm_status tdm__reducer_open_device(tdm_reducer **out, tdm_replica *replica, const tdm_mode_params *params) {
    TDM_TRY(tdm__reducer_new(out, sizeof(device_reducer), &device_ops, params));
    device_reducer *r = (device_reducer *)*out;
    r->base.replica = replica;
    for (int k = 0; k < params->plan->stage_count; k++) {
        TDM_TRY(open_stage(r, replica->stages[k]));
        if (r->stage[k].comm != NULL) continue;
        close(&r->base);
        *out = NULL;
        return TDM_OK;
    }
    r->base.backend = r->stage[0].comm->ops->name;
    tdm__replica_set_captures(replica, TDM_CAPTURES_TOGETHER);
    return tdm__reducer_open_minus_zeros(&r->base);
}
