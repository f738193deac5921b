/* Checked calls on any backend. A caller's mistakes are found here, before the ranks wait for one another. */
#include "runtime/comm/comm.h"

#include "runtime/base/hash.h"
#include "runtime/base/memory.h"
#include "runtime/base/status.h"

/* ---- types ---- */

static const struct {
    const char *name;
    size_t bytes;
} dtypes[TDM_DTYPE_COUNT] = {
    [TDM_DTYPE_F32] = {"f32", 4}, [TDM_DTYPE_F64] = {"f64", 8}, [TDM_DTYPE_I32] = {"i32", 4},
    [TDM_DTYPE_I64] = {"i64", 8}, [TDM_DTYPE_U8] = {"u8", 1},
};

static const char *const op_names[] = {
    [TDM_REDUCE_SUM] = "sum", [TDM_REDUCE_PRODUCT] = "product", [TDM_REDUCE_MIN] = "min", [TDM_REDUCE_MAX] = "max"};

static bool is_dtype(tdm_dtype dtype) {
    return (unsigned)dtype < TDM_DTYPE_COUNT;
}

static bool is_op(tdm_reduce_op op) {
    return (unsigned)op < sizeof(op_names) / sizeof(op_names[0]);
}

size_t tdm_dtype_bytes(tdm_dtype dtype) {
    return is_dtype(dtype) ? dtypes[dtype].bytes : 0;
}

const char *tdm_dtype_name(tdm_dtype dtype) {
    return is_dtype(dtype) ? dtypes[dtype].name : "unknown";
}

const char *tdm__reduce_op_name(tdm_reduce_op op) {
    return is_op(op) ? op_names[op] : "unknown";
}

/* ---- checks ---- */

static tdm_status check_comm(const tdm_comm *comm, const char *call) {
    if (comm == NULL) TDM_FAIL(TDM_E_USAGE, "%s: needs a communicator, got NULL", call);
    return TDM_OK;
}

static tdm_status check_span(tdm_span span, const char *call, const char *name) {
    size_t bytes;
    if (!is_dtype(span.dtype)) TDM_FAIL(TDM_E_USAGE, "%s: %s: unknown data type %d", call, name, (int)span.dtype);
    if (!tdm__mul_fits(span.count, tdm_dtype_bytes(span.dtype), &bytes))
        TDM_FAIL(TDM_E_USAGE, "%s: %s: %zu %s are more than this machine can address", call, name, span.count,
                 tdm_dtype_name(span.dtype));
    if (span.data == NULL && span.count > 0)
        TDM_FAIL(TDM_E_USAGE, "%s: %s: needs %zu %s, got a NULL pointer", call, name, span.count,
                 tdm_dtype_name(span.dtype));
    if ((uintptr_t)span.data % tdm_dtype_bytes(span.dtype) != 0)
        TDM_FAIL(TDM_E_USAGE, "%s: %s: memory must be aligned to %zu bytes for %s, got %p", call, name,
                 tdm_dtype_bytes(span.dtype), tdm_dtype_name(span.dtype), span.data);
    return TDM_OK;
}

static tdm_status check_rank(const tdm_comm *comm, int rank, const char *call, const char *name) {
    if (rank < 0 || rank >= comm->world)
        TDM_FAIL(TDM_E_USAGE, "%s: %s must be a rank from 0 to %d, got %d", call, name, comm->world - 1, rank);
    return TDM_OK;
}

static tdm_status check_op(tdm_reduce_op op, const char *call) {
    if (!is_op(op)) TDM_FAIL(TDM_E_USAGE, "%s: unknown reduction %d", call, (int)op);
    return TDM_OK;
}

