/* A model with several inputs: its samples as rows or as an array for each input, in every way, of every kind. */
#include "tests/api/api.h"
#include "tests/api/misuse.h"

enum { SAMPLES = 22, PICTURE = 32, NUMBERS = 5, KINDS = 2, WIDTH = PICTURE + NUMBERS + KINDS, OUTPUTS = 3, WORDS = 7 };
#define MEAN 0.5f
#define STDEV 0.25f
static const double mean = MEAN, stdev = STDEV, means[] = {1, -2, 0.25, 0, 3}, stdevs[] = {2, 0.5, 3, 1, 0.125};

static char folder[256];
static unsigned char picture[SAMPLES][PICTURE];
static float numbers[SAMPLES][NUMBERS], kinds[SAMPLES][KINDS];
static float row[SAMPLES][WIDTH];                             /* the same, before normalize */
static float scaled[SAMPLES][PICTURE], ready[SAMPLES][WIDTH]; /* the picture as floats; what the model takes */
static int64_t label[SAMPLES];

static void make_samples(void) {
    for (int i = 0; i < SAMPLES; i++) {
        label[i] = i % OUTPUTS;
        for (int k = 0; k < PICTURE; k++) picture[i][k] = (unsigned char)(i * 53 + k * 31);
        for (int k = 0; k < NUMBERS; k++) numbers[i][k] = (float)((i * 7 + k * 3) % 11) - 5.0f;
        for (int k = 0; k < KINDS; k++) kinds[i][k] = (float)((i + k) % WORDS);
        for (int k = 0; k < PICTURE; k++) {
            scaled[i][k] = row[i][k] = (float)picture[i][k] / 255.0f;
            const float centred = row[i][k] - MEAN;
            ready[i][k] = centred / STDEV;
        }
        memcpy(row[i] + PICTURE, numbers[i], sizeof(numbers[i]));
        memcpy(row[i] + PICTURE + NUMBERS, kinds[i], sizeof(kinds[i]));
        for (int k = 0; k < NUMBERS; k++) {
            const float centred = numbers[i][k] - (float)means[k];
            ready[i][PICTURE + k] = centred / (float)stdevs[k];
        }
        memcpy(ready[i] + PICTURE + NUMBERS, kinds[i], sizeof(kinds[i]));
    }
}

static void must(tdm_status status) {
    if (status == TDM_OK) return;
    printf("%s\n", tdm_error_message());
    exit(1);
}

/* A picture, numbers and categories that are looked up, joined; `second` is the name of the second input. */
static tdm_graph *three_inputs(const char *second) {
    tdm_graph *g = NULL;
    tdm_value p, n, k, y;
    must(tdm_graph_new(&g, NULL));
    must(tdm_graph_add_input(g, "picture", 3, (const int64_t[]){2, 4, 4}, &p));
    must(tdm_graph_add_input(g, second, 1, (const int64_t[]){NUMBERS}, &n));
    must(tdm_graph_add_input(g, "kinds", 1, (const int64_t[]){KINDS}, &k));
    must(tdm_graph_add(g, "conv2d", "conv", &p, 1, (tdm_attr[]){{"out", "4", {0}}, {"kernel", "3", {0}}}, 2, &p));
    must(tdm_graph_add(g, "relu", NULL, &p, 1, NULL, 0, &p));
    must(tdm_graph_add(g, "flatten", NULL, &p, 1, NULL, 0, &p));
    must(tdm_graph_add(g, "embedding", "words", &k, 1, (tdm_attr[]){{"vocabulary", "7", {0}}, {"dim", "3", {0}}}, 2,
                       &k));
    must(tdm_graph_add(g, "flatten", NULL, &k, 1, NULL, 0, &k));
    must(tdm_graph_add(g, "concat", NULL, (tdm_value[]){p, n, k}, 3, NULL, 0, &y));
    must(tdm_graph_add(g, "linear", "fc", &y, 1, &(tdm_attr){"out", "3", {0}}, 1, &y));
    must(tdm_graph_finish(g, y));
    return g;
}

