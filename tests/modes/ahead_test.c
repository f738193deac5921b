/* Running ahead on a device: the next step is under way when the result of one is told, and nobody can tell by the
 * numbers. On the emulated module, and, labelled gpu, on a GPU. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "law.h"
#include "runtime/exec/record.h"
#include "runtime/train/run.h"
#include "tests/support/tdm_test.h"
#include "tests/support/test_folder.h"

static void set_cuda(tdm_job *job) {
    law_job(job);
    job->parallel.device = TDM_DEVICE_CUDA;
    job->parallel.mode = TDM_MODE_SINGLE;
}

/* What a callback sees and does. */
typedef struct watcher {
    tdm_run *run;
    int steps, evals;
    int64_t stop_at;   /* ask to stop when told of this step; 0: never */
    int64_t last_step; /* told */
    float bias[5];     /* fc2.bias as read in the callback of `read_at` */
    int64_t read_at;   /* 0: never */
    tdm_status read;   /* what reading answered */
    double data_ms;    /* of all steps */
    double loss[LAW_MAX_STEPS];
} watcher;

static int watch(const tdm_event *event, void *user) {
    watcher *w = user;
    if (event->kind == TDM_EVENT_EVAL) w->evals++;
    if (event->kind != TDM_EVENT_STEP) return 0;
    w->steps++;
    w->last_step = event->step;
    w->data_ms += event->ms.data;
    if (event->step <= LAW_MAX_STEPS) w->loss[event->step - 1] = event->loss;
    if (event->step == w->read_at) w->read = tdm_run_read(w->run, "fc2.bias", w->bias, sizeof(w->bias));
    return event->step == w->stop_at;
}

static tdm_status open_run_on(watcher *w, const tdm_job *job, const tdm_graph *graph, int run_ahead,
                              const tdm_source *train) {
    tdm_run_options options = TDM_RUN_OPTIONS_INIT;
    options.train = train;
    options.on_event = watch;
    options.user = w;
    options.run_ahead = run_ahead;
    return tdm_run_open(&w->run, job, graph, &options);
}

static tdm_status open_run(watcher *w, const tdm_job *job, const tdm_graph *graph, int run_ahead) {
    return open_run_on(w, job, graph, run_ahead, NULL);
}

static void read_params(tdm_run *run, char text[40]) {
    tdm_run_state state = TDM_RUN_STATE_INIT;
    CHECK_OK(tdm_run_get_state(run, &state));
    memcpy(text, state.params_xxh3, sizeof(state.params_xxh3));
}

/* Evaluations by steps and by the clock, a last short batch, and the end: with and without running ahead. */
TEST(the_numbers_are_the_same) {
    static const tdm_interval intervals[] = {
        {TDM_INTERVAL_STEPS, 3}, {TDM_INTERVAL_EPOCHS, 1}, {TDM_INTERVAL_SECONDS, 1e-9}};
    tdm_graph *graph = law_graph(1, 1);
    for (size_t k = 0; k < sizeof intervals / sizeof *intervals; k++) {
        char params[2][40];
        watcher w[2] = {{0}, {0}};
        for (int ahead = 0; ahead < 2; ahead++) {
            tdm_job job;
            set_cuda(&job);
            job.train.steps = 20;
            job.eval.every = intervals[k];
            REQUIRE(open_run(&w[ahead], &job, graph, ahead) == TDM_OK);
            CHECK_OK(tdm_run_train(w[ahead].run));
            read_params(w[ahead].run, params[ahead]);
            tdm_run_close(w[ahead].run);
            CHECK_INT(w[ahead].steps, 20);
        }
        CHECK_TEXT(params[0], params[1]);
        for (int i = 0; i < 20; i++) CHECK(w[0].loss[i] == w[1].loss[i]);
        if (intervals[k].kind != TDM_INTERVAL_SECONDS) CHECK_INT(w[0].evals, w[1].evals);
        CHECK(w[1].evals > 1);
    }
    tdm_graph_free(graph);
}

