/* tandem/sys/comm.h - the call table of a communicator. For writers of backends; tandem/comm.h describes the calls.
 *
 * Every rank makes the same calls in the same order. The communicator's timeout is the deadline of each call. A lost
 * peer or an abort makes a call return TDM_E_COMM. After a failure the communicator can only be closed.
 *
 * Threads: one thread at a time uses a communicator, but any thread may call `abort`.
 *
 * Numbers: a backend whose `deterministic` is true reduces as tandem/comm.h says, to the bit. */
#ifndef TANDEM_SYS_COMM_H
#define TANDEM_SYS_COMM_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <tandem/comm.h>
#include <tandem/host.h>

TDM_BEGIN_DECLS

struct tdm_device;
struct tdm_device_event;

typedef enum tdm_comm_kind {
    TDM_COMM_JOIN, /* joining the group; only in messages, like TDM_COMM_ALLOCATE and TDM_COMM_SPLIT */
    TDM_COMM_ALL_REDUCE,
    TDM_COMM_ALL_REDUCE_COALESCED,
    TDM_COMM_BROADCAST,
    TDM_COMM_REDUCE,
    TDM_COMM_GATHER,
    TDM_COMM_ALL_GATHER,
    TDM_COMM_SCATTER,
    TDM_COMM_REDUCE_SCATTER,
    TDM_COMM_ALL_TO_ALL,
    TDM_COMM_ALL_TO_ALL_V,
    TDM_COMM_BARRIER,
    TDM_COMM_SEND,
    TDM_COMM_RECEIVE,
    TDM_COMM_ALLOCATE,
    TDM_COMM_SPLIT,
    TDM_COMM_ALL_GATHER_COALESCED,
    TDM_COMM_REDUCE_SCATTER_COALESCED,
    TDM_COMM_BATCH,
    TDM_COMM_KINDS
} tdm_comm_kind;

enum { TDM_COMM_ANY = INT_MIN }; /* the peer of a receive: whichever sends first */

/* One call of tandem/comm.h as a value. Members that its kind does not use are 0. */
typedef struct tdm_comm_call {
    tdm_comm_kind kind;
    int rank;         /* the root or the peer; -1: none; TDM_COMM_ANY */
    tdm_span in, out; /* all_reduce, broadcast and reduce work in place, in `in` */
    /* Coalesced calls: all_reduce's spans, or the ins. A backend finds in `in` their common type and the sum of their
     * counts, and in `out` those of the outs; the data of both is NULL. */
    const tdm_span *spans;
    size_t span_count;
    tdm_reduce_op op;
    int *from;                            /* receive: gets the sender's rank; NULL: is not asked for */
    const size_t *in_counts, *out_counts; /* all_to_all_v: of the part for each rank, and from each */
    const tdm_span *outs;                 /* all_gather_coalesced, reduce_scatter_coalesced: span_count */
    const tdm_transfer *transfers;        /* batch; its `in` has their number as a count of bytes */
    size_t transfer_count;
} tdm_comm_call;

static inline const char *tdm_comm_kind_name(tdm_comm_kind kind) {
    static const char *const names[TDM_COMM_KINDS] = {"join",
                                                      "all_reduce",
                                                      "all_reduce_coalesced",
                                                      "broadcast",
                                                      "reduce",
                                                      "gather",
                                                      "all_gather",
                                                      "scatter",
                                                      "reduce_scatter",
                                                      "all_to_all",
                                                      "all_to_all_v",
                                                      "barrier",
                                                      "send",
                                                      "receive",
                                                      "allocate",
                                                      "split",
                                                      "all_gather_coalesced",
                                                      "reduce_scatter_coalesced",
                                                      "batch_send_receive"};
    return (unsigned)kind < TDM_COMM_KINDS ? names[kind] : "an unknown call";
}

static inline bool tdm_comm_kind_reduces(tdm_comm_kind kind) {
    return kind == TDM_COMM_ALL_REDUCE || kind == TDM_COMM_ALL_REDUCE_COALESCED || kind == TDM_COMM_REDUCE ||
           kind == TDM_COMM_REDUCE_SCATTER || kind == TDM_COMM_REDUCE_SCATTER_COALESCED;
}

/* Calls of two ranks: the others make none. */
static inline bool tdm_comm_kind_is_message(tdm_comm_kind kind) {
    return kind == TDM_COMM_SEND || kind == TDM_COMM_RECEIVE || kind == TDM_COMM_BATCH;
}

/* What a rank passes in or gets: `out` of scatter, reduce_scatter (also coalesced) and receive, `in` of all other
 * kinds. */
static inline tdm_span tdm_comm_call_span(const tdm_comm_call *call) {
    const bool gets = call->kind == TDM_COMM_SCATTER || call->kind == TDM_COMM_REDUCE_SCATTER ||
                      call->kind == TDM_COMM_REDUCE_SCATTER_COALESCED || call->kind == TDM_COMM_RECEIVE;
    return gets ? call->out : call->in;
}