static void own_job(tdm_job *job) {
    api_job(job);
    job->data.train.format = job->data.eval.format = TDM_DATA_NONE;
    job->data.transform.to_float = true;
    job->data.transform.normalize = (tdm_normalizes){
        2, {{{NUMBERS, means}, {NUMBERS, stdevs}, {1, {"numbers"}}}, {{1, &mean}, {1, &stdev}, {1, {"picture"}}}}};
    job->train.steps = 14;
}

static int read_one(void *user, int64_t index, float *x, void *target) {
    (void)user;
    memcpy(x, row[index], sizeof(row[index]));
    *(int64_t *)target = label[index];
    return 0;
}

typedef enum way { ONE, ROWS, READY_ROWS, BYTES_AND_FLOATS, ALL_FLOATS, ALL_READY, WAYS } way;

static const tdm_input_array *arrays_of(way how) {
    static float ready_picture[SAMPLES][PICTURE], ready_numbers[SAMPLES][NUMBERS];
    for (int i = 0; i < SAMPLES; i++) memcpy(ready_picture[i], ready[i], sizeof(ready_picture[i]));
    for (int i = 0; i < SAMPLES; i++) memcpy(ready_numbers[i], ready[i] + PICTURE, sizeof(ready_numbers[i]));
    static const tdm_input_array arrays[WAYS][3] = {
        [BYTES_AND_FLOATS] = {{picture, TDM_INPUT_BYTES}, {numbers, TDM_INPUT_FLOATS}, {kinds, TDM_INPUT_FLOATS}},
        [ALL_FLOATS] = {{scaled, TDM_INPUT_FLOATS}, {numbers, TDM_INPUT_FLOATS}, {kinds, TDM_INPUT_FLOATS}},
        [ALL_READY] = {{ready_picture, TDM_INPUT_READY}, {ready_numbers, TDM_INPUT_READY}, {kinds, TDM_INPUT_READY}}};
    return how >= BYTES_AND_FLOATS ? arrays[how] : NULL;
}

static tdm_source source_of(way how) {
    tdm_source source = TDM_SOURCE_INIT;
    source.count = SAMPLES, source.has_labels = 1, source.targets = label;
    source.inputs = arrays_of(how), source.input_count = source.inputs != NULL ? 3 : 0;
    source.width = how == ONE ? 0 : WIDTH;
    if (how == ONE) source.read = read_one;
    if (how == ROWS) source.x = row;
    if (how == READY_ROWS) source.x = ready, source.input = TDM_INPUT_READY;
    return source;
}

/* The struct and its list of arrays are only needed while the run opens. */
static tdm_run *open_run(const tdm_job *job, const tdm_graph *graph, way how) {
    tdm_run_options options = TDM_RUN_OPTIONS_INIT;
    tdm_source source = source_of(how);
    tdm_input_array list[3];
    tdm_run *run = NULL;
    if (source.inputs != NULL) source.inputs = memcpy(list, source.inputs, sizeof(list));
    options.train = options.eval = &source;
    must(tdm_run_open(&run, job, graph, &options));
    memset(list, 0, sizeof(list));
    return run;
}

static void train(tdm_run *run, char hash[40], double *loss) {
    tdm_run_state state = TDM_RUN_STATE_INIT;
    double accuracy;
    CHECK_OK(tdm_run_train(run));
    CHECK_OK(tdm_run_evaluate(run, loss, &accuracy));
    CHECK_OK(tdm_run_get_state(run, &state));
    memcpy(hash, state.params_xxh3, sizeof(state.params_xxh3));
}

TEST(all_ways_give_the_same_bits) {
    tdm_graph *graph = three_inputs("numbers");
    char first[40] = "", hash[40];
    double wanted = 0, loss = 0;
    for (int how = ONE; how < WAYS; how++) {
        for (int devices = 1; devices <= 2; devices++) {
            tdm_job job;
            own_job(&job);
            job.parallel.mode = devices == 2 ? TDM_MODE_DP : TDM_MODE_SINGLE;
            job.parallel.dp.scatter = TDM_SCATTER_STRIDED;
            job.parallel.device_ids = (tdm_ints){2, {0, 1}};
            job.train.per_device = 2;
            tdm_run *run = open_run(&job, graph, (way)how);
            train(run, hash, &loss);
            tdm_run_close(run);
            if (first[0] == '\0') memcpy(first, hash, sizeof(first)), wanted = loss;
            CHECK_TEXT(hash, first);
            CHECK(loss == wanted && loss > 0);
        }
    }
    tdm_graph_free(graph);
}

