/* Numbers that run away: which step, which samples, which tensor; and nothing of it is saved. */
#include <tandem/checkpoint.h>

#include <float.h>

#include "tests/api/api.h"
#include "tests/support/tdm_failing_host.h"
#include "tests/support/tdm_test.h"

enum { SAMPLES = 32, WIDTH = 4, IGNORED = -100 };

/* Labels count from `label_from` to `label_to` only; x of `bad` begins with `value`. */
typedef struct samples {
    int64_t ignored_from, ignored_to, bad[2];
    float value, target;
} samples;

static void fill_x(const samples *s, int64_t index, float *x) {
    for (int i = 0; i < WIDTH; i++) x[i] = (float)((index * 7 + i * 3) % 11) / 11.0f;
    if (index == s->bad[0] || index == s->bad[1]) x[0] = s->value;
}

static int read_labelled(void *user, int64_t index, float *x, void *target) {
    const samples *s = user;
    fill_x(s, index, x);
    *(int64_t *)target = index >= s->ignored_from && index < s->ignored_to ? IGNORED : index % 3;
    return 0;
}

static int read_values(void *user, int64_t index, float *x, void *target) {
    const samples *s = user;
    fill_x(s, index, x);
    for (int i = 0; i < 3; i++) ((float *)target)[i] = s->target;
    return 0;
}

/* One run over own samples, in their order, 4 to a step. */
typedef struct watched {
    samples s;
    tdm_source source;
    tdm_job job;
    tdm_graph *graph;
    tdm_host host;
    tdm_run *run;
    char log[4096];
    double loss[SAMPLES];
} watched;

static void keep_line(void *user, tdm_log_level level, const char *subsystem, const char *line) {
    watched *w = user;
    size_t used = strlen(w->log);
    (void)subsystem;
    (void)level;
    snprintf(w->log + used, sizeof(w->log) - used, "%s\n", line);
}

static int keep_loss(const tdm_event *event, void *user) {
    watched *w = user;
    if (event->kind == TDM_EVENT_STEP && event->step <= SAMPLES) w->loss[event->step - 1] = event->loss;
    return 0;
}

static void begin(watched *w) {
    *w = (watched){.s = {.bad = {-1, -1}}};
    w->source = (tdm_source){
        .size = sizeof(w->source), .count = SAMPLES, .has_labels = 1, .read = read_labelled, .user = &w->s};
    w->graph = api_linear_graph(WIDTH);
    w->host = *tdm_host_default();
    w->host.log = keep_line;
    w->host.log_level = TDM_LOG_WARNING;
    w->host.user = w;
    api_job(&w->job);
    w->job.data.train.format = w->job.data.eval.format = TDM_DATA_NONE;
    w->job.data.shuffle = false;
    w->job.optimizer.type = TDM_SGD;
}

static void begin_values(watched *w, float target) {
    begin(w);
    w->s.target = target;
    w->source.has_labels = 0;
    w->source.read = read_values;
    w->job.loss.type = TDM_MSE;
}

static tdm_status open_run(watched *w) {
    tdm_run_options options = TDM_RUN_OPTIONS_INIT;
    options.train = &w->source;
    options.host = &w->host;
    options.on_event = keep_loss;
    options.user = w;
    return tdm_run_open(&w->run, &w->job, w->graph, &options);
}

static tdm_status train(watched *w) {
    tdm_status status = open_run(w);
    return status == TDM_OK ? tdm_run_train(w->run) : status;
}

static void end(watched *w) {
    tdm_run_close(w->run);
    tdm_graph_free(w->graph);
}

TEST(the_sample_is_named) {
    static const float values[] = {NAN, INFINITY, -INFINITY};
    for (int i = 0; i < 3; i++) {
        for (int mode = TDM_MODE_SINGLE; mode <= TDM_MODE_DP; mode++) {
            watched w;
            begin(&w);
            w.s.bad[0] = 10;
            w.s.value = values[i];
            w.job.parallel.mode = mode;
            w.job.parallel.device_ids = (tdm_ints){2, {0, 1}};
            w.job.train.per_device = 2;
            CHECK_STATUS(train(&w), TDM_E_NUMERIC);
            CHECK_HAS(tdm_error_message(),
                      "the loss of step 3 is nan: sample 10 of data.train holds infinite numbers or NaN");
            end(&w);
        }
    }
}

TEST(several_samples_are_counted) {
    watched w;
    begin(&w);
    w.s.bad[0] = 9, w.s.bad[1] = 11;
    w.s.value = NAN;
    CHECK_STATUS(train(&w), TDM_E_NUMERIC);
    CHECK_HAS(tdm_error_message(), "the loss of step 3 is nan: sample 9 of data.train and 1 more of its batch hold ");
    CHECK_HAS(tdm_error_message(), "its batch holds samples 8, 9, 10, 11; mend them");
    end(&w);
}

TEST(a_target_is_a_number_too) {
    watched w;
    begin_values(&w, NAN);
    w.job.train.per_device = 1;
    CHECK_STATUS(train(&w), TDM_E_NUMERIC);
    CHECK_HAS(tdm_error_message(), "the loss of step 1 is nan: sample 0 of data.train holds");
    end(&w);
}

