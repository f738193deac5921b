/* tandem/comm.h: the public calls. Once a communicator has a queue, all its calls go through it. */
#include <tandem/comm.h>

#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/comm/comm.h"

tdm_status tdm_comm_open_shm(tdm_comm **out, int fd, int rank, int world, const tdm_host *host, int64_t timeout_ms) {
    if (out == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_comm_open_shm: out is NULL");
    TDM_TRY(tdm__host_take(&host));
    return tdm__comm_open_shm(out, fd, rank, world, host, timeout_ms, TDM_HEARTBEAT_MS);
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

/* ---- calls: in the queue, behind the asynchronous calls; without a queue, on this thread ---- */

static tdm_status start(tdm_comm *comm, tdm_comm_call call, tdm_comm_request **out) {
    if (out == NULL) TDM_FAIL(TDM_E_USAGE, "asynchronous call: the pointer for the request is NULL");
    *out = NULL;
    if (comm == NULL) TDM_FAIL(TDM_E_USAGE, "asynchronous call: needs a communicator, got NULL");
    TDM_TRY(tdm__comm_check_home(comm, tdm_comm_kind_name(call.kind)));
    if (comm->queue == NULL) TDM_TRY(tdm__comm_queue_open(&comm->queue, comm));
    return tdm__comm_start(comm->queue, &call, out);
}

static tdm_status run(tdm_comm *comm, tdm_comm_call call) {
    tdm_comm_request *request;
    if (comm == NULL || comm->queue == NULL) return tdm__comm_call(comm, &call);
    TDM_TRY(tdm__comm_check_home(comm, tdm_comm_kind_name(call.kind)));
    TDM_TRY(tdm__comm_start(comm->queue, &call, &request));
    return tdm_comm_wait(request, NULL);
}

/* Defines a call and its asynchronous form. PARAMETERS: those after the communicator, if any. */
#define CALL(name, kind_, parameters, ...)                                                    \
    tdm_status tdm_comm_##name(tdm_comm *comm parameters) {                                   \
        return run(comm, (tdm_comm_call){.kind = TDM_COMM_##kind_, __VA_ARGS__});             \
    }                                                                                         \
    tdm_status tdm_comm_start_##name(tdm_comm *comm parameters, tdm_comm_request **request) { \
        return start(comm, (tdm_comm_call){.kind = TDM_COMM_##kind_, __VA_ARGS__}, request);  \
    }
#define PARAMETERS(...) , __VA_ARGS__

CALL(all_reduce, ALL_REDUCE, PARAMETERS(tdm_span io, tdm_reduce_op op), .rank = -1, .in = io, .op = op)
CALL(all_reduce_coalesced, ALL_REDUCE_COALESCED, PARAMETERS(const tdm_span *spans, size_t span_count, tdm_reduce_op op),
     .rank = -1, .spans = spans, .span_count = span_count, .op = op)
CALL(broadcast, BROADCAST, PARAMETERS(tdm_span io, int root), .rank = root, .in = io)
CALL(reduce, REDUCE, PARAMETERS(tdm_span io, int root, tdm_reduce_op op), .rank = root, .in = io, .op = op)
CALL(gather, GATHER, PARAMETERS(tdm_span in, tdm_span out, int root), .rank = root, .in = in, .out = out)
CALL(all_gather, ALL_GATHER, PARAMETERS(tdm_span in, tdm_span out), .rank = -1, .in = in, .out = out)
CALL(scatter, SCATTER, PARAMETERS(tdm_span in, tdm_span out, int root), .rank = root, .in = in, .out = out)
CALL(reduce_scatter, REDUCE_SCATTER, PARAMETERS(tdm_span in, tdm_span out, tdm_reduce_op op), .rank = -1, .in = in,
     .out = out, .op = op)
CALL(all_to_all, ALL_TO_ALL, PARAMETERS(tdm_span in, tdm_span out), .rank = -1, .in = in, .out = out)
CALL(all_to_all_v, ALL_TO_ALL_V,
     PARAMETERS(tdm_span in, const size_t *in_counts, tdm_span out, const size_t *out_counts), .rank = -1, .in = in,
     .out = out, .in_counts = in_counts, .out_counts = out_counts)
CALL(all_gather_coalesced, ALL_GATHER_COALESCED,
     PARAMETERS(const tdm_span *ins, const tdm_span *outs, size_t span_count), .rank = -1, .spans = ins, .outs = outs,
     .span_count = span_count)
CALL(reduce_scatter_coalesced, REDUCE_SCATTER_COALESCED,
     PARAMETERS(const tdm_span *ins, const tdm_span *outs, size_t span_count, tdm_reduce_op op), .rank = -1,
     .spans = ins, .outs = outs, .span_count = span_count, .op = op)
CALL(barrier, BARRIER, , .rank = -1)
CALL(send, SEND, PARAMETERS(tdm_span in, int to), .rank = to, .in = in)
CALL(receive, RECEIVE, PARAMETERS(tdm_span out, int from), .rank = from, .out = out)
CALL(batch_send_receive, BATCH, PARAMETERS(const tdm_transfer *transfers, size_t count), .rank = -1,
     .transfers = transfers, .transfer_count = count)
CALL(receive_any, RECEIVE, PARAMETERS(tdm_span out, int *from), .rank = TDM_COMM_ANY, .out = out, .from = from)

/* ---- memory and groups ---- */

/* The arguments of allocate or split. */
typedef struct creation {
    size_t bytes;
    void **memory;
    const int *ranks;
    int count;
    tdm_comm **comm;
} creation;

static tdm_status allocate(tdm_comm *comm, void *user) {
    const creation *m = user;
    return tdm__comm_allocate(comm, m->bytes, m->memory);
}

static tdm_status split(tdm_comm *comm, void *user) {
    const creation *m = user;
    return tdm__comm_split(comm, m->ranks, m->count, m->comm);
}

static tdm_status create(tdm_comm *comm, const char *call, tdm_comm_fn fn, creation m) {
    TDM_TRY(tdm__comm_check_home(comm, call));
    return comm != NULL && comm->queue != NULL ? tdm__comm_queue_run(comm->queue, fn, &m) : fn(comm, &m);
}

tdm_status tdm_comm_allocate(tdm_comm *comm, size_t bytes, void **out) {
    if (out == NULL) TDM_FAIL(TDM_E_USAGE, "allocate: the pointer for the result is NULL");
    *out = NULL;
    return create(comm, "allocate", allocate, (creation){.bytes = bytes, .memory = out});
}

tdm_status tdm_comm_split(tdm_comm *comm, const int *ranks, int count, tdm_comm **out) {
    if (out == NULL) TDM_FAIL(TDM_E_USAGE, "split: the pointer for the communicator is NULL");
    *out = NULL;
    return create(comm, "split", split, (creation){.ranks = ranks, .count = count, .comm = out});
}
