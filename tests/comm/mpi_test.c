/* What only processes can do to one another, over MPI: die, or stand still. mpirun lets the others go on (mpi_jobs.c). */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/comm/mpi_jobs.h"

enum { TIMEOUT_MS = 50000, WORLD = 3, COUNT = 1000 };

static void call_until_the_end(rank_context *c, int victim, int number) {
    float x[COUNT] = {0};
    for (int i = 0;; i++) {
        if (c->rank == victim && i == 20) raise(number);
        const tdm_status status = tdm_comm_all_reduce(c->comm, (tdm_span){x, COUNT, TDM_DTYPE_F32}, TDM_REDUCE_SUM);
        if (status == TDM_OK) continue;
        CHECK_INT(status, TDM_E_COMM);
        return;
    }
}

static void check_told(const rank_context *c, int victim, const char *what) {
    char name[64], end[128];
    snprintf(name, sizeof(name), "rank %d (host ", victim);
    snprintf(end, sizeof(end), ", pid %d) %s", (int)c->pids[victim], what);
    CHECK_HAS(tdm_error_message(), name);
    CHECK_HAS(tdm_error_message(), end);
}

static void mourning_rank(rank_context *c) {
    const int victim = *(int *)c->user;
    call_until_the_end(c, victim, SIGKILL);
    check_told(c, victim, "is gone");
}

TEST(a_rank_that_dies_is_named) {
    for (int victim = 0; victim < WORLD; victim++) mpi_jobs_run(WORLD, TIMEOUT_MS, mourning_rank, &victim, victim);
}

/* Who was stopped goes on when the others know that, and is told, too. */
static void waiting_rank(rank_context *c) {
    const int victim = *(int *)c->user;
    call_until_the_end(c, victim, SIGSTOP);
    check_told(c, victim, "has not been heard of for ");
    if (c->rank == victim) return;
    ranks_meet(c, WORLD - 1);
    kill(c->pids[victim], SIGCONT);
}

TEST(a_rank_that_stands_still_is_named) {
    mpi_jobs_run(WORLD, TIMEOUT_MS, waiting_rank, &(int){1}, -1);
}

/* As under the mpirun of another MPI, whose variables this one does not know. */
TEST(another_launcher_is_told) {
    int status;
    const pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
        tdm_comm *comm;
        tdm_launch_facts facts = TDM_LAUNCH_FACTS_INIT;
        tdm_hosts_options options = TDM_HOSTS_OPTIONS_INIT;
        setenv("MV2_COMM_WORLD_RANK", "1", 1);
        setenv("MV2_COMM_WORLD_SIZE", "2", 1);
        options.backend = "mpi";
        tdm_test_failures = 0;
        CHECK_OK(tdm_launch_from_env(&facts));
        CHECK_STATUS(tdm_comm_open_hosts(&comm, &facts, &options), TDM_E_USAGE);
        CHECK_HAS(tdm_error_message(), "mpi: this process is rank 1 of 2, but ");
        CHECK_HAS(tdm_error_message(),
                  ", with which the module was built, says rank 0 of 1; start the ranks with the ");
        _exit(tdm_test_failures != 0);
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK_INT(status, 0);
}

TEST_MAIN({
    RUN(a_rank_that_dies_is_named);
    RUN(a_rank_that_stands_still_is_named);
    RUN(another_launcher_is_told); /* the last, because in the ranks of a job no test begins after it */
})
