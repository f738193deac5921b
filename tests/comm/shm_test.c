/* What only processes can do to one another: die, be killed at any moment, be stopped, come twice or never. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/system/clock.h"
#include "runtime/comm/shm/shm.h"
#include "tests/comm/ranks.h"

/* Long: a test that ends by it would not end in time. LIMIT_MS is for tests that end by it: a machine may stand still
 * for seconds. */
enum { TIMEOUT_MS = 50000, LIMIT_MS = 4000, WORLD = 3 };

static tdm_span f32(float *data, size_t count) {
    return (tdm_span){data, count, TDM_DTYPE_F32};
}

static void nap_us(long us) {
    nanosleep(&(struct timespec){.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000}, NULL);
}

/* Entries of a folder whose names hold `part`. */
static int entries(const char *folder, const char *part) {
    int count = 0;
    DIR *dir = opendir(folder);
    for (struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;)
        count += strstr(entry->d_name, part) != NULL;
    if (dir != NULL) closedir(dir);
    return count;
}

/* ---- death ---- */

typedef struct death {
    int rank, after_us;
    uint64_t sequence; /* or: right before this call */
    bool symmetric;
} death;

/* Work without end, until something happens. */
static tdm_status work(rank_context *c, const death *when) {
    enum { COUNT = 50000 };
    float *heap = calloc(COUNT, sizeof(*heap)), *data = heap;
    void *memory = NULL;
    tdm_status status = when->symmetric ? tdm__comm_allocate(c->comm, COUNT * sizeof(float), &memory) : TDM_OK;
    if (memory != NULL) data = memory;
    while (status == TDM_OK) {
        uint64_t next = c->comm->sequence + 1;
        if (c->rank == when->rank && next == when->sequence) raise(SIGKILL);
        size_t count = next % 3 == 0 ? 2 : COUNT;
        status = next % 5 == 0 ? tdm_comm_broadcast(c->comm, f32(data, count), (int)(next % (uint64_t)c->world))
                               : tdm_comm_all_reduce(c->comm, f32(data, count), TDM_REDUCE_SUM);
    }
    free(heap);
    return status;
}

static void check_told(rank_context *c, int rank, tdm_status status) {
    char wanted[64];
    snprintf(wanted, sizeof(wanted), "rank %d (pid %d) is gone", rank, (int)c->pids[rank]);
    CHECK_INT(status, TDM_E_COMM);
    CHECK_HAS(tdm_error_message(), wanted);
}

static void killed_rank(rank_context *c) {
    const death *when = c->user;
    check_told(c, when->rank, work(c, when));
}

static void check_one_killed(const int *wait_status, int world, int rank) {
    for (int r = 0; r < world; r++) {
        if (r == rank)
            CHECK(WIFSIGNALED(wait_status[r]) && WTERMSIG(wait_status[r]) == SIGKILL);
        else
            CHECK_INT(wait_status[r], 0);
    }
}

TEST(a_killed_rank_is_named) {
    int wait_status[WORLD];
    for (uint64_t sequence = 1; sequence <= 6; sequence++) {
        death when = {.rank = (int)(sequence % WORLD), .sequence = sequence + 1, .symmetric = sequence % 2 == 0};
        ranks_fork(WORLD, TIMEOUT_MS, TDM_HEARTBEAT_MS, killed_rank, &when, wait_status);
        check_one_killed(wait_status, WORLD, when.rank);
    }
}

static void killed_any_time_rank(rank_context *c) {
    const death *when = c->user;
    pid_t self = getpid();
    if (c->rank == when->rank && fork() == 0) {
        nap_us(when->after_us);
        kill(self, SIGKILL);
        _exit(0);
    }
    check_told(c, when->rank, work(c, when));
}

TEST(killed_at_any_moment) {
    int wait_status[WORLD];
    int descriptors = entries("/proc/self/fd", "");
    for (int i = 0; i < 12; i++) {
        death when = {.rank = i % WORLD, .after_us = 300 + i * 577, .symmetric = i % 2 == 0};
        ranks_fork(WORLD, TIMEOUT_MS, TDM_HEARTBEAT_MS, killed_any_time_rank, &when, wait_status);
        check_one_killed(wait_status, WORLD, when.rank);
    }
    CHECK_INT(entries("/dev/shm", "tandem"), 0);
    CHECK_INT(entries("/proc/self/fd", ""), descriptors);
}

