/* tandem/comm.h: the public calls. Once a communicator has a queue, all its calls go through it. */
#include <tandem/comm.h>

#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/comm/comm.h"

tdm_status tdm_comm_open_threads(tdm_comm **ranks, int world, const tdm_host *host, int64_t timeout_ms) {
    if (ranks == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_comm_open_threads: ranks is NULL");
    TDM_TRY(tdm__host_take(&host));
    return tdm__comm_open_local(ranks, world, host, timeout_ms);
}

tdm_status tdm_comm_open_shm(tdm_comm **out, int fd, int rank, int world, const tdm_host *host, int64_t timeout_ms) {
    if (out == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_comm_open_shm: out is NULL");
    TDM_TRY(tdm__host_take(&host));
    return tdm__comm_open_shm(out, fd, rank, world, host, timeout_ms, TDM_HEARTBEAT_MS);
}

void tdm_comm_close(tdm_comm *comm) {
    tdm__comm_close(comm);
}

int tdm_comm_rank(const tdm_comm *comm) {
    return comm != NULL ? comm->rank : -1;
}

int tdm_comm_world(const tdm_comm *comm) {
    return comm != NULL ? comm->world : 0;
}

const char *tdm_comm_backend(const tdm_comm *comm) {
    return comm != NULL ? comm->ops->name : "none";
}

void tdm_comm_abort(tdm_comm *comm, const char *why) {
    tdm__comm_abort(comm, why);
}

/* ---- calls: in the queue, after the asynchronous calls; without a queue, on this thread ---- */

static tdm_status call(tdm_comm *comm, tdm_comm_task task) {
    if (comm != NULL && comm->queue != NULL) return tdm__comm_queue_call(comm->queue, &task);
    return tdm__comm_run(comm, &task);
}

static tdm_status start(tdm_comm *comm, tdm_comm_task task, tdm_comm_request **out) {
    if (out == NULL) TDM_FAIL(TDM_E_USAGE, "asynchronous call: the pointer for the request is NULL");
    *out = NULL;
    if (comm == NULL) TDM_FAIL(TDM_E_USAGE, "asynchronous call: needs a communicator, got NULL");
    if (comm->queue == NULL) TDM_TRY(tdm__comm_queue_open(&comm->queue, comm));
    return tdm__comm_start(comm->queue, &task, out);
}

static tdm_comm_task all_reduce_task(tdm_span io, tdm_reduce_op op) {
    return (tdm_comm_task){.kind = TDM_TASK_ALL_REDUCE, .in = io, .op = op};
}

static tdm_comm_task reduce_task(tdm_span io, int root, tdm_reduce_op op) {
    return (tdm_comm_task){.kind = TDM_TASK_REDUCE, .in = io, .rank = root, .op = op};
}

/* For calls whose only arguments are spans and a rank. */
static tdm_comm_task span_task(tdm_comm_task_kind kind, tdm_span in, tdm_span out, int rank) {
    return (tdm_comm_task){.kind = kind, .in = in, .out = out, .rank = rank};
}

static const tdm_span no_span = {NULL, 0, TDM_DTYPE_U8};

tdm_status tdm_comm_all_reduce(tdm_comm *comm, tdm_span io, tdm_reduce_op op) {
    return call(comm, all_reduce_task(io, op));
}

tdm_status tdm_comm_broadcast(tdm_comm *comm, tdm_span io, int root) {
    return call(comm, span_task(TDM_TASK_BROADCAST, io, no_span, root));
}

tdm_status tdm_comm_reduce(tdm_comm *comm, tdm_span io, int root, tdm_reduce_op op) {
    return call(comm, reduce_task(io, root, op));
}

tdm_status tdm_comm_gather(tdm_comm *comm, tdm_span in, tdm_span out, int root) {
    return call(comm, span_task(TDM_TASK_GATHER, in, out, root));
}

tdm_status tdm_comm_all_gather(tdm_comm *comm, tdm_span in, tdm_span out) {
    return call(comm, span_task(TDM_TASK_ALL_GATHER, in, out, 0));
}

tdm_status tdm_comm_scatter(tdm_comm *comm, tdm_span in, tdm_span out, int root) {
    return call(comm, span_task(TDM_TASK_SCATTER, in, out, root));
}

tdm_status tdm_comm_barrier(tdm_comm *comm) {
    return call(comm, span_task(TDM_TASK_BARRIER, no_span, no_span, 0));
}

tdm_status tdm_comm_send(tdm_comm *comm, tdm_span in, int to) {
    return call(comm, span_task(TDM_TASK_SEND, in, no_span, to));
}

tdm_status tdm_comm_receive(tdm_comm *comm, tdm_span out, int from) {
    return call(comm, span_task(TDM_TASK_RECEIVE, no_span, out, from));
}

tdm_status tdm_comm_allocate(tdm_comm *comm, size_t bytes, void **out) {
    if (out == NULL) TDM_FAIL(TDM_E_USAGE, "allocate: the pointer for the result is NULL");
    *out = NULL;
    return call(comm, (tdm_comm_task){.kind = TDM_TASK_ALLOCATE, .bytes = bytes, .allocated = out});
}

tdm_status tdm_comm_split(tdm_comm *comm, const int *ranks, int count, tdm_comm **out) {
    if (out == NULL) TDM_FAIL(TDM_E_USAGE, "split: the pointer for the communicator is NULL");
    *out = NULL;
    return call(comm, (tdm_comm_task){.kind = TDM_TASK_SPLIT, .ranks = ranks, .rank_count = count, .split = out});
}

/* ---- asynchronous forms ---- */

tdm_status tdm_comm_start_all_reduce(tdm_comm *comm, tdm_span io, tdm_reduce_op op, tdm_comm_request **request) {
    return start(comm, all_reduce_task(io, op), request);
}

tdm_status tdm_comm_start_broadcast(tdm_comm *comm, tdm_span io, int root, tdm_comm_request **request) {
    return start(comm, span_task(TDM_TASK_BROADCAST, io, no_span, root), request);
}

tdm_status tdm_comm_start_reduce(tdm_comm *comm, tdm_span io, int root, tdm_reduce_op op, tdm_comm_request **request) {
    return start(comm, reduce_task(io, root, op), request);
}

tdm_status tdm_comm_start_gather(tdm_comm *comm, tdm_span in, tdm_span out, int root, tdm_comm_request **request) {
    return start(comm, span_task(TDM_TASK_GATHER, in, out, root), request);
}

tdm_status tdm_comm_start_all_gather(tdm_comm *comm, tdm_span in, tdm_span out, tdm_comm_request **request) {
    return start(comm, span_task(TDM_TASK_ALL_GATHER, in, out, 0), request);
}

tdm_status tdm_comm_start_scatter(tdm_comm *comm, tdm_span in, tdm_span out, int root, tdm_comm_request **request) {
    return start(comm, span_task(TDM_TASK_SCATTER, in, out, root), request);
}

tdm_status tdm_comm_start_barrier(tdm_comm *comm, tdm_comm_request **request) {
    return start(comm, span_task(TDM_TASK_BARRIER, no_span, no_span, 0), request);
}

tdm_status tdm_comm_start_send(tdm_comm *comm, tdm_span in, int to, tdm_comm_request **request) {
    return start(comm, span_task(TDM_TASK_SEND, in, no_span, to), request);
}

tdm_status tdm_comm_start_receive(tdm_comm *comm, tdm_span out, int from, tdm_comm_request **request) {
    return start(comm, span_task(TDM_TASK_RECEIVE, no_span, out, from), request);
}

int tdm_comm_done(tdm_comm_request *request) {
    return request == NULL || tdm__comm_done(request);
}

tdm_status tdm_comm_wait(tdm_comm_request *request, double *ms) {
    if (request == NULL) TDM_FAIL(TDM_E_USAGE, "wait: needs a request, got NULL");
    return tdm__comm_wait(request, ms);
}
