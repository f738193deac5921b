/* Parts that a program brings itself, by the public interface: what is refused, and what checkpoints know of them. */
#include <math.h>

#include "tests/api/api.h"
#include "tests/support/tdm_test.h"

enum { OUTPUTS = 3 };

static tdm_graph *graph;

static tdm_run *open_run(const tdm_job *job, const tdm_run_options *options) {
    tdm_run *run = NULL;
    CHECK_OK(tdm_run_open(&run, job, graph, options));
    if (run == NULL) exit(1);
    return run;
}

/* The squared distance to the label's unit vector. */
static tdm_status brier(void *user, const tdm_outputs *of, double *sum, float *dy) {
    const int64_t *label = of->target;
    (void)user;
    for (int64_t i = 0; i < of->rows * of->width; i++) {
        const double d = (double)of->y[i] - (i % of->width == label[i / of->width]);
        *sum += d * d;
        if (dy != NULL) dy[i] = (float)(2 * d);
    }
    return TDM_OK;
}

/* The share of rows whose highest output is the label. */
static tdm_status share_of_hits(void *user, const tdm_outputs *of, double *sum, double *weight) {
    const int64_t *label = of->target;
    ++*(int *)user;
    for (int64_t n = 0; n < of->rows; n++) {
        const float *y = of->y + n * of->width;
        int best = 0;
        for (int c = 1; c < OUTPUTS; c++) best = y[c] > y[best] ? c : best;
        *sum += best == label[n];
        *weight += 1;
    }
    return TDM_OK;
}

/* Signs of an average of the gradients. */
static tdm_status lion(void *user, const tdm_own_update *u) {
    (void)user;
    for (int64_t i = 0; i < u->count; i++) {
        const float mixed = 0.9f * u->state[0][i] + 0.1f * u->g[i];
        u->state[0][i] = 0.99f * u->state[0][i] + 0.01f * u->g[i];
        u->p[i] -= (float)u->lr * (float)((mixed > 0) - (mixed < 0));
    }
    return TDM_OK;
}

static const tdm_own_loss own_loss = {sizeof(own_loss), "brier", brier, NULL};
static const tdm_own_optimizer own_lion = {sizeof(own_lion), "lion", {"exp_avg"}, lion, NULL};

static tdm_run_options with_parts(void) {
    tdm_run_options options = TDM_RUN_OPTIONS_INIT;
    options.loss = &own_loss;
    options.optimizer = &own_lion;
    return options;
}

static void hash_of(tdm_run *run, char out[40]) {
    tdm_run_state state = TDM_RUN_STATE_INIT;
    CHECK_OK(tdm_run_get_state(run, &state));
    memcpy(out, state.params_xxh3, sizeof(state.params_xxh3));
}

/* ---- checkpoints ---- */

static void save_half(const tdm_job *job, tdm_buffer *buffer, char hash[40]) {
    const tdm_run_options options = with_parts();
    const tdm_writer writer = {sizeof(writer), tdm_buffer_write, buffer};
    tdm_run *run = open_run(job, &options);
    CHECK_INT(tdm_run_optimizer_count(run), 2);
    CHECK_OK(tdm_run_step(run, 3));
    CHECK_OK(tdm_run_save_to(run, &writer));
    CHECK_OK(tdm_run_step(run, 3));
    hash_of(run, hash);
    tdm_run_close(run);
}

static void check_refused(const tdm_job *job, const tdm_run_options *options, const tdm_buffer *buffer,
                          const char *wanted) {
    tdm_run *run = open_run(job, options);
    CHECK_STATUS(tdm_run_load_memory(run, buffer->bytes, buffer->count), TDM_E_CHECKPOINT);
    CHECK_HAS(tdm_error_message(), wanted);
    tdm_run_close(run);
}

TEST(a_run_resumes_with_its_parts_only) {
    char whole[40], resumed[40];
    float state[OUTPUTS];
    tdm_job job;
    tdm_buffer buffer = TDM_BUFFER_INIT;
    tdm_run_options options = with_parts();
    api_job(&job);
    save_half(&job, &buffer, whole);
    tdm_run *run = open_run(&job, &options);
    CHECK_OK(tdm_run_load_memory(run, buffer.bytes, buffer.count));
    CHECK_OK(tdm_run_read_optimizer(run, "exp_avg", "fc.bias", state, sizeof(state)));
    CHECK(state[0] != 0);
    CHECK_OK(tdm_run_step(run, 3));
    hash_of(run, resumed);
    CHECK_TEXT(resumed, whole);
    tdm_run_close(run);
    options.optimizer = NULL;
    check_refused(&job, &options, &buffer, "a program's own optimizer 'lion', which this run lacks");
    options = with_parts();
    options.loss = NULL;
    check_refused(&job, &options, &buffer, "a program's own loss 'brier', which this run lacks");
    tdm_buffer_free(&buffer);
}

