/* A call as ranks compare it, as messages show it, and as communicators in host memory make it. */
#ifndef TDM_COMM_CALL_H
#define TDM_COMM_CALL_H

#include "runtime/comm/comm.h"
#include "runtime/comm/spans.h"

enum { TDM_CALL_TEXT = 128, TDM_CAUSE_TEXT = 400 };

/* One call. If it is not equal on all ranks of a group, the call fails. */
typedef struct tdm_call {
    int32_t kind, dtype, op, root; /* tdm_comm_kind, ...; root: the root, or the peer of a send or receive, or
                                    * TDM_COMM_ANY; else -1 */
    uint64_t count, sequence;
    uint64_t extra; /* hash of split's list of ranks, of the counts of coalesced spans (all_gather: of the ins) */
} tdm_call;

tdm_call tdm__call_of(const tdm_comm_call *call);

/* job_rank[r] is the number of member r in the job: messages name a root or a peer by it. */
void tdm__call_print(char out[TDM_CALL_TEXT], const tdm_call *call, const int *job_rank);
/* Adds to the cause of an end, as far as there is room. */
void tdm__cause_add(char cause[TDM_CAUSE_TEXT], const char *format, ...) TDM_PRINTF(2, 3);
/* TDM_E_USAGE if two members make different calls; the message names both. */
tdm_status tdm__call_compare(const tdm_call *first, int first_member, const tdm_call *other, int other_member,
                             const int *job_rank);

/* The parts of an all_to_all_v. A rank says in a row what it sends to each rank, then what it expects from each; all
 * ranks see the rows of all. */
void tdm__parts_write(uint64_t *row, const tdm_comm_call *call, int world);
/* TDM_E_USAGE if a rank does not send what another one expects. Row r is at rows + r * stride. */
tdm_status tdm__parts_compare(const tdm_call *call, const uint64_t *rows, size_t stride, int world,
                              const int *job_rank);

/* ---- making a call ---- */

/* What is reduced: one span, or those of a coalesced call as if they were one. */
typedef struct tdm_reduction {
    const tdm_span *spans;
    size_t span_count, count; /* count: of the elements of all spans */
    tdm_dtype dtype;
    tdm_reduce_op op;
    int root; /* the only rank that gets the result; -1: all ranks get it */
} tdm_reduction;

static inline bool tdm__gets_result(const tdm_reduction *how, int rank) {
    return how->root < 0 || how->root == rank;
}

/* What is gathered, or reduced and scattered: a span, or those of a coalesced call as if they were one; and to each
 * another span, which has a part of that size for each rank. */
typedef struct tdm_pairs {
    const tdm_span *part, *whole; /* gather: `whole` only of ranks that get the result */
    size_t span_count, count;     /* count: of the elements of all parts */
    tdm_dtype dtype;
} tdm_pairs;

/* The work behind the kinds of calls. A root of -1 is every rank. */
typedef struct tdm_call_table {
    tdm_status (*reduce)(tdm_comm *comm, const tdm_reduction *how);
    tdm_status (*reduce_scatter)(tdm_comm *comm, const tdm_pairs *what, tdm_reduce_op op);
    tdm_status (*broadcast)(tdm_comm *comm, tdm_span io, int root);
    tdm_status (*gather)(tdm_comm *comm, const tdm_pairs *what, int root);
    /* `bytes` is the size of a part. `in` of a rank that sends nothing is not used. */
    tdm_status (*distribute)(tdm_comm *comm, tdm_span in, tdm_span out, size_t bytes, int root);
    tdm_status (*all_to_all_v)(tdm_comm *comm, const tdm_comm_call *call);
    tdm_status (*receive_any)(tdm_comm *comm, tdm_span out, int *from);
    tdm_status (*batch)(tdm_comm *comm, const tdm_transfer *transfers, size_t count);
} tdm_call_table;

tdm_status tdm__call_make(const tdm_call_table *table, tdm_comm *comm, const tdm_comm_call *call);

#endif
