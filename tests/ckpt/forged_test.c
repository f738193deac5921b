/* state.json with every hash as it should be, and numbers that no run comes to: refused, or gone on from at once. */
#include <tandem/checkpoint.h>
#include <tandem/tandem.h>

#include "tests/ckpt/ckpt_support.h"

static char run_dir[256];

static tdm_graph *small_graph(void) {
    tdm_graph *g = NULL;
    tdm_value v;
    CHECK_OK(tdm_graph_new(&g, NULL));
    CHECK_OK(tdm_graph_input(g, 1, (const int64_t[]){4}, &v));
    CHECK_OK(tdm_graph_add(g, "linear", "fc", &v, 1, &(tdm_attr){"out", "3", {0}}, 1, &v));
    CHECK_OK(tdm_graph_finish(g, v));
    return g;
}

/* 2 epochs of 10 steps. */
static void set_job(tdm_job *job) {
    CHECK_OK(tdm_job_init(job));
    job->data.train.format = TDM_DATA_SYNTHETIC;
    job->data.train.samples = 40;
    job->train.epochs = 2;
    job->train.per_device = 4;
    job->schedule.type = TDM_SCHEDULE_COSINE;
    job->schedule.per = TDM_SCHEDULE_PER_STEP;
    job->run.dir = run_dir;
    job->checkpoint.every = (tdm_interval){TDM_INTERVAL_STEPS, 10};
}

static tdm_status train(const tdm_job *job, tdm_run_state *state) {
    tdm_graph *graph = small_graph();
    tdm_run *run = NULL;
    tdm_status status = tdm_run_open(&run, job, graph, NULL);
    if (status == TDM_OK) status = tdm_run_train(run);
    if (status == TDM_OK) CHECK_OK(tdm_run_get_state(run, state));
    tdm_run_close(run);
    tdm_graph_free(graph);
    return status;
}

/* A run's checkpoint of step 10 under the name of `step`, with `key` set to `value`. */
static void forge(const char *folder, const char *key, const char *value) {
    char path[512], text[4096];
    size_t size;
    snprintf(path, sizeof(path), "%s/state.json", folder);
    char *state = support_read(path, &size);
    char quoted[64];
    snprintf(quoted, sizeof(quoted), "\"%s\": ", key);
    char *at = strstr(state, quoted);
    CHECK(at != NULL);
    if (at != NULL) {
        at += strlen(quoted);
        snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - state), state, value, at + strcspn(at, ",\n"));
        support_write(path, text, strlen(text));
        support_reseal(folder);
    }
    free(state);
}

/* Trains to step 10, and goes on from there with the forged numbers. */
static tdm_status resume_forged(const tdm_job *job, const char *step, const char *const *keys, tdm_run_state *state) {
    char from[512], to[512];
    tdm_job first = *job;
    test_folder_make(run_dir);
    first.train.epochs = TDM_INT_NULL, first.train.steps = 10;
    CHECK_OK(train(&first, state));
    snprintf(from, sizeof(from), "%s/checkpoints/step-00000010", run_dir);
    snprintf(to, sizeof(to), "%s/checkpoints/step-%08lld", run_dir, atoll(step));
    CHECK(rename(from, to) == 0);
    forge(to, "step", step);
    for (int i = 0; keys[i] != NULL; i += 2) forge(to, keys[i], keys[i + 1]);
    tdm_status status = train(job, state);
    if (status == TDM_E_CHECKPOINT && strstr(tdm_error_message(), "state.json") != NULL) /* verify knows it, too */
        CHECK_STATUS(tdm_checkpoint_verify(NULL, to, NULL), TDM_E_CHECKPOINT);
    test_folder_remove(run_dir);
    return status;
}

