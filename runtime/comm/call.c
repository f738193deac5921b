/* Calls in messages, and whether ranks make the same one. */
#include "runtime/comm/call.h"

#include "runtime/base/status.h"

void tdm__call_print(char out[TDM_CALL_TEXT], const tdm_call *call, const int *job_rank) {
    const int root = call->root >= 0 ? job_rank[call->root] : call->root;
    tdm_comm_call_print(out, TDM_CALL_TEXT, (tdm_comm_kind)call->kind, call->sequence, call->count,
                        tdm_dtype_name((tdm_dtype)call->dtype), tdm__reduce_op_name((tdm_reduce_op)call->op), root);
}

static bool same_call(const tdm_call *a, const tdm_call *b) {
    return a->kind == b->kind && a->dtype == b->dtype && a->op == b->op && a->root == b->root && a->count == b->count &&
           a->sequence == b->sequence && a->extra == b->extra;
}

tdm_status tdm__call_compare(const tdm_call *first, int first_member, const tdm_call *other, int other_member,
                             const int *job_rank) {
    char a[TDM_CALL_TEXT], b[TDM_CALL_TEXT];
    if (same_call(first, other)) return TDM_OK;
    tdm__call_print(a, first, job_rank);
    tdm__call_print(b, other, job_rank);
    const bool list = first->kind == TDM_COMM_SPLIT && other->kind == TDM_COMM_SPLIT && first->count == other->count;
    TDM_FAIL(TDM_E_USAGE, "ranks make different calls: rank %d %s, rank %d %s%s", job_rank[first_member], a,
             job_rank[other_member], b, list ? " with another list of ranks" : "");
}
