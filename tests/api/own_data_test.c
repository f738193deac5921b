/* The three ways of tdm_source: arrays, several samples in a call, one; of every kind. All give the same bits. */
#include <stdatomic.h>

#include "tests/api/api.h"
#include "tests/support/tdm_test.h"

enum { SAMPLES = 22, WIDTH = 4, OUTPUTS = 3 };

static const unsigned char *bytes_of(int64_t index) {
    static _Thread_local unsigned char out[WIDTH];
    for (int i = 0; i < WIDTH; i++) out[i] = (unsigned char)(index * 53 + i * 31);
    return out;
}

/* What a sample is, of each tdm_input, in memory of its size. */
static void write_x(int input, int64_t index, void *x) {
    const unsigned char *bytes = bytes_of(index);
    for (int i = 0; i < WIDTH; i++) {
        const float scaled = (float)bytes[i] / 255.0f, centred = scaled - 0.5f;
        if (input == TDM_INPUT_BYTES) ((unsigned char *)x)[i] = bytes[i];
        if (input == TDM_INPUT_FLOATS) ((float *)x)[i] = scaled;
        if (input == TDM_INPUT_READY) ((float *)x)[i] = centred / 0.25f;
    }
}

typedef struct program {
    int input, labels;
    _Atomic int64_t fails_at;
    bool names_it;
    atomic_int calls, rows, wrong;
    unsigned char bytes[SAMPLES][WIDTH];
    float floats[SAMPLES][WIDTH], values[SAMPLES][OUTPUTS];
    int64_t label[SAMPLES];
} program;

static void write_target(const program *p, int64_t index, void *target) {
    for (int k = 0; !p->labels && k < OUTPUTS; k++) ((float *)target)[k] = (float)((index + k) % 5);
    if (p->labels) *(int64_t *)target = index % OUTPUTS;
}

static int read_one(void *user, int64_t index, float *x, void *target) {
    program *p = user;
    atomic_fetch_add(&p->calls, 1);
    write_x(p->input, index, x);
    write_target(p, index, target);
    return index == p->fails_at ? 9 : 0;
}

static int read_several(void *user, tdm_source_rows *rows) {
    program *p = user;
    const size_t x_bytes = WIDTH * (p->input == TDM_INPUT_BYTES ? 1 : sizeof(float));
    const size_t target_bytes = p->labels ? sizeof(int64_t) : OUTPUTS * sizeof(float);
    atomic_fetch_add(&p->calls, 1);
    atomic_fetch_add(&p->rows, (int)rows->rows);
    if (rows->size != sizeof(*rows) || rows->rows < 1 || rows->width != WIDTH || rows->failed != -1 ||
        rows->target_width != (p->labels ? 1 : OUTPUTS))
        atomic_store(&p->wrong, 1);
    for (int64_t i = 0; i < rows->rows; i++) {
        write_x(p->input, rows->index[i], (char *)rows->x + (size_t)i * x_bytes);
        write_target(p, rows->index[i], (char *)rows->targets + (size_t)i * target_bytes);
        if (rows->index[i] != p->fails_at) continue;
        if (p->names_it) rows->failed = rows->index[i];
        return 9;
    }
    return 0;
}

enum { ONE, SEVERAL, ARRAYS, WAYS };

static program *new_program(int input, int labels) {
    program *p = calloc(1, sizeof(*p));
    if (p == NULL) exit(1);
    p->input = input, p->labels = labels, p->fails_at = -1;
    for (int64_t i = 0; i < SAMPLES; i++) {
        write_x(input, i, input == TDM_INPUT_BYTES ? (void *)p->bytes[i] : p->floats[i]);
        write_target(p, i, labels ? (void *)&p->label[i] : p->values[i]);
    }
    return p;
}

static tdm_source source_of(program *p, int way) {
    tdm_source source = TDM_SOURCE_INIT;
    source.count = SAMPLES, source.has_labels = p->labels, source.user = p, source.input = p->input;
    source.width = way == ONE ? 0 : WIDTH;
    if (way == ONE) source.read = read_one;
    if (way == SEVERAL) source.read_rows = read_several;
    if (way == ARRAYS) source.x = p->input == TDM_INPUT_BYTES ? (const void *)p->bytes : p->floats;
    if (way == ARRAYS) source.targets = p->labels ? (const void *)p->label : p->values;
    return source;
}

static void own_job(tdm_job *job) {
    api_job(job);
    job->data.train.format = job->data.eval.format = TDM_DATA_NONE;
    job->data.transform.to_float = true;
    static const double mean = 0.5, stdev = 0.25;
    job->data.transform.normalize = (tdm_normalizes){1, {{.mean = {1, &mean}, .stdev = {1, &stdev}}}};
    job->train.steps = 14; /* two epochs and a half, with a short last batch each */
}

