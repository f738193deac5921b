/* ranks.h over MPI: mpirun has started as many processes as a test needs at most. Smaller worlds are groups of them. */
#include "tests/comm/ranks.h"

#include <stdlib.h>

static tdm_comm *all; /* of all processes; opened by the first test */

static void open_all(int64_t timeout_ms) {
    tdm_launch_facts facts = TDM_LAUNCH_FACTS_INIT;
    tdm_hosts_options options = TDM_HOSTS_OPTIONS_INIT;
    REQUIRE_OK(tdm_launch_from_env(&facts));
    REQUIRE((facts.source == TDM_LAUNCH_OPENMPI || facts.source == TDM_LAUNCH_PMI) && facts.world >= 9);
    options.backend = "mpi";
    options.timeout_ms = timeout_ms;
    REQUIRE_OK(tdm_comm_open_hosts(&all, &facts, &options));
}

static void close_all(void) {
    tdm_comm_close(all);
}

void ranks_run(backend kind, int world, int64_t timeout_ms, rank_fn fn, void *user) {
    int members[16];
    tdm_comm *group;
    (void)kind;
    if (all == NULL) {
        open_all(timeout_ms);
        atexit(close_all);
    }
    REQUIRE(world <= tdm_comm_world(all));
    for (int r = 0; r < world; r++) members[r] = r;
    REQUIRE_OK(tdm_comm_split(all, members, world, &group));
    if (group != NULL) {
        rank_context context = {.comm = group, .rank = tdm_comm_rank(group), .world = world, .fd = -1, .user = user};
        fn(&context);
        tdm_comm_close(context.comm);
    }
    CHECK_OK(tdm_comm_barrier(all));
}
