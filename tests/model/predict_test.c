/* A model's file predicts what the run that made it predicts, to the bit: for samples one by one and many, from a file
 * and from memory, on any number of threads. */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include <tandem/model.h>

#include "tests/api/api.h"
#include "tests/support/tdm_test.h"

/* Rows: pieces of 32, 32, 4, 2 and 1. Products of many rows may round otherwise than those of one, so numbers are
 * compared where as many rows go through the model at once: one, and a batch of the run. */
enum { ROWS = 71, BATCH = 4, WIDTH = 72, MOST_OUTPUTS = 8 };

static char folder[256], file[300]; /* the file of a job with a transform */
static float x[ROWS * WIDTH], wanted[ROWS * MOST_OUTPUTS], got[ROWS * MOST_OUTPUTS];

/* For functions that return something. */
static void must(bool good) {
    if (good) return;
    fprintf(stderr, "predict_test: %s\n", tdm_error_message());
    exit(1);
}

/* A run of the job whose checkpoint is in *path. */
static tdm_run *train(const tdm_job *job, const tdm_graph *graph, char path[300]) {
    tdm_run *run = NULL;
    tdm_run_state state = TDM_RUN_STATE_INIT;
    must(tdm_run_open(&run, job, graph, NULL) == TDM_OK);
    must(tdm_run_train(run) == TDM_OK);
    must(tdm_run_save(run, folder) == TDM_OK);
    must(tdm_run_get_state(run, &state) == TDM_OK);
    snprintf(path, 300, "%s/step-%08lld", folder, (long long)state.step);
    return run;
}

static void fill(int64_t width) {
    for (int64_t i = 0; i < ROWS * width; i++) x[i] = (float)(i * 7919 % 1009) / 256.0f - 2.0f;
}

static tdm_model *open_model(const char *path) {
    tdm_model *model = NULL;
    must(tdm_model_open(&model, path, NULL) == TDM_OK);
    return model;
}

/* The run's checkpoint, opened as it is, and the file made of it give the run's numbers. */
static void check_same(tdm_job *job, tdm_graph *graph) {
    char step[300], weights[340], own[300];
    float batch[BATCH * MOST_OUTPUTS];
    tdm_run *run = train(job, graph, step);
    const int64_t width = tdm_run_input_width(run), outputs = tdm_run_output_width(run);
    REQUIRE(width <= WIDTH && outputs <= MOST_OUTPUTS);
    fill(width);
    for (int64_t i = 0; i < ROWS; i++) REQUIRE_OK(tdm_run_predict(run, x + i * width, 1, wanted + i * outputs));
    REQUIRE_OK(tdm_run_predict(run, x, BATCH, batch));
    tdm_run_close(run);
    snprintf(weights, sizeof(weights), "%s/model.safetensors", step);
    snprintf(own, sizeof(own), "%s/own.tandem", folder);
    REQUIRE_OK(tdm_model_export(NULL, step, own, NULL));
    const char *const paths[] = {weights, own};
    for (int k = 0; k < 2; k++) {
        tdm_model *model = open_model(paths[k]);
        memset(got, 0xFF, sizeof(got));
        for (int64_t i = 0; i < ROWS; i++)
            CHECK_OK(tdm_model_predict(model, TDM_INPUT_READY, x + i * width, 1, got + i * outputs));
        CHECK(memcmp(got, wanted, (size_t)(ROWS * outputs) * sizeof(float)) == 0);
        memset(got, 0xFF, sizeof(got));
        /* No transform: floats are ready. */
        CHECK_OK(tdm_model_predict(model, TDM_INPUT_FLOATS, x, BATCH, got));
        CHECK(memcmp(got, batch, (size_t)(BATCH * outputs) * sizeof(float)) == 0);
        tdm_model_close(model);
    }
    CHECK(remove(own) == 0);
    tdm_graph_free(graph);
}

