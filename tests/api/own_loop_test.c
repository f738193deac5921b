/* What a program that owns the training loop sets and reads between steps. */
#include "tests/api/api.h"
#include "tests/support/tdm_test.h"

enum { WEIGHTS = 12, OUTPUTS = 3 };

static tdm_graph *graph;

static void plain_job(tdm_job *job) {
    api_job(job);
    job->optimizer.type = TDM_SGD;
    job->optimizer.momentum = 0;
    job->optimizer.lr = 1;
}

static tdm_run *open_run(const tdm_job *job, const tdm_run_options *options) {
    tdm_run *run = NULL;
    CHECK_OK(tdm_run_open(&run, job, graph, options));
    if (run == NULL) exit(1);
    return run;
}

static double lr_of(tdm_run *run) {
    tdm_run_state state = {0};
    CHECK_OK(tdm_run_get_state(run, &state));
    return state.lr;
}

/* ---- learning rates ---- */

static void hash_of(tdm_run *run, char out[40]) {
    tdm_run_state state = {0};
    CHECK_OK(tdm_run_get_state(run, &state));
    memcpy(out, state.params_xxh3, sizeof(state.params_xxh3));
}

TEST(a_set_rate_is_a_rate_of_the_job) {
    char wanted[40], got[40];
    tdm_job job;
    plain_job(&job);
    job.optimizer.lr = 0.25;
    tdm_run *run = open_run(&job, NULL);
    CHECK_OK(tdm_run_train(run));
    hash_of(run, wanted);
    tdm_run_close(run);
    job.optimizer.lr = 0.5;
    run = open_run(&job, NULL);
    CHECK_OK(tdm_run_set_lr(run, -1, 0.25));
    CHECK_OK(tdm_run_train(run));
    hash_of(run, got);
    tdm_run_close(run);
    CHECK_TEXT(got, wanted);
}

typedef struct seen {
    tdm_run *run;
    double lr[8];
} seen;

/* From step 2 on 0.3, which the program gives back after step 4. */
static int set_in_event(const tdm_event *event, void *user) {
    seen *s = user;
    if (event->kind != TDM_EVENT_STEP) return 0;
    s->lr[event->step] = event->lr;
    if (event->step == 1) CHECK_OK(tdm_run_set_lr(s->run, -1, 0.3));
    if (event->step == 4) CHECK_OK(tdm_run_set_lr(s->run, -1, NAN));
    return 0;
}

TEST(the_schedule_goes_on_underneath) {
    static const double wanted[] = {0, 1, 0.3, 0.3, 0.3, 0.0625, 0.03125};
    tdm_job job;
    seen s = {NULL, {0}};
    tdm_run_options options = TDM_RUN_OPTIONS_INIT;
    plain_job(&job);
    job.schedule.type = TDM_SCHEDULE_EXPONENTIAL;
    job.schedule.per = TDM_SCHEDULE_PER_STEP;
    job.schedule.gamma = 0.5;
    options.on_event = set_in_event, options.user = &s;
    s.run = open_run(&job, &options);
    CHECK_OK(tdm_run_step(s.run, 3));
    CHECK(lr_of(s.run) == 0.3);
    CHECK_OK(tdm_run_step(s.run, 3));
    for (int step = 1; step <= 6; step++) CHECK(s.lr[step] == wanted[step]);
    CHECK(lr_of(s.run) == 0.015625);
    tdm_run_close(s.run);
}

TEST(groups_have_their_own) {
    tdm_job job;
    float weight[2][WEIGHTS], bias[2][OUTPUTS];
    plain_job(&job);
    job.optimizer.groups.count = 1;
    job.optimizer.groups.item[0] = (tdm_param_group){.params = {1, {"*.bias"}}, .lr = 0.5, .weight_decay = NAN};
    tdm_run *run = open_run(&job, NULL);
    for (int frozen = 0; frozen < 2; frozen++) {
        CHECK_OK(tdm_run_set_lr(run, 0, frozen ? 0 : 0.1));
        CHECK_OK(tdm_run_set_lr(run, -1, frozen ? 0.1 : 0));
        CHECK_OK(tdm_run_read(run, "fc.weight", weight[0], sizeof(weight[0])));
        CHECK_OK(tdm_run_read(run, "fc.bias", bias[0], sizeof(bias[0])));
        CHECK_OK(tdm_run_step(run, 1));
        CHECK_OK(tdm_run_read(run, "fc.weight", weight[1], sizeof(weight[1])));
        CHECK_OK(tdm_run_read(run, "fc.bias", bias[1], sizeof(bias[1])));
        CHECK((memcmp(bias[0], bias[1], sizeof(bias[0])) == 0) == (frozen == 1));
        CHECK((memcmp(weight[0], weight[1], sizeof(weight[0])) == 0) == (frozen == 0));
    }
    CHECK_STATUS(tdm_run_set_lr(run, 1, 0.1), TDM_E_USAGE);
    CHECK_HAS(tdm_error_message(), "or below 1, got 1");
    tdm_run_close(run);
}

TEST_MAIN(graph = api_linear_graph(4); RUN(a_set_rate_is_a_rate_of_the_job); RUN(the_schedule_goes_on_underneath);
          RUN(groups_have_their_own);
          tdm_graph_free(graph);)
