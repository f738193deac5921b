/* Opening communicators, checked calls, and asynchronous calls on a worker thread. */
#ifndef TDM_COMM_COMM_H
#define TDM_COMM_COMM_H

#include <tandem/sys/comm.h>
#include <tandem/tandem.h>

#include "runtime/base/system/sync.h"

enum { TDM_COMM_WORLD_MAX = 256, TDM_HEARTBEAT_MS = 5000, TDM_HEARTBEAT_LEAST_MS = 1000 };

/* As tdm_comm_open_shm. Joins the job. Duplicates fd; the caller keeps its own. Waits up to timeout_ms for all ranks.
 * From here to the close a thread of this process watches the other ranks: a rank that is gone, or that sends no
 * heartbeat for heartbeat_ms (0: no limit; else at least TDM_HEARTBEAT_LEAST_MS), ends the job. */
tdm_status tdm__comm_open_shm(tdm_comm **out, int fd, int rank, int world, const tdm_host *host, int64_t timeout_ms,
                              int64_t heartbeat_ms);

/* Like tdm_launch_from_env, but reads the variables through a function, which returns NULL for an unset one. */
typedef const char *(*tdm_variable_fn)(const char *name, void *user);
tdm_status tdm__launch_from(tdm_launch_facts *out, tdm_variable_fn variable, void *user);

/* Makes a call, after checking it. A NULL comm, a wrong rank and mismatching spans are TDM_E_USAGE. Each collective
 * increments the sequence number. A rank whose call is refused by these checks ends the job for all ranks, with the
 * reason, because its peers wait for it. A backend that does not have a call (TDM_E_UNSUPPORTED) refuses it on every
 * rank alike, and ends nothing. */
tdm_status tdm__comm_call(tdm_comm *comm, const tdm_comm_call *call);
/* After a fork only the process that opened a communicator may use it: the child has no threads, and its calls would
 * count as those of its parent's rank. check: TDM_E_USAGE. */
bool tdm__comm_is_home(const tdm_comm *comm);
tdm_status tdm__comm_check_home(const tdm_comm *comm, const char *call);
/* Memory that all ranks can reach. TDM_E_UNSUPPORTED if the backend has none. */
tdm_status tdm__comm_allocate(tdm_comm *comm, size_t bytes, void **out);
tdm_status tdm__comm_split(tdm_comm *comm, const int *ranks, int count, tdm_comm **out);
/* Orders a device's queue behind the calls, and waits for it: join and wait of tdm_comm_ops. TDM_E_UNSUPPORTED of a
 * communicator for the host's memory, whose calls are done when they return. */
tdm_status tdm__comm_join(tdm_comm *comm);
tdm_status tdm__comm_wait(tdm_comm *comm, struct tdm_device_event *until);
/* Has the job ended? `why` is then the first cause. A communicator for a device's memory does not know; that for the
 * host's memory, with which it was opened, does. */
bool tdm__comm_ended(tdm_comm *comm, char *why, size_t bytes);

/* Collective: compares a hash across the ranks. If the hashes differ, every rank returns TDM_E_COMM with `what`, the
 * first rank that differs from rank 0, and both hashes. */
tdm_status tdm__comm_agree(tdm_comm *comm, const char *what, uint64_t high, uint64_t low);

const char *tdm__reduce_op_name(tdm_reduce_op op);

/* TDM_E_USAGE if timeout or heartbeat is too short; a heartbeat of 0 is none. `what` begins the message. */
tdm_status tdm__comm_check_times(const char *what, int64_t timeout_ms, int64_t heartbeat_ms);

/* ---- asynchronous calls: a thread makes the calls of one communicator in the order in which they were started ---- */

typedef struct tdm_comm_queue tdm_comm_queue;

/* Other work for the thread than a tdm_comm_call. */
typedef tdm_status (*tdm_comm_fn)(tdm_comm *comm, void *user);

/* Until the queue is closed, only the queue uses `comm`. The caller still owns it. */
tdm_status tdm__comm_queue_open(tdm_comm_queue **out, tdm_comm *comm);
/* Returns at once. Fails only if there is no memory. tdm_comm_wait or tdm__comm_queue_close frees *request. */
tdm_status tdm__comm_start(tdm_comm_queue *queue, const tdm_comm_call *call, tdm_comm_request **request);
/* Runs fn after all calls started before, and waits for it. */
tdm_status tdm__comm_queue_run(tdm_comm_queue *queue, tdm_comm_fn fn, void *user);
/* Waits for the calls that were started, then ends the thread. NULL is fine. */
void tdm__comm_queue_close(tdm_comm_queue *queue);

#endif