static tdm_value add(tdm_graph *g, const char *op, const char *name, tdm_value from, const char *key,
                     const char *text) {
    tdm_value v = -1;
    const tdm_attr attr = {key, text, {0}};
    must(tdm_graph_add(g, op, name, &from, 1, &attr, key != NULL, &v) == TDM_OK);
    return v;
}

/* The outputs of layers are taken by others than the next, the input twice. */
static tdm_graph *branches(void) {
    tdm_graph *g = NULL;
    tdm_value input, both[2], joined;
    must(tdm_graph_new(&g, NULL) == TDM_OK);
    must(tdm_graph_input(g, 1, (const int64_t[]){9}, &input) == TDM_OK);
    both[0] = add(g, "linear", "yes", input, "out", "5"); /* a word that YAML 1.1 has as a boolean */
    both[1] = add(g, "tanh", NULL, add(g, "linear", "a.b:c", input, "out", "5"), NULL, NULL);
    must(tdm_graph_add(g, "add", NULL, both, 2, NULL, 0, &joined) == TDM_OK);
    both[0] = joined;
    must(tdm_graph_add(g, "concat", NULL, both, 2, NULL, 0, &joined) == TDM_OK);
    const tdm_value last = add(g, "linear", "last", joined, "out", "3");
    must(tdm_graph_finish(g, last) == TDM_OK);
    return g;
}

/* Two convolutions over `channels` times 4 x 4 points, of 16 and of `out` channels. */
static tdm_graph *convolutions(int64_t channels, const char *out) {
    tdm_graph *g = NULL;
    tdm_value v = -1;
    const char *const outs[] = {"16", out};
    must(tdm_graph_new(&g, NULL) == TDM_OK);
    must(tdm_graph_input(g, 3, (const int64_t[]){channels, 4, 4}, &v) == TDM_OK);
    for (int i = 0; i < 2; i++) {
        const tdm_attr attrs[] = {{"out", outs[i], {0}}, {"kernel", "3", {0}}, {"padding", "1", {0}}};
        must(tdm_graph_add(g, "conv2d", NULL, &v, 1, attrs, 3, &v) == TDM_OK);
        v = add(g, "relu", NULL, v, NULL, NULL);
    }
    v = add(g, "linear", NULL, add(g, "flatten", NULL, v, NULL, NULL), "out", "3");
    must(tdm_graph_finish(g, v) == TDM_OK);
    return g;
}

TEST(predicts_what_the_run_predicts) {
    tdm_job job;
    api_job(&job);
    check_same(&job, api_graph(NULL));
    check_same(&job, api_linear_graph(16)); /* weights of whole cache lines, biases that are not */
    job.parallel.kernels = TDM_KERNELS_REF;
    check_same(&job, api_graph(NULL));
}

/* The file has floats; the handle rounds them once. Only the reference kernels have bf16 on every processor. */
TEST(predicts_in_bf16) {
    tdm_job job;
    api_job(&job);
    job.train.precision = TDM_BF16;
    job.parallel.kernels = TDM_KERNELS_REF;
    check_same(&job, api_graph(NULL));
    check_same(&job, convolutions(1, "32"));
}

TEST(branches_have_a_text) {
    tdm_job job;
    tdm_graph *graph = branches();
    char *text = NULL, *again = NULL;
    tdm_config *config = NULL;
    api_job(&job);
    job.name = "it's: \"quoted\"";
    REQUIRE_OK(tdm_config_print_model(&job, graph, &text));
    REQUIRE_OK(tdm_config_parse(&config, NULL, text, strlen(text), NULL, NULL));
    REQUIRE_OK(tdm_config_predicts(config));
    REQUIRE_OK(tdm_config_check(config));
    REQUIRE_OK(tdm_config_print_model(tdm_config_job(config), tdm_config_graph(config), &again));
    CHECK_TEXT(again, text);
    tdm_free(text);
    tdm_free(again);
    tdm_config_free(config);
    check_same(&job, graph);
}

/* ---- samples, memory, what it says ---- */

