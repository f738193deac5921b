/* The child of a fork gets a status from every call of its parent's communicators, and ends nothing; the parent's job
 * goes on. Over threads and over processes, with calls in progress and without. */
#include <sys/wait.h>
#include <unistd.h>

#include "tests/comm/ranks.h"

enum { WORLD = 3, TIMEOUT_MS = 60000, PATIENCE_S = 30 };

static void check_refused(tdm_status status, const char *call) {
    char message[64];
    snprintf(message, sizeof(message), "%s: process %ld opened the communicator", call, (long)getppid());
    CHECK_STATUS(status, TDM_E_USAGE);
    CHECK_HAS(tdm_error_message(), message);
    CHECK_HAS(tdm_error_message(), "open another communicator here");
}

static void be_child(tdm_comm *comm, tdm_comm_request *request) {
    double number = 1, all[WORLD];
    void *memory = NULL;
    tdm_comm *part = NULL;
    tdm_comm_request *started = NULL;
    const tdm_span one = {&number, 1, TDM_DTYPE_F64}, each = {all, WORLD, TDM_DTYPE_F64};
    alarm(PATIENCE_S); /* a call that waits is killed, which the parent sees */
    check_refused(tdm_comm_all_reduce(comm, one, TDM_REDUCE_SUM), "all_reduce");
    check_refused(tdm_comm_all_gather(comm, one, each), "all_gather");
    check_refused(tdm_comm_barrier(comm), "barrier");
    check_refused(tdm_comm_send(comm, one, (comm->rank + 1) % WORLD), "send");
    check_refused(tdm_comm_all_reduce(comm, (tdm_span){NULL, 1, TDM_DTYPE_F64}, TDM_REDUCE_SUM), "all_reduce");
    check_refused(tdm_comm_start_barrier(comm, &started), "barrier");
    CHECK(started == NULL);
    check_refused(tdm_comm_split(comm, (const int[]){0, 1}, 2, &part), "split");
    check_refused(tdm_comm_allocate(comm, 64, &memory), "allocate");
    if (request != NULL) {
        CHECK(tdm_comm_done(request));
        check_refused(tdm_comm_wait(request, NULL), "wait");
    }
    CHECK_INT(tdm_comm_world(comm), WORLD);
    tdm_comm_abort(comm, "a child wants the end");
    tdm_comm_close(comm);
    _exit(tdm_test_failures != 0);
}

static void fork_here(rank_context *c, tdm_comm_request *request) {
    int end = -1;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) be_child(c->comm, request);
    CHECK(child > 0 && waitpid(child, &end, 0) == child);
    CHECK(WIFEXITED(end) && WEXITSTATUS(end) == 0);
}

static void check_sum(rank_context *c) {
    double number = 1;
    CHECK_OK(tdm_comm_all_reduce(c->comm, (tdm_span){&number, 1, TDM_DTYPE_F64}, TDM_REDUCE_SUM));
    CHECK(number == WORLD);
}

static void one_rank_forks(rank_context *c) {
    check_sum(c);
    if (c->rank == 1) fork_here(c, NULL);
    check_sum(c);
    CHECK_OK(tdm_comm_barrier(c->comm));
}

/* The call of the queue waits for rank 2, so that it is in progress while rank 0 forks. */
static void one_rank_forks_in_a_call(rank_context *c) {
    double number = 1;
    tdm_comm_request *request = NULL;
    if (c->rank != 2)
        CHECK_OK(tdm_comm_start_all_reduce(c->comm, (tdm_span){&number, 1, TDM_DTYPE_F64}, TDM_REDUCE_SUM, &request));
    if (c->rank == 0) fork_here(c, request);
    ranks_meet(c, WORLD);
    if (c->rank == 2) {
        check_sum(c);
    } else {
        CHECK_OK(tdm_comm_wait(request, NULL));
        CHECK(number == WORLD);
    }
    check_sum(c);
}

TEST(over_threads) {
    ranks_run(BACKEND_LOCAL, WORLD, TIMEOUT_MS, one_rank_forks, NULL);
    ranks_run(BACKEND_LOCAL, WORLD, TIMEOUT_MS, one_rank_forks_in_a_call, NULL);
}

TEST(over_processes) {
    ranks_run(BACKEND_SHM, WORLD, TIMEOUT_MS, one_rank_forks, NULL);
    ranks_run(BACKEND_SHM, WORLD, TIMEOUT_MS, one_rank_forks_in_a_call, NULL);
}

TEST_MAIN(RUN(over_threads); RUN(over_processes);)
