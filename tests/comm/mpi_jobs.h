/* ranks_run over MPI, where the job may end, and one of its ranks with it. */
#ifndef TEST_COMM_MPI_JOBS_H
#define TEST_COMM_MPI_JOBS_H

#include "tests/comm/ranks.h"

/* `victim` is a rank that does not end by itself; -1: all do. */
void mpi_jobs_run(int world, int64_t timeout_ms, rank_fn fn, void *user, int victim);

#endif