/* Who does not run ahead sees in the callback what the step left; who does is told that there is nothing to be seen. */
TEST(tensors_in_a_callback) {
    tdm_graph *graph = law_graph(1, 1);
    tdm_job job;
    set_cuda(&job);
    watcher stopped = {0}, strict = {.read_at = 4}, ahead = {.read_at = 4};
    float bias[5];
    REQUIRE(open_run(&stopped, &job, graph, 1) == TDM_OK);
    CHECK_OK(tdm_run_step(stopped.run, 4));
    CHECK_OK(tdm_run_read(stopped.run, "fc2.bias", bias, sizeof(bias)));
    tdm_run_close(stopped.run);

    REQUIRE(open_run(&strict, &job, graph, 0) == TDM_OK);
    CHECK_OK(tdm_run_train(strict.run));
    CHECK_INT(strict.read, TDM_OK);
    CHECK(memcmp(strict.bias, bias, sizeof(bias)) == 0);
    tdm_run_close(strict.run);

    REQUIRE(open_run(&ahead, &job, graph, 1) == TDM_OK);
    CHECK_OK(tdm_run_train(ahead.run));
    CHECK_INT(ahead.read, TDM_E_USAGE);
    tdm_run_close(ahead.run);
    tdm_graph_free(graph);
}

/* The step under way is finished, told, and the last; training goes on from there. */
TEST(a_stop_finishes_what_is_under_way) {
    tdm_graph *graph = law_graph(0, 1);
    tdm_job job;
    set_cuda(&job);
    job.train.steps = 12;
    char straight[40], gone_on[40];
    watcher w = {0}, s = {.stop_at = 5};
    REQUIRE(open_run(&w, &job, graph, 1) == TDM_OK);
    CHECK_OK(tdm_run_train(w.run));
    read_params(w.run, straight);
    tdm_run_close(w.run);

    REQUIRE(open_run(&s, &job, graph, 1) == TDM_OK);
    CHECK_INT(tdm_run_train(s.run), TDM_E_STOPPED);
    CHECK_INT(s.last_step, 6);
    CHECK_INT(s.steps, 6);
    CHECK_HAS(tdm_error_message(), "after step 6 of 12");
    CHECK_OK(tdm_run_train(s.run));
    CHECK_INT(s.last_step, 12);
    read_params(s.run, gone_on);
    CHECK_TEXT(gone_on, straight);
    tdm_run_close(s.run);
    tdm_graph_free(graph);
}

TEST(steps_one_by_one_and_at_once) {
    tdm_graph *graph = law_graph(1, 0);
    tdm_job job;
    set_cuda(&job);
    job.train.steps = 9;
    char at_once[40], one_by_one[40];
    watcher a = {0}, b = {0};
    REQUIRE(open_run(&a, &job, graph, 1) == TDM_OK);
    CHECK_OK(tdm_run_step(a.run, 7));
    read_params(a.run, at_once);
    CHECK_INT(tdm_run_step(a.run, 3), TDM_E_USAGE); /* two are left: they are done, and then it says so */
    CHECK_INT(a.steps, 9);
    tdm_run_close(a.run);
    REQUIRE(open_run(&b, &job, graph, 1) == TDM_OK);
    for (int i = 0; i < 7; i++) CHECK_OK(tdm_run_step(b.run, 1));
    read_params(b.run, one_by_one);
    tdm_run_close(b.run);
    CHECK_TEXT(at_once, one_by_one);
    tdm_graph_free(graph);
}

/* A checkpoint of this very step is loaded while the next batch is on its way already: what the loader makes from here
 * on does not get into it. */
TEST(a_load_between_steps) {
    static const tdm_resident_mode resident[] = {TDM_RESIDENT_ALWAYS, TDM_RESIDENT_NEVER};
    tdm_graph *graph = law_graph(1, 1);
    char folder[256], checkpoint[280];
    test_folder_make(folder);
    snprintf(checkpoint, sizeof(checkpoint), "%s/step-00000004", folder);
    for (int k = 0; k < 2; k++) {
        char params[2][40];
        for (int loads = 0; loads < 2; loads++) {
            tdm_job job;
            watcher w = {0};
            set_cuda(&job);
            job.train.steps = 9;
            job.data.resident = resident[k];
            REQUIRE(open_run(&w, &job, graph, 1) == TDM_OK);
            CHECK_OK(tdm_run_step(w.run, 4));
            if (loads) CHECK_OK(tdm_run_save(w.run, folder));
            if (loads) CHECK_OK(tdm_run_load(w.run, checkpoint));
            CHECK_OK(tdm_run_step(w.run, 5));
            read_params(w.run, params[loads]);
            tdm_run_close(w.run);
        }
        CHECK_TEXT(params[1], params[0]);
    }
    test_folder_remove(folder);
    tdm_graph_free(graph);
}

