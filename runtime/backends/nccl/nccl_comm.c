/* The collectives. They run on a stream of the communicator's own, behind what is on the device's queue, so that a CUDA
 * graph can capture them together with the work around them.
 *
 * NCCL chooses its algorithm, and with it the order of additions, for each size and machine. Sums have the same bits on
 * every rank, but not those of the canonical tree. With NCCL_ALGO=Ring in the environment two runs with the same ranks
 * give the same bits. Calls that do not match between ranks are not detected: they end by the deadline. */
#include <string.h>

#include "runtime/backends/nccl/nccl_comm.h"

static const struct {
    const char *name;
    size_t bytes;
    ncclDataType_t type;
} dtypes[TDM_DTYPE_COUNT] = {
    [TDM_DTYPE_F32] = {"f32", 4, ncclFloat32}, [TDM_DTYPE_F64] = {"f64", 8, ncclFloat64},
    [TDM_DTYPE_I32] = {"i32", 4, ncclInt32},   [TDM_DTYPE_I64] = {"i64", 8, ncclInt64},
    [TDM_DTYPE_U8] = {"u8", 1, ncclUint8},     [TDM_DTYPE_BF16] = {"bf16", 2, ncclBfloat16},
    [TDM_DTYPE_F16] = {"f16", 2, ncclFloat16},
};

#define NOT_OF_NCCL ncclNumOps

static const struct {
    const char *name;
    ncclRedOp_t op;
} reductions[TDM_REDUCE_OPS] = {
    [TDM_REDUCE_SUM] = {"sum", ncclSum},     [TDM_REDUCE_PRODUCT] = {"product", ncclProd},
    [TDM_REDUCE_MIN] = {"min", ncclMin},     [TDM_REDUCE_MAX] = {"max", ncclMax},
    [TDM_REDUCE_AVG] = {"avg", ncclAvg},     [TDM_REDUCE_BAND] = {"band", NOT_OF_NCCL},
    [TDM_REDUCE_BOR] = {"bor", NOT_OF_NCCL}, [TDM_REDUCE_BXOR] = {"bxor", NOT_OF_NCCL},
};

/* ---- the calls of NCCL ---- */

static char *part(tdm_span all, tdm_span one, int rank) {
    return (char *)all.data + (size_t)rank * one.count * dtypes[one.dtype].bytes;
}

static ncclResult_t all_reduce(const tdm_nccl_comm *c, tdm_span io, tdm_reduce_op op, void *stream) {
    return c->site->nccl->AllReduce(io.data, io.data, io.count, dtypes[io.dtype].type, reductions[op].op, c->handle,
                                    stream);
}

/* Call number i of a group. */
typedef ncclResult_t (*grouped)(const tdm_nccl_comm *c, const tdm_comm_call *call, size_t i, void *stream);

static bool is_good(ncclResult_t result) {
    return result == ncclSuccess || result == ncclInProgress;
}

/* Makes `count` calls as one: they are carried out together, in any order. */
static ncclResult_t in_group(const tdm_nccl_comm *c, const tdm_comm_call *call, size_t count, grouped each,
                             void *stream) {
    ncclResult_t result = c->site->nccl->GroupStart();
    if (result != ncclSuccess) return result;
    for (size_t i = 0; i < count && is_good(result); i++) result = each(c, call, i, stream);
    ncclResult_t ended = c->site->nccl->GroupEnd();
    return is_good(result) ? ended : result;
}

static ncclResult_t reduce_one(const tdm_nccl_comm *c, const tdm_comm_call *call, size_t i, void *stream) {
    return call->spans[i].count > 0 ? all_reduce(c, call->spans[i], call->op, stream) : ncclSuccess;
}

static ncclResult_t gather_one(const tdm_nccl_comm *c, const tdm_comm_call *call, size_t i, void *stream) {
    const tdm_span in = call->spans[i];
    if (in.count == 0) return ncclSuccess;
    return c->site->nccl->AllGather(in.data, call->outs[i].data, in.count, dtypes[in.dtype].type, c->handle, stream);
}

