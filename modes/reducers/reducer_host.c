/* Reduces in host memory, for a device whose memory no communicator reduces: after backward the gradients are copied to
 * the host, reduced there, and copied back. So backward and the update are two pieces of work, and the host waits for
 * the first. */
#include "modes/reducers/reducer.h"
#include "runtime/base/log.h"
#include "runtime/base/memory.h"
#include "runtime/base/status.h"

typedef struct host_reducer {
    tdm_reducer base;
    float *grad;
    char *blocks;        /* of statistics, those of each stage in a row; NULL: there are none */
    tdm_comm **exchange; /* of each stage; NULL: there are no statistics */
    bool is_pinned;      /* the device copies to and from it at full speed */
} host_reducer;

static tdm_status reduce_all(tdm_reducer *reducer) {
    float *grad = ((host_reducer *)reducer)->grad;
    TDM_TRY(tdm__copy_gradients(reducer->replica, grad, true));
    for (int i = 0; i < reducer->params->plan->bucket_count; i++)
        TDM_TRY(tdm__reduce_in_host(reducer, tdm__bucket_span(reducer, grad, i), i));
    return tdm__copy_gradients(reducer->replica, grad, false);
}

/* Waits for the device, so the step's work cannot be captured. */
static tdm_status exchange(tdm_reducer *reducer, int stage, char *blocks, size_t bytes) {
    const host_reducer *r = (host_reducer *)reducer;
    tdm_device *device = reducer->replica->stages[stage]->device;
    tdm_comm *comm = r->exchange[stage];
    char *host = r->blocks + (size_t)stage * reducer->params->plan->statistics_bytes / 2;
    const size_t own = bytes * (size_t)comm->rank, all = bytes * (size_t)comm->world;
    TDM_TRY(device->ops->queues->copy(device, NULL, host + own, blocks + own, bytes));
    TDM_TRY(device->ops->queues->finish(device, NULL));
    TDM_TRY(tdm__reducer_gather(comm, host, bytes));
    TDM_TRY(device->ops->queues->copy(device, NULL, blocks, host, all));
    return device->ops->queues->finish(device, NULL);
}

static void abort_all(tdm_reducer *reducer, const char *why) {
    tdm_comm_abort(reducer->params->comm, why);
}

static void close(tdm_reducer *reducer) {
    host_reducer *r = (host_reducer *)reducer;
    tdm_device *device = reducer->replica->device;
    (void)device->ops->queues->finish(device, NULL); /* copies may still use the memory */
    tdm__compression_close(reducer);
    device->ops->release_host(device, reducer->minus_zeros);
    if (r->is_pinned) device->ops->unpin(device, r->grad);
    tdm__reduced_memory_release(reducer->params, r->grad);
    tdm__exchange_close(r->exchange, reducer->params);
    tdm__delete(reducer->params->host, r->blocks);
    tdm__delete(reducer->params->host, r);
}

static const tdm_reducer_ops host_ops = {
    .is_after_backward = true,
    .broadcast = tdm__reducer_broadcast_host,
    .start_bucket = tdm__reducer_skip_bucket,
    .finish = tdm__reducer_skip,
    .reduce_all = reduce_all,
    .exchange = exchange,
    .wait = tdm__reducer_skip_wait,
    .abort = abort_all,
    .close = close,
};

/* Memory that cannot be pinned, because too little may be locked, works too; copies are slower. */
static void pin_memory(host_reducer *r) {
    tdm_device *device = r->base.replica->device;
    tdm_error before;
    if (device->ops->pin == NULL) return;
    tdm__error_save(&before);
    r->is_pinned = device->ops->pin(device, r->grad, r->base.params->plan->trained_floats * sizeof(float)) == TDM_OK;
    if (!r->is_pinned)
        TDM_INFO(r->base.params->host, "device", "gradients are reduced in pageable memory: %s", tdm_error_message());
    (void)tdm__error_restore(&before, NULL);
}

tdm_status tdm__reducer_open_host(tdm_reducer **out, tdm_replica *replica, const tdm_mode_params *params) {
    TDM_TRY(tdm__reducer_new(out, sizeof(host_reducer), &host_ops, params));
    host_reducer *r = (host_reducer *)*out;
    void *grad = NULL;
    r->base.replica = replica;
    TDM_TRY(
        tdm__reduced_memory(params, params->plan->trained_floats * sizeof(float), "gradients in host memory", &grad));
    r->grad = grad;
    TDM_TRY(tdm__compression_open(&r->base));
    TDM_TRY(tdm__reducer_open_minus_zeros(&r->base));
    pin_memory(r);
    if (params->plan->statistics_bytes == 0) return TDM_OK;
    tdm__replica_set_captures(replica, TDM_CAPTURES_NEVER);
    TDM_TRY(tdm__exchange_open(&r->exchange, params));
    return tdm__new(params->host, &r->blocks, (size_t)params->plan->stage_count, params->plan->statistics_bytes / 2,
                    "statistics");
}
