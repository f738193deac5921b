/* Opening communicators, checked calls, and asynchronous calls on a worker thread. */
#ifndef TDM_COMM_COMM_H
#define TDM_COMM_COMM_H

#include <tandem/sys/comm.h>

#include "runtime/base/system/sync.h"

enum { TDM_COMM_WORLD_MAX = 256, TDM_HEARTBEAT_MS = 5000, TDM_HEARTBEAT_LEAST_MS = 1000 };

/* `world` communicators over the threads of this process; ranks[i] belongs to thread i. They may be closed in any
 * order. */
tdm_status tdm__comm_open_local(tdm_comm **ranks, int world, const tdm_host *host, int64_t timeout_ms);

/* Processes on one host share an anonymous file (memfd). It has no name, so nothing can be left behind. */
/* Launcher: makes the file and initialises its control page for `world` ranks. The ranks inherit *fd. They fail if the
 * caller's process ends before they do. */
tdm_status tdm__shm_create(int *fd, const tdm_host *host, int world);
/* Launcher: ends the job because `rank` died. Every waiting rank returns TDM_E_COMM "rank N has ended: why" within
 * milliseconds. `why` is cut to 200 bytes. */
void tdm__shm_abort(int fd, int rank, const char *why);
/* Rank: joins the job. Duplicates fd; the caller keeps its own. Waits up to timeout_ms for all ranks. From here to the
 * close a thread of this process watches the other ranks: a rank that is gone, or that sends no heartbeat for
 * heartbeat_ms (0: no limit; else at least TDM_HEARTBEAT_LEAST_MS), ends the job. */
tdm_status tdm__comm_open_shm(tdm_comm **out, int fd, int rank, int world, const tdm_host *host, int64_t timeout_ms,
                              int64_t heartbeat_ms);

/* Makes a call, after checking it. A NULL comm, a wrong rank and mismatching spans are TDM_E_USAGE. Each collective
 * increments the sequence number. A rank whose call is refused ends the job for all ranks, with the reason, because its
 * peers wait for it. */
tdm_status tdm__comm_call(tdm_comm *comm, const tdm_comm_call *call);

static inline tdm_status tdm__all_reduce(tdm_comm *comm, tdm_span io, tdm_reduce_op op) {
    return tdm__comm_call(comm, &(tdm_comm_call){.kind = TDM_COMM_ALL_REDUCE, .rank = -1, .in = io, .op = op});
}
static inline tdm_status tdm__broadcast(tdm_comm *comm, tdm_span io, int root) {
    return tdm__comm_call(comm, &(tdm_comm_call){.kind = TDM_COMM_BROADCAST, .rank = root, .in = io});
}
static inline tdm_status tdm__all_gather(tdm_comm *comm, tdm_span in, tdm_span out) {
    return tdm__comm_call(comm, &(tdm_comm_call){.kind = TDM_COMM_ALL_GATHER, .rank = -1, .in = in, .out = out});
}
static inline tdm_status tdm__barrier(tdm_comm *comm) {
    return tdm__comm_call(comm, &(tdm_comm_call){.kind = TDM_COMM_BARRIER, .rank = -1});
}
/* Memory that all ranks can reach. TDM_E_UNSUPPORTED if the backend has none. */
tdm_status tdm__comm_allocate(tdm_comm *comm, size_t bytes, void **out);
tdm_status tdm__comm_split(tdm_comm *comm, const int *ranks, int count, tdm_comm **out);
/* Ends the job: every rank's calls fail with "rank N: why". May be called from any thread. NULL comm is fine. */
void tdm__comm_abort(tdm_comm *comm, const char *why);
void tdm__comm_close(tdm_comm *comm); /* NULL is fine */

/* Collective: compares a hash across the ranks. If the hashes differ, every rank returns TDM_E_COMM with `what`, the
 * first rank that differs from rank 0, and both hashes. */
tdm_status tdm__comm_agree(tdm_comm *comm, const char *what, uint64_t high, uint64_t low);

const char *tdm__reduce_op_name(tdm_reduce_op op);

/* ---- asynchronous calls: a thread makes the calls of one communicator in the order in which they were started ---- */

typedef struct tdm_comm_queue tdm_comm_queue;

/* Other work for the thread than a tdm_comm_call. */
typedef tdm_status (*tdm_comm_fn)(tdm_comm *comm, void *user);

/* Until the queue is closed, only the queue uses `comm`. The caller still owns it. */
tdm_status tdm__comm_queue_open(tdm_comm_queue **out, tdm_comm *comm);
/* Returns at once. Fails only if memory is out. tdm__comm_wait or tdm__comm_queue_close frees *request. */
tdm_status tdm__comm_start(tdm_comm_queue *queue, const tdm_comm_call *call, tdm_comm_request **request);
/* Runs fn after all calls started before, and waits for it. */
tdm_status tdm__comm_queue_run(tdm_comm_queue *queue, tdm_comm_fn fn, void *user);
bool tdm__comm_done(tdm_comm_request *request);
/* Waits for the end of the call (which has its own deadline) and frees the request. Returns the call's status and moves
 * its error record to this thread. *ms, if not NULL, is the duration of the call itself. */
tdm_status tdm__comm_wait(tdm_comm_request *request, double *ms);
/* Waits for the calls that were started, then ends the thread. NULL is fine. */
void tdm__comm_queue_close(tdm_comm_queue *queue);

#endif
