/* Models as ONNX files: the bytes are those that onnxruntime has read and computed with. What they are is in
 * onnx_golden.h, which make_onnx_golden.py writes: it calls this program with a folder, for the files of all models and
 * what they predict, and compares that with onnxruntime. */
#include <stdlib.h>
#include <unistd.h>

#include <tandem/config.h>
#include <tandem/model.h>

#include "runtime/base/hash.h"
#include "tests/model/onnx_golden.h"
#include "tests/model/onnx_made.h"

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
    check_refused(
        "[1, 9, 17]",
        "[{maxpool2d: {name: p, kernel: [2, 1], stride: [4, 3], dilation: [2, 1], ceil_mode: true}}, flatten, "
        "{linear: 2}]",
        "maxpool2d 'p': ONNX does not have ceil_mode with this dilation");
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
    char path[600];
    snprintf(path, sizeof path, "%s/%s.tandem", to, of->name);
    put_model(path, m->text, m->tensor, m->count);
    const widths wide = predict(path, of->whole, x, y);
    must(wide.in == of->width, "width");
    put_floats(to, of->name, "x", x, (size_t)(ROWS * wide.in));
    put_floats(to, of->name, "y", y, (size_t)(ROWS * wide.out));
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