/* Prints a call as messages name it: "all_reduce (call 17, 4 f32, sum)". `type` and `op` are names. */
static inline void tdm_comm_call_print(char *out, size_t bytes, tdm_comm_kind kind, uint64_t sequence, uint64_t count,
                                       const char *type, const char *op, int rank) {
    const char *name = tdm_comm_kind_name(kind);
    const unsigned long long number = sequence, n = count;
    const bool reduces = tdm_comm_kind_reduces(kind);
    char root[24] = "";
    if (rank >= 0) snprintf(root, sizeof(root), ", root %d", rank);
    if (kind == TDM_COMM_JOIN)
        snprintf(out, bytes, "%s", name);
    else if (kind == TDM_COMM_BARRIER)
        snprintf(out, bytes, "%s (call %llu)", name, number);
    else if (kind == TDM_COMM_SPLIT || kind == TDM_COMM_ALLOCATE)
        snprintf(out, bytes, "%s (call %llu, %llu %s)", name, number, n, kind == TDM_COMM_SPLIT ? "ranks" : "bytes");
    else if (kind == TDM_COMM_BATCH)
        snprintf(out, bytes, "%s (%llu messages)", name, n);
    else if (kind == TDM_COMM_RECEIVE && rank == TDM_COMM_ANY)
        snprintf(out, bytes, "%s (from any rank, %llu %s)", name, n, type);
    else if (kind == TDM_COMM_SEND || kind == TDM_COMM_RECEIVE)
        snprintf(out, bytes, "%s (%s %d, %llu %s)", name, kind == TDM_COMM_SEND ? "to" : "from", rank, n, type);
    else
        snprintf(out, bytes, "%s (call %llu, %llu %s%s%s%s)", name, number, n, type, reduces ? ", " : "",
                 reduces ? op : "", root);
}

typedef struct tdm_comm_ops {
    const char *name; /* "local", "shm" */
    bool deterministic;
    /* Makes one call, of any kind but TDM_COMM_JOIN, _ALLOCATE and _SPLIT. Its arguments have been checked. */
    tdm_status (*run)(tdm_comm *comm, const tdm_comm_call *call);
    /* Allocates memory that peers can access directly: an all_reduce within it makes no copy. Collective. *out is
     * zeroed, aligned to TDM_ALIGN, and lives as long as the communicator. Optional: may be NULL. */
    tdm_status (*allocate)(tdm_comm *comm, size_t bytes, void **out);
    /* Makes a communicator of the ranks listed, in that order; *out is NULL on ranks that are not listed. Collective
     * over `comm`. */
    tdm_status (*split)(tdm_comm *comm, const int *ranks, int count, tdm_comm **out);
    /* Wakes every rank: all their calls fail, and the message gives `why`. Any thread. why NULL: the message says that
     * this rank called abort; may be called from a signal handler. */
    void (*abort)(tdm_comm *comm, const char *why);
    void (*close)(tdm_comm *comm);

    /* ---- communicators for a device's memory (NCCL); NULL in those for the host's ---- */

    /* Opens a communicator whose spans lie in the memory of `device`. Its calls return at once: their work runs on a
     * queue of the communicator's own, behind what is on the device's own queue at the time. `control` is a
     * communicator in host memory of the same ranks, through which they meet; it is borrowed and must outlive this one.
     * Collective over `control`; every rank gets the same result. */
    tdm_status (*open)(tdm_comm **out, struct tdm_device *device, tdm_comm *control, int64_t timeout_ms);
    /* Makes the device's own queue wait for all calls so far: work that is queued there from now on runs after them. */
    tdm_status (*join)(tdm_comm *comm);
    /* Waits until the device has reached `until`, an event that was recorded behind calls of this communicator. NULL:
     * waits for all calls so far and for everything on the device's own queue, because calls in captured work run
     * there. A failed peer or the deadline is TDM_E_COMM and aborts: the device's queue then drains by itself, and its
     * results are garbage. Captured work must be freed before `close`, after a failure too: only then can an abort
     * complete. */
    tdm_status (*wait)(tdm_comm *comm, struct tdm_device_event *until);

    /* ---- communicators for the host's memory ---- */

    /* Returns true if the job has ended, on any rank and for whatever reason, or a peer's process has; `why` then gets
     * the first cause. Never waits. Any thread, also while another thread is in a call. */
    bool (*ended)(tdm_comm *comm, char *why, size_t bytes);
} tdm_comm_ops;

/* A backend's own struct begins with this one. */
struct tdm_comm {
    const tdm_comm_ops *ops;
    const tdm_host *host;
    int rank, world;
    int64_t timeout_ms;
    uint64_t sequence;            /* collective calls made so far; every rank has the same number */
    struct tdm_comm_queue *queue; /* owned by the core: the thread for asynchronous calls; NULL until the first one */
    int process;                  /* getpid() of the process that opened it */
};

TDM_END_DECLS
#endif
