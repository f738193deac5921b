/* One rule for what data.transform does to a program's samples: in training, in tdm_run_predict and in
 * tdm_model_predict. */
#include <tandem/model.h>

#include "tests/api/api.h"
#include "tests/support/tdm_test.h"

enum { SAMPLES = 12, WIDTH = 4, OUTPUTS = 3 };
#define MEAN 0.5f
#define STDEV 0.25f

static char folder[256];

/* As another format would have them: far from zero before the transform. */
static float number(int64_t index, int at) {
    return 10.0f + (float)((index * 7 + at * 3) % 11);
}

static int read_sample(void *user, int64_t index, float *x, void *target) {
    (void)user;
    for (int i = 0; i < WIDTH; i++) x[i] = number(index, i);
    *(int64_t *)target = index % OUTPUTS;
    return 0;
}

static void normalized_job(tdm_job *job) {
    api_job(job);
    job->data.train.format = job->data.eval.format = TDM_DATA_NONE;
    static const double mean = MEAN, stdev = STDEV;
    job->data.transform.to_float = true;
    job->data.transform.normalize = (tdm_normalizes){1, {{.mean = {1, &mean}, .stdev = {1, &stdev}}}};
}

static tdm_run *open_run(const tdm_job *job, const tdm_graph *graph, int predicts) {
    tdm_source source = TDM_SOURCE_INIT;
    tdm_run_options options = TDM_RUN_OPTIONS_INIT;
    tdm_run *run = NULL;
    source.count = SAMPLES, source.has_labels = 1, source.read = read_sample;
    if (!predicts) options.train = options.eval = &source;
    options.predicts = predicts;
    CHECK_OK(tdm_run_open(&run, job, graph, &options));
    if (run == NULL) exit(1);
    return run;
}

/* A sample as bytes and as floats, what the model takes of each, and outputs for all four kinds of call. */
typedef struct sample {
    unsigned char bytes[WIDTH];
    float floats[WIDTH], of_floats[WIDTH], of_bytes[WIDTH];
} sample;

static sample make_sample(int64_t index) {
    sample s;
    for (int i = 0; i < WIDTH; i++) {
        s.floats[i] = number(index, i);
        s.bytes[i] = (unsigned char)s.floats[i];
        const float centred = s.floats[i] - MEAN, scaled = (float)s.bytes[i] / 255.0f, moved = scaled - MEAN;
        s.of_floats[i] = centred / STDEV;
        s.of_bytes[i] = moved / STDEV;
    }
    return s;
}

static bool is_same(const float *a, const float *b) {
    return memcmp(a, b, OUTPUTS * sizeof(float)) == 0;
}

static void check_run(tdm_run *run, const sample *s) {
    float ready[2][OUTPUTS], got[OUTPUTS];
    CHECK_OK(tdm_run_predict_as(run, TDM_INPUT_READY, s->of_floats, 1, ready[0]));
    CHECK_OK(tdm_run_predict_as(run, TDM_INPUT_READY, s->of_bytes, 1, ready[1]));
    CHECK(!is_same(ready[0], ready[1]));
    CHECK_OK(tdm_run_predict(run, s->floats, 1, got));
    CHECK(is_same(got, ready[0]));
    CHECK_OK(tdm_run_predict_as(run, TDM_INPUT_FLOATS, s->floats, 1, got));
    CHECK(is_same(got, ready[0]));
    CHECK_OK(tdm_run_predict_as(run, TDM_INPUT_BYTES, s->bytes, 1, got));
    CHECK(is_same(got, ready[1]));
}

static void check_model(tdm_run *run, tdm_model *model, const sample *s) {
    static const int kinds[] = {TDM_INPUT_FLOATS, TDM_INPUT_BYTES, TDM_INPUT_READY};
    for (int k = 0; k < 3; k++) {
        const void *x = kinds[k] == TDM_INPUT_BYTES ? (const void *)s->bytes : s->floats;
        float of_run[OUTPUTS], of_model[OUTPUTS];
        CHECK_OK(tdm_run_predict_as(run, kinds[k], x, 1, of_run));
        CHECK_OK(tdm_model_predict(model, kinds[k], x, 1, of_model));
        CHECK(is_same(of_run, of_model));
    }
}

