/* ranks.h for NCCL: the ranks of tests/comm/ranks.c, threads or processes, each with a communicator over NCCL on a GPU
 * of its own in the place of that in host memory, by which they meet. */
#define ranks_run plain_ranks_run
#include "tests/comm/ranks.c"
#undef ranks_run

#include "tests/comm/nccl_staged.h"

void ranks_run(backend kind, int world, int64_t timeout_ms, rank_fn fn, void *user);

typedef struct dressed {
    rank_fn fn;
    void *user;
    int64_t timeout_ms;
} dressed;

static void run_dressed(rank_context *c) {
    const dressed *d = c->user;
    rank_context own = *c;
    own.user = d->user;
    CHECK_OK(staged_open(&own.comm, c->comm, c->rank, d->timeout_ms));
    if (own.comm == NULL) return;
    d->fn(&own);
    tdm_comm_close(own.comm);
}

/* The emulated GPUs of one process take turns: many ranks are left to the other backends. */
void ranks_run(backend kind, int world, int64_t timeout_ms, rank_fn fn, void *user) {
    if (world > 5) return;
    dressed d = {fn, user, timeout_ms};
    plain_ranks_run(kind, world, timeout_ms, run_dressed, &d);
}