/* Two inputs are two slices of a row: the same weights, the same bits. */
static tdm_graph *two_parts(bool named) {
    const tdm_attr first = {"end", "4", {0}}, from[] = {{"start", "0", {0}}, first}, behind = {"start", "4", {0}};
    tdm_graph *g = NULL;
    tdm_value x, a, b, y;
    must(tdm_graph_new(&g, NULL));
    if (named) {
        must(tdm_graph_add_input(g, "a", 1, (const int64_t[]){4}, &a));
        must(tdm_graph_add_input(g, "b", 1, (const int64_t[]){6}, &b));
    } else {
        must(tdm_graph_input(g, 1, (const int64_t[]){10}, &x));
        must(tdm_graph_add(g, "slice", NULL, &x, 1, from, 2, &a));
        must(tdm_graph_add(g, "slice", NULL, &x, 1, &behind, 1, &b));
    }
    must(tdm_graph_add(g, "linear", "first", &a, 1, &(tdm_attr){"out", "8", {0}}, 1, &a));
    must(tdm_graph_add(g, "linear", "second", &b, 1, &(tdm_attr){"out", "8", {0}}, 1, &b));
    must(tdm_graph_add(g, "add", "join", (tdm_value[]){a, b}, 2, NULL, 0, &y));
    must(tdm_graph_add(g, "linear", "fc", &y, 1, &(tdm_attr){"out", "3", {0}}, 1, &y));
    must(tdm_graph_finish(g, y));
    return g;
}

TEST(inputs_are_slices_of_a_row) {
    char hash[2][40];
    for (int named = 0; named < 2; named++) {
        tdm_graph *graph = two_parts(named);
        tdm_job job;
        api_job(&job);
        api_train(&job, graph, hash[named]);
        tdm_graph_free(graph);
    }
    CHECK_TEXT(hash[0], hash[1]);
}

/* ---- predictions ---- */

static bool is_same(const float *a, const float *b, int64_t rows) {
    return memcmp(a, b, (size_t)rows * OUTPUTS * sizeof(float)) == 0;
}

static void check_predictions(tdm_run *run, tdm_model *model, int64_t rows) {
    float wanted[SAMPLES][OUTPUTS], got[SAMPLES][OUTPUTS];
    const tdm_input_array mixed[] = {{ready, TDM_INPUT_READY}, {numbers, TDM_INPUT_FLOATS}, {kinds, TDM_INPUT_READY}};
    CHECK_OK(tdm_run_predict_as(run, TDM_INPUT_READY, ready, rows, wanted[0]));
    CHECK_OK(tdm_run_predict(run, row[0], rows, got[0]));
    CHECK(is_same(wanted[0], got[0], rows));
    for (int how = BYTES_AND_FLOATS; how < WAYS; how++) {
        memset(got, 0, sizeof(got));
        CHECK_OK(tdm_run_predict_inputs(run, arrays_of((way)how), 3, rows, got[0]));
        CHECK(is_same(wanted[0], got[0], rows));
    }
    CHECK_OK(tdm_model_predict(model, TDM_INPUT_FLOATS, row, rows, wanted[0]));
    for (int how = BYTES_AND_FLOATS; how < WAYS; how++) {
        memset(got, 0, sizeof(got));
        CHECK_OK(tdm_model_predict_inputs(model, arrays_of((way)how), 3, rows, got[0]));
        CHECK(is_same(wanted[0], got[0], rows));
    }
    CHECK_OK(tdm_model_predict_inputs(model, mixed, 3, 1, got[0])); /* a kind for each input */
    CHECK_OK(tdm_model_predict(model, TDM_INPUT_FLOATS, row, 1, wanted[0]));
    CHECK(is_same(wanted[0], got[0], 1));
}