/* ---- the launcher's word ---- */

static pid_t start_rank(int fd, int rank, int world, rank_fn fn) {
    fflush(NULL);
    pid_t pid = fork();
    if (pid != 0) return pid;
    rank_context context = {.rank = rank, .world = world, .fd = fd};
    tdm_test_failures = 0;
    fn(&context);
    tdm_comm_close(context.comm);
    fflush(NULL);
    exit(tdm_test_failures != 0);
}

static tdm_status open_rank(rank_context *c, int64_t timeout_ms, int64_t heartbeat_ms) {
    return tdm__comm_open_shm(&c->comm, c->fd, c->rank, c->world, tdm_host_default(), timeout_ms, heartbeat_ms);
}

/* Until the first ranks of the job have joined. */
static void await_joined(int fd, int world, int count) {
    const tdm_shm_layout layout = tdm__shm_layout(world);
    void *base;
    REQUIRE_OK(tdm__shm_map(fd, 0, layout.total, &base));
    tdm_process *process = (tdm_process *)((char *)base + layout.process);
    for (int r = 0; r < count; r++) {
        while (atomic_load(&process[r].state) != TDM_PROCESS_JOINED) nap_us(1000);
    }
    munmap(base, layout.total);
}

static int end_of(pid_t pid) {
    int wait_status = -1;
    while (waitpid(pid, &wait_status, 0) < 0 && errno == EINTR) continue;
    return wait_status;
}

static void told_rank(rank_context *c) {
    REQUIRE_OK(open_rank(c, TIMEOUT_MS, TDM_HEARTBEAT_MS));
    int64_t start = tdm__now_ns();
    CHECK_STATUS(tdm_comm_barrier(c->comm), TDM_E_COMM);
    CHECK_TEXT(tdm_error_message(), "barrier (call 1): rank 2 has ended: killed by signal 11 (Segmentation fault)");
    CHECK(tdm__ms_since(start) < TIMEOUT_MS / 2.0);
}

static void idle_rank(rank_context *c) {
    REQUIRE_OK(open_rank(c, TIMEOUT_MS, TDM_HEARTBEAT_MS));
    for (int i = 0; i < 60; i++) nap_us(1000000);
}

TEST(the_launcher_tells) {
    int fd;
    pid_t pid[3];
    REQUIRE_OK(tdm_launch_create(&fd, 3));
    for (int r = 0; r < 3; r++) pid[r] = start_rank(fd, r, 3, r == 2 ? idle_rank : told_rank);
    await_joined(fd, 3, 3);
    tdm_launch_abort(fd, 2, "killed by signal 11 (Segmentation fault)");
    tdm_launch_abort(fd, 1, "too late: the first cause stays");
    CHECK_INT(end_of(pid[0]), 0);
    CHECK_INT(end_of(pid[1]), 0);
    kill(pid[2], SIGKILL);
    end_of(pid[2]);
    tdm_launch_abort(-1, 0, "no such descriptor");
    tdm_launch_abort(0, 0, "not ours");
    close(fd);
}

static void told_while_joining_rank(rank_context *c) {
    CHECK_STATUS(open_rank(c, TIMEOUT_MS, TDM_HEARTBEAT_MS), TDM_E_COMM);
    CHECK_TEXT(tdm_error_message(), "join: rank 1 has ended: exit code 3");
}

TEST(told_while_joining) {
    int fd;
    REQUIRE_OK(tdm_launch_create(&fd, 2));
    pid_t pid = start_rank(fd, 0, 2, told_while_joining_rank);
    nap_us(50000); /* in most runs it waits by then */
    tdm_launch_abort(fd, 1, "exit code 3");
    CHECK_INT(end_of(pid), 0);
    close(fd);
}

/* Ranks that wait when their launcher dies notice by themselves. */
static void orphan_rank(rank_context *c) {
    REQUIRE_OK(open_rank(c, TIMEOUT_MS, TDM_HEARTBEAT_MS));
    CHECK_STATUS(tdm_comm_barrier(c->comm), TDM_E_COMM);
    CHECK_HAS(tdm_error_message(), "barrier (call 1): the launcher (pid ");
    CHECK_HAS(tdm_error_message(), ") is gone");
}