/* The sum is taken in double; what PyTorch has, and what is logged, is a float. */
TEST(a_loss_beyond_a_float) {
    watched w;
    begin_values(&w, 7.5e19f);
    w.job.train.per_device = 12;
    CHECK((double)w.s.target * (double)w.s.target > (double)FLT_MAX);
    CHECK_STATUS(train(&w), TDM_E_NUMERIC);
    CHECK_HAS(tdm_error_message(), "the loss of step 1 is infinite: its batch holds samples 0, 1, 2, 3, 4, 5, 6, 7 and "
                                   "4 more; lower optimizer.lr");
    end(&w);
    begin_values(&w, 1.5e19f);
    w.job.optimizer.lr = 0;
    CHECK_OK(train(&w));
    end(&w);
}

/* After a step that failed nothing can be said of what the replicas hold. */
TEST(nothing_is_saved_behind_it) {
    char folder[256];
    watched w;
    test_folder_make(folder);
    begin(&w);
    w.s.bad[0] = 10;
    w.s.value = NAN;
    CHECK_OK(open_run(&w));
    CHECK_OK(tdm_run_step(w.run, 2));
    CHECK_OK(tdm_run_save(w.run, folder));
    CHECK_STATUS(tdm_run_step(w.run, 1), TDM_E_NUMERIC);
    CHECK_STATUS(tdm_run_save(w.run, folder), TDM_E_USAGE);
    CHECK_HAS(tdm_error_message(), "step 3 failed");
    CHECK_OK(tdm_checkpoint_verify(NULL, folder, NULL));
    end(&w);
    test_folder_remove(folder);
}

/* x and target such that the loss is a float, but a gradient times lr none. */
TEST(infinite_weights_are_not_saved) {
    char folder[256], text[300];
    watched w;
    test_folder_make(folder);
    begin_values(&w, 1e18f);
    w.s.bad[0] = 10;
    w.s.value = 1e17f;
    w.job.run.dir = folder;
    w.job.checkpoint.every = (tdm_interval){TDM_INTERVAL_STEPS, 1};
    w.job.optimizer.lr = 0;
    w.job.train.steps = 2;
    CHECK_OK(train(&w)); /* good up to step 2 */
    tdm_run_close(w.run);

    w.job.optimizer.lr = 1e5;
    w.job.train.steps = 3;
    w.job.checkpoint.resume = "auto";
    CHECK_STATUS(train(&w), TDM_E_NUMERIC);
    CHECK_HAS(tdm_error_message(), "the checkpoint of step 3 is not saved: tensor 'fc.weight' is not finite (element ");
    CHECK(isfinite((float)w.loss[2]) && w.loss[2] > 0);
    CHECK_OK(tdm_checkpoint_verify(NULL, folder, NULL));
    tdm_run_close(w.run);

    w.job.optimizer.lr = 0;
    CHECK_OK(train(&w)); /* from step 2 */
    snprintf(text, sizeof(text), "%s/checkpoints/step-00000003", folder);
    CHECK_OK(tdm_checkpoint_verify(NULL, text, NULL));
    end(&w);
    test_folder_remove(folder);
}

TEST(weights_that_are_not_finite_are_no_start) {
    char folder[256], path[320];
    watched w;
    test_folder_make(folder);
    begin(&w);
    CHECK_OK(open_run(&w));
    CHECK_OK(tdm_run_save(w.run, folder));
    tdm_run_close(w.run);
    snprintf(path, sizeof(path), "%s/step-00000000/model.safetensors", folder);
    FILE *file = fopen(path, "r+b");
    CHECK(file != NULL && fseek(file, -4, SEEK_END) == 0);
    CHECK(fwrite(&(float){NAN}, sizeof(float), 1, file) == 1 && fclose(file) == 0);
    w.job.weights = path;
    CHECK_STATUS(open_run(&w), TDM_E_CHECKPOINT);
    CHECK_HAS(tdm_error_message(), "tensor 'fc.weight' of the file is not finite (element 11 is infinite or NaN)");
    end(&w);
    test_folder_remove(folder);
}

/* As in PyTorch: the loss is nan, the gradient 0. */
TEST(a_step_without_labels_goes_on) {
    char hash[2][40];
    for (int steps = 2; steps <= 3; steps++) {
        watched w;
        tdm_run_state state = TDM_RUN_STATE_INIT;
        begin(&w);
        w.s.ignored_from = 8, w.s.ignored_to = 12; /* step 3 */
        w.job.train.steps = steps;
        CHECK_OK(train(&w));
        CHECK_OK(tdm_run_get_state(w.run, &state));
        memcpy(hash[steps - 2], state.params_xxh3, sizeof(hash[0]));
        CHECK(isfinite(w.loss[0]) && isfinite(w.loss[1]));
        if (steps == 3) CHECK(isnan(w.loss[2]) && isnan(state.loss));
        end(&w);
    }
    CHECK_TEXT(hash[0], hash[1]);
}