static char *read_file(const char *path, size_t *bytes) {
    FILE *from = fopen(path, "rb");
    must(from != NULL && fseek(from, 0, SEEK_END) == 0);
    *bytes = (size_t)ftell(from);
    char *all = aligned_alloc(64, *bytes / 64 * 64 + 128);
    rewind(from);
    must(fread(all, 1, *bytes, from) == *bytes);
    fclose(from);
    return all;
}

/* Leaves the exported file of a job with a transform. */
static void make_file(void) {
    char step[300];
    tdm_job job;
    tdm_graph *graph = api_graph(NULL);
    api_job(&job);
    job.data.transform.to_float = true;
    job.data.transform.normalize =
        (tdm_normalizes){1, {{.mean = {2, (double[]){0.25, 0.5}}, .stdev = {2, (double[]){0.5, 2}}}}};
    tdm_run_close(train(&job, graph, step));
    snprintf(file, sizeof(file), "%s/m.tandem", folder);
    REQUIRE_OK(tdm_model_export(NULL, step, file, NULL));
    tdm_graph_free(graph);
}

TEST(samples_are_transformed) {
    unsigned char bytes[ROWS * WIDTH];
    float floats[ROWS * WIDTH];
    tdm_model *model = open_model(file);
    for (int i = 0; i < ROWS * WIDTH; i++) {
        const int channel = i / 36 % 2;
        bytes[i] = (unsigned char)(i * 31);
        const float scaled = (float)bytes[i] / 255.0f;
        floats[i] = scaled;
        x[i] = channel == 0 ? (scaled - 0.25f) / 0.5f : (scaled - 0.5f) / 2.0f;
    }
    CHECK_OK(tdm_model_predict(model, TDM_INPUT_READY, x, ROWS, wanted));
    CHECK_OK(tdm_model_predict(model, TDM_INPUT_BYTES, bytes, ROWS, got));
    CHECK(memcmp(got, wanted, ROWS * 3 * sizeof(float)) == 0);
    CHECK_OK(tdm_model_predict(model, TDM_INPUT_FLOATS, floats, ROWS, got));
    CHECK(memcmp(got, wanted, ROWS * 3 * sizeof(float)) == 0);
    CHECK_OK(tdm_model_predict(model, TDM_INPUT_READY, x, 0, got));
    tdm_model_close(model);
}

/* Weights of whole cache lines are used where they lie, if they lie on cache lines. */
TEST(memory_is_borrowed) {
    size_t bytes;
    char step[300], own[300];
    tdm_job job;
    tdm_graph *graph = api_linear_graph(16);
    api_job(&job);
    tdm_run_close(train(&job, graph, step));
    snprintf(own, sizeof(own), "%s/own.tandem", folder);
    REQUIRE_OK(tdm_model_export(NULL, step, own, NULL));
    char *all = read_file(own, &bytes);
    fill(16);
    for (size_t shift = 0; shift <= 4; shift += 4) {
        tdm_model_info info = TDM_MODEL_INFO_INIT;
        tdm_model *model = NULL;
        memmove(all + shift, all, bytes);
        REQUIRE_OK(tdm_model_open_memory(&model, all + shift, bytes, NULL));
        CHECK_OK(tdm_model_get_info(model, &info));
        CHECK_INT(info.used_bytes, shift == 0 ? 3 * 16 * sizeof(float) : 0);
        CHECK_OK(tdm_model_predict(model, TDM_INPUT_READY, x, ROWS, shift == 0 ? wanted : got));
        tdm_model_close(model);
    }
    CHECK(memcmp(got, wanted, ROWS * 3 * sizeof(float)) == 0);
    free(all);
    CHECK(remove(own) == 0);
    tdm_graph_free(graph);
}

/* A convolution reads its weights in blocks of channels, where the processor has any: once for all calls and numbers of
 * rows, or, where the blocks differ, once for each of these. */