static void check_info(tdm_status (*get)(const void *object, int index, tdm_input_info *out), const void *object,
                       const char *second) {
    tdm_input_info info = TDM_INPUT_INFO_INIT;
    CHECK_OK(get(object, 0, &info));
    CHECK_TEXT(info.name, "picture");
    CHECK(info.ndim == 3 && info.dim[0] == 2 && info.dim[2] == 4 && info.first == 0 && info.count == PICTURE);
    CHECK_OK(get(object, 1, &info));
    CHECK_TEXT(info.name, second);
    CHECK(info.ndim == 1 && info.dim[0] == NUMBERS && info.first == PICTURE && info.count == NUMBERS);
    CHECK_OK(get(object, 2, &info));
    CHECK(info.first == PICTURE + NUMBERS && info.count == KINDS);
    CHECK_STATUS(get(object, 3, &info), TDM_E_USAGE);
}

static tdm_status of_graph(const void *object, int index, tdm_input_info *out) {
    return tdm_graph_get_input(object, index, out);
}
static tdm_status of_run(const void *object, int index, tdm_input_info *out) {
    return tdm_run_get_input(object, index, out);
}
static tdm_status of_model(const void *object, int index, tdm_input_info *out) {
    return tdm_model_get_input(object, index, out);
}

/* The file that a checkpoint writes has the inputs; a value of its text may not be called as one of them. */
TEST(models_keep_their_inputs) {
    static const char *const names[] = {"numbers", "v5"};
    for (int i = 0; i < 2; i++) {
        char path[320], part[80];
        float x[PICTURE];
        tdm_job job;
        tdm_model *model = NULL;
        tdm_model_info info = TDM_MODEL_INFO_INIT;
        tdm_graph *graph = three_inputs(names[i]);
        own_job(&job);
        job.data.transform.normalize.item[0].inputs.item[0] = names[i];
        job.train.steps = 6;
        tdm_run *run = open_run(&job, graph, ROWS);
        must(tdm_run_train(run));
        snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        must(tdm_run_save(run, path));
        snprintf(path, sizeof(path), "%s/%s/step-00000006/model.safetensors", folder, names[i]);
        must(tdm_model_open(&model, path, NULL));
        must(tdm_model_get_info(model, &info));
        snprintf(part, sizeof(part), "  inputs: {picture: [2, 4, 4], %s: [5], kinds: [2]}\n", names[i]);
        CHECK_HAS(info.text, part);
        CHECK(info.input_ndim == 1 && info.input[0] == WIDTH && info.input_width == WIDTH);
        CHECK_INT(tdm_model_input_count(model), 3);
        CHECK_INT(tdm_run_input_count(run), 3);
        check_info(of_graph, graph, names[i]);
        check_info(of_run, run, names[i]);
        check_info(of_model, model, names[i]);
        for (int64_t rows = 1; rows <= SAMPLES; rows += 7) check_predictions(run, model, rows);
        MISUSE(tdm_model_read_picture(model, "a.png", x));
        CHECK_HAS(tdm_error_message(), names[i]);
        tdm_model_close(model);
        tdm_run_close(run);
        tdm_graph_free(graph);
    }
}

/* ---- what is refused ---- */

static void refused(const tdm_job *job, const tdm_graph *graph, const tdm_source *source, tdm_status status,
                    const char *part) {
    tdm_run_options options = TDM_RUN_OPTIONS_INIT;
    tdm_run *run = NULL;
    options.train = source;
    REFUSED(tdm_run_open(&run, job, graph, &options), status);
    CHECK_HAS(tdm_error_message(), part);
    CHECK(run == NULL);
}

TEST(transforms_name_their_inputs) {
    tdm_graph *graph = three_inputs("numbers"), *one = api_linear_graph(4);
    const tdm_source source = source_of(ROWS);
    tdm_job job;
    own_job(&job);
    tdm_normalize *const step = job.data.transform.normalize.item;
    step[0].inputs.count = 0;
    refused(&job, graph, &source, TDM_E_CONFIG, "which of the model's inputs it is for: picture, numbers, kinds");
    step[0].inputs = (tdm_texts){1, {"pictures"}};
    refused(&job, graph, &source, TDM_E_CONFIG, "the model has no input 'pictures'; its inputs are picture, numbers");
    refused(&job, one, &source, TDM_E_USAGE, "tdm_source.width is 39");
    step[0].inputs = (tdm_texts){2, {"numbers", "picture"}};
    refused(&job, graph, &source, TDM_E_CONFIG, "normalize: the input 'picture' is listed twice");
    step[0].inputs = (tdm_texts){1, {"numbers"}};
    step[1].inputs = (tdm_texts){2, {"picture", "kinds"}};
    refused(&job, graph, &source, TDM_E_CONFIG, "would change the numbers that embedding 'words' looks up");
    step[1].inputs = (tdm_texts){1, {"picture"}};
    step[1].mean = step[1].stdev = (tdm_numbers){3, (double[]){1, 1, 1}};
    refused(&job, graph, &source, TDM_E_CONFIG, "one for each of 2 channels, got 3");
    tdm_graph_free(graph);
    tdm_graph_free(one);
}

