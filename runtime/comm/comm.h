/* Opening communicators, and the asynchronous forms on a thread of their own. */
#ifndef TDM_COMM_COMM_H
#define TDM_COMM_COMM_H

#include <tandem/sys/comm.h>

#include "runtime/base/sync.h"

/* `world` communicators over the threads of this process; ranks[i] belongs to thread i. Any close order. */
tdm_status tdm__comm_open_local(tdm_comm **ranks, int world, const tdm_host *host, int64_t timeout_ms);

/* Processes on one host over an anonymous shared file (memfd): it has no name, so nothing can be left behind. */
/* Parent: makes the file and initialises its control page for `world` ranks; *fd is inherited by the ranks. */
tdm_status tdm__shm_create(int *fd, const tdm_host *host, int world);
/* Parent, also from a signal handler's flag loop: marks the job as ended because `rank` died; every waiting rank
 * returns TDM_E_COMM "rank N ...: why" within milliseconds. `why` is cut to 200 bytes. */
void tdm__shm_abort(int fd, int rank, const char *why);
/* Rank: joins; fd is duplicated, the caller keeps its own. Waits for all ranks until timeout_ms. */
tdm_status tdm__comm_open_shm(tdm_comm **out, int fd, int rank, int world, const tdm_host *host, int64_t timeout_ms);

/* Checked calls: NULL comm, wrong root and mismatching spans are TDM_E_USAGE; each increments the sequence. */
tdm_status tdm__all_reduce(tdm_comm *comm, tdm_span io, tdm_reduce_op op);
tdm_status tdm__broadcast(tdm_comm *comm, tdm_span io, int root);
tdm_status tdm__barrier(tdm_comm *comm);
void tdm__comm_close(tdm_comm *comm); /* NULL is fine */

/* A verdict that every rank learns: each brings its hash; if they differ every rank gets TDM_E_COMM naming `what`, the
 * first rank that differs from rank 0, and both hashes. */
tdm_status tdm__comm_agree(tdm_comm *comm, const char *what, uint64_t high, uint64_t low);

#endif