TEST(predictions_do_without_the_loss) {
    const float x[4] = {1, 2, 3, 4};
    float y[OUTPUTS];
    char hash[40];
    double loss, accuracy;
    tdm_job job;
    tdm_buffer buffer = TDM_BUFFER_INIT;
    tdm_run_options options = TDM_RUN_OPTIONS_INIT;
    api_job(&job);
    save_half(&job, &buffer, hash);
    options.predicts = 1;
    for (int with = 0; with < 2; with++) {
        options.loss = with ? &own_loss : NULL;
        tdm_run *run = open_run(&job, &options);
        CHECK_OK(tdm_run_load_memory(run, buffer.bytes, buffer.count));
        CHECK_OK(tdm_run_predict(run, x, 1, y));
        CHECK_STATUS(tdm_run_evaluate(run, &loss, &accuracy), with ? TDM_OK : TDM_E_UNSUPPORTED);
        if (!with) CHECK_HAS(tdm_error_message(), "it can predict but not evaluate");
        tdm_run_close(run);
    }
    tdm_buffer_free(&buffer);
}

/* ---- a metric ---- */

TEST(a_metric_is_part_of_each_evaluation) {
    int calls = 0;
    const tdm_own_metric hits = {sizeof(hits), "hits", share_of_hits, &calls};
    tdm_run_options options = TDM_RUN_OPTIONS_INIT;
    tdm_scores scores = TDM_SCORES_INIT;
    tdm_job job;
    api_job(&job);
    for (int devices = 1; devices <= 2; devices++) {
        calls = 0;
        job.parallel.device_ids = (tdm_ints){devices, {0, 1}};
        job.parallel.mode = devices == 1 ? TDM_MODE_SINGLE : TDM_MODE_DP;
        options.metric = &hits;
        tdm_run *run = open_run(&job, &options);
        CHECK_OK(tdm_run_step(run, 2));
        CHECK_OK(tdm_run_evaluate_scores(run, &scores));
        CHECK(scores.metric == scores.accuracy && calls == 3); /* 10 samples, 4 at once */
        tdm_run_close(run);
    }
    options.metric = NULL;
    tdm_run *run = open_run(&job, &options);
    CHECK_OK(tdm_run_evaluate_scores(run, &scores));
    CHECK(isnan(scores.metric));
    tdm_run_close(run);
}

/* ---- what is refused ---- */

static void check_open(const tdm_job *job, const tdm_run_options *options, tdm_status status, const char *wanted) {
    tdm_run *run = NULL;
    CHECK_STATUS(tdm_run_open(&run, job, graph, options), status);
    CHECK_HAS(tdm_error_message(), wanted);
    CHECK(run == NULL);
}

TEST(parts_that_are_none_are_refused) {
    tdm_job job;
    tdm_run_options options = TDM_RUN_OPTIONS_INIT;
    tdm_own_loss loss = TDM_OWN_LOSS_INIT;
    tdm_own_metric metric = TDM_OWN_METRIC_INIT;
    tdm_own_optimizer optimizer = TDM_OWN_OPTIMIZER_INIT;
    api_job(&job);
    options.loss = &loss;
    check_open(&job, &options, TDM_E_USAGE, "options.loss: its name is to be");
    loss.name = "my loss";
    check_open(&job, &options, TDM_E_USAGE, "options.loss: its name is to be");
    loss.name = "mine";
    check_open(&job, &options, TDM_E_USAGE, "'mine' has no function `run`");
    loss.size = 3;
    check_open(&job, &options, TDM_E_USAGE, "options.loss.size is 3");
    options.loss = NULL, options.metric = &metric;
    check_open(&job, &options, TDM_E_USAGE, "options.metric: its name is to be");
    options.metric = NULL, options.optimizer = &optimizer;
    optimizer.name = "adam", optimizer.run = lion;
    check_open(&job, &options, TDM_E_USAGE, "tandem has an optimizer 'adam' already");
    optimizer.name = "mine", optimizer.state[0] = optimizer.state[1] = "same";
    check_open(&job, &options, TDM_E_USAGE, "the states of 'mine' are to be different");
    optimizer.state[1] = "a.b";
    check_open(&job, &options, TDM_E_USAGE, "the states of 'mine' are to be different");
}

TEST_MAIN(graph = api_linear_graph(4); RUN(a_run_resumes_with_its_parts_only); RUN(predictions_do_without_the_loss);
          RUN(a_metric_is_part_of_each_evaluation); RUN(parts_that_are_none_are_refused); tdm_graph_free(graph);)