static ncclResult_t reduce_scatter_one(const tdm_nccl_comm *c, const tdm_comm_call *call, size_t i, void *stream) {
    const tdm_span out = call->outs[i];
    if (out.count == 0) return ncclSuccess;
    return c->site->nccl->ReduceScatter(call->spans[i].data, out.data, out.count, dtypes[out.dtype].type,
                                        reductions[call->op].op, c->handle, stream);
}

static ncclResult_t send_to(const tdm_nccl_comm *c, tdm_span what, int peer, void *stream) {
    return c->site->nccl->Send(what.data, what.count, dtypes[what.dtype].type, peer, c->handle, stream);
}

static ncclResult_t receive_from(const tdm_nccl_comm *c, tdm_span what, int peer, void *stream) {
    return c->site->nccl->Recv(what.data, what.count, dtypes[what.dtype].type, peer, c->handle, stream);
}

static ncclResult_t transfer_one(const tdm_nccl_comm *c, const tdm_comm_call *call, size_t i, void *stream) {
    const tdm_transfer *transfer = &call->transfers[i];
    if (transfer->span.count == 0) return ncclSuccess;
    return transfer->sends ? send_to(c, transfer->span, transfer->peer, stream)
                           : receive_from(c, transfer->span, transfer->peer, stream);
}

/* Rank r's part of a span of all_to_all (counts NULL) or all_to_all_v. */
static tdm_span part_of(const tdm_nccl_comm *c, tdm_span all, const size_t *counts, int r) {
    const size_t even = all.count / (size_t)c->base.world;
    size_t before = 0;
    for (int k = 0; k < r; k++) before += counts != NULL ? counts[k] : even;
    return (tdm_span){(char *)all.data + before * dtypes[all.dtype].bytes, counts != NULL ? counts[r] : even,
                      all.dtype};
}

/* Of an all_to_all with rank i: both messages. The own part is copied. */
static ncclResult_t exchange_one(const tdm_nccl_comm *c, const tdm_comm_call *call, size_t i, void *stream) {
    const int r = (int)i;
    const tdm_span to = part_of(c, call->in, call->in_counts, r), from = part_of(c, call->out, call->out_counts, r);
    ncclResult_t result = ncclSuccess;
    if (r == c->base.rank) return ncclSuccess;
    if (to.count > 0) result = send_to(c, to, r, stream);
    return from.count > 0 && is_good(result) ? receive_from(c, from, r, stream) : result;
}

/* The root's message of a gather or scatter with rank i. The own part is copied. */
static ncclResult_t serve_one(const tdm_nccl_comm *c, const tdm_comm_call *call, size_t i, void *stream) {
    const bool gather = call->kind == TDM_COMM_GATHER;
    const tdm_span one = gather ? call->in : call->out, all = gather ? call->out : call->in;
    const tdm_span theirs = {part(all, one, (int)i), one.count, one.dtype};
    if ((int)i == c->base.rank) return ncclSuccess;
    return gather ? receive_from(c, theirs, (int)i, stream) : send_to(c, theirs, (int)i, stream);
}

static ncclResult_t gather_or_scatter(const tdm_nccl_comm *c, const tdm_comm_call *call, void *stream) {
    if (c->base.rank == call->rank) return in_group(c, call, (size_t)c->base.world, serve_one, stream);
    return call->kind == TDM_COMM_GATHER ? send_to(c, call->in, call->rank, stream)
                                         : receive_from(c, call->out, call->rank, stream);
}

