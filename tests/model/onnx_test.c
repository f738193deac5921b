/* Models as ONNX files: the bytes are those that onnxruntime has read and computed with. What they are is in
 * onnx_golden.h, which make_onnx_golden.py writes: it calls this program with a folder, for the files of all models and
 * what they predict, and compares that with onnxruntime. */
#include <stdlib.h>
#include <unistd.h>

#include <tandem/config.h>
#include <tandem/model.h>

#include "runtime/base/hash.h"
#include "runtime/model/onnx/onnx.h"
#include "tests/model/onnx_golden.h"
#include "tests/model/onnx_models.h"
#include "tests/support/tdm_test.h"
#include "tests/support/test_folder.h"

enum { ROWS = 3, MOST_TENSORS = 64, MOST_WIDTH = 256 };

static char folder[256];

/* For functions whose failure ends the program. */
static void must(bool good, const char *what) {
    if (good) return;
    fprintf(stderr, "onnx_test: %s: %s\n", what, tdm_error_message());
    exit(1);
}

/* ---- a model with weights that a formula gives ---- */

typedef struct made {
    char text[2048];
    tdm_config *config;
    const tdm_graph *graph;
    tdm_tensor tensor[MOST_TENSORS];
    int count;
} made;

static void fill(float *out, int64_t count, unsigned seed, bool is_variance) {
    uint32_t state = seed * 2654435761u + 1;
    for (int64_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        const float drawn = (float)(state >> 8) / (float)(1 << 24);
        out[i] = is_variance ? 0.5f + drawn : drawn - 0.5f;
    }
}

static void add_tensor(made *m, const tdm_graph_param *param) {
    static const int64_t batches = 5;
    tdm_tensor *tensor = &m->tensor[m->count];
    const bool counter = param->def.is_counter;
    must(m->count < MOST_TENSORS, "too many tensors");
    float *numbers = calloc((size_t)param->count, sizeof *numbers);
    must(numbers != NULL, "memory");
    if (!counter) fill(numbers, param->count, (unsigned)m->count, strstr(param->name, "running_var") != NULL);
    *tensor = (tdm_tensor){.name = param->name,
                           .dtype = counter ? TDM_ST_I64 : TDM_ST_F32,
                           .ndim = param->def.shape.ndim,
                           .bytes = counter ? sizeof batches : (size_t)param->count * sizeof *numbers,
                           .data = counter ? (const void *)&batches : numbers};
    memcpy(tensor->dim, param->def.shape.dim, sizeof param->def.shape.dim);
    if (counter) free(numbers);
    m->count++;
}

static void make(made *m, const char *name, const char *input, const char *layers) {
    *m = (made){.count = 0};
    snprintf(m->text, sizeof m->text,
             "tandem: 1\nname: %s\nmodel: {%s: %s, layers: %s}\nloss: {type: mse}\nparallel: {kernels: ref}\n", name,
             input[0] == '{' ? "inputs" : "input", input, layers);
    must(tdm_config_parse(&m->config, NULL, m->text, strlen(m->text), name, NULL) == TDM_OK, name);
    must(tdm_config_predicts(m->config) == TDM_OK && tdm_config_check(m->config) == TDM_OK, name);
    m->graph = tdm_config_graph(m->config);
    for (size_t i = 0; i < m->graph->param_count; i++) add_tensor(m, &m->graph->params[i]);
    for (size_t i = 0; i < m->graph->buffer_count; i++) add_tensor(m, &m->graph->buffers[i]);
}

static void drop(made *m) {
    for (int i = 0; i < m->count; i++)
        if (m->tensor[i].dtype == TDM_ST_F32) free((void *)(uintptr_t)m->tensor[i].data);
    tdm_config_free(m->config);
}

static tdm_status write_onnx(const made *m, const char *name, const char *path, uint64_t *bytes) {
    const tdm_onnx_source source = {.ops = &tdm__file_system,
                                    .graph = m->graph,
                                    .name = name,
                                    .tensor = m->tensor,
                                    .tensor_count = m->count,
                                    .note = {"[]"}};
    (void)unlink(path);
    return tdm__onnx_write(tdm_host_default(), &source, path, bytes);
}