/* `all` must hold one part for each rank, each of the size of `part`. */
static tdm_status check_parts(const tdm_comm *comm, tdm_span all, tdm_span part, const char *call, const char *name) {
    size_t wanted;
    TDM_TRY(check_span(all, call, name));
    if (all.dtype != part.dtype)
        TDM_FAIL(TDM_E_USAGE, "%s: %s must be %s, got %s", call, name, tdm_dtype_name(part.dtype),
                 tdm_dtype_name(all.dtype));
    if (!tdm__mul_fits(part.count, (size_t)comm->world, &wanted) || all.count != wanted)
        TDM_FAIL(TDM_E_USAGE, "%s: %s must hold %zu elements for each of %d ranks, got %zu in all", call, name,
                 part.count, comm->world, all.count);
    return TDM_OK;
}

/* ---- collectives ---- */

/* The peers wait for this rank, which will not take part: end the job with the reason. */
static tdm_status refuse(tdm_comm *comm, tdm_status status) {
    if (comm != NULL) tdm__comm_abort(comm, tdm_error_message());
    return tdm__frame(status, __FILE__, __LINE__);
}

tdm_status tdm__all_reduce(tdm_comm *comm, tdm_span io, tdm_reduce_op op) {
    tdm_status status = check_comm(comm, "all_reduce");
    if (status == TDM_OK) status = check_span(io, "all_reduce", "io");
    if (status == TDM_OK) status = check_op(op, "all_reduce");
    if (status != TDM_OK) return refuse(comm, status);
    comm->sequence++;
    return comm->ops->all_reduce(comm, io, op);
}

tdm_status tdm__broadcast(tdm_comm *comm, tdm_span io, int root) {
    tdm_status status = check_comm(comm, "broadcast");
    if (status == TDM_OK) status = check_span(io, "broadcast", "io");
    if (status == TDM_OK) status = check_rank(comm, root, "broadcast", "root");
    if (status != TDM_OK) return refuse(comm, status);
    comm->sequence++;
    return comm->ops->broadcast(comm, io, root);
}

tdm_status tdm__reduce(tdm_comm *comm, tdm_span io, int root, tdm_reduce_op op) {
    tdm_status status = check_comm(comm, "reduce");
    if (status == TDM_OK) status = check_span(io, "reduce", "io");
    if (status == TDM_OK) status = check_rank(comm, root, "reduce", "root");
    if (status == TDM_OK) status = check_op(op, "reduce");
    if (status != TDM_OK) return refuse(comm, status);
    comm->sequence++;
    return comm->ops->reduce(comm, io, root, op);
}

tdm_status tdm__gather(tdm_comm *comm, tdm_span in, tdm_span out, int root) {
    tdm_status status = check_comm(comm, "gather");
    if (status == TDM_OK) status = check_span(in, "gather", "in");
    if (status == TDM_OK) status = check_rank(comm, root, "gather", "root");
    if (status == TDM_OK && comm->rank == root) status = check_parts(comm, out, in, "gather", "out");
    if (status != TDM_OK) return refuse(comm, status);
    comm->sequence++;
    return comm->ops->gather(comm, in, out, root);
}

tdm_status tdm__all_gather(tdm_comm *comm, tdm_span in, tdm_span out) {
    tdm_status status = check_comm(comm, "all_gather");
    if (status == TDM_OK) status = check_span(in, "all_gather", "in");
    if (status == TDM_OK) status = check_parts(comm, out, in, "all_gather", "out");
    if (status != TDM_OK) return refuse(comm, status);
    comm->sequence++;
    return comm->ops->all_gather(comm, in, out);
}

tdm_status tdm__scatter(tdm_comm *comm, tdm_span in, tdm_span out, int root) {
    tdm_status status = check_comm(comm, "scatter");
    if (status == TDM_OK) status = check_span(out, "scatter", "out");
    if (status == TDM_OK) status = check_rank(comm, root, "scatter", "root");
    if (status == TDM_OK && comm->rank == root) status = check_parts(comm, in, out, "scatter", "in");
    if (status != TDM_OK) return refuse(comm, status);
    comm->sequence++;
    return comm->ops->scatter(comm, in, out, root);
}

tdm_status tdm__barrier(tdm_comm *comm) {
    TDM_TRY(check_comm(comm, "barrier"));
    comm->sequence++;
    return comm->ops->barrier(comm);
}

/* ---- two ranks ---- */

