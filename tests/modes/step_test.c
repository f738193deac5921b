/* tdm_run_step in ddp: a rank that cannot read its samples tells the others, also while its process lives on. */
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "law.h"
#include "tests/support/tdm_test.h"

enum { SAMPLES = 64, RANKS = 2, FAILS_AT = 24 };

static int read_sample(void *user, int64_t index, float *x, void *target) {
    const int *rank = user;
    if (*rank == 1 && index >= FAILS_AT) return 42;
    for (int i = 0; i < 3 * 8 * 8; i++) x[i] = (float)((index * 7 + i) % 11) / 11.0f;
    *(int64_t *)target = index % 5;
    return 0;
}

typedef struct ended {
    tdm_status status;
    double seconds;
    char message[512];
} ended;

static void run_rank(int rank, int fd, const tdm_job *job, const tdm_graph *graph, ended *out) {
    tdm_source source = {sizeof(source), SAMPLES, 1, read_sample, &rank};
    tdm_run_options options = TDM_RUN_OPTIONS_INIT;
    struct timespec from, to;
    tdm_run *run = NULL;
    options.train = &source;
    options.rank = rank;
    options.world = RANKS;
    options.launch_fd = fd;
    out->status = tdm_run_open(&run, job, graph, &options);
    clock_gettime(CLOCK_MONOTONIC, &from);
    if (out->status == TDM_OK) out->status = tdm_run_step(run, 8);
    clock_gettime(CLOCK_MONOTONIC, &to);
    out->seconds = (double)(to.tv_sec - from.tv_sec) + 1e-9 * (double)(to.tv_nsec - from.tv_nsec);
    snprintf(out->message, sizeof(out->message), "%s", tdm_error_message());
}

TEST(a_rank_without_samples_tells_the_others) {
    int fd = -1, result[RANKS][2], over[2];
    tdm_graph *graph = law_graph(0, 0);
    tdm_job job;
    law_job(&job);
    job.data.train.format = job.data.eval.format = TDM_DATA_NONE;
    job.data.shuffle = false;
    job.train.steps = 8;
    job.train.per_device = 4;
    job.parallel.mode = TDM_MODE_DDP;
    job.parallel.device_ids = (tdm_ints){RANKS, {0, 1}};
    job.parallel.ddp.timeout = 20;
    REQUIRE_OK(tdm_launch_create(&fd, RANKS));
    REQUIRE(pipe(over) == 0);
    fflush(NULL);
    for (int r = 0; r < RANKS; r++) {
        REQUIRE(pipe(result[r]) == 0);
        pid_t pid = fork();
        REQUIRE(pid >= 0);
        if (pid > 0) {
            close(result[r][1]);
            continue;
        }
        ended own = {.status = TDM_OK};
        char byte;
        close(over[1]);
        run_rank(r, fd, &job, graph, &own);
        ssize_t n = write(result[r][1], &own, sizeof(own));
        n += read(over[0], &byte, 1); /* lives, with its run open, until all have answered */
        _exit(n == (ssize_t)sizeof(own) ? 0 : 1);
    }
    for (int r = 0; r < RANKS; r++) {
        ended own = {.status = TDM_OK};
        CHECK(read(result[r][0], &own, sizeof(own)) == (ssize_t)sizeof(own));
        CHECK(own.status != TDM_OK && own.seconds < 5);
        CHECK_HAS(own.message, "of the program's own source: read returned 42");
        close(result[r][0]);
    }
    close(over[1]);
    for (int r = 0; r < RANKS; r++) {
        int code = 1;
        (void)wait(&code);
        CHECK_INT(code, 0);
    }
    close(over[0]);
    close(fd);
    tdm_graph_free(graph);
}

TEST_MAIN(RUN(a_rank_without_samples_tells_the_others);)