/* ---- the bytes ---- */

static void hash_file(const char *path, uint64_t bytes, char out[TDM_HASH_TEXT]) {
    FILE *from = fopen(path, "rb");
    char *all = malloc(bytes + 1);
    tdm_hasher *hasher;
    must(from != NULL && all != NULL && fread(all, 1, bytes + 1, from) == bytes, path);
    fclose(from);
    must(tdm__hash_open(&hasher, tdm_host_default()) == TDM_OK, "hash");
    tdm__hash_add(hasher, all, bytes);
    tdm__hash_print(out, tdm__hash_value(hasher));
    tdm__hash_close(hasher);
    free(all);
}

TEST(writes_what_onnxruntime_has_read) {
    char path[300], hash[TDM_HASH_TEXT];
    CHECK_INT(MODELS, sizeof golden / sizeof golden[0]);
    snprintf(path, sizeof path, "%s/m.onnx", folder);
    for (int i = 0; i < MODELS && i < (int)(sizeof golden / sizeof golden[0]); i++) {
        made m;
        uint64_t bytes;
        make(&m, models[i].name, models[i].input, models[i].layers);
        REQUIRE_OK(write_onnx(&m, models[i].name, path, &bytes));
        hash_file(path, bytes, hash);
        CHECK_TEXT(hash, golden[i].hash);
        CHECK_STATUS(tdm__onnx_write(tdm_host_default(),
                                     &(tdm_onnx_source){.ops = &tdm__file_system,
                                                        .graph = m.graph,
                                                        .name = "",
                                                        .tensor = m.tensor,
                                                        .tensor_count = m.count},
                                     path, &bytes),
                     TDM_E_IO);
        drop(&m);
    }
}

/* Of those that are written. */
TEST(every_op_is_in_a_model) {
    int written = 0;
    for (int k = 0; tdm_builtin_ops[k] != NULL; k++) {
        const tdm_op_def *op = tdm_builtin_ops[k];
        bool found = false;
        for (int i = 0; i < MODELS && !found; i++) found = strstr(models[i].layers, op->name) != NULL;
        if (op->onnx != NULL && !found) fprintf(stderr, "no model of onnx_models.h has the op %s\n", op->name);
        CHECK(found || op->onnx == NULL);
        written += op->onnx != NULL;
    }
    CHECK(written > 30);
}

/* ---- what ONNX does not have ---- */

static void check_refused(const char *input, const char *layers, const char *says) {
    char path[300];
    uint64_t bytes;
    made m;
    snprintf(path, sizeof path, "%s/none.onnx", folder);
    make(&m, "refused", input, layers);
    CHECK_STATUS(write_onnx(&m, "refused", path, &bytes), TDM_E_UNSUPPORTED);
    CHECK_HAS(tdm_error_message(), says);
    CHECK(strchr(tdm_error_message(), '\n') == NULL);
    CHECK(access(path, F_OK) != 0);
    drop(&m);
}

TEST(layers_without_a_counterpart_are_named) {
    check_refused("[2, 7, 7]", "[{adaptive_avgpool2d: {name: pool, out: 2}}, flatten, {linear: 2}]",
                  "adaptive_avgpool2d 'pool': ONNX has it only where the windows are equal: 7 points into 2");
    check_refused("[2, 7, 7]", "[{adaptive_maxpool2d: [7, 3]}, flatten, {linear: 2}]", "7 points into 3");
    check_refused("[4]", "[{layernorm: {name: norm, elementwise_affine: false}}, {linear: 2}]",
                  "layernorm 'norm': ONNX has it only");
    check_refused("[2, 4, 4]", "[{batchnorm2d: {name: bn, affine: false}}, flatten, {linear: 2}]",
                  "batchnorm2d 'bn': ONNX has it only");
    check_refused("[1, 6, 6]",
                  "[{avgpool2d: {name: p, kernel: 3, stride: 2, padding: 1, ceil_mode: true}}, flatten, {linear: 2}]",
                  "avgpool2d 'p': ONNX does not have a last window");
}