/* The struct is only needed while the run opens. */
static tdm_status open_run(tdm_run **out, const tdm_job *job, const tdm_graph *graph, tdm_source source) {
    tdm_run_options options = TDM_RUN_OPTIONS_INIT;
    options.train = options.eval = &source;
    const tdm_status status = tdm_run_open(out, job, graph, &options);
    memset(&source, 0xA5, sizeof(source));
    return status;
}

static double train_and_evaluate(const tdm_job *job, tdm_source source, char hash[40]) {
    tdm_graph *graph = api_linear_graph(WIDTH);
    tdm_run *run = NULL;
    tdm_run_state state = TDM_RUN_STATE_INIT;
    double loss = 0, accuracy;
    CHECK_OK(open_run(&run, job, graph, source));
    CHECK_OK(tdm_run_train(run));
    CHECK_OK(tdm_run_evaluate(run, &loss, &accuracy));
    CHECK_OK(tdm_run_get_state(run, &state));
    memcpy(hash, state.params_xxh3, sizeof(state.params_xxh3));
    tdm_run_close(run);
    tdm_graph_free(graph);
    return loss;
}

/* Floats are made of bytes with the operations of to_float, so all kinds and ways end in the same bits. */
static void check_ways(const tdm_job *job, int labels) {
    char hash[40], first[40] = "";
    double wanted = 0;
    for (int input = TDM_INPUT_FLOATS; input <= TDM_INPUT_READY; input++) {
        for (int way = 0; way < WAYS; way++) {
            program *p = new_program(input, labels);
            const double loss = train_and_evaluate(job, source_of(p, way), hash);
            if (first[0] == '\0') memcpy(first, hash, sizeof(first)), wanted = loss;
            CHECK_TEXT(hash, first);
            CHECK(loss == wanted && loss > 0);
            CHECK((p->calls > 0) == (way != ARRAYS));
            if (way == SEVERAL) CHECK(p->calls * 2 < p->rows);
            CHECK_INT(p->wrong, 0);
            free(p);
        }
    }
}

TEST(all_ways_and_kinds_give_the_same_bits) {
    for (int labels = 0; labels <= 1; labels++) {
        tdm_job job;
        own_job(&job);
        if (!labels) job.loss.type = TDM_MSE;
        job.data.workers = 2;
        check_ways(&job, labels);
    }
}

/* Mixed samples are read one by one; replicas in one process have a call each, and the last batch leaves one without. */
TEST(mixed_and_on_several_replicas) {
    tdm_job job;
    own_job(&job);
    job.data.transform.step_count = 1;
    job.data.transform.step[0] = (tdm_transform_step){.kind = TDM_TRANSFORM_MIXUP, .alpha = 0.4};
    check_ways(&job, 1);
    own_job(&job);
    job.parallel.mode = TDM_MODE_DP;
    job.parallel.device_ids = (tdm_ints){3, {0, 1, 2}};
    job.data.workers = 0;
    check_ways(&job, 1);
}

TEST(a_failed_read_is_repeated) {
    for (int way = ONE; way <= SEVERAL; way++) {
        for (int64_t workers = 0; workers <= 2; workers += 2) {
            char whole[40];
            tdm_job job;
            tdm_graph *graph = api_linear_graph(WIDTH);
            tdm_run *run = NULL;
            tdm_run_state state = TDM_RUN_STATE_INIT;
            double loss = 0, accuracy;
            own_job(&job);
            job.data.workers = workers;
            program *p = new_program(TDM_INPUT_FLOATS, 1);
            (void)train_and_evaluate(&job, source_of(p, way), whole);
            p->fails_at = 17;
            p->names_it = way == SEVERAL && workers > 0;
            REQUIRE_OK(open_run(&run, &job, graph, source_of(p, way)));
            for (int i = 0; i < 2; i++) {
                CHECK_STATUS(tdm_run_train(run), TDM_E_DATA);
                CHECK_HAS(tdm_error_message(), "returned 9");
                if (way == ONE || p->names_it) CHECK_HAS(tdm_error_message(), "sample 17 of");
            }
            CHECK_STATUS(tdm_run_evaluate(run, &loss, &accuracy), TDM_E_DATA);
            CHECK_OK(tdm_run_get_state(run, &state));
            CHECK(state.step < 6);
            p->fails_at = -1;
            CHECK_OK(tdm_run_evaluate(run, &loss, &accuracy));
            CHECK_OK(tdm_run_step(run, 1));
            CHECK_OK(tdm_run_train(run));
            CHECK_OK(tdm_run_get_state(run, &state));
            CHECK_INT(state.step, 14);
            CHECK_TEXT(state.params_xxh3, whole);
            tdm_run_close(run);
            tdm_graph_free(graph);
            free(p);
        }
    }
}