static ncclResult_t issue(const tdm_nccl_comm *c, const tdm_comm_call *call) {
    const tdm_nccl_library *nccl = c->site->nccl;
    tdm_device *device = c->site->device;
    void *stream = device->ops->queues->handle(device, c->queue);
    const tdm_span in = call->in, out = call->out;
    ncclDataType_t type = dtypes[in.dtype].type;
    switch (call->kind) {
    case TDM_COMM_ALL_REDUCE:
        return all_reduce(c, in, call->op, stream);
    case TDM_COMM_ALL_REDUCE_COALESCED:
        return in_group(c, call, call->span_count, reduce_one, stream);
    case TDM_COMM_ALL_GATHER_COALESCED:
        return in_group(c, call, call->span_count, gather_one, stream);
    case TDM_COMM_REDUCE_SCATTER_COALESCED:
        return in_group(c, call, call->span_count, reduce_scatter_one, stream);
    case TDM_COMM_BATCH:
        return in_group(c, call, call->transfer_count, transfer_one, stream);
    case TDM_COMM_BROADCAST:
        return nccl->Broadcast(in.data, in.data, in.count, type, call->rank, c->handle, stream);
    case TDM_COMM_REDUCE: /* only the root has a destination: the io of the others stays as it is */
        return nccl->Reduce(in.data, c->base.rank == call->rank ? in.data : NULL, in.count, type,
                            reductions[call->op].op, call->rank, c->handle, stream);
    case TDM_COMM_ALL_GATHER:
        return nccl->AllGather(in.data, out.data, in.count, type, c->handle, stream);
    case TDM_COMM_REDUCE_SCATTER:
        return nccl->ReduceScatter(in.data, out.data, out.count, type, reductions[call->op].op, c->handle, stream);
    case TDM_COMM_ALL_TO_ALL:
    case TDM_COMM_ALL_TO_ALL_V:
        return in_group(c, call, (size_t)c->base.world, exchange_one, stream);
    case TDM_COMM_SEND:
        return send_to(c, in, call->rank, stream);
    case TDM_COMM_RECEIVE:
        return receive_from(c, out, call->rank, stream);
    case TDM_COMM_BARRIER:
        return nccl->AllReduce(c->token, c->token, 1, ncclInt32, ncclSum, c->handle, stream);
    default: /* gather, scatter */
        return gather_or_scatter(c, call, stream);
    }
}

/* ---- before and after a call ---- */

/* Makes the communicator's queue wait for what is on the device's own queue now. */
static tdm_status follow_device(tdm_nccl_comm *c) {
    tdm_device *device = c->site->device;
    TDM_MODULE_TRY(device->ops->events->record(device, c->ahead, NULL));
    TDM_MODULE_TRY(device->ops->events->wait(device, c->ahead, c->queue));
    return TDM_OK;
}

/* Copies the own part of an all_to_all, and of the root's gather or scatter: it is not sent. */
static tdm_status copy_own_part(tdm_nccl_comm *c, const tdm_comm_call *call) {
    tdm_device *device = c->site->device;
    if (call->kind == TDM_COMM_ALL_TO_ALL || call->kind == TDM_COMM_ALL_TO_ALL_V) {
        const tdm_span from = part_of(c, call->in, call->in_counts, c->base.rank);
        const tdm_span to = part_of(c, call->out, call->out_counts, c->base.rank);
        if (from.count == 0) return TDM_OK;
        return device->ops->queues->copy(device, c->queue, to.data, from.data, from.count * dtypes[from.dtype].bytes);
    }
    if ((call->kind != TDM_COMM_GATHER && call->kind != TDM_COMM_SCATTER) || c->base.rank != call->rank) return TDM_OK;
    const bool gather = call->kind == TDM_COMM_GATHER;
    const tdm_span one = gather ? call->in : call->out, all = gather ? call->out : call->in;
    void *own = part(all, one, call->rank);
    if (own == one.data) return TDM_OK;
    return device->ops->queues->copy(device, c->queue, gather ? own : one.data, gather ? one.data : own,
                                     one.count * dtypes[one.dtype].bytes);
}