TEST(run_and_model_have_one_rule) {
    char path[320], step[300];
    tdm_job job;
    tdm_graph *graph = api_linear_graph(WIDTH);
    normalized_job(&job);
    tdm_run *run = open_run(&job, graph, 0);
    tdm_model *model = NULL;
    CHECK_OK(tdm_run_train(run));
    CHECK_OK(tdm_run_save(run, folder));
    snprintf(step, sizeof(step), "%s/step-00000006", folder);
    snprintf(path, sizeof(path), "%s/model.safetensors", step);
    REQUIRE_OK(tdm_model_open(&model, path, NULL));
    tdm_run *without_data = open_run(&job, graph, 1);
    CHECK_OK(tdm_run_load(without_data, step));
    for (int64_t i = 0; i < 3; i++) {
        const sample s = make_sample(i);
        check_run(run, &s);
        check_run(without_data, &s);
        check_model(run, model, &s);
    }
    tdm_model_close(model);
    tdm_run_close(without_data);
    tdm_run_close(run);
    tdm_graph_free(graph);
}

/* Predictions for the samples as they are in the source are those that an evaluation counts; several batches. */
TEST(predictions_are_the_evaluation) {
    tdm_job job;
    tdm_graph *graph = api_linear_graph(WIDTH);
    normalized_job(&job);
    tdm_run *run = open_run(&job, graph, 0);
    float x[SAMPLES][WIDTH], y[SAMPLES][OUTPUTS], ready[WIDTH];
    int64_t label, hits = 0;
    double loss, accuracy, sum = 0;
    CHECK_OK(tdm_run_train(run));
    for (int64_t i = 0; i < SAMPLES; i++) (void)read_sample(NULL, i, x[i], &label);
    CHECK_OK(tdm_run_predict(run, x[0], SAMPLES, y[0]));
    for (int64_t i = 0; i < SAMPLES; i++) {
        const sample s = make_sample(i);
        double total = 0, top = fmax(fmax((double)y[i][0], (double)y[i][1]), (double)y[i][2]);
        CHECK_OK(tdm_run_eval_sample(run, i, ready, &label));
        CHECK(memcmp(ready, s.of_floats, sizeof(ready)) == 0);
        for (int k = 0; k < OUTPUTS; k++) total += exp((double)y[i][k] - top);
        sum += log(total) + top - (double)y[i][label];
        hits += (double)y[i][label] == top;
    }
    CHECK_OK(tdm_run_evaluate(run, &loss, &accuracy));
    CHECK_NEAR(loss, sum / SAMPLES, 1e-5);
    CHECK_NEAR(accuracy, (double)hits / SAMPLES, 0);
    tdm_run_close(run);
    tdm_graph_free(graph);
}

/* Without data nothing has looked at the transform before. */
TEST(a_transform_that_does_not_fit_is_refused) {
    tdm_job job;
    tdm_graph *graph = api_linear_graph(WIDTH);
    const sample s = make_sample(0);
    float y[OUTPUTS];
    normalized_job(&job);
    const tdm_numbers ones = {3, (double[]){1, 1, 1}};
    job.data.transform.normalize = (tdm_normalizes){1, {{.mean = ones, .stdev = ones}}};
    tdm_run *run = open_run(&job, graph, 1);
    for (int i = 0; i < 2; i++) {
        CHECK_STATUS(tdm_run_predict(run, s.floats, 1, y), TDM_E_CONFIG);
        CHECK_HAS(tdm_error_message(), "one for each of 4 channels");
    }
    CHECK_OK(tdm_run_predict_as(run, TDM_INPUT_READY, s.of_floats, 1, y));
    tdm_run_close(run);
    tdm_graph_free(graph);
}

TEST_MAIN(test_folder_make(folder); RUN(run_and_model_have_one_rule); RUN(predictions_are_the_evaluation);
          RUN(a_transform_that_does_not_fit_is_refused); test_folder_remove(folder);)
