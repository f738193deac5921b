/* ranks.h over MPI, for jobs that end: MPI cannot begin again in a process, so mpirun starts this program anew for each
 * job. There it does nothing until it comes to the same ranks_run. */
#include "tests/comm/mpi_jobs.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WORLD_MAX = 9 };

/* What the processes of a job share: a file, whose path STAGE says. JOB is the number of the ranks_run. */
#define STAGE "MPI_JOBS_STAGE"
#define JOB "MPI_JOBS_JOB"
typedef struct stage {
    pid_t pids[WORLD_MAX];
    atomic_int here, done;
    atomic_int verdict[WORLD_MAX]; /* of each rank: 0: none, 1: good, 2: failed */
} stage;

static stage *map_stage(int fd) {
    stage *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return shared != MAP_FAILED ? shared : NULL;
}

static void await(atomic_int *count, int wanted) {
    while (atomic_load(count) < wanted) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

void ranks_meet(rank_context *context, int count) {
    atomic_fetch_add(context->here, 1);
    await(context->here, count);
}

/* ---- in a process that mpirun has started ---- */

/* Nobody goes before all have said how it was: mpirun kills the others when a rank goes that has not finalized MPI. */
static void be_rank(int world, int64_t timeout_ms, rank_fn fn, void *user, int victim) {
    tdm_launch_facts facts = TDM_LAUNCH_FACTS_INIT;
    tdm_hosts_options options = TDM_HOSTS_OPTIONS_INIT;
    stage *shared = map_stage(open(getenv(STAGE), O_RDWR | O_CLOEXEC));
    REQUIRE(shared != NULL);
    REQUIRE_OK(tdm_launch_from_env(&facts));
    rank_context context = {
        .rank = facts.rank, .world = world, .fd = -1, .pids = shared->pids, .here = &shared->here, .user = user};
    tdm_test_failures = 0;
    shared->pids[facts.rank] = getpid();
    options.backend = "mpi";
    options.timeout_ms = timeout_ms;
    CHECK((facts.source == TDM_LAUNCH_OPENMPI || facts.source == TDM_LAUNCH_PMI) && facts.world == world);
    CHECK_OK(tdm_comm_open_hosts(&context.comm, &facts, &options));
    if (context.comm != NULL) fn(&context);
    tdm_comm_close(context.comm);
    atomic_store(&shared->verdict[facts.rank], tdm_test_failures == 0 ? 1 : 2);
    atomic_fetch_add(&shared->done, 1);
    await(&shared->done, victim >= 0 ? world - 1 : world);
}

/* ---- in the process that starts them ---- */

/* The arguments of this program, of which one may choose a test. */
static void read_words(char *to, size_t bytes, char **words, int most) {
    const int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd >= 0 ? read(fd, to, bytes - 1) : 0;
    close(fd);
    int count = 0;
    for (char *word = to; word < to + n && count < most; word += strlen(word) + 1) words[count++] = word;
    words[count] = NULL;
}

static void be_mpirun(int world, int job, const char *path) {
    char number[16], text[1024] = "", *words[8] = {MPIRUN_WORDS, "-np", number};
    int count = 0;
    while (words[count] != NULL) count++;
    read_words(text, sizeof(text), &words[count], 2);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    snprintf(number, sizeof(number), "%d", job);
    setenv(JOB, number, 1);
    setenv(STAGE, path, 1);
    snprintf(number, sizeof(number), "%d", world);
    execv(words[0], words);
    _exit(127);
}

static void start_job(int world, int job, int victim) {
    char path[] = "/tmp/tandem-test-XXXXXX";
    const int fd = mkstemp(path);
    REQUIRE(fd >= 0 && ftruncate(fd, sizeof(stage)) == 0);
    stage *shared = map_stage(fd);
    REQUIRE(shared != NULL);
    fflush(NULL);
    const pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) be_mpirun(world, job, path);
    CHECK(waitpid(pid, NULL, 0) == pid);
    for (int r = 0; r < world; r++)
        if (r != victim) CHECK_INT(atomic_load(&shared->verdict[r]), 1);
    munmap(shared, sizeof(*shared));
    unlink(path);
}

void mpi_jobs_run(int world, int64_t timeout_ms, rank_fn fn, void *user, int victim) {
    static int job;
    const char *wanted = getenv(JOB);
    job++;
    REQUIRE(world <= WORLD_MAX);
    if (wanted == NULL) {
        start_job(world, job, victim);
        return;
    }
    if (job == 1) REQUIRE(freopen("/dev/null", "w", stdout) != NULL); /* how tests went says who starts this */
    if (atoi(wanted) != job) return;
    be_rank(world, timeout_ms, fn, user, victim);
    _exit(tdm_test_failures != 0);
}

void ranks_run(backend kind, int world, int64_t timeout_ms, rank_fn fn, void *user) {
    (void)kind;
    mpi_jobs_run(world, timeout_ms, fn, user, -1);
}
