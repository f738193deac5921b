/* Checked calls on any backend. A caller's mistakes are found here, before the ranks wait for one another. */
#include "runtime/comm/comm.h"

#include <unistd.h>

#include "runtime/base/call/guard.h"
#include "runtime/base/hash.h"
#include "runtime/base/limit/limit.h"
#include "runtime/base/memory.h"
#include "runtime/base/status.h"

/* ---- types ---- */

static const struct {
    const char *name;
    size_t bytes;
} dtypes[TDM_DTYPE_COUNT] = {
    [TDM_DTYPE_F32] = {"f32", 4}, [TDM_DTYPE_F64] = {"f64", 8}, [TDM_DTYPE_I32] = {"i32", 4},
    [TDM_DTYPE_I64] = {"i64", 8}, [TDM_DTYPE_U8] = {"u8", 1},   [TDM_DTYPE_BF16] = {"bf16", 2},
    [TDM_DTYPE_F16] = {"f16", 2},
};

static const char *const op_names[TDM_REDUCE_OPS] = {
    [TDM_REDUCE_SUM] = "sum", [TDM_REDUCE_PRODUCT] = "product", [TDM_REDUCE_MIN] = "min", [TDM_REDUCE_MAX] = "max",
    [TDM_REDUCE_AVG] = "avg", [TDM_REDUCE_BAND] = "band",       [TDM_REDUCE_BOR] = "bor", [TDM_REDUCE_BXOR] = "bxor"};

static bool is_dtype(tdm_dtype dtype) {
    return (unsigned)dtype < TDM_DTYPE_COUNT;
}