static tdm_status check_message(const tdm_comm *comm, tdm_span span, int peer, const char *call) {
    TDM_TRY(check_comm(comm, call));
    TDM_TRY(check_span(span, call, "data"));
    TDM_TRY(check_rank(comm, peer, call, "peer"));
    if (peer == comm->rank)
        TDM_FAIL(TDM_E_USAGE, "%s: the peer is rank %d itself; it must be another rank", call, peer);
    return TDM_OK;
}

tdm_status tdm__send(tdm_comm *comm, tdm_span in, int to) {
    tdm_status status = check_message(comm, in, to, "send");
    if (status != TDM_OK) return refuse(comm, status);
    return comm->ops->send(comm, in, to);
}

tdm_status tdm__receive(tdm_comm *comm, tdm_span out, int from) {
    tdm_status status = check_message(comm, out, from, "receive");
    if (status != TDM_OK) return refuse(comm, status);
    return comm->ops->receive(comm, out, from);
}

/* ---- memory, groups, ends ---- */

tdm_status tdm__comm_allocate(tdm_comm *comm, size_t bytes, void **out) {
    *out = NULL;
    TDM_TRY(check_comm(comm, "allocate"));
    if (comm->ops->allocate == NULL)
        TDM_FAIL(TDM_E_UNSUPPORTED, "allocate: communicator '%s' has no memory that its ranks share", comm->ops->name);
    comm->sequence++;
    return comm->ops->allocate(comm, bytes, out);
}

static tdm_status check_ranks(const tdm_comm *comm, const int *ranks, int count) {
    bool listed[TDM_COMM_WORLD_MAX] = {false};
    TDM_TRY(check_comm(comm, "split"));
    if (count < 1 || count > comm->world || ranks == NULL)
        TDM_FAIL(TDM_E_USAGE, "split: needs a list of 1 to %d ranks, got %d", comm->world, count);
    for (int i = 0; i < count; i++) {
        TDM_TRY(check_rank(comm, ranks[i], "split", "list"));
        if (listed[ranks[i]]) TDM_FAIL(TDM_E_USAGE, "split: rank %d is listed twice", ranks[i]);
        listed[ranks[i]] = true;
    }
    return TDM_OK;
}

tdm_status tdm__comm_split(tdm_comm *comm, const int *ranks, int count, tdm_comm **out) {
    *out = NULL;
    tdm_status status = check_ranks(comm, ranks, count);
    if (status != TDM_OK) return refuse(comm, status);
    comm->sequence++;
    return comm->ops->split(comm, ranks, count, out);
}

void tdm__comm_abort(tdm_comm *comm, const char *why) {
    if (comm == NULL) return;
    if (comm->ops->abort_because != NULL)
        comm->ops->abort_because(comm, why);
    else
        comm->ops->abort(comm);
}

/* ---- agreement ---- */

tdm_status tdm__comm_agree(tdm_comm *comm, const char *what, uint64_t high, uint64_t low) {
    int64_t own[2] = {(int64_t)high, (int64_t)low}, all[2 * TDM_COMM_WORLD_MAX];
    TDM_TRY(check_comm(comm, "agree"));
    size_t count = 2 * (size_t)comm->world;
    TDM_TRY(tdm__all_gather(comm, (tdm_span){own, 2, TDM_DTYPE_I64}, (tdm_span){all, count, TDM_DTYPE_I64}));
    for (int r = 1; r < comm->world; r++) {
        if (all[2 * r] == all[0] && all[2 * r + 1] == all[1]) continue;
        char first[TDM_HASH_TEXT], other[TDM_HASH_TEXT];
        tdm__hash_print(first, (tdm_hash128){.high = (uint64_t)all[0], .low = (uint64_t)all[1]});
        tdm__hash_print(other, (tdm_hash128){.high = (uint64_t)all[2 * r], .low = (uint64_t)all[2 * r + 1]});
        TDM_FAIL(TDM_E_COMM, "ranks differ in %s: rank %d has %s, rank 0 has %s", what, r, other, first);
    }
    return TDM_OK;
}