static void count_line(void *user, tdm_log_level level, const char *subsystem, const char *line) {
    (void)level, (void)subsystem;
    *(int *)user += strstr(line, "steps for pictures") != NULL;
}

TEST(steps_for_pictures_are_left_out_and_that_is_said) {
    for (int kind = TDM_TRANSFORM_RANDOM_HORIZONTAL_FLIP; kind <= TDM_TRANSFORM_MIXUP;
         kind += TDM_TRANSFORM_MIXUP - TDM_TRANSFORM_RANDOM_HORIZONTAL_FLIP) {
        program *p = new_program(TDM_INPUT_BYTES, 1);
        tdm_run_options options = TDM_RUN_OPTIONS_INIT;
        tdm_host host = *tdm_host_default();
        const tdm_source source = source_of(p, ARRAYS);
        tdm_graph *graph = api_linear_graph(WIDTH);
        tdm_run *run = NULL;
        tdm_job job;
        int warnings = 0;
        own_job(&job);
        job.data.transform.step_count = 1;
        job.data.transform.step[0] = (tdm_transform_step){.kind = kind, .p = 1, .alpha = 0.4};
        host.log = count_line, host.log_level = TDM_LOG_WARNING, host.user = &warnings;
        options.host = &host, options.train = &source;
        CHECK_OK(tdm_run_open(&run, &job, graph, &options));
        CHECK_INT(warnings, kind == TDM_TRANSFORM_RANDOM_HORIZONTAL_FLIP);
        CHECK_OK(tdm_run_step(run, 2));
        tdm_run_close(run);
        tdm_graph_free(graph);
        free(p);
    }
}

static void refused(const tdm_source *source, tdm_status wanted, const char *why) {
    tdm_job job;
    tdm_graph *graph = api_linear_graph(WIDTH);
    tdm_run *run = NULL;
    own_job(&job);
    CHECK_STATUS(open_run(&run, &job, graph, *source), wanted);
    CHECK_HAS(tdm_error_message(), why);
    CHECK(run == NULL);
    tdm_graph_free(graph);
}

#define REFUSED(member, value, why)       \
    do {                                  \
        tdm_source bad_ = good;           \
        bad_.member = (value);            \
        refused(&bad_, TDM_E_USAGE, why); \
    } while (0)

TEST(what_is_refused) {
    program *p = new_program(TDM_INPUT_FLOATS, 1);
    tdm_source good = source_of(p, ARRAYS);
    REFUSED(size, 4, "INIT macro");
    REFUSED(size, sizeof(good) + 8, "INIT macro");
    REFUSED(count, 0, "at least 1, got 0");
    REFUSED(count, INT64_MAX, "no array has");
    REFUSED(has_labels, 0, "the loss needs class labels");
    REFUSED(input, 3, "tdm_input, got 3");
    REFUSED(input, -1, "tdm_input, got -1");
    REFUSED(targets, NULL, "tdm_source.targets is NULL");
    REFUSED(width, 0, "arrays need");
    REFUSED(width, -4, "takes samples of 4 numbers");
    REFUSED(width, 5, "tdm_source.width is 5, but the model takes samples of 4 numbers");
    REFUSED(x, NULL, "all are NULL");
    p->label[20] = 3;
    refused(&good, TDM_E_DATA, "sample 20 of the program's own source: label must be 0 to 2, found 3");
    good = source_of(p, ONE);
    REFUSED(width, 3, "takes samples of 4 numbers");
    REFUSED(read, NULL, "all are NULL");
    free(p);
}

/* As a program that was compiled with 0.1.0 passes it: what lies behind is not its. */
TEST(an_older_struct_is_accepted) {
    char hash[2][40];
    tdm_job job;
    program *p = new_program(TDM_INPUT_FLOATS, 1);
    tdm_source source = source_of(p, ONE);
    own_job(&job);
    (void)train_and_evaluate(&job, source, hash[0]);
    source.size = offsetof(tdm_source, input);
    source.input = 77, source.width = -1, source.x = source.targets = p, source.read_rows = read_several;
    (void)train_and_evaluate(&job, source, hash[1]);
    CHECK_TEXT(hash[1], hash[0]);
    CHECK_INT(p->rows, 0);
    free(p);
}