static bool is_op(tdm_reduce_op op) {
    return (unsigned)op < TDM_REDUCE_OPS;
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

static tdm_status check_reduction(tdm_reduce_op op, tdm_dtype dtype, const char *call) {
    const bool is_integer = dtype == TDM_DTYPE_I32 || dtype == TDM_DTYPE_I64 || dtype == TDM_DTYPE_U8;
    if (!is_op(op)) TDM_FAIL(TDM_E_USAGE, "%s: unknown reduction %d", call, (int)op);
    if (op == TDM_REDUCE_AVG && is_integer)
        TDM_FAIL(TDM_E_USAGE, "%s: avg needs floats, got %s; take sum and divide", call, tdm_dtype_name(dtype));
    if (op >= TDM_REDUCE_BAND && !is_integer)
        TDM_FAIL(TDM_E_USAGE, "%s: %s needs integers, got %s", call, op_names[op], tdm_dtype_name(dtype));
    return TDM_OK;
}

/* `in` and `out` hold one part for each rank. */
static tdm_status check_all_to_all(const tdm_comm *comm, tdm_span in, tdm_span out, const char *call) {
    tdm_span part = in;
    if (in.count % (size_t)comm->world != 0)
        TDM_FAIL(TDM_E_USAGE, "%s: in must hold equal parts for %d ranks, got %zu elements", call, comm->world,
                 in.count);
    part.count = in.count / (size_t)comm->world;
    return check_parts(comm, out, part, call, "out");
}

/* The counts of the parts of a span, one for each rank. */
static tdm_status check_counts(const tdm_comm *comm, tdm_span span, const size_t *counts, const char *call,
                               const char *name) {
    size_t left = span.count;
    int r = 0;
    if (counts == NULL)
        TDM_FAIL(TDM_E_USAGE, "%s: %s_counts: needs a count for each of %d ranks, got NULL", call, name, comm->world);
    while (r < comm->world && counts[r] <= left) left -= counts[r++];
    if (r < comm->world || left > 0)
        TDM_FAIL(TDM_E_USAGE, "%s: %s_counts of %d ranks must add up to the %zu elements of %s; they are %s", call,
                 name, comm->world, span.count, name, left > 0 && r == comm->world ? "fewer" : "more");
    return TDM_OK;
}

static tdm_status check_all_to_all_v(const tdm_comm *comm, const tdm_comm_call *call, const char *name) {
    TDM_TRY(check_span(call->out, name, "out"));
    if (call->out.dtype != call->in.dtype)
        TDM_FAIL(TDM_E_USAGE, "%s: out must be %s, got %s", name, tdm_dtype_name(call->in.dtype),
                 tdm_dtype_name(call->out.dtype));
    TDM_TRY(check_counts(comm, call->in, call->in_counts, name, "in"));
    TDM_TRY(check_counts(comm, call->out, call->out_counts, name, "out"));
    if (call->in_counts[comm->rank] != call->out_counts[comm->rank])
        TDM_FAIL(TDM_E_USAGE, "%s: in_counts sends %zu elements to rank %d itself, out_counts expects %zu", name,
                 call->in_counts[comm->rank], comm->rank, call->out_counts[comm->rank]);
    return TDM_OK;
}

/* A call that takes a list of `count` things. */
static tdm_status check_list(const void *list, size_t count, const char *name, const char *thing) {
    if (count == 0) TDM_FAIL(TDM_E_USAGE, "%s: needs a list of at least 1 %s, got 0", name, thing);
    if (list == NULL) TDM_FAIL(TDM_E_USAGE, "%s: the list of %ss is NULL", name, thing);
    return TDM_OK;
}

/* Sets *whole to all of the spans. */
static tdm_status check_spans(const tdm_span *spans, size_t count, tdm_span *whole, const char *name) {
    TDM_TRY(check_list(spans, count, name, "span"));
    *whole = (tdm_span){NULL, 0, spans[0].dtype};
    for (size_t i = 0; i < count; i++) {
        const tdm_span span = spans[i];
        size_t bytes;
        TDM_TRY(check_span(span, name, "span"));
        if (span.dtype != whole->dtype)
            TDM_FAIL(TDM_E_USAGE, "%s: all spans must be of one type; the first is %s, number %zu is %s", name,
                     tdm_dtype_name(whole->dtype), i + 1, tdm_dtype_name(span.dtype));
        if (!tdm__add_fits(whole->count, span.count, &whole->count) ||
            !tdm__mul_fits(whole->count, tdm_dtype_bytes(span.dtype), &bytes))
            TDM_FAIL(TDM_E_USAGE, "%s: the spans together are more than this machine can address", name);
    }
    return TDM_OK;
}

static bool is_coalesced(tdm_comm_kind kind) {
    return kind == TDM_COMM_ALL_REDUCE_COALESCED || kind == TDM_COMM_ALL_GATHER_COALESCED ||
           kind == TDM_COMM_REDUCE_SCATTER_COALESCED;
}

/* Sets `in` and `out` to the whole of the spans. */
static tdm_status check_coalesced(const tdm_comm *comm, tdm_comm_call *call, const char *name) {
    const bool scatters = call->kind == TDM_COMM_REDUCE_SCATTER_COALESCED;
    char number[32];
    TDM_TRY(check_spans(call->spans, call->span_count, &call->in, name));
    if (call->kind == TDM_COMM_ALL_REDUCE_COALESCED) return TDM_OK;
    TDM_TRY(check_spans(call->outs, call->span_count, &call->out, name));
    for (size_t i = 0; i < call->span_count; i++) {
        const tdm_span in = call->spans[i], out = call->outs[i];
        snprintf(number, sizeof(number), "%s number %zu", scatters ? "in" : "out", i + 1);
        TDM_TRY(scatters ? check_parts(comm, in, out, name, number) : check_parts(comm, out, in, name, number));
    }
    return TDM_OK;
}

static tdm_status check_batch(const tdm_comm *comm, tdm_comm_call *call, const char *name) {
    char number[48];
    TDM_TRY(check_list(call->transfers, call->transfer_count, name, "message"));
    for (size_t i = 0; i < call->transfer_count; i++) {
        const tdm_transfer *transfer = &call->transfers[i];
        snprintf(number, sizeof(number), "the peer of message %zu", i + 1);
        TDM_TRY(check_rank(comm, transfer->peer, name, number));
        if (transfer->peer == comm->rank)
            TDM_FAIL(TDM_E_USAGE, "%s: %s is rank %d itself; it must be another rank", name, number, comm->rank);
        snprintf(number, sizeof(number), "message %zu", i + 1);
        TDM_TRY(check_span(transfer->span, name, number));
    }
    call->in = (tdm_span){NULL, call->transfer_count, TDM_DTYPE_U8};
    return TDM_OK;
}

/* The names of a call's arguments in messages; NULL: it has no such argument. `part` is tdm_comm_call_span, `whole` the
 * other span, with a part for each rank. */
static const struct {
    const char *part, *whole, *rank;
} arguments[TDM_COMM_KINDS] = {
    [TDM_COMM_ALL_REDUCE] = {.part = "io"},
    [TDM_COMM_ALL_REDUCE_COALESCED] = {0},
    [TDM_COMM_BROADCAST] = {.part = "io", .rank = "root"},
    [TDM_COMM_REDUCE] = {.part = "io", .rank = "root"},
    [TDM_COMM_GATHER] = {.part = "in", .whole = "out", .rank = "root"},
    [TDM_COMM_ALL_GATHER] = {.part = "in", .whole = "out"},
    [TDM_COMM_SCATTER] = {.part = "out", .whole = "in", .rank = "root"},
    [TDM_COMM_REDUCE_SCATTER] = {.part = "out", .whole = "in"},
    [TDM_COMM_ALL_TO_ALL] = {.part = "in"},
    [TDM_COMM_ALL_TO_ALL_V] = {.part = "in"},
    [TDM_COMM_BARRIER] = {0},
    [TDM_COMM_SEND] = {.part = "data", .rank = "peer"},
    [TDM_COMM_RECEIVE] = {.part = "data", .rank = "peer"},
    [TDM_COMM_ALL_GATHER_COALESCED] = {0},
    [TDM_COMM_REDUCE_SCATTER_COALESCED] = {0},
    [TDM_COMM_BATCH] = {0},
};

bool tdm__comm_is_home(const tdm_comm *comm) {
    return comm->process == getpid();
}

tdm_status tdm__comm_check_home(const tdm_comm *comm, const char *call) {
    return comm != NULL ? tdm__check_home(comm->process, call, "communicator") : TDM_OK;
}

static tdm_status check_comm(const tdm_comm *comm, const char *call) {
    if (comm == NULL) TDM_FAIL(TDM_E_USAGE, "%s: needs a communicator, got NULL", call);
    return TDM_OK;
}

static tdm_status check_call(const tdm_comm *comm, tdm_comm_call *call) {
    const bool scatters = call->kind == TDM_COMM_SCATTER || call->kind == TDM_COMM_REDUCE_SCATTER;
    const bool any = call->kind == TDM_COMM_RECEIVE && call->rank == TDM_COMM_ANY;
    const char *rank = any ? NULL : arguments[call->kind].rank, *name = tdm_comm_kind_name(call->kind);
    TDM_TRY(check_comm(comm, name));
    if (is_coalesced(call->kind)) TDM_TRY(check_coalesced(comm, call, name));
    if (call->kind == TDM_COMM_BATCH) TDM_TRY(check_batch(comm, call, name));
    const tdm_span part = tdm_comm_call_span(call), whole = scatters ? call->in : call->out;
    if (arguments[call->kind].part != NULL) TDM_TRY(check_span(part, name, arguments[call->kind].part));
    if (rank != NULL) TDM_TRY(check_rank(comm, call->rank, name, rank));
    if (rank != NULL && tdm_comm_kind_is_message(call->kind) && call->rank == comm->rank)
        TDM_FAIL(TDM_E_USAGE, "%s: the peer is rank %d itself; it must be another rank", name, call->rank);
    if (any && comm->world == 1) TDM_FAIL(TDM_E_USAGE, "%s: there is one rank, and no other that could send", name);
    if (arguments[call->kind].whole != NULL && (rank == NULL || call->rank == comm->rank))
        TDM_TRY(check_parts(comm, whole, part, name, arguments[call->kind].whole));
    if (call->kind == TDM_COMM_ALL_TO_ALL) TDM_TRY(check_all_to_all(comm, call->in, call->out, name));
    if (call->kind == TDM_COMM_ALL_TO_ALL_V) TDM_TRY(check_all_to_all_v(comm, call, name));
    if (tdm_comm_kind_reduces(call->kind)) TDM_TRY(check_reduction(call->op, part.dtype, name));
    return TDM_OK;
}

tdm_status tdm__comm_check_times(const char *what, int64_t timeout_ms, int64_t heartbeat_ms) {
    if (timeout_ms < 1)
        TDM_FAIL(TDM_E_USAGE, "%s: the timeout must be at least 1 ms, got %lld", what, (long long)timeout_ms);
    if (heartbeat_ms != 0 && heartbeat_ms < TDM_HEARTBEAT_LEAST_MS)
        TDM_FAIL(TDM_E_USAGE, "%s: the heartbeat must be at least %d ms, or 0 for none, got %lld", what,
                 TDM_HEARTBEAT_LEAST_MS, (long long)heartbeat_ms);
    return TDM_OK;
}

/* ---- calls ---- */

/* The peers wait for this rank, which will not take part: end the job with the reason. */
static tdm_status refuse(tdm_comm *comm, tdm_status status) {
    if (comm != NULL) tdm_comm_abort(comm, tdm_error_message());
    return tdm__frame(status, __FILE__, __LINE__);
}

tdm_status tdm__comm_call(tdm_comm *comm, const tdm_comm_call *call) {
    tdm_comm_call checked = *call;
    TDM_TRY(tdm__comm_check_home(comm, tdm_comm_kind_name(call->kind)));
    tdm_status status = check_call(comm, &checked);
    if (status != TDM_OK) return refuse(comm, status);
    if (!tdm_comm_kind_is_message(call->kind)) comm->sequence++;
    return comm->ops->run(comm, &checked);
}

/* ---- memory, groups, ends ---- */

tdm_status tdm__comm_allocate(tdm_comm *comm, size_t bytes, void **out) {
    *out = NULL;
    TDM_TRY(check_comm(comm, "allocate"));
    TDM_TRY(tdm__comm_check_home(comm, "allocate"));
    if (comm->ops->allocate == NULL)
        TDM_FAIL(TDM_E_UNSUPPORTED, "allocate: communicator '%s' has no memory that its ranks share", comm->ops->name);
    if (!tdm__limit_book(comm->host, bytes))
        return tdm__out_of_memory(comm->host, "memory that ranks share", bytes); /* until the communicator closes */
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
    TDM_TRY(tdm__comm_check_home(comm, "split"));
    tdm_status status = check_ranks(comm, ranks, count);
    if (status != TDM_OK) return refuse(comm, status);
    comm->sequence++;
    return comm->ops->split(comm, ranks, count, out);
}

static tdm_status check_device_comm(const tdm_comm *comm, const char *call, bool has_it) {
    TDM_TRY(check_comm(comm, call));
    if (!has_it)
        TDM_FAIL(TDM_E_UNSUPPORTED, "%s: communicator '%s' is not for a device's memory", call, comm->ops->name);
    return TDM_OK;
}

tdm_status tdm__comm_join(tdm_comm *comm) {
    TDM_TRY(check_device_comm(comm, "join", comm != NULL && comm->ops->join != NULL));
    return comm->ops->join(comm);
}

tdm_status tdm__comm_wait(tdm_comm *comm, struct tdm_device_event *until) {
    TDM_TRY(check_device_comm(comm, "wait", comm != NULL && comm->ops->wait != NULL));
    return comm->ops->wait(comm, until);
}

bool tdm__comm_ended(tdm_comm *comm, char *why, size_t bytes) {
    return comm != NULL && comm->ops->ended != NULL && comm->ops->ended(comm, why, bytes);
}

void tdm_comm_abort(tdm_comm *comm, const char *why) {
    if (comm != NULL && tdm__comm_is_home(comm)) comm->ops->abort(comm, why != NULL && why[0] != '\0' ? why : NULL);
}

/* ---- agreement ---- */

tdm_status tdm__comm_agree(tdm_comm *comm, const char *what, uint64_t high, uint64_t low) {
    int64_t own[2] = {(int64_t)high, (int64_t)low}, all[2 * TDM_COMM_WORLD_MAX];
    TDM_TRY(check_comm(comm, "agree"));
    size_t count = 2 * (size_t)comm->world;
    TDM_TRY(tdm__comm_call(comm, &(tdm_comm_call){.kind = TDM_COMM_ALL_GATHER,
                                                  .rank = -1,
                                                  .in = {own, 2, TDM_DTYPE_I64},
                                                  .out = {all, count, TDM_DTYPE_I64}}));
    for (int r = 1; r < comm->world; r++) {
        if (all[2 * r] == all[0] && all[2 * r + 1] == all[1]) continue;
        char first[TDM_HASH_TEXT], other[TDM_HASH_TEXT];
        tdm__hash_print(first, (tdm_hash128){.high = (uint64_t)all[0], .low = (uint64_t)all[1]});
        tdm__hash_print(other, (tdm_hash128){.high = (uint64_t)all[2 * r], .low = (uint64_t)all[2 * r + 1]});
        TDM_FAIL(TDM_E_COMM, "ranks differ in %s: rank %d has %s, rank 0 has %s", what, r, other, first);
    }
    return TDM_OK;
}
