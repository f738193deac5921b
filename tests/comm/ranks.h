/* Runs one function on every rank of a job: as threads over `local`, or as forked processes over `shm`. */
#ifndef TEST_COMM_RANKS_H
#define TEST_COMM_RANKS_H

#include <stdatomic.h>
#include <sys/types.h>

#include "runtime/comm/comm.h"
#include "tests/support/tdm_test.h"

typedef enum backend { BACKEND_LOCAL, BACKEND_SHM } backend;

/* Owns nothing: `comm` is closed by whoever opened it, and may be closed early by setting it to NULL after. */
typedef struct rank_context {
    tdm_comm *comm;
    int rank, world, fd;
    pid_t *pids;      /* shm: of all ranks, in shared memory */
    atomic_int *here; /* of ranks_meet */
    void *user;
} rank_context;
typedef void (*rank_fn)(rank_context *context);

/* Returns when so many have called it since the ranks began: to wait for a state instead of for a time. */
void ranks_meet(rank_context *context, int count);

/* Returns when all ranks have ended. Failed checks in forked ranks count as failures here. */
void ranks_run(backend kind, int world, int64_t timeout_ms, rank_fn fn, void *user);

/* As ranks_run over shm; wait_status[r] is what waitpid said. Ranks that were killed are no failures here. */
void ranks_fork(int world, int64_t timeout_ms, int64_t heartbeat_ms, rank_fn fn, void *user, int *wait_status);

#endif