TEST(arrays_fit_the_inputs) {
    tdm_graph *graph = three_inputs("numbers"), *one = api_linear_graph(4);
    tdm_input_array arrays[3];
    tdm_source source = source_of(BYTES_AND_FLOATS);
    tdm_job job;
    own_job(&job);
    memcpy(arrays, source.inputs, sizeof(arrays));
    source.inputs = arrays;
    source.input_count = 2;
    refused(&job, graph, &source, TDM_E_USAGE, "the model has 3 inputs (picture, numbers, kinds), got 2 arrays");
    source.input_count = 3;
    arrays[1].x = NULL;
    refused(&job, graph, &source, TDM_E_USAGE, "the array of the input 'numbers' is NULL");
    arrays[1] = (tdm_input_array){numbers, 9};
    refused(&job, graph, &source, TDM_E_USAGE, "the kind of the input 'numbers'");
    arrays[1].input = TDM_INPUT_READY;
    refused(&job, graph, &source, TDM_E_USAGE, "all of them are TDM_INPUT_READY, or none is");
    arrays[1].input = TDM_INPUT_FLOATS;
    source.x = row;
    refused(&job, graph, &source, TDM_E_USAGE, "both `x` and `inputs`");
    source.x = NULL, source.targets = NULL;
    refused(&job, graph, &source, TDM_E_USAGE, "tdm_source.targets is NULL");
    source = source_of(BYTES_AND_FLOATS);
    job.data.transform.normalize.count = 0;
    refused(&job, one, &source, TDM_E_USAGE, "the model's input has no name");
    tdm_graph_free(graph);
    tdm_graph_free(one);
}

TEST(graphs_refuse_inputs) {
    tdm_graph *g = NULL;
    tdm_value v = 0, w = 0;
    const int64_t dim[6] = {4}, huge[1] = {INT64_C(1) << 40};
    tdm_input_info info = TDM_INPUT_INFO_INIT;
    char name[80];
    REQUIRE_OK(tdm_graph_new(&g, NULL));
    CHECK_INT(tdm_graph_input_count(NULL), 0);
    CHECK_INT(tdm_graph_input_count(g), 0);
    MISUSE(tdm_graph_add_input(NULL, "a", 1, dim, &v));
    MISUSE(tdm_graph_add_input(g, NULL, 1, dim, &v));
    MISUSE(tdm_graph_add_input(g, "a", 1, NULL, &v));
    MISUSE(tdm_graph_add_input(g, "a", 1, dim, NULL));
    REFUSED(tdm_graph_add_input(g, "a", 0, dim, &v), TDM_E_CONFIG);
    REFUSED(tdm_graph_add_input(g, "a", 2, dim, &v), TDM_E_CONFIG); /* a dimension of 0 */
    CHECK_HAS(tdm_error_message(), "model.inputs.a must have dimensions");
    static const char *const names[] = {"", "1a", "a b", "a.b", "a-b", "input", "output", "\xC3\xA9"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        REFUSED(tdm_graph_add_input(g, names[i], 1, dim, &v), TDM_E_CONFIG);
        CHECK_HAS(tdm_error_message(), "the name of an input");
    }
    memset(name, 'n', 65), name[65] = 0;
    REFUSED(tdm_graph_add_input(g, name, 1, dim, &v), TDM_E_CONFIG);
    REQUIRE_OK(tdm_graph_add_input(g, "a", 1, dim, &v));
    REFUSED(tdm_graph_add_input(g, "a", 1, dim, &w), TDM_E_CONFIG);
    CHECK_HAS(tdm_error_message(), "two inputs are called 'a'");
    REFUSED(tdm_graph_add_input(g, "b", 1, huge, &w), TDM_E_CONFIG);
    CHECK_HAS(tdm_error_message(), "together");
    MISUSE(tdm_graph_input(g, 1, dim, &w));
    for (int i = 1; i < 32; i++) {
        snprintf(name, sizeof(name), "a%d", i);
        REQUIRE_OK(tdm_graph_add_input(g, name, 1, dim, &w));
    }
    REFUSED(tdm_graph_add_input(g, "a32", 1, dim, &w), TDM_E_CONFIG);
    CHECK_HAS(tdm_error_message(), "at most 32 inputs");
    REFUSED(tdm_graph_add(g, "linear", "a7", &v, 1, &(tdm_attr){"out", "2", {0}}, 1, &w), TDM_E_CONFIG);
    CHECK_HAS(tdm_error_message(), "a layer and an input are called 'a7'");
    REQUIRE_OK(tdm_graph_add(g, "linear", "fc", &v, 1, &(tdm_attr){"out", "2", {0}}, 1, &w));
    MISUSE(tdm_graph_add_input(g, "late", 1, dim, &v));
    REFUSED(tdm_graph_finish(g, w), TDM_E_CONFIG);
    CHECK_HAS(tdm_error_message(), "no layer takes the input 'a1'");
    MISUSE(tdm_graph_get_input(NULL, 0, &info));
    MISUSE(tdm_graph_get_input(g, 0, NULL));
    MISUSE(tdm_graph_get_input(g, -1, &info));
    MISUSE(tdm_graph_get_input(g, 32, &info));
    info.size = 3;
    MISUSE(tdm_graph_get_input(g, 0, &info));
    tdm_graph_free(g);
    REQUIRE_OK(tdm_graph_new(&g, NULL));
    REQUIRE_OK(tdm_graph_input(g, 1, dim, &v));
    MISUSE(tdm_graph_add_input(g, "a", 1, dim, &v));
    tdm_graph_free(g);
}

