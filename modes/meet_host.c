/* Gradients of a device for whose memory there is no communicator: behind backward they come to host memory, meet
 * there, and go back. Backward and the update are two pieces of work, and the host stands between them. */
#include "modes/meet.h"
#include "runtime/base/system/clock.h"
#include "runtime/base/log.h"
#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/comm/comm.h"

typedef struct in_host {
    tdm_meet base;
    float *grad;
    bool owns_grad; /* it is not the communicator's */
    bool is_pinned; /* the device copies to and from it at full speed */
} in_host;

static tdm_status exchange(tdm_meet *meet) {
    float *grad = ((in_host *)meet)->grad;
    const tdm_plan *plan = meet->params->plan;
    tdm_device *device = meet->replica->device;
    size_t bytes = plan->param_floats * sizeof(float);
    int64_t at = tdm__now_ns();
    TDM_TRY(device->ops->copy(device, NULL, grad, meet->replica->grad, bytes));
    TDM_TRY(device->ops->finish(device, NULL));
    for (int i = 0; i < plan->bucket_count; i++)
        TDM_TRY(tdm__all_reduce(meet->params->comm, tdm__bucket_span(meet, grad, i), TDM_REDUCE_SUM));
    TDM_TRY(device->ops->copy(device, NULL, meet->replica->grad, grad, bytes));
    TDM_TRY(device->ops->finish(device, NULL));
    meet->ms += tdm__lap(&at);
    return TDM_OK;
}

static void abort_all(tdm_meet *meet, const char *why) {
    tdm__comm_abort(meet->params->comm, why);
}

static void close(tdm_meet *meet) {
    in_host *m = (in_host *)meet;
    tdm_device *device = meet->replica->device;
    (void)device->ops->finish(device, NULL); /* no copy may still use the memory; a failure was reported before */
    if (m->is_pinned) device->ops->unpin(device, m->grad);
    if (m->owns_grad) tdm__delete_pages(meet->params->host, m->grad);
    tdm__delete(meet->params->host, m);
}

static const tdm_meet_ops host_ops = {
    .spread = tdm__meet_spread_host,
    .exchange = exchange,
    .abort = abort_all,
    .close = close,
};

static tdm_status open_memory(in_host *m) {
    const tdm_mode_params *params = m->base.params;
    size_t bytes = params->plan->param_floats * sizeof(float);
    void *grad = NULL;
    m->owns_grad = params->comm->ops->allocate == NULL;
    if (m->owns_grad)
        TDM_TRY(tdm__new_pages(params->host, &grad, bytes, "gradients in host memory"));
    else
        TDM_TRY(tdm__comm_allocate(params->comm, bytes, &grad));
    m->grad = grad;
    return TDM_OK;
}

/* Copies from and to memory that cannot be pinned (too little may be locked) are slower, and do the same. */
static void pin_memory(in_host *m) {
    tdm_device *device = m->base.replica->device;
    tdm_error before;
    if (device->ops->pin == NULL) return;
    tdm__error_save(&before);
    m->is_pinned = device->ops->pin(device, m->grad, m->base.params->plan->param_floats * sizeof(float)) == TDM_OK;
    if (!m->is_pinned)
        TDM_INFO(m->base.params->host, "device", "gradients meet in pageable memory: %s", tdm_error_message());
    (void)tdm__error_restore(&before, NULL);
}

tdm_status tdm__meet_open_host(tdm_meet **out, tdm_replica *replica, const tdm_mode_params *params) {
    TDM_TRY(tdm__meet_new(out, sizeof(in_host), &host_ops, params));
    in_host *m = (in_host *)*out;
    m->base.replica = replica;
    TDM_TRY(open_memory(m));
    pin_memory(m);
    return TDM_OK;
}