TEST(weights_are_packed_once) {
    enum { WEIGHTS = 32 * 16 * 9 * (int)sizeof(float) };
    char step[300];
    tdm_job job;
    tdm_graph *graph = convolutions(1, "32");
    api_job(&job);
    tdm_run *run = train(&job, graph, step);
    fill(16);
    for (int64_t i = 0; i < ROWS; i++) REQUIRE_OK(tdm_run_predict(run, x + i * 16, 1, wanted + i * 3));
    tdm_run_close(run);
    char weights[340];
    snprintf(weights, sizeof(weights), "%s/model.safetensors", step);
    tdm_model *model = open_model(weights);
    size_t first = 0;
    for (int round = 0; round < 2; round++) {
        tdm_model_info info = TDM_MODEL_INFO_INIT;
        for (int64_t i = 0; i < ROWS; i++)
            CHECK_OK(tdm_model_predict(model, TDM_INPUT_READY, x + i * 16, 1, got + i * 3));
        CHECK(memcmp(got, wanted, ROWS * 3 * sizeof(float)) == 0);
        CHECK_OK(tdm_model_predict(model, TDM_INPUT_READY, x, ROWS, got));
        CHECK_OK(tdm_model_get_info(model, &info));
        if (round == 0) first = info.packed_bytes;
        CHECK_INT(info.packed_bytes, first);
    }
    CHECK(first == 0 || (first >= WEIGHTS && first <= 6 * (WEIGHTS + WEIGHTS / 4)));
    tdm_model_close(model);
    tdm_graph_free(graph);
}

/* Kilobytes of the file at `path` that this process holds in memory. */
static long long resident(const char *path) {
    FILE *maps = fopen("/proc/self/smaps", "r");
    char line[512];
    bool is_file = false;
    long long sum = 0, kilobytes = 0;
    while (maps != NULL && fgets(line, sizeof(line), maps) != NULL) {
        unsigned long long begin, end;
        if (sscanf(line, "%llx-%llx ", &begin, &end) == 2) is_file = strstr(line, path) != NULL;
        if (is_file && sscanf(line, "Rss: %lld", &kilobytes) == 1) sum += kilobytes;
    }
    if (maps != NULL) fclose(maps);
    return sum;
}

/* Weights that were packed are not held in the file's layout, too; those that lie as kernels want them are in the file
 * alone. */
TEST(weights_are_held_once) {
    enum { PACKED = 512 * 16 * 9 * (int)sizeof(float) / 1024, OTHERS = 512 * 16 * 3 * (int)sizeof(float) / 1024 };
    static float sample[16 * 16];
    tdm_model_info info = TDM_MODEL_INFO_INIT;
    char step[300], weights[340];
    tdm_job job;
    tdm_graph *graph = convolutions(16, "512");
    api_job(&job);
    job.train.steps = 1;
    tdm_run_close(train(&job, graph, step));
    snprintf(weights, sizeof(weights), "%s/model.safetensors", step);
    tdm_model *model = open_model(weights);
    CHECK_OK(tdm_model_predict(model, TDM_INPUT_READY, sample, 1, got));
    CHECK_OK(tdm_model_get_info(model, &info));
    const long long held = resident(weights);
    if (held > 0 && info.packed_bytes > 0) CHECK(held >= OTHERS && held < OTHERS + PACKED);
    CHECK(info.copied_bytes < 4096);
    tdm_model_close(model);
    tdm_graph_free(graph);
}

/* Of a large linear layer one sample reads the weights alone that meet no zeros, which changes no bit; but a NaN that
 * meets zeros is seen. */
