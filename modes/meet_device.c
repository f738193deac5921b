/* Gradients in the device's memory: a communicator for that memory (NCCL) reduces them on a queue of its own, ordered
 * with the device's. All of it is a part of the step's work, and is captured with it. */
#include "modes/meet.h"
#include "runtime/base/log.h"
#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/comm/comm.h"

typedef struct on_device {
    tdm_meet base;
    tdm_comm *comm;
} on_device;

static tdm_comm *comm_of(const tdm_meet *meet) {
    return ((const on_device *)meet)->comm;
}

static tdm_status join(tdm_meet *meet) {
    return comm_of(meet)->ops->join(comm_of(meet));
}

static tdm_status spread(tdm_meet *meet, tdm_arena_kind kind) {
    size_t bytes = 0;
    void *arena = tdm__replica_arena(meet->replica, kind, &bytes);
    TDM_TRY(tdm__broadcast(comm_of(meet), (tdm_span){arena, bytes, TDM_DTYPE_U8}, 0));
    return join(meet);
}

static tdm_status begin_bucket(tdm_meet *meet, int bucket) {
    return tdm__all_reduce(comm_of(meet), tdm__bucket_span(meet, meet->replica->grad, bucket), TDM_REDUCE_SUM);
}

static tdm_status wait(tdm_meet *meet, tdm_device_event *until) {
    return comm_of(meet)->ops->wait(comm_of(meet), until);
}

static void abort_all(tdm_meet *meet, const char *why) {
    tdm__comm_abort(comm_of(meet), why);
}

static void close(tdm_meet *meet) {
    on_device *m = (on_device *)meet;
    tdm__replica_forget(meet->replica); /* NCCL's communicators do not end before captured work that calls them */
    if (m->comm != NULL) m->comm->ops->close(m->comm);
    tdm__delete(meet->params->host, m);
}

static const tdm_meet_ops device_ops = {
    .is_queued = true,
    .spread = spread,
    .begin_bucket = begin_bucket,
    .join = join,
    .wait = wait,
    .abort = abort_all,
    .close = close,
};

static bool has_ended(tdm_comm *comm) {
    char why[8];
    return comm->ops->ended != NULL && comm->ops->ended(comm, why, sizeof(why));
}

/* All ranks get the same answer. With backend: auto a refusal is no failure as long as the job goes on. */
static tdm_status open_comm(on_device *m, tdm_replica *replica, const tdm_mode_params *params) {
    tdm_error before;
    tdm__error_save(&before);
    tdm_status status = params->device_comm->open(&m->comm, replica->device, params->comm, params->comm->timeout_ms);
    if (status == TDM_OK || params->job->parallel.ddp.backend != TDM_BACKEND_AUTO || has_ended(params->comm))
        return status;
    TDM_WARN(params->host, "comm", "%s is not used, gradients meet in host memory: %s", params->device_comm->name,
             tdm_error_message());
    (void)tdm__error_restore(&before, NULL);
    return TDM_OK;
}

tdm_status tdm__meet_open_device(tdm_meet **out, tdm_replica *replica, const tdm_mode_params *params) {
    TDM_TRY(tdm__meet_new(out, sizeof(on_device), &device_ops, params));
    on_device *m = (on_device *)*out;
    m->base.replica = replica;
    TDM_TRY(open_comm(m, replica, params));
    if (m->comm == NULL) {
        close(&m->base);
        *out = NULL;
        return TDM_OK;
    }
    m->base.backend = m->comm->ops->name;
    tdm__replica_set_captures(replica, TDM_CAPTURES_TOGETHER);
    return TDM_OK;
}
