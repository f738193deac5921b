/* ranks.h over several hosts' transports: forked processes that meet at a file, as if HOSTS_LOCALS of them each were on
 * a host of their own, and the rest on a last one; or, of an odd number, with HOSTS_LOCALS 3, as if hosts were of
 * different sizes. */
#define ranks_run plain_ranks_run
#include "tests/comm/ranks.c"
#undef ranks_run

#include <stdio.h>
#include <stdlib.h>

/* All ranks connect to all: many of them take long to start, and longer under sanitizers. */
#ifdef TDM_SANITIZED
enum { WORLD_MOST = 4 };
#else
enum { WORLD_MOST = HOSTS_LOCALS == 2 ? 5 : 9 };
#endif

void ranks_run(backend kind, int world, int64_t timeout_ms, rank_fn fn, void *user);

/* Puts a rank on its host. */
static void place_rank(tdm_launch_facts *facts) {
    static const int sizes[] = {1, 3, 2};
    for (int first = 0, host = 0; first <= facts->rank; first += facts->local_world, host++) {
        const int size = HOSTS_LOCALS == 3 && facts->world % 2 == 1 ? sizes[host % 3] : HOSTS_LOCALS;
        facts->local_world = size < facts->world - first ? size : facts->world - first;
        facts->local_rank = facts->rank - first;
    }
}

static void run_hosts_child(rank_context *context, const char *folder, int64_t timeout_ms, rank_fn fn) {
    char place[256];
    tdm_hosts_options options = TDM_HOSTS_OPTIONS_INIT;
    tdm_launch_facts facts = {
        .size = sizeof(facts), .source = TDM_LAUNCH_TORCHRUN, .rank = context->rank, .world = context->world, .fd = -1};
    place_rank(&facts);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    tdm_test_failures = 0;
    snprintf(place, sizeof(place), "file://%s/place", folder);
    options.backend = HOSTS_BACKEND;
    options.init_method = place;
    options.interface = "lo";
    options.timeout_ms = timeout_ms;
    CHECK_OK(tdm_comm_open_hosts(&context->comm, &facts, &options));
    if (context->comm != NULL) fn(context);
    tdm_comm_close(context->comm);
    fflush(NULL);
    exit(tdm_test_failures != 0);
}

void ranks_run(backend kind, int world, int64_t timeout_ms, rank_fn fn, void *user) {
    char folder[] = "/tmp/tandem-test-XXXXXX";
    int wait_status;
    struct {
        pid_t pids[WORLD_MAX];
        atomic_int here;
    } *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    (void)kind;
    if (world > WORLD_MOST) return;
    REQUIRE(shared != MAP_FAILED && mkdtemp(folder) != NULL);
    fflush(NULL);
    for (int r = 0; r < world; r++) {
        rank_context context = {NULL, r, world, -1, shared->pids, &shared->here, user};
        const pid_t pid = fork();
        REQUIRE(pid >= 0);
        if (pid == 0) run_hosts_child(&context, folder, timeout_ms, fn);
        shared->pids[r] = pid;
    }
    for (int r = 0; r < world; r++) {
        CHECK(waitpid(shared->pids[r], &wait_status, 0) == shared->pids[r]);
        CHECK_INT(wait_status, 0);
    }
    munmap(shared, sizeof(*shared));
    CHECK(rmdir(folder) == 0); /* rank 0 has removed its file */
}