/* Steps go on being timed when the run has gone back to an earlier one. */
TEST(a_load_of_an_earlier_step) {
    tdm_graph *graph = law_graph(0, 0);
    char folder[256], checkpoint[280];
    tdm_job job;
    watcher w = {0};
    test_folder_make(folder);
    snprintf(checkpoint, sizeof(checkpoint), "%s/step-00000004", folder);
    set_cuda(&job);
    job.train.steps = 40;
    REQUIRE(open_run(&w, &job, graph, 1) == TDM_OK);
    CHECK_OK(tdm_run_step(w.run, 4));
    CHECK_OK(tdm_run_save(w.run, folder));
    CHECK_OK(tdm_run_step(w.run, 26));
    const tdm_recorder *recorder = w.run->mode->replica[0]->recorder;
    CHECK(recorder->timed_at > 16);
    CHECK_OK(tdm_run_load(w.run, checkpoint));
    CHECK_OK(tdm_run_step(w.run, 8));
    CHECK(recorder->timed_at > 4 && recorder->timed_at <= 12);
    tdm_run_close(w.run);
    test_folder_remove(folder);
    tdm_graph_free(graph);
}

/* The first step whose loss is not finite is the one that is named, and the run can be closed. */
TEST(a_loss_that_is_not_finite) {
    tdm_graph *graph = law_graph(0, 0);
    tdm_job job;
    set_cuda(&job);
    job.optimizer.type = TDM_SGD;
    job.optimizer.lr = 10;
    job.optimizer.weight_decay = 1; /* parameters change sign and grow by a factor of 9 a step */
    job.train.steps = 60;
    char message[2][200];
    for (int ahead = 0; ahead < 2; ahead++) {
        watcher w = {0};
        REQUIRE(open_run(&w, &job, graph, ahead) == TDM_OK);
        CHECK_INT(tdm_run_train(w.run), TDM_E_NUMERIC);
        snprintf(message[ahead], sizeof message[ahead], "%s", tdm_error_message());
        tdm_run_close(w.run);
    }
    CHECK_TEXT(message[0], message[1]);
    tdm_graph_free(graph);
}

enum { SAMPLES = 48, BROKEN = 30, SLOW_US = 500 };

static int read_slowly(void *user, int64_t index, float *x, void *target) {
    const int *breaks = user;
    usleep(SLOW_US);
    if (*breaks && index == BROKEN) return 5;
    for (int i = 0; i < 3 * 8 * 8; i++) x[i] = (float)((index * 7 + i) % 11) / 11.0f;
    *(int64_t *)target = index % 5;
    return 0;
}

static void set_source(tdm_job *job) {
    set_cuda(job);
    job->data.train.format = job->data.eval.format = TDM_DATA_NONE;
    job->data.shuffle = false;
    job->train.steps = 8;
}

/* Every step before the batch that cannot be had is told, and what they have made of the model can be had. */
TEST(a_batch_that_cannot_be_had) {
    tdm_graph *graph = law_graph(0, 1);
    for (int workers = 0; workers < 2; workers++) {
        char params[2][40];
        for (int ahead = 0; ahead < 2; ahead++) {
            int breaks = 1;
            tdm_source source = {
                .size = sizeof(source), .count = SAMPLES, .has_labels = 1, .read = read_slowly, .user = &breaks};
            tdm_job job;
            watcher w = {0};
            set_source(&job);
            job.data.workers = workers;
            REQUIRE(open_run_on(&w, &job, graph, ahead, &source) == TDM_OK);
            CHECK_INT(tdm_run_train(w.run), TDM_E_DATA);
            CHECK_INT(w.steps, BROKEN / 6);
            read_params(w.run, params[ahead]);
            tdm_run_close(w.run);
        }
        CHECK_TEXT(params[0], params[1]);
    }
    tdm_graph_free(graph);
}

/* What the loader is waited for is told, whoever waits: the step that uses a batch, or the one before it. */
TEST(waiting_for_data_is_seen) {
    tdm_graph *graph = law_graph(0, 1);
    int breaks = 0;
    tdm_source source = {
        .size = sizeof(source), .count = SAMPLES, .has_labels = 1, .read = read_slowly, .user = &breaks};
    tdm_job job;
    watcher w = {0};
    set_source(&job);
    job.data.workers = 0;
    REQUIRE(open_run_on(&w, &job, graph, 1, &source) == TDM_OK);
    CHECK_OK(tdm_run_train(w.run));
    CHECK(w.data_ms >= SAMPLES * SLOW_US / 1000.0);
    tdm_run_close(w.run);
    tdm_graph_free(graph);
}

