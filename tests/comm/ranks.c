/* See ranks.h. */
#include "tests/comm/ranks.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

enum { WORLD_MAX = 16 };

void ranks_meet(rank_context *context, int count) {
    atomic_fetch_add(context->here, 1);
    while (atomic_load(context->here) < count) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* ---- threads ---- */

typedef struct thread_rank {
    rank_context context;
    rank_fn fn;
} thread_rank;

static void *run_thread(void *argument) {
    thread_rank *own = argument;
    own->fn(&own->context);
    return NULL;
}

static void run_threads(int world, int64_t timeout_ms, rank_fn fn, void *user) {
    tdm_comm *comm[WORLD_MAX];
    thread_rank rank[WORLD_MAX];
    pthread_t thread[WORLD_MAX];
    atomic_int here = 0;
    REQUIRE_OK(tdm_comm_open_threads(comm, world, tdm_host_default(), timeout_ms));
    for (int r = 0; r < world; r++) {
        rank[r] = (thread_rank){.context = {comm[r], r, world, -1, NULL, &here, user}, .fn = fn};
        REQUIRE(pthread_create(&thread[r], NULL, run_thread, &rank[r]) == 0);
    }
    for (int r = 0; r < world; r++) {
        pthread_join(thread[r], NULL);
        tdm_comm_close(rank[r].context.comm);
    }
}

/* ---- processes ---- */

static void run_child(rank_context *context, int64_t timeout_ms, int64_t heartbeat_ms, rank_fn fn) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    tdm_test_failures = 0;
    CHECK_OK(tdm__comm_open_shm(&context->comm, context->fd, context->rank, context->world, tdm_host_default(),
                                timeout_ms, heartbeat_ms));
    if (context->comm != NULL) fn(context);
    tdm_comm_close(context->comm);
    fflush(NULL);
    exit(tdm_test_failures != 0);
}

void ranks_fork(int world, int64_t timeout_ms, int64_t heartbeat_ms, rank_fn fn, void *user, int *wait_status) {
    int fd;
    struct {
        pid_t pids[WORLD_MAX];
        atomic_int here;
    } *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(shared != MAP_FAILED);
    pid_t *pids = shared->pids;
    REQUIRE_OK(tdm_launch_create(&fd, world));
    fflush(NULL);
    for (int r = 0; r < world; r++) {
        rank_context context = {NULL, r, world, fd, pids, &shared->here, user};
        pid_t pid = fork();
        REQUIRE(pid >= 0);
        if (pid == 0) {
            pids[r] = getpid();
            run_child(&context, timeout_ms, heartbeat_ms, fn);
        }
        pids[r] = pid;
    }
    for (int r = 0; r < world; r++) CHECK(waitpid(pids[r], &wait_status[r], 0) == pids[r]);
    close(fd);
    munmap(shared, sizeof(*shared));
}

void ranks_run(backend kind, int world, int64_t timeout_ms, rank_fn fn, void *user) {
    int wait_status[WORLD_MAX] = {0};
    if (kind == BACKEND_LOCAL) {
        run_threads(world, timeout_ms, fn, user);
        return;
    }
    ranks_fork(world, timeout_ms, TDM_HEARTBEAT_MS, fn, user, wait_status);
    for (int r = 0; r < world; r++) CHECK_INT(wait_status[r], 0);
}
