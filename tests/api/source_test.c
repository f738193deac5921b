/* Own data through tdm_source: any index from any thread, and what happens when reading fails. */
#include <stdatomic.h>

#include "tests/api/api.h"
#include "tests/support/tdm_test.h"

typedef struct samples {
    atomic_int reads[32];
    int64_t fails_at, bad_label_at, label;
} samples;

static int read_labelled(void *user, int64_t index, float *x, void *target) {
    samples *s = user;
    if (index < 0 || index >= 32) abort();
    atomic_fetch_add(&s->reads[index], 1);
    if (index == s->fails_at) return 42;
    for (int i = 0; i < 4; i++) x[i] = (float)((index * 7 + i * 3) % 11) / 11.0f;
    *(int64_t *)target = index == s->bad_label_at ? s->label : index % 3;
    return 0;
}

static int read_values(void *user, int64_t index, float *x, void *target) {
    float *values = target;
    (void)user;
    for (int i = 0; i < 4; i++) x[i] = (float)(index % (i + 2));
    for (int i = 0; i < 3; i++) values[i] = x[i] - x[i + 1];
    return 0;
}

static void source_job(tdm_job *job) {
    api_job(job);
    job->data.train.format = job->data.eval.format = TDM_DATA_NONE;
    job->train.steps = TDM_INT_NULL, job->train.epochs = 2;
}

/* Frees the graph. */
static tdm_status train_graph(tdm_graph *graph, const tdm_source *train, const tdm_source *eval, const tdm_job *job,
                              double *loss, char hash[40]) {
    tdm_run_options options = TDM_RUN_OPTIONS_INIT;
    tdm_run *run = NULL;
    tdm_run_state state = TDM_RUN_STATE_INIT;
    double accuracy = 0;
    options.train = train, options.eval = eval;
    tdm_status status = tdm_run_open(&run, job, graph, &options);
    if (status == TDM_OK) status = tdm_run_train(run);
    if (status == TDM_OK && eval != NULL) status = tdm_run_evaluate(run, loss, &accuracy);
    if (status == TDM_OK) CHECK_OK(tdm_run_get_state(run, &state));
    memcpy(hash, state.params_xxh3, 40);
    tdm_run_close(run);
    tdm_graph_free(graph);
    return status;
}

static tdm_status train_on(const tdm_source *train, const tdm_source *eval, const tdm_job *job, double *loss,
                           char hash[40]) {
    return train_graph(api_linear_graph(4), train, eval, job, loss, hash);
}

TEST(every_sample_once_an_epoch_and_threads_change_nothing) {
    char hash[3][40];
    static const int64_t workers[] = {0, 1, 4};
    for (int i = 0; i < 3; i++) {
        samples s = {.fails_at = -1, .bad_label_at = -1}, e = {.fails_at = -1, .bad_label_at = -1};
        tdm_source train = {.size = sizeof(train), .count = 32, .has_labels = 1, .read = read_labelled, .user = &s},
                   eval = {.size = sizeof(eval), .count = 9, .has_labels = 1, .read = read_labelled, .user = &e};
        tdm_job job;
        double loss = 0;
        source_job(&job);
        job.data.workers = workers[i];
        CHECK_OK(train_on(&train, &eval, &job, &loss, hash[i]));
        CHECK(loss > 0);
        for (int k = 0; k < 32; k++) CHECK(s.reads[k] >= 2 && s.reads[k] <= 3); /* a loader may be one epoch ahead */
        for (int k = 0; k < 32; k++) CHECK((e.reads[k] > 0) == (k < 9));
    }
    CHECK_TEXT(hash[0], hash[1]);
    CHECK_TEXT(hash[0], hash[2]);
}

TEST(float_targets) {
    tdm_source train = {.size = sizeof(train), .count = 32, .has_labels = 0, .read = read_values, .user = NULL};
    tdm_job job;
    double loss[2] = {0};
    char hash[40];
    source_job(&job);
    job.loss.type = TDM_MSE;
    job.optimizer.lr = 0;
    CHECK_OK(train_on(&train, &train, &job, &loss[0], hash));
    job.optimizer.lr = 0.05, job.train.epochs = 20;
    CHECK_OK(train_on(&train, &train, &job, &loss[1], hash));
    CHECK(loss[1] < 0.1 * loss[0]);
}

TEST(failing_read_ends_the_run_and_names_the_sample) {
    for (int64_t workers = 0; workers <= 2; workers++) {
        samples s = {.fails_at = 17, .bad_label_at = -1};
        tdm_source train = {.size = sizeof(train), .count = 32, .has_labels = 1, .read = read_labelled, .user = &s};
        tdm_job job;
        double loss = 0;
        char hash[40];
        source_job(&job);
        job.data.workers = workers;
        CHECK_STATUS(train_on(&train, NULL, &job, &loss, hash), TDM_E_DATA);
        CHECK_HAS(tdm_error_message(), "sample 17");
        CHECK_HAS(tdm_error_message(), "42");
    }
}

