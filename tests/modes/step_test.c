/* ddp: what fails on one rank alone (a step's samples, an evaluation's, a checkpoint) ends on all ranks with its
 * reason, also while the process of the rank that failed lives on. A rank that is not told says, when the job's timeout
 * is over, that its peer did not come: another message. */
#include <sys/wait.h>
#include <unistd.h>

#include "law.h"
#include "tests/support/tdm_test.h"

enum { SAMPLES = 64, RANKS = 2, FAILS_AT = 24 };

#define DAMAGED "step_test_damaged.safetensors"

static int read_sample(void *user, int64_t index, float *x, void *target) {
    const int *rank = user;
    if (*rank == 1 && index >= FAILS_AT) return 42;
    for (int i = 0; i < 3 * 8 * 8; i++) x[i] = (float)((index * 7 + i) % 11) / 11.0f;
    *(int64_t *)target = index % 5;
    return 0;
}

/* What every rank does with its open run. */
typedef tdm_status act(tdm_run *run);

typedef struct ended {
    tdm_status status;
    char message[512];
} ended;

static void run_rank(int rank, int fd, const tdm_job *job, const tdm_graph *graph, act *does, ended *out) {
    int healthy = 0;
    const bool evaluates = job->data.eval.format == TDM_DATA_NONE;
    tdm_source source = {.size = sizeof(source),
                         .count = SAMPLES,
                         .has_labels = 1,
                         .read = read_sample,
                         .user = evaluates ? &healthy : &rank};
    tdm_source eval = {.size = sizeof(eval), .count = SAMPLES, .has_labels = 1, .read = read_sample, .user = &rank};
    tdm_run_options options = TDM_RUN_OPTIONS_INIT;
    tdm_run *run = NULL;
    options.train = &source;
    options.eval = evaluates ? &eval : NULL;
    options.rank = rank;
    options.world = RANKS;
    options.launch_fd = fd;
    out->status = tdm_run_open(&run, job, graph, &options);
    if (out->status == TDM_OK) out->status = does(run);
    snprintf(out->message, sizeof(out->message), "%s", tdm_error_message());
}

static void set_job(tdm_job *job) {
    law_job(job);
    job->data.train.format = TDM_DATA_NONE;
    job->data.shuffle = false;
    job->train.steps = 8;
    job->train.per_device = 4;
    job->parallel.mode = TDM_MODE_DDP;
    job->parallel.device_ids = (tdm_ints){RANKS, {0, 1}};
    job->parallel.ddp.timeout = 300;
}

/* Every rank lives, with its run open, until all have answered. */
static void run_all(const tdm_job *job, act *does, ended *ends) {
    int fd = -1, result[RANKS][2], over[2];
    tdm_graph *graph = law_graph(0, 0);
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
        run_rank(r, fd, job, graph, does, &own);
        ssize_t n = write(result[r][1], &own, sizeof(own));
        n += read(over[0], &byte, 1);
        _exit(n == (ssize_t)sizeof(own) ? 0 : 1);
    }
    for (int r = 0; r < RANKS; r++) {
        CHECK(read(result[r][0], &ends[r], sizeof(*ends)) == (ssize_t)sizeof(*ends));
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

static void check_told(tdm_data_format eval, act *does, const char *reason, ended *ends) {
    tdm_job job;
    set_job(&job);
    job.data.eval.format = eval;
    run_all(&job, does, ends);
    for (int r = 0; r < RANKS; r++) {
        CHECK(ends[r].status != TDM_OK);
        CHECK_HAS(ends[r].message, reason);
    }
}

static tdm_status take_steps(tdm_run *run) {
    return tdm_run_step(run, 8);
}

TEST(a_rank_without_samples_tells_the_others) {
    ended ends[RANKS] = {{.status = TDM_OK}};
    check_told(TDM_DATA_SYNTHETIC, take_steps, "of the program's own source: read returned 42", ends);
}

static tdm_status evaluate(tdm_run *run) {
    double loss = 0, accuracy = 0;
    return tdm_run_evaluate(run, &loss, &accuracy);
}

TEST(a_rank_that_cannot_evaluate_tells_the_others) {
    ended ends[RANKS] = {{.status = TDM_OK}};
    check_told(TDM_DATA_NONE, evaluate, "of the program's own source: read returned 42", ends);
}

static tdm_status load_damaged(tdm_run *run) {
    return tdm_run_load(run, DAMAGED);
}

TEST(a_damaged_checkpoint_is_refused_on_all_ranks) {
    ended ends[RANKS] = {{.status = TDM_OK}};
    FILE *file = fopen(DAMAGED, "wb");
    REQUIRE(file != NULL);
    CHECK(fputs("no tensors are in this file", file) >= 0 && fclose(file) == 0);
    check_told(TDM_DATA_SYNTHETIC, load_damaged, DAMAGED, ends);
    for (int r = 0; r < RANKS; r++) CHECK_INT(ends[r].status, TDM_E_CHECKPOINT);
    (void)unlink(DAMAGED);
}

TEST_MAIN(RUN(a_rank_without_samples_tells_the_others); RUN(a_rank_that_cannot_evaluate_tells_the_others);
          RUN(a_damaged_checkpoint_is_refused_on_all_ranks);)