/* What a run of this table, or of these samples if there are any, exports after a step from `weights`. */
static void export_of(const char *csv, const tdm_source *train, const tdm_buffer *weights, tdm_buffer *out) {
    char text[600];
    tdm_config *config = NULL;
    tdm_run *run = NULL;
    tdm_run_options options = TDM_RUN_OPTIONS_INIT;
    const tdm_writer writer = {sizeof(writer), tdm_buffer_write, out};
    snprintf(text, sizeof(text),
             "tandem: 1\nmodel: {input: 2, layers: [linear: 2]}\nloss: cross_entropy\noptimizer: {type: sgd, lr: 0.1}\n"
             "data: {train: {format: csv, path: %s, label: kind, standardize: true}}\n"
             "train: {steps: 1, batch: {per_device: 2}}\nrun: {dir: null}\n",
             csv);
    options.train = train;
    REQUIRE_OK(tdm_config_parse(&config, NULL, text, strlen(text), "table", NULL));
    REQUIRE_OK(tdm_config_check(config));
    REQUIRE_OK(tdm_run_open(&run, tdm_config_job(config), tdm_config_graph(config), &options));
    if (weights != NULL) CHECK_OK(tdm_run_load_memory(run, weights->bytes, weights->count));
    CHECK_OK(tdm_run_train(run));
    CHECK_OK(tdm_run_export_to(run, &writer, NULL));
    tdm_run_close(run);
    tdm_config_free(config);
}

/* A model that is updated on arrays knows its classes, and how its table is read, as before. */
TEST(an_update_keeps_what_the_model_knows) {
    static const float x[4][2] = {{1, 2}, {3, 4}, {5, 6}, {7, 8}};
    static const int64_t label[4] = {0, 1, 0, 1};
    char folder[256], csv[300];
    tdm_model *model = NULL;
    tdm_source train = TDM_SOURCE_INIT;
    test_folder_make(folder);
    snprintf(csv, sizeof(csv), "%s/pets.csv", folder);
    FILE *file = fopen(csv, "w");
    REQUIRE(file != NULL);
    fputs("a,b,kind\n1,2,cat\n3,4,dog\n5,6,cat\n7,9,dog\n", file);
    REQUIRE(fclose(file) == 0);
    train.count = 4, train.has_labels = 1, train.width = 2, train.x = x, train.targets = label;
    tdm_buffer first = TDM_BUFFER_INIT, second = TDM_BUFFER_INIT;
    export_of(csv, NULL, NULL, &first);
    export_of(csv, &train, &first, &second);
    for (int i = 0; i < 2; i++) {
        const tdm_buffer *of = i == 0 ? &first : &second;
        REQUIRE_OK(tdm_model_open_memory(&model, of->bytes, of->count, NULL));
        CHECK_TEXT(tdm_model_class_name(model, 0), "cat");
        CHECK_TEXT(tdm_model_class_name(model, 1), "dog");
        tdm_model_close(model);
    }
    CHECK(memmem(second.bytes, second.count, "tandem.features", 15) != NULL);
    tdm_buffer_free(&first);
    tdm_buffer_free(&second);
    test_folder_remove(folder);
}

/* ---- samples that are recognised ---- */

static char lines[2000];

static void keep(void *user, tdm_log_level level, const char *subsystem, const char *line) {
    (void)user, (void)subsystem;
    if (level == TDM_LOG_WARNING) strncat(lines, line, sizeof(lines) - strlen(lines) - 1);
}

/* Opens a run over the source that resumes from `from`, makes `steps` steps, and saves it in `folder` at its end. */
static tdm_status go_on(const tdm_source *source, const char *from, const char *folder) {
    tdm_job job;
    tdm_run *run = NULL;
    tdm_host host = TDM_HOST_INIT;
    tdm_run_options options = TDM_RUN_OPTIONS_INIT;
    tdm_graph *graph = api_linear_graph(WIDTH);
    host.log = keep;
    host.log_level = TDM_LOG_WARNING;
    api_job(&job);
    job.data.workers = 0;
    job.checkpoint.resume = from != NULL ? from : "never";
    options.host = &host;
    options.train = source;
    lines[0] = '\0';
    tdm_status status = tdm_run_open(&run, &job, graph, &options);
    if (status == TDM_OK) status = tdm_run_step(run, 1);
    if (status == TDM_OK && folder != NULL) status = tdm_run_save(run, folder);
    tdm_run_close(run);
    tdm_graph_free(graph);
    return status;
}