/* The model's input has no name. */
TEST(one_input_without_a_name) {
    float x[72] = {0}, y[OUTPUTS];
    tdm_graph *graph = api_graph(NULL);
    tdm_job job;
    tdm_run *run = NULL;
    api_job(&job);
    REQUIRE_OK(tdm_run_open(&run, &job, graph, NULL));
    const tdm_input_array array = {x, TDM_INPUT_FLOATS};
    tdm_input_info input = TDM_INPUT_INFO_INIT;
    CHECK_INT(tdm_run_input_count(NULL), 0);
    CHECK_INT(tdm_run_input_count(run), 1);
    MISUSE(tdm_run_get_input(NULL, 0, &input));
    MISUSE(tdm_run_get_input(run, 0, NULL));
    CHECK_HAS(tdm_error_message(), "tdm_run_get_input: a pointer is NULL"); /* of the call that was made */
    MISUSE(tdm_run_get_input(run, 1, &input));
    REQUIRE_OK(tdm_run_get_input(run, 0, &input));
    CHECK(input.name == NULL && input.ndim == 3 && input.dim[0] == 2 && input.first == 0 && input.count == 72);
    MISUSE(tdm_run_predict_inputs(NULL, &array, 1, 1, y));
    MISUSE(tdm_run_predict_inputs(run, NULL, 1, 1, y));
    MISUSE(tdm_run_predict_inputs(run, &array, 1, 1, NULL));
    MISUSE(tdm_run_predict_inputs(run, &array, 1, -1, y));
    MISUSE(tdm_run_predict_inputs(run, &array, 1, 1, y));
    CHECK_HAS(tdm_error_message(), "the model's input has no name");
    MISUSE(tdm_model_predict_inputs(NULL, &array, 1, 1, y));
    CHECK_INT(tdm_model_input_count(NULL), 0);
    MISUSE(tdm_model_get_input(NULL, 0, &input));
    tdm_run_close(run);
    tdm_graph_free(graph);
}

TEST_MAIN(test_folder_make(folder); make_samples(); RUN(all_ways_give_the_same_bits); RUN(inputs_are_slices_of_a_row);
          RUN(models_keep_their_inputs); RUN(transforms_name_their_inputs); RUN(arrays_fit_the_inputs);
          RUN(graphs_refuse_inputs); RUN(one_input_without_a_name); test_folder_remove(folder);)
