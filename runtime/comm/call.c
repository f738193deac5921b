/* Calls in messages, whether ranks make the same one, and what each kind does. */
#include "runtime/comm/call.h"

#include <stdarg.h>
#include <string.h>

#include "runtime/base/hash.h"
#include "runtime/base/status.h"

tdm_call tdm__call_of(const tdm_comm_call *call) {
    const tdm_span span = tdm_comm_call_span(call);
    tdm_call noted = {.kind = (int32_t)call->kind,
                      .dtype = (int32_t)span.dtype,
                      .op = (int32_t)call->op,
                      .root = call->rank,
                      .count = span.count};
    for (size_t i = 0; i < call->span_count; i++)
        noted.extra = tdm__hash64(&call->spans[i].count, sizeof(call->spans[i].count), noted.extra);
    return noted;
}

void tdm__call_print(char out[TDM_CALL_TEXT], const tdm_call *call, const int *job_rank) {
    const int root = call->root >= 0 ? job_rank[call->root] : call->root;
    tdm_comm_call_print(out, TDM_CALL_TEXT, (tdm_comm_kind)call->kind, call->sequence, call->count,
                        tdm_dtype_name((tdm_dtype)call->dtype), tdm__reduce_op_name((tdm_reduce_op)call->op), root);
}

void tdm__cause_add(char cause[TDM_CAUSE_TEXT], const char *format, ...) {
    const size_t at = strlen(cause);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(cause + at, TDM_CAUSE_TEXT - at, format, arguments);
    va_end(arguments);
}

/* The parts of an all_to_all_v are compared by themselves. */
static bool same_call(const tdm_call *a, const tdm_call *b) {
    return a->kind == b->kind && a->dtype == b->dtype && a->op == b->op && a->root == b->root &&
           (a->count == b->count || a->kind == TDM_COMM_ALL_TO_ALL_V) && a->sequence == b->sequence &&
           a->extra == b->extra;
}

tdm_status tdm__call_compare(const tdm_call *first, int first_member, const tdm_call *other, int other_member,
                             const int *job_rank) {
    char a[TDM_CALL_TEXT], b[TDM_CALL_TEXT];
    if (same_call(first, other)) return TDM_OK;
    tdm__call_print(a, first, job_rank);
    tdm__call_print(b, other, job_rank);
    const char *more = "";
    if (first->kind == other->kind && first->count == other->count && first->extra != other->extra)
        more = first->kind == TDM_COMM_SPLIT ? " with another list of ranks" : " with spans of other sizes";
    TDM_FAIL(TDM_E_USAGE, "ranks make different calls: rank %d %s, rank %d %s%s", job_rank[first_member], a,
             job_rank[other_member], b, more);
}

void tdm__parts_write(uint64_t *row, const tdm_comm_call *call, int world) {
    for (int r = 0; r < world; r++) {
        row[r] = call->in_counts[r];
        row[world + r] = call->out_counts[r];
    }
}

tdm_status tdm__parts_compare(const tdm_call *call, const uint64_t *rows, size_t stride, int world,
                              const int *job_rank) {
    for (int from = 0; from < world; from++) {
        for (int to = 0; to < world; to++) {
            const uint64_t sent = rows[(size_t)from * stride + (size_t)to];
            const uint64_t expected = rows[(size_t)to * stride + (size_t)(world + from)];
            if (sent == expected) continue;
            TDM_FAIL(TDM_E_USAGE,
                     "parts of all_to_all_v (call %llu) differ: rank %d sends %llu %s to rank %d, which "
                     "expects %llu",
                     (unsigned long long)call->sequence, job_rank[from], (unsigned long long)sent,
                     tdm_dtype_name((tdm_dtype)call->dtype), job_rank[to], (unsigned long long)expected);
        }
    }
    return TDM_OK;
}

/* A send, or a receive from one rank, is a batch of one message. */
static tdm_status send_or_receive(const tdm_call_table *table, tdm_comm *comm, const tdm_comm_call *call) {
    const bool sends = call->kind == TDM_COMM_SEND;
    const tdm_transfer only = {sends, call->rank, sends ? call->in : call->out};
    if (call->rank == TDM_COMM_ANY) return table->receive_any(comm, call->out, call->from);
    return table->batch(comm, &only, 1);
}

tdm_status tdm__call_make(const tdm_call_table *table, tdm_comm *comm, const tdm_comm_call *call) {
    const tdm_span in = call->in, out = call->out;
    const tdm_reduction one = {&in, 1, in.count, in.dtype, call->op, call->rank};
    switch (call->kind) {
    case TDM_COMM_ALL_REDUCE:
    case TDM_COMM_REDUCE:
        return table->reduce(comm, &one);
    case TDM_COMM_ALL_REDUCE_COALESCED:
        return table->reduce(comm,
                             &(tdm_reduction){call->spans, call->span_count, in.count, in.dtype, call->op, call->rank});
    case TDM_COMM_REDUCE_SCATTER:
        return table->reduce_scatter(comm, &(tdm_pairs){&out, &in, 1, out.count, out.dtype}, call->op);
    case TDM_COMM_REDUCE_SCATTER_COALESCED:
        return table->reduce_scatter(
            comm, &(tdm_pairs){call->outs, call->spans, call->span_count, out.count, out.dtype}, call->op);
    case TDM_COMM_BROADCAST:
    case TDM_COMM_BARRIER: /* a broadcast of nothing */
        return table->broadcast(comm, in, call->rank);
    case TDM_COMM_GATHER:
    case TDM_COMM_ALL_GATHER:
        return table->gather(comm, &(tdm_pairs){&in, &out, 1, in.count, in.dtype}, call->rank);
    case TDM_COMM_ALL_GATHER_COALESCED:
        return table->gather(comm, &(tdm_pairs){call->spans, call->outs, call->span_count, in.count, in.dtype}, -1);
    case TDM_COMM_SCATTER:
        return table->distribute(comm, in, out, tdm__span_bytes(out), call->rank);
    case TDM_COMM_ALL_TO_ALL:
        return table->distribute(comm, in, out, tdm__span_bytes(out) / (size_t)comm->world, call->rank);
    case TDM_COMM_ALL_TO_ALL_V:
        return table->all_to_all_v(comm, call);
    case TDM_COMM_SEND:
    case TDM_COMM_RECEIVE:
        return send_or_receive(table, comm, call);
    case TDM_COMM_BATCH:
        return table->batch(comm, call->transfers, call->transfer_count);
    default:
        TDM_FAIL(TDM_E_INTERNAL, "communicator: '%s' is not a collective", tdm_comm_kind_name(call->kind));
    }
}