TEST(tensors_must_be_the_models) {
    char path[300];
    uint64_t bytes;
    made m;
    snprintf(path, sizeof path, "%s/none.onnx", folder);
    make(&m, "m", "[3]", "[{linear: {name: fc, out: 2}}]");
    m.tensor[0].dim[0] = 3;
    CHECK_STATUS(write_onnx(&m, "m", path, &bytes), TDM_E_CHECKPOINT);
    CHECK_HAS(tdm_error_message(), "'fc.weight' must be F32 2x3");
    m.tensor[0].name = "other";
    CHECK_STATUS(write_onnx(&m, "m", path, &bytes), TDM_E_CHECKPOINT);
    CHECK_HAS(tdm_error_message(), "'fc.weight' of the model is missing");
    drop(&m);
}

/* ---- for make_onnx_golden.py: files, samples and predictions ---- */

static void put_floats(const char *to, const char *name, const char *what, const float *numbers, size_t count) {
    char path[600];
    snprintf(path, sizeof path, "%s/%s.%s", to, name, what);
    FILE *file = fopen(path, "wb");
    must(file != NULL && fwrite(numbers, sizeof *numbers, count, file) == count && fclose(file) == 0, path);
}

static void put_predictions(const made *m, const onnx_model *of, const char *to) {
    static float x[ROWS * MOST_WIDTH], y[ROWS * MOST_WIDTH];
    const char *note[TDM_NOTES] = {[TDM_NOTE_MODEL] = m->text}, *metadata[TDM_METADATA];
    char path[600], step[TDM_METADATA_STEP];
    tdm_model_info info = TDM_MODEL_INFO_INIT;
    tdm_model *model;
    snprintf(path, sizeof path, "%s/%s.tandem", to, of->name);
    tdm__tensor_metadata(metadata, step, 1, note);
    must(tdm__tensor_file_write(tdm_host_default(), &tdm__file_system, NULL, path, m->tensor, m->count, metadata, NULL,
                                NULL, NULL) == TDM_OK,
         path);
    must(tdm_model_open(&model, path, NULL) == TDM_OK && tdm_model_get_info(model, &info) == TDM_OK, path);
    must(info.input_width == of->width && info.output_width <= MOST_WIDTH, "width");
    fill(x, ROWS * info.input_width, 99, false);
    for (int64_t i = 0; of->whole && i < ROWS * info.input_width; i++) x[i] = (float)(i * 5 % 7);
    must(tdm_model_predict(model, TDM_INPUT_READY, x, ROWS, y) == TDM_OK, path);
    put_floats(to, of->name, "x", x, (size_t)(ROWS * info.input_width));
    put_floats(to, of->name, "y", y, (size_t)(ROWS * info.output_width));
    tdm_model_close(model);
}

/* Prints a line for each model: its name, rows, hash. */
static void write_all(const char *to) {
    for (int i = 0; i < MODELS; i++) {
        char path[600], hash[TDM_HASH_TEXT];
        uint64_t bytes;
        made m;
        make(&m, models[i].name, models[i].input, models[i].layers);
        snprintf(path, sizeof path, "%s/%s.onnx", to, models[i].name);
        must(write_onnx(&m, models[i].name, path, &bytes) == TDM_OK, path);
        hash_file(path, bytes, hash);
        put_predictions(&m, &models[i], to);
        printf("%s %d %s\n", models[i].name, ROWS, hash);
        drop(&m);
    }
}

TEST_MAIN(if (argc == 3 && strcmp(argv[1], "write") == 0) {
    write_all(argv[2]);
    return 0;
} test_folder_make(folder);
          RUN(writes_what_onnxruntime_has_read); RUN(every_op_is_in_a_model);
          RUN(layers_without_a_counterpart_are_named); RUN(tensors_must_be_the_models); test_folder_remove(folder);)