TEST(weights_that_meet_zeros) {
    enum { IN = 2048, OUT = 256, MARK = 64 };
    static float sample[IN], y[OUT], of_run[OUT], weight[IN * OUT];
    char step[300], own[300];
    size_t bytes;
    tdm_job job;
    tdm_graph *graph = NULL;
    tdm_model *model = NULL;
    tdm_value v = -1;
    must(tdm_graph_new(&graph, NULL) == TDM_OK);
    must(tdm_graph_input(graph, 1, (const int64_t[]){IN}, &v) == TDM_OK);
    must(tdm_graph_finish(graph, add(graph, "linear", "fc", v, "out", "256")) == TDM_OK);
    api_job(&job);
    job.train.steps = 1;
    for (int i = 0; i < IN; i++) sample[i] = i / 48 % 3 == 0 ? (float)(i % 7) - 3.0f : i % 2 == 0 ? -0.0f : 0.0f;
    tdm_run *run = train(&job, graph, step);
    REQUIRE_OK(tdm_run_predict(run, sample, 1, of_run));
    REQUIRE_OK(tdm_run_read(run, "fc.weight", weight, sizeof(weight)));
    tdm_run_close(run);
    snprintf(own, sizeof(own), "%s/own.tandem", folder);
    REQUIRE_OK(tdm_model_export(NULL, step, own, NULL));
    char *all = read_file(own, &bytes), *at = memmem(all, bytes, weight, MARK);
    REQUIRE(at != NULL && sample[100] == 0);
    for (int is_bad = 0; is_bad < 2; is_bad++) {
        if (is_bad) memcpy(at + (5 * IN + 100) * sizeof(float), &(float){NAN}, sizeof(float));
        REQUIRE_OK(tdm_model_open_memory(&model, all, bytes, NULL));
        for (int call = 0; call < 2; call++) {
            CHECK_OK(tdm_model_predict(model, TDM_INPUT_READY, sample, 1, y));
            CHECK(is_bad == (isnan(y[5]) != 0));
            if (is_bad) y[5] = of_run[5];
            CHECK(memcmp(y, of_run, sizeof(y)) == 0);
        }
        tdm_model_close(model);
    }
    free(all);
    CHECK(remove(own) == 0);
    tdm_graph_free(graph);
}

TEST(says_what_it_is) {
    tdm_model_info info = TDM_MODEL_INFO_INIT;
    tdm_model *model = open_model(file);
    CHECK_OK(tdm_model_get_info(model, &info));
    CHECK_TEXT(info.name, "api");
    CHECK_INT(info.input_ndim, 3);
    CHECK_INT(info.input[0] * 10000 + info.input[1] * 100 + info.input[2], 20606);
    CHECK_INT(info.input_width, 72);
    CHECK_INT(info.output_width, 3);
    CHECK_INT(info.parameters, 4 * 2 * 9 + 4 + 8 + 3 * 36 + 3);
    CHECK_INT(info.has_labels, 1);
    CHECK_INT(info.classes, 0);
    CHECK(tdm_model_class_name(model, 0) == NULL);
    CHECK_HAS(info.origin, "\"run\": \"api\", \"step\": 6, \"params_xxh3\": \"");
    CHECK_HAS(info.text, "normalize");
    CHECK(strstr(info.text, folder) == NULL);
    tdm_model_close(model);
    CHECK_STATUS(tdm_model_export(NULL, file, file, NULL), TDM_E_IO); /* it never replaces a file */
}

/* ---- threads ---- */

enum { CALLS = 40, THREADS = 4 };
static float alone[THREADS][CALLS][ROWS * 3]; /* what a call gives when no other is in progress */

typedef struct caller {
    pthread_t thread;
    tdm_model *model;
    int number;
    bool failed;
} caller;

/* Numbers of rows that differ from thread to thread and from call to call. */
static bool call(const caller *c, int i, float *y, size_t *count) {
    const int first = (i * 13 + c->number * 7) % ROWS, rows = 1 + (i * 5 + c->number) % (ROWS - first);
    *count = (size_t)rows * 3;
    return tdm_model_predict(c->model, TDM_INPUT_READY, x + first * WIDTH, rows, y) == TDM_OK;
}

static void *call_often(void *argument) {
    caller *c = argument;
    float y[ROWS * 3];
    for (int i = 0; i < CALLS; i++) {
        size_t count;
        if (!call(c, i, y, &count) || memcmp(y, alone[c->number][i], count * sizeof(*y)) != 0) c->failed = true;
    }
    return NULL;
}