TEST(changed_arrays_are_told) {
    static program p;
    char folder[256], saved[300];
    test_folder_make(folder);
    p = (program){.fails_at = -1, .labels = 1};
    for (int64_t i = 0; i < SAMPLES; i++) {
        write_x(TDM_INPUT_FLOATS, i, p.floats[i]);
        p.label[i] = i % OUTPUTS;
    }
    tdm_source source = TDM_SOURCE_INIT;
    source.count = SAMPLES, source.has_labels = 1, source.width = WIDTH;
    source.x = p.floats, source.targets = p.label;
    REQUIRE_OK(go_on(&source, NULL, folder));
    snprintf(saved, sizeof(saved), "%s/step-00000001", folder);
    CHECK_OK(go_on(&source, saved, NULL));
    CHECK_TEXT(lines, "");
    p.floats[0][1] += 1; /* the first sample is among those that are looked at */
    CHECK_OK(go_on(&source, saved, NULL));
    CHECK_HAS(lines, "changed since then: data.train (samples found) was 22 of 4 floats, some of them hash to ");
    test_folder_remove(folder);
}

TEST(samples_that_a_program_names_are_recognised) {
    static program p;
    char folder[256], saved[300];
    test_folder_make(folder);
    p = (program){.fails_at = -1, .labels = 1};
    tdm_source source = TDM_SOURCE_INIT;
    source.count = SAMPLES, source.has_labels = 1, source.read = read_one, source.user = &p;
    source.identity = "scans of March \xc3\xa9";
    REQUIRE_OK(go_on(&source, NULL, folder));
    snprintf(saved, sizeof(saved), "%s/step-00000001", folder);
    CHECK_OK(go_on(&source, saved, NULL));
    CHECK_TEXT(lines, "");
    const int calls = p.calls;
    source.identity = "scans of April";
    CHECK_STATUS(go_on(&source, saved, NULL), TDM_E_CHECKPOINT);
    CHECK_HAS(tdm_error_message(), "tdm_source.identity of the samples was 'scans of March \xc3\xa9' in ");
    CHECK_HAS(tdm_error_message(), "/step-00000001 and is 'scans of April' now");
    CHECK_INT(p.calls, calls); /* no sample was asked for */
    source.identity = NULL;
    CHECK_OK(go_on(&source, saved, NULL));
    CHECK_HAS(lines, "have no tdm_source.identity");
    source.count = SAMPLES - 1;
    CHECK_OK(go_on(&source, saved, NULL));
    CHECK_HAS(lines, "was 22 of 4 floats of the program's own, is 21 of 4 floats of the program's own");
    source.count = SAMPLES;
    REQUIRE_OK(go_on(&source, saved, folder)); /* a run over samples without a name keeps that of the run before */
    snprintf(saved, sizeof(saved), "%s/step-00000002", folder);
    source.identity = "scans of April";
    CHECK_STATUS(go_on(&source, saved, NULL), TDM_E_CHECKPOINT);
    CHECK_HAS(tdm_error_message(), "/step-00000002 and is 'scans of April' now");
    source.identity = "scans of March \xc3\xa9";
    CHECK_OK(go_on(&source, saved, NULL));
    CHECK_TEXT(lines, "");
    test_folder_remove(folder);
}

TEST(identities_are_short_printable_texts) {
    static program p;
    char longest[65];
    const char *const bad[] = {"", "a\nb", "\xff", "tail \xc3", "\x7f", "\xe2\x80\xae", longest};
    tdm_source source = TDM_SOURCE_INIT;
    memset(longest, 'x', 64);
    longest[64] = '\0';
    p = (program){.fails_at = -1, .labels = 1};
    source.count = SAMPLES, source.has_labels = 1, source.read = read_one, source.user = &p;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        source.identity = bad[i];
        CHECK_STATUS(go_on(&source, NULL, NULL), TDM_E_USAGE);
        CHECK_HAS(tdm_error_message(), "tdm_source.identity must be 1 to 63 bytes of printable UTF-8");
    }
    source.identity = longest + 1;
    CHECK_OK(go_on(&source, NULL, NULL));
}

TEST_MAIN(RUN(all_ways_and_kinds_give_the_same_bits); RUN(mixed_and_on_several_replicas);
          RUN(a_failed_read_is_repeated); RUN(steps_for_pictures_are_left_out_and_that_is_said); RUN(what_is_refused);
          RUN(an_older_struct_is_accepted); RUN(an_update_keeps_what_the_model_knows); RUN(changed_arrays_are_told);
          RUN(samples_that_a_program_names_are_recognised); RUN(identities_are_short_printable_texts);)