/* Captured work of the whole step, of its two pieces, and of three; the gradient makes the way to the host and back. */
static void in_pieces(tdm_run *run, int64_t steps, int pieces) {
    float bias[5];
    double loss, accuracy;
    for (int64_t step = 1; step <= steps; step++) {
        tdm_outputs of = TDM_OUTPUTS_INIT;
        tdm_pass pass = TDM_PASS_INIT;
        do {
            if (pieces == 3) CHECK_OK(tdm_run_forward(run, &pass));
            if (pieces == 3) CHECK_OK(tdm_run_outputs(run, &of));
            for (int64_t i = 0; i < of.rows * of.width; i++) CHECK(isfinite(of.y[i]) && of.y[i] != 0);
            CHECK_OK(tdm_run_backward(run, &pass));
        } while (pass.micro_batch < pass.micro_batches);
        CHECK_OK(tdm_run_read_gradient(run, "fc2.bias", bias, sizeof(bias)));
        CHECK_OK(tdm_run_write_gradient(run, "fc2.bias", bias, sizeof(bias)));
        if (step == 4) CHECK_OK(tdm_run_evaluate(run, &loss, &accuracy));
        CHECK_OK(tdm_run_update(run));
    }
}

TEST(a_step_in_pieces_is_the_step) {
    tdm_graph *graph = law_graph(1, 1);
    for (int variant = 0; variant < 4; variant++) {
        const int devices = 1 + variant % 2;
        char params[4][40];
        watcher w[4] = {{0}, {0}, {0}, {0}};
        for (int pieces = 1; pieces < 4; pieces++) {
            tdm_job job;
            set_cuda(&job);
            job.train.steps = 10;
            job.train.accumulate = 1 + variant / 2;
            job.train.clip_grad_norm = 0.1;
            job.parallel.mode = devices == 1 ? TDM_MODE_SINGLE : TDM_MODE_DP;
            job.parallel.allow_shared_device = true;
            job.parallel.device_ids = (tdm_ints){devices, {0, 0}};
            REQUIRE(open_run(&w[pieces], &job, graph, 1) == TDM_OK);
            if (pieces > 1)
                in_pieces(w[pieces].run, 10, pieces);
            else
                CHECK_OK(tdm_run_step(w[pieces].run, 10));
            read_params(w[pieces].run, params[pieces]);
            tdm_run_close(w[pieces].run);
        }
        for (int pieces = 2; pieces < 4; pieces++) {
            CHECK_TEXT(params[pieces], params[1]);
            for (int i = 0; i < 10; i++) CHECK(w[pieces].loss[i] == w[1].loss[i]);
        }
    }
    tdm_graph_free(graph);
}

static tdm_status no_loss(void *user, const tdm_outputs *of, double *sum, float *dy) {
    (void)user, (void)of, (void)sum, (void)dy;
    return TDM_OK;
}

TEST(a_loss_of_the_program_needs_the_host) {
    const tdm_own_loss loss = {sizeof(loss), "mine", no_loss, NULL};
    tdm_run_options options = TDM_RUN_OPTIONS_INIT;
    tdm_run *run = NULL;
    tdm_job job;
    tdm_graph *graph = law_graph(0, 0);
    set_cuda(&job);
    options.loss = &loss;
    CHECK_STATUS(tdm_run_open(&run, &job, graph, &options), TDM_E_UNSUPPORTED);
    CHECK_HAS(tdm_error_message(), "'mine' works in the host's memory");
    tdm_graph_free(graph);
}

static void find_device(void) {
    tdm_job job;
    set_cuda(&job);
    tdm_graph *graph = law_graph(0, 0);
    watcher w = {0};
    tdm_status status = open_run(&w, &job, graph, 0);
    tdm_run_close(w.run);
    tdm_graph_free(graph);
    if (status == TDM_E_DEVICE || status == TDM_E_UNSUPPORTED) SKIP_PROGRAM(tdm_error_message());
}

TEST_MAIN(find_device(); RUN(the_numbers_are_the_same); RUN(tensors_in_a_callback);
          RUN(a_stop_finishes_what_is_under_way); RUN(steps_one_by_one_and_at_once); RUN(a_load_between_steps);
          RUN(a_load_of_an_earlier_step); RUN(a_loss_that_is_not_finite); RUN(a_batch_that_cannot_be_had);
          RUN(waiting_for_data_is_seen); RUN(a_step_in_pieces_is_the_step); RUN(a_loss_of_the_program_needs_the_host);)