TEST(the_launcher_dies) {
    pid_t *rank = mmap(NULL, 2 * sizeof(*rank), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(rank != MAP_FAILED);
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* the orphans come to this process */
    fflush(NULL);
    pid_t launcher = fork();
    if (launcher == 0) {
        int fd;
        if (tdm_launch_create(&fd, 2) != TDM_OK) _exit(1);
        rank[0] = start_rank(fd, 0, 2, orphan_rank);
        rank[1] = start_rank(fd, 1, 2, idle_rank);
        await_joined(fd, 2, 2);
        nap_us(50000); /* in most runs they wait by then */
        kill(getpid(), SIGKILL);
    }
    int ended = end_of(launcher);
    CHECK(WIFSIGNALED(ended) && WTERMSIG(ended) == SIGKILL);
    CHECK_INT(end_of(rank[0]), 0);
    kill(rank[1], SIGKILL);
    end_of(rank[1]);
    prctl(PR_SET_CHILD_SUBREAPER, 0);
    munmap(rank, 2 * sizeof(*rank));
}

/* ---- joining ---- */

static void lonely_rank(rank_context *c) {
    CHECK_STATUS(open_rank(c, LIMIT_MS, TDM_HEARTBEAT_MS), TDM_E_COMM);
    CHECK_HAS(tdm_error_message(), "join: rank ");
    CHECK_HAS(tdm_error_message(), " waited 4000 ms for rank 1, rank 3");
    CHECK(c->comm == NULL);
}

TEST(ranks_that_never_join_are_listed) {
    int fd;
    REQUIRE_OK(tdm_launch_create(&fd, 4));
    pid_t a = start_rank(fd, 0, 4, lonely_rank), b = start_rank(fd, 2, 4, lonely_rank);
    CHECK_INT(end_of(a), 0);
    CHECK_INT(end_of(b), 0);
    close(fd);
}

TEST(the_file_has_no_name) {
    int fd;
    char path[32], target[64] = "";
    REQUIRE_OK(tdm_launch_create(&fd, 2));
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    CHECK(readlink(path, target, sizeof(target) - 1) > 0);
    CHECK_TEXT(target, "/memfd:tandem (deleted)");
    CHECK_INT(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
    close(fd);
}

TEST(wrong_joins) {
    int fd, file;
    tdm_comm *comm, *again;
    const tdm_host *host = tdm_host_default();
    CHECK_STATUS(tdm_launch_create(&fd, 0), TDM_E_USAGE);
    CHECK_STATUS(tdm_launch_create(&fd, 100000), TDM_E_USAGE);
    REQUIRE_OK(tdm_launch_create(&fd, 1));
    CHECK_STATUS(tdm__comm_open_shm(&comm, fd, 0, 2, host, 1000, TDM_HEARTBEAT_MS), TDM_E_USAGE);
    CHECK_HAS(tdm_error_message(), "made for 1 ranks, but this rank was started with a world of 2");
    CHECK_STATUS(tdm__comm_open_shm(&comm, fd, 1, 1, host, 1000, TDM_HEARTBEAT_MS), TDM_E_USAGE);
    CHECK_STATUS(tdm__comm_open_shm(&comm, fd, 0, 1, host, 0, TDM_HEARTBEAT_MS), TDM_E_USAGE);
    REQUIRE_OK(tdm__comm_open_shm(&comm, fd, 0, 1, host, 1000, TDM_HEARTBEAT_MS));
    CHECK_STATUS(tdm__comm_open_shm(&again, fd, 0, 1, host, 1000, TDM_HEARTBEAT_MS), TDM_E_USAGE);
    CHECK_HAS(tdm_error_message(), "rank 0 is taken");
    CHECK_OK(tdm_comm_barrier(comm)); /* the first one is unharmed */
    tdm_comm_close(comm);
    CHECK_INT(ftruncate(fd, 0), -1);
    close(fd);

    CHECK_STATUS(tdm__comm_open_shm(&comm, 987, 0, 1, host, 1000, TDM_HEARTBEAT_MS), TDM_E_USAGE);
    CHECK_HAS(tdm_error_message(), "descriptor 987");
    file = open("/dev/null", O_RDWR);
    CHECK_STATUS(tdm__comm_open_shm(&comm, file, 0, 1, host, 1000, TDM_HEARTBEAT_MS), TDM_E_USAGE);
    CHECK_HAS(tdm_error_message(), "is not the shared memory of a tandem job");
    close(file);
    file = open("/proc/self/exe", O_RDONLY);
    CHECK(tdm__comm_open_shm(&comm, file, 0, 1, host, 1000, TDM_HEARTBEAT_MS) != TDM_OK);
    close(file);
}

/* ---- limits, stops ---- */

static void limited_rank(rank_context *c) {
    void *memory;
    if (c->rank == 1) {
        struct rlimit limit = {1 << 20, 1 << 20};
        setrlimit(RLIMIT_FSIZE, &limit);
    }
    tdm_status status = tdm__comm_allocate(c->comm, 8 << 20, &memory);
    CHECK_INT(status, c->rank == 1 ? TDM_E_MEMORY : TDM_E_COMM);
    CHECK_HAS(tdm_error_message(), "ulimit -f");
    CHECK(memory == NULL);
}

TEST(a_rank_without_memory_tells_all) {
    ranks_run(BACKEND_SHM, 3, TIMEOUT_MS, limited_rank, NULL);
}

static void stopped_rank(rank_context *c) {
    CHECK_OK(tdm_comm_barrier(c->comm));
    if (c->rank == 1) raise(SIGSTOP);
    CHECK_STATUS(tdm_comm_barrier(c->comm), TDM_E_COMM);
    if (c->rank == 0) {
        char wanted[64];
        snprintf(wanted, sizeof(wanted), "waited 4000 ms for rank 1 (pid %d)", (int)c->pids[1]);
        CHECK_HAS(tdm_error_message(), wanted);
        kill(c->pids[1], SIGCONT);
    }
}

TEST(a_stopped_rank_is_named) {
    int wait_status[2];
    ranks_fork(2, LIMIT_MS, 0, stopped_rank, NULL, wait_status); /* a heartbeat would find it, too */
    for (int r = 0; r < 2; r++) CHECK_INT(wait_status[r], 0);
}

/* ---- signs of life ---- */

/* Long against what a starved thread needs, short against TIMEOUT_MS. */
enum { HEARTBEAT_MS = 2000 };

static void frozen_rank(rank_context *c) {
    atomic_int *told = c->user;
    int64_t start = tdm__now_ns();
    char wanted[64];
    CHECK_OK(tdm_comm_barrier(c->comm));
    if (c->rank == 1) raise(SIGSTOP);
    CHECK_STATUS(tdm_comm_barrier(c->comm), TDM_E_COMM);
    CHECK(tdm__ms_since(start) < TIMEOUT_MS / 2.0);
    snprintf(wanted, sizeof(wanted), "barrier (call 2): rank 1 (pid %d), whose last call", (int)c->pids[1]);
    CHECK_HAS(tdm_error_message(), wanted);
    CHECK_HAS(tdm_error_message(), "whose last call was barrier 1, has not been heard of for ");
    CHECK_HAS(tdm_error_message(), "; it is stopped or frozen");
    /* The last of the others wakes it: what it learns then is the same. */
    if (c->rank != 1 && atomic_fetch_add(told, 1) == c->world - 2) kill(c->pids[1], SIGCONT);
}

TEST(a_rank_without_a_sign_of_life_is_named) {
    int wait_status[WORLD];
    atomic_int *told = mmap(NULL, sizeof(*told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(told != MAP_FAILED);
    ranks_fork(WORLD, TIMEOUT_MS, HEARTBEAT_MS, frozen_rank, told, wait_status);
    for (int r = 0; r < WORLD; r++) CHECK_INT(wait_status[r], 0);
    munmap(told, sizeof(*told));
}

/* Stopped before all have joined: those who have look after one another already. */
static void waiting_rank(rank_context *c) {
    CHECK_STATUS(open_rank(c, TIMEOUT_MS, HEARTBEAT_MS), TDM_E_COMM);
    CHECK_HAS(tdm_error_message(), "join: rank 0 (pid ");
    CHECK_HAS(tdm_error_message(), ") has not been heard of for ");
}

static void joining_rank(rank_context *c) {
    (void)open_rank(c, TIMEOUT_MS, HEARTBEAT_MS);
}

TEST(stopped_while_others_join) {
    int fd;
    REQUIRE_OK(tdm_launch_create(&fd, 3));
    pid_t stopped = start_rank(fd, 0, 3, joining_rank);
    await_joined(fd, 3, 1);
    kill(stopped, SIGSTOP);
    pid_t waiting = start_rank(fd, 1, 3, waiting_rank);
    CHECK_INT(end_of(waiting), 0);
    kill(stopped, SIGKILL);
    end_of(stopped);
    close(fd);
}

static void slow_rank(rank_context *c) {
    CHECK_OK(tdm_comm_barrier(c->comm));
    if (c->rank == 1) nap_us(2500 * HEARTBEAT_MS);
    CHECK_OK(tdm_comm_barrier(c->comm));
}

TEST(a_slow_rank_is_no_alarm) {
    int wait_status[2];
    ranks_fork(2, TIMEOUT_MS, HEARTBEAT_MS, slow_rank, NULL, wait_status);
    for (int r = 0; r < 2; r++) CHECK_INT(wait_status[r], 0);
}

static void all_stopped_rank(rank_context *c) {
    int32_t over = 0;
    pid_t helper = -1;
    if (c->rank == 0) {
        helper = fork();
        if (helper == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            for (int r = 0; r < c->world; r++) kill(c->pids[r], SIGSTOP);
            nap_us(2000 * HEARTBEAT_MS);
            for (int r = 0; r < c->world; r++) kill(c->pids[r], SIGCONT);
            nap_us(1000 * HEARTBEAT_MS);
            _exit(0);
        }
    }
    while (over == 0) {
        if (c->rank == 0) over = waitpid(helper, NULL, WNOHANG) == helper;
        REQUIRE_OK(tdm_comm_broadcast(c->comm, (tdm_span){&over, 1, TDM_DTYPE_I32}, 0));
    }
}

TEST(all_stopped_together_is_no_alarm) {
    int wait_status[WORLD];
    ranks_fork(WORLD, TIMEOUT_MS, HEARTBEAT_MS, all_stopped_rank, NULL, wait_status);
    for (int r = 0; r < WORLD; r++) CHECK_INT(wait_status[r], 0);
}

static void ignored_rank(rank_context *c) {
    CHECK_OK(tdm_comm_barrier(c->comm));
    pid_t self = getpid();
    if (c->rank == 1 && fork() == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        /* Again and again: the first may come before the stop. */
        while (getppid() == self) {
            nap_us(2000 * TDM_HEARTBEAT_LEAST_MS);
            kill(self, SIGCONT);
        }
        _exit(0);
    }
    if (c->rank == 1) raise(SIGSTOP);
    CHECK_OK(tdm_comm_barrier(c->comm));
}

TEST(without_a_heartbeat_a_stop_is_a_wait) {
    int wait_status[2];
    ranks_fork(2, TIMEOUT_MS, 0, ignored_rank, NULL, wait_status);
    for (int r = 0; r < 2; r++) CHECK_INT(wait_status[r], 0);
}

/* Nobody waits in a call: the death is known all the same. */
static void looked_after_rank(rank_context *c) {
    char why[200] = "", wanted[64];
    CHECK_OK(tdm_comm_barrier(c->comm));
    if (c->rank == 1) raise(SIGKILL);
    while (!c->comm->ops->ended(c->comm, why, sizeof(why))) nap_us(1000);
    snprintf(wanted, sizeof(wanted), "rank 1 (pid %d) is gone", (int)c->pids[1]);
    CHECK_TEXT(why, wanted);
}

TEST(a_death_is_known_without_a_call) {
    int wait_status[WORLD];
    ranks_fork(WORLD, TIMEOUT_MS, 0, looked_after_rank, NULL, wait_status);
    check_one_killed(wait_status, WORLD, 1);
}

/* Threads do not come along: closing there must not wait for one. */
static void forking_rank(rank_context *c) {
    CHECK_OK(tdm_comm_barrier(c->comm));
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        tdm_comm_close(c->comm);
        _exit(0);
    }
    CHECK_INT(end_of(child), 0);
}

TEST(a_forked_child_closes) {
    ranks_run(BACKEND_SHM, 2, TIMEOUT_MS, forking_rank, NULL);
}

TEST(arguments_of_the_heartbeat) {
    int fd;
    tdm_comm *comm;
    REQUIRE_OK(tdm_launch_create(&fd, 1));
    CHECK_STATUS(tdm__comm_open_shm(&comm, fd, 0, 1, tdm_host_default(), 1000, 999), TDM_E_USAGE);
    CHECK_HAS(tdm_error_message(), "the heartbeat must be at least 1000 ms, or 0 for none, got 999");
    CHECK_STATUS(tdm__comm_open_shm(&comm, fd, 0, 1, tdm_host_default(), 1000, -1), TDM_E_USAGE);
    close(fd);
}

/* ---- signals ---- */

static void on_alarm(int number) {
    (void)number;
}

/* Signals interrupt waits, and change nothing. */
static void interrupted_rank(rank_context *c) {
    struct sigaction action = {.sa_handler = on_alarm};
    sigaction(SIGALRM, &action, NULL);
    pid_t self = getpid(), timer = fork();
    if (timer == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (int i = 0; i < 100; i++) {
            kill(self, SIGALRM);
            nap_us(1000);
        }
        _exit(0);
    }
    for (int i = 0; i < 20; i++) {
        float x = 1;
        if (c->rank == 0)
            for (int k = 0; k < 5; k++) nap_us(1000);
        CHECK_OK(tdm_comm_all_reduce(c->comm, f32(&x, 1), TDM_REDUCE_SUM));
        CHECK(x == 2);
    }
    CHECK_INT(end_of(timer), 0);
}

TEST(signals_do_not_matter) {
    ranks_run(BACKEND_SHM, 2, TIMEOUT_MS, interrupted_rank, NULL);
}

static rank_context *handler_context;
static void abort_handler(int number) {
    (void)number;
    handler_context->comm->ops->abort(handler_context->comm, NULL);
    atomic_fetch_add(handler_context->here, 1);
}

static void handler_rank(rank_context *c) {
    if (c->rank == 0) {
        struct sigaction action = {.sa_handler = abort_handler};
        handler_context = c;
        sigaction(SIGUSR1, &action, NULL);
        pid_t self = getpid();
        if (fork() == 0) {
            nap_us(100000); /* in most runs it waits by then */
            kill(self, SIGUSR1);
            _exit(0);
        }
    }
    while (c->rank == 2 && atomic_load(c->here) == 0) nap_us(1000);
    CHECK_STATUS(tdm_comm_barrier(c->comm), TDM_E_COMM);
    CHECK_TEXT(tdm_error_message(), "barrier (call 1): rank 0 called abort");
}

TEST(abort_from_a_signal_handler) {
    ranks_run(BACKEND_SHM, 3, TIMEOUT_MS, handler_rank, NULL);
}

TEST_MAIN({
    RUN(a_killed_rank_is_named);
    RUN(killed_at_any_moment);
    RUN(the_launcher_tells);
    RUN(told_while_joining);
    RUN(the_launcher_dies);
    RUN(ranks_that_never_join_are_listed);
    RUN(the_file_has_no_name);
    RUN(wrong_joins);
    RUN(a_rank_without_memory_tells_all);
    RUN(a_stopped_rank_is_named);
    RUN(a_rank_without_a_sign_of_life_is_named);
    RUN(stopped_while_others_join);
    RUN(a_slow_rank_is_no_alarm);
    RUN(all_stopped_together_is_no_alarm);
    RUN(without_a_heartbeat_a_stop_is_a_wait);
    RUN(a_death_is_known_without_a_call);
    RUN(a_forked_child_closes);
    RUN(arguments_of_the_heartbeat);
    RUN(signals_do_not_matter);
    RUN(abort_from_a_signal_handler);
})