tdm_status tdm__nccl_run(tdm_comm *comm, const tdm_comm_call *call) {
    tdm_nccl_comm *c = (tdm_nccl_comm *)comm;
    const tdm_span span = tdm_comm_call_span(call);
    tdm_comm_call_print(c->call, sizeof(c->call), call->kind, comm->sequence, span.count, dtypes[span.dtype].name,
                        reductions[call->op].name, call->rank);
    if (tdm_comm_kind_reduces(call->kind) && reductions[call->op].op == NOT_OF_NCCL)
        TDM_MODULE_FAIL(TDM_E_UNSUPPORTED, "%s: NCCL has no %s; a communicator in host memory has it",
                        tdm_comm_kind_name(call->kind), reductions[call->op].name);
    if (call->rank == TDM_COMM_ANY)
        TDM_MODULE_FAIL(TDM_E_UNSUPPORTED, "receive: NCCL has no receive from any rank; name the rank, or use a "
                                           "communicator in host memory");
    tdm__nccl_begin(c);
    const bool always = call->kind == TDM_COMM_BARRIER || call->kind == TDM_COMM_ALL_TO_ALL_V;
    if (span.count == 0 && !always) return TDM_OK;
    tdm_status status = follow_device(c);
    if (status == TDM_OK) status = copy_own_part(c, call);
    if (status != TDM_OK) return tdm__nccl_device_failed(c, status);
    if (!tdm__nccl_enter(c->site)) return tdm__nccl_ended(c);
    ncclResult_t result = issue(c, call);
    tdm__nccl_leave(c->site);
    return tdm__nccl_settle(c, c, result);
}

/* ---- waiting ---- */

tdm_status tdm__nccl_join(tdm_comm *comm) {
    tdm_nccl_comm *c = (tdm_nccl_comm *)comm;
    tdm_device *device = c->site->device;
    TDM_MODULE_TRY(device->ops->events->record(device, c->behind, c->queue));
    TDM_MODULE_TRY(device->ops->events->wait(device, c->behind, NULL));
    return TDM_OK;
}

/* Polls events instead of waiting for the stream: that wait has no deadline, and on one node NCCL does not notice that
 * a peer has died. With `until` NULL it also waits for the device's own queue, because collectives in a captured graph
 * run there. */
tdm_status tdm__nccl_wait(tdm_comm *comm, tdm_device_event *until) {
    tdm_nccl_comm *c = (tdm_nccl_comm *)comm;
    tdm_device *device = c->site->device;
    tdm_status status = TDM_OK;
    bool done = false;
    tdm__nccl_begin(c);
    if (until == NULL) {
        until = c->behind;
        status = follow_device(c);
        if (status == TDM_OK) status = device->ops->events->record(device, until, c->queue);
    }
    for (tdm_nccl_pause pause = {0};;) {
        ncclResult_t state = ncclSuccess;
        if (status == TDM_OK) status = device->ops->events->done(device, until, &done);
        if (status != TDM_OK) return tdm__nccl_device_failed(c, status);
        if (!tdm__nccl_enter(c->site)) return tdm__nccl_ended(c);
        ncclResult_t answer = c->site->nccl->CommGetAsyncError(c->handle, &state);
        tdm__nccl_leave(c->site);
        if (answer == ncclSuccess) answer = state;
        /* Checked even if the event is done: an aborted or failed collective leaves garbage behind. */
        if (answer != ncclSuccess && answer != ncclInProgress) return tdm__nccl_refused(c, answer);
        if (done) return TDM_OK;
        if (tdm__now_ns() >= c->deadline_ns)
            return tdm__nccl_broken(c, TDM_E_COMM, "waited %lld ms for it to end on %s", (long long)c->base.timeout_ms,
                                    device->name);
        tdm__nccl_pause(&pause);
    }
}

/* ---- the end ---- */

void tdm__nccl_abort(tdm_comm *comm, const char *why) {
    tdm_nccl_site *site = ((tdm_nccl_comm *)comm)->site;
    site->control->ops->abort(site->control, why);
    tdm__nccl_want_abort(site);
}