/* Smoothing counts the other classes, too, so there is something to divide by 0: PyTorch's loss is infinite as well. */
TEST(a_step_whose_labels_weigh_nothing_goes_on) {
    const double weight[] = {0, 1, 1};
    for (int smooth = 0; smooth <= 1; smooth++) {
        watched w;
        begin(&w);
        w.s.ignored_from = 1, w.s.ignored_to = 4; /* sample 0, of class 0, is left */
        w.job.train.steps = 1;
        w.job.loss.weight = (tdm_numbers){3, weight};
        w.job.loss.label_smoothing = 0.1 * smooth;
        CHECK_OK(train(&w));
        CHECK(smooth == 0 ? isnan(w.loss[0]) : isinf(w.loss[0]));
        CHECK_HAS(w.log, smooth == 0 ? "or weighs 0, so its loss is nan and its gradient 0; training continues"
                                     : "or weighs 0, so its loss is infinite and its gradient 0; training continues");
        end(&w);
    }
}

TEST(it_is_told_once) {
    watched w;
    begin(&w);
    w.s.ignored_from = 6, w.s.ignored_to = 20; /* half of step 2; 3, 4, 5 */
    CHECK_OK(train(&w));
    CHECK(isfinite(w.loss[1]) && isnan(w.loss[2]) && isnan(w.loss[4]) && isfinite(w.loss[5]));
    CHECK_TEXT(w.log, "step 3: every label of its batch is loss.ignore_index, so its loss is nan and its gradient 0; "
                      "training continues\n"
                      "in 3 steps every label was loss.ignore_index\n");
    end(&w);
}

/* An evaluation without a number ends nothing, and is told once. */
TEST(an_evaluation_without_a_number_is_told) {
    static const char *const told[] = {"every label of data.eval is loss.ignore_index, so its loss is nan\n",
                                       "the loss over data.eval is nan after step 2; look for samples with infinite "
                                       "numbers or NaN: `tandem data check` names them\n",
                                       "the loss over data.eval is nan; look for samples with infinite numbers or NaN: "
                                       "`tandem data check` names them\n"};
    for (int trial = 0; trial < 3; trial++) { /* without labels; in training; in a run that only evaluates */
        watched w;
        samples seen = {.bad = {-1, -1}};
        tdm_source eval = {
            .size = sizeof(eval), .count = SAMPLES, .has_labels = 1, .read = read_labelled, .user = &seen};
        tdm_run_options options = TDM_RUN_OPTIONS_INIT;
        begin(&w);
        if (trial == 0)
            seen.ignored_to = SAMPLES;
        else
            seen.bad[0] = 5, seen.value = NAN;
        w.job.train.steps = 4;
        w.job.eval.every = (tdm_interval){TDM_INTERVAL_STEPS, 2};
        options.train = &w.source;
        options.eval = &eval;
        options.host = &w.host;
        options.predicts = trial == 2;
        CHECK_OK(tdm_run_open(&w.run, &w.job, w.graph, &options));
        if (!options.predicts) CHECK_OK(tdm_run_train(w.run));
        double loss = 0, accuracy = 0;
        CHECK_OK(tdm_run_evaluate(w.run, &loss, &accuracy));
        CHECK(isnan(loss));
        CHECK_TEXT(w.log, told[trial]);
        end(&w);
    }
}

/* What a run holds does not grow with what it saves. */
TEST(saving_keeps_no_memory) {
    char folder[256], dir[512];
    long live[2];
    tdm_failing_host host;
    tdm_run_options options = TDM_RUN_OPTIONS_INIT;
    tdm_job job;
    tdm_run *run = NULL;
    for (int i = 0; i < 2; i++) {
        test_folder_make(folder);
        snprintf(dir, sizeof(dir), "%s/%0200d", folder, 0); /* what is kept of a name is soon a new block */
        tdm_failing_host_init(&host, 0);
        api_job(&job);
        job.run.dir = dir;
        job.train.steps = i == 0 ? 2 : 150;
        job.checkpoint.every = (tdm_interval){TDM_INTERVAL_STEPS, 1};
        job.checkpoint.keep_last = 2;
        options.host = &host.host;
        tdm_graph *graph = api_graph(&host.host);
        CHECK_OK(tdm_run_open(&run, &job, graph, &options));
        CHECK_OK(tdm_run_train(run));
        live[i] = host.live;
        tdm_run_close(run);
        tdm_graph_free(graph);
        CHECK_INT(host.live, 0);
        test_folder_remove(folder);
    }
    CHECK_INT(live[1], live[0]);
}

TEST_MAIN(RUN(the_sample_is_named); RUN(several_samples_are_counted); RUN(a_target_is_a_number_too);
          RUN(a_loss_beyond_a_float); RUN(nothing_is_saved_behind_it); RUN(infinite_weights_are_not_saved);
          RUN(weights_that_are_not_finite_are_no_start); RUN(a_step_without_labels_goes_on);
          RUN(a_step_whose_labels_weigh_nothing_goes_on); RUN(it_is_told_once);
          RUN(an_evaluation_without_a_number_is_told); RUN(saving_keeps_no_memory);)