TEST(threads_share_a_model) {
    caller callers[THREADS];
    size_t count;
    tdm_model_options options = TDM_MODEL_OPTIONS_INIT;
    tdm_model *first = open_model(file);
    fill(WIDTH);
    for (int n = 0; n < THREADS; n++)
        for (int i = 0; i < CALLS; i++) CHECK(call(&(caller){.model = first, .number = n}, i, alone[n][i], &count));
    tdm_model_close(first);
    for (options.threads = 1; options.threads <= 2; options.threads++) {
        tdm_model *model = NULL;
        REQUIRE_OK(tdm_model_open(&model, file, &options));
        for (int n = 0; n < THREADS; n++) {
            callers[n] = (caller){.model = model, .number = n};
            REQUIRE(pthread_create(&callers[n].thread, NULL, call_often, &callers[n]) == 0);
        }
        for (int n = 0; n < THREADS; n++) {
            pthread_join(callers[n].thread, NULL);
            CHECK(!callers[n].failed);
        }
        tdm_model_close(model);
    }
}

/* A name that no file may have: the checkpoint does without its model. */
TEST(some_models_have_no_text) {
    char step[300], *text = NULL;
    tdm_job job;
    tdm_graph *graph = NULL;
    tdm_value v;
    must(tdm_graph_new(&graph, NULL) == TDM_OK);
    must(tdm_graph_input(graph, 1, (const int64_t[]){4}, &v) == TDM_OK);
    must(tdm_graph_finish(graph, add(graph, "linear", "one two", v, "out", "3")) == TDM_OK);
    api_job(&job);
    CHECK_STATUS(tdm_config_print_model(&job, graph, &text), TDM_E_UNSUPPORTED);
    CHECK_HAS(tdm_error_message(), "'one two'");
    CHECK(text == NULL);
    tdm_run_close(train(&job, graph, step));
    CHECK_STATUS(tdm_model_export(NULL, step, "unused", NULL), TDM_E_CHECKPOINT);
    CHECK_HAS(tdm_error_message(), "does not carry its model");
    tdm_graph_free(graph);
}

/* ---- the average ---- */

TEST(an_average_is_what_is_exported) {
    char step[300], own[300], *report = NULL;
    tdm_job job;
    tdm_model_info info = TDM_MODEL_INFO_INIT;
    tdm_graph *graph = api_linear_graph(16);
    api_job(&job);
    job.train.ema_decay = 0.9;
    tdm_run_close(train(&job, graph, step));
    snprintf(own, sizeof(own), "%s/ema.tandem", folder);
    REQUIRE_OK(tdm_model_export(NULL, step, own, &report));
    CHECK_HAS(report, "average");
    tdm_free(report);
    tdm_model *model = open_model(own);
    CHECK_OK(tdm_model_get_info(model, &info));
    CHECK_HAS(info.origin, "\"weights\": \"ema\"");
    fill(16);
    CHECK_OK(tdm_model_predict(model, TDM_INPUT_READY, x, BATCH, got));
    tdm_model_close(model);
    tdm_run_options options = TDM_RUN_OPTIONS_INIT;
    tdm_run *run = NULL;
    options.predicts = 1;
    job.weights = step;
    job.train.ema_decay = 0.9;
    REQUIRE_OK(tdm_run_open(&run, &job, graph, &options));
    CHECK_OK(tdm_run_predict(run, x, BATCH, wanted));
    CHECK(memcmp(got, wanted, BATCH * 3 * sizeof(float)) == 0);
    tdm_run_close(run);
    tdm_graph_free(graph);
}

TEST_MAIN(test_folder_make(folder); make_file(); RUN(predicts_what_the_run_predicts); RUN(predicts_in_bf16);
          RUN(branches_have_a_text); RUN(samples_are_transformed); RUN(memory_is_borrowed);
          RUN(weights_are_packed_once); RUN(weights_are_held_once); RUN(weights_that_meet_zeros); RUN(says_what_it_is);
          RUN(threads_share_a_model); RUN(some_models_have_no_text); RUN(an_average_is_what_is_exported);
          test_folder_remove(folder);)