TEST(numbers_out_of_range) {
    static const char *const rows[][5] = {
        {"samples", "9223372036854775807", NULL},
        {"samples", "9007199254740993", NULL},
        {"epoch", "9223372036854775807", NULL},
        {"step_in_epoch", "9007199254740993", NULL},
        {"schedule_step", "9223372036854775807", NULL},
        {"step_in_epoch", "9007199254740992", "per_device", "9007199254740992", NULL},
        {"per_device", "9007199254740992", "replicas", "2147483647", NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        tdm_run_state state = TDM_RUN_STATE_INIT;
        tdm_job job;
        set_job(&job);
        tdm_status status = resume_forged(&job, "10", rows[i], &state);
        CHECK_STATUS(status, TDM_E_CHECKPOINT);
        CHECK_HAS(tdm_error_message(), "too large");
    }
}

/* What the file may hold, and the checkpoints of the steps to come could not. */
TEST(numbers_to_go_on_from) {
    static const char *const rows[] = {"samples", "9007199254740990", NULL};
    tdm_run_state state = TDM_RUN_STATE_INIT;
    tdm_job job;
    set_job(&job);
    CHECK_STATUS(resume_forged(&job, "10", rows, &state), TDM_E_CHECKPOINT);
    CHECK_HAS(tdm_error_message(), "the checkpoint has 9007199254740990 samples, and 10 steps of 4 follow");
}

/* Each in its range, and together what no run comes to: refused by whoever reads it. */
TEST(numbers_that_do_not_fit) {
    static const struct {
        const char *keys[5], *message;
    } rows[] = {
        {{"lr", "-0.001"}, "'lr' must be 0 to 3.40282e+38, found -0.001"},
        {{"lr", "1e39"}, "'lr' must be 0 to 3.40282e+38, found 1e+39"},
        {{"lr", "1e999"}, "state.json: "},
        {{"lr", "NaN"}, "state.json: "},
        {{"lr", "\"nan\""}, "state.json: "},
        {{"samples", "9"}, "'samples' is 9: fewer than its steps have processed"},
        {{"samples", "39", "step_in_epoch", "10"}, "'samples' is 39: fewer than its steps have processed"},
        {{"epoch", "11"}, "'epoch' 11, 'schedule_step' 10 and 'skipped' 0 must be at most 'step', 10"},
        {{"epoch", "9007199254740992", "samples", "9007199254740992"}, "must be at most 'step', 10"},
        {{"schedule_step", "11"}, "'schedule_step' 11 and 'skipped' 0 must be at most 'step', 10"},
        {{"replicas", "0"}, "'replicas' 0 and 'per_device' 4 must be at least 1"},
        {{"per_device", "0"}, "'replicas' 1 and 'per_device' 0 must be at least 1"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        tdm_run_state state = TDM_RUN_STATE_INIT;
        tdm_job job;
        set_job(&job);
        CHECK_STATUS(resume_forged(&job, "10", rows[i].keys, &state), TDM_E_CHECKPOINT);
        CHECK_HAS(tdm_error_message(), rows[i].message);
    }
}

TEST(a_step_beyond_the_job) {
    static const char *const none[] = {NULL}, *const many[] = {"samples", "1000000000000", NULL};
    tdm_run_state state = TDM_RUN_STATE_INIT;
    tdm_job job;
    set_job(&job);
    CHECK_STATUS(resume_forged(&job, "1000000000000", many, &state), TDM_E_CHECKPOINT);
    CHECK_HAS(tdm_error_message(), "step-1000000000000 is of step 1000000000000, this job ends after at most 80 "
                                   "(train.epochs); raise that");
    job.train.epochs = TDM_INT_NULL, job.train.steps = 30;
    CHECK_STATUS(resume_forged(&job, "31", none, &state), TDM_E_CHECKPOINT);
    CHECK_HAS(tdm_error_message(), "is of step 31, this job ends after 30 (train.steps); raise that");
    CHECK_OK(resume_forged(&job, "30", none, &state));
    CHECK_INT(state.step, 30);
}

/* An epoch that the job does not have: there is nothing left to do. */
TEST(an_epoch_beyond_the_job) {
    static const char *const rows[] = {"epoch", "10", NULL};
    tdm_run_state state = TDM_RUN_STATE_INIT;
    tdm_job job;
    set_job(&job);
    CHECK_OK(resume_forged(&job, "10", rows, &state));
    CHECK_INT(state.step, 10);
    CHECK_INT(state.steps_total, 10);
}

TEST_MAIN(RUN(numbers_out_of_range); RUN(numbers_to_go_on_from); RUN(numbers_that_do_not_fit);
          RUN(a_step_beyond_the_job); RUN(an_epoch_beyond_the_job);)