/* linear, log_softmax and another shape of that */
static void build_log_probabilities(tdm_graph **out) {
    tdm_value v;
    const int64_t width = 4;
    REQUIRE_OK(tdm_graph_new(out, NULL));
    REQUIRE_OK(tdm_graph_input(*out, 1, &width, &v));
    REQUIRE_OK(tdm_graph_add(*out, "linear", "fc", &v, 1, &(tdm_attr){"out", "3", {0}}, 1, &v));
    REQUIRE_OK(tdm_graph_add(*out, "log_softmax", "log", &v, 1, NULL, 0, &v));
    REQUIRE_OK(tdm_graph_add(*out, "flatten", "flat", &v, 1, NULL, 0, &v));
    REQUIRE_OK(tdm_graph_finish(*out, v));
}

TEST(nll_behind_log_softmax_is_cross_entropy) {
    samples s = {.fails_at = -1, .bad_label_at = -1};
    tdm_source train = {.size = sizeof(train), .count = 32, .has_labels = 1, .read = read_labelled, .user = &s};
    tdm_graph *graph = NULL;
    tdm_job job;
    double loss[2];
    char hash[40];
    source_job(&job);
    CHECK_OK(train_on(&train, &train, &job, &loss[0], hash));
    job.loss.type = TDM_NLL;
    build_log_probabilities(&graph);
    CHECK_OK(train_graph(graph, &train, &train, &job, &loss[1], hash));
    CHECK_NEAR(loss[1], loss[0], 1e-6);
    CHECK_STATUS(train_on(&train, &train, &job, &loss[1], hash), TDM_E_CONFIG);
    CHECK_HAS(tdm_error_message(),
              "the loss nll needs a model that ends in the layer log_softmax, but it ends in linear 'fc'; add "
              "`- log_softmax` as the last layer, or use the loss cross_entropy, which contains it");
}

TEST(labels_beyond_the_outputs_are_named) {
    static const int64_t labels[] = {3, -1, INT64_MAX, INT64_MIN};
    for (int i = 0; i < 4; i++) {
        samples s = {.fails_at = -1, .bad_label_at = 5, .label = labels[i]};
        tdm_source train = {.size = sizeof(train), .count = 32, .has_labels = 1, .read = read_labelled, .user = &s};
        tdm_job job;
        double loss = 0;
        char hash[40];
        source_job(&job);
        CHECK_STATUS(train_on(&train, NULL, &job, &loss, hash), TDM_E_DATA);
        CHECK_HAS(tdm_error_message(), "sample 5");
    }
    samples s = {.fails_at = -1, .bad_label_at = 5, .label = -100}; /* ignore_index */
    tdm_source train = {.size = sizeof(train), .count = 32, .has_labels = 1, .read = read_labelled, .user = &s};
    tdm_job job;
    double loss = 0;
    char hash[40];
    source_job(&job);
    CHECK_OK(train_on(&train, NULL, &job, &loss, hash));
}

TEST(failing_read_in_evaluation) {
    samples good = {.fails_at = -1, .bad_label_at = -1}, bad = {.fails_at = 3, .bad_label_at = -1};
    tdm_source train = {.size = sizeof(train), .count = 32, .has_labels = 1, .read = read_labelled, .user = &good},
               eval = {.size = sizeof(eval), .count = 9, .has_labels = 1, .read = read_labelled, .user = &bad};
    tdm_job job;
    double loss = 0;
    char hash[40];
    source_job(&job);
    CHECK_STATUS(train_on(&train, &eval, &job, &loss, hash), TDM_E_DATA);
    CHECK_HAS(tdm_error_message(), "sample 3");
}

TEST(non_finite_samples_are_a_numeric_error) {
    samples s = {.fails_at = -1, .bad_label_at = -1};
    tdm_source train = {.size = sizeof(train), .count = 32, .has_labels = 1, .read = read_labelled, .user = &s};
    tdm_job job;
    double loss = 0;
    char hash[40];
    source_job(&job);
    job.optimizer.type = TDM_SGD, job.optimizer.lr = 1e6, job.optimizer.momentum = 10; /* the weights run away */
    job.train.epochs = 200;
    CHECK_STATUS(train_on(&train, NULL, &job, &loss, hash), TDM_E_NUMERIC);
    CHECK_HAS(tdm_error_message(), "optimizer.lr");
}

TEST_MAIN(RUN(every_sample_once_an_epoch_and_threads_change_nothing); RUN(float_targets);
          RUN(nll_behind_log_softmax_is_cross_entropy); RUN(failing_read_ends_the_run_and_names_the_sample);
          RUN(labels_beyond_the_outputs_are_named); RUN(failing_read_in_evaluation);
          RUN(non_finite_samples_are_a_numeric_error);)
