/* Files that are no models, damaged ones, and ones that lie: each is refused with one sentence that says what is wrong. */
#include <stdlib.h>
#include <unistd.h>

#include <tandem/model.h>

#include "runtime/ckpt/ckpt.h"
#include "tests/api/api.h"
#include "tests/support/tdm_test.h"

static char folder[256], path[300];
static float weight[2 * 3 + 3];

#define HEAD "tandem: 1\nname: small\nmodel:\n"
#define SMALL HEAD "  input: [2]\n  layers:\n    - linear: {name: fc, out: 3}\n"

/* fc.weight [3, 2] and fc.bias [3]. */
static const tdm_tensor tensors[] = {
    {.name = "fc.weight", .dtype = TDM_ST_F32, .ndim = 2, .dim = {3, 2}, .bytes = 24, .data = weight},
    {.name = "fc.bias", .dtype = TDM_ST_F32, .ndim = 1, .dim = {3}, .bytes = 12, .data = weight + 6},
};

/* A file with these tensors and notes. */
static void write_file(const tdm_tensor *all, int count, const char *text, const char *classes) {
    const char *note[TDM_NOTES] = {[TDM_NOTE_CLASSES] = classes, [TDM_NOTE_MODEL] = text}, *metadata[TDM_METADATA];
    char step[TDM_METADATA_STEP];
    tdm__tensor_metadata(metadata, step, 1, note);
    (void)unlink(path);
    REQUIRE_OK(tdm__tensor_file_write(tdm_host_default(), &tdm__file_system, NULL, path, all, count, metadata, NULL,
                                      NULL, NULL));
}

/* One sentence that names the file. */
static void check_refused(tdm_status status, const char *says) {
    tdm_model *model = (tdm_model *)path;
    CHECK_STATUS(tdm_model_open(&model, path, NULL), status);
    CHECK(model == NULL);
    CHECK_HAS(tdm_error_message(), says);
    CHECK_HAS(tdm_error_message(), path);
    CHECK(strchr(tdm_error_message(), '\n') == NULL);
}

static void check_text(const char *text, tdm_status status, const char *says) {
    write_file(tensors, 2, text, NULL);
    check_refused(status, says);
}

TEST(good_files_open) {
    tdm_model *model = NULL;
    float y[3];
    for (int i = 0; i < 9; i++) weight[i] = (float)i;
    write_file(tensors, 2, SMALL, "[\"a\", \"b\", \"c\"]");
    REQUIRE_OK(tdm_model_open(&model, path, NULL));
    CHECK_TEXT(tdm_model_class_name(model, 2), "c");
    CHECK(tdm_model_class_name(model, 3) == NULL && tdm_model_class_name(model, -1) == NULL);
    CHECK_OK(tdm_model_predict(model, TDM_INPUT_FLOATS, (const float[]){1, 10}, 1, y));
    CHECK(y[0] == 16 && y[1] == 39 && y[2] == 62);
    tdm_model_close(model);
}

TEST(texts_that_are_no_model) {
    check_text(NULL, TDM_E_CHECKPOINT, "weights without their model");
    check_text("", TDM_E_CHECKPOINT, "empty");
    check_text("- a\n- b\n", TDM_E_CHECKPOINT, "mapping");
    check_text("tandem: 2\n" SMALL, TDM_E_CHECKPOINT, "tandem");
    check_text("tandem: 99\nmodel: {input: [2], layers: [{linear: {name: fc, out: 3}}]}\n", TDM_E_CHECKPOINT, "99");
    check_text(HEAD "  input: [2]\n  layers:\n    - linaer: {name: fc, out: 3}\n", TDM_E_CHECKPOINT, "linaer");
    check_text(HEAD "  input: [2]\n  layers: []\n", TDM_E_CHECKPOINT, "layers");
    check_text(HEAD "  input: [1099511627776, 4096]\n  layers: [flatten, {linear: {name: fc, out: 3}}]\n",
               TDM_E_CHECKPOINT, "input");
    check_text(HEAD "  input: [2]\n  layers: [{linear: {name: fc, out: 2000000000}}]\n", TDM_E_CHECKPOINT, "16777216");
    check_text(HEAD "  input: [2]\n  layers: [{linear: {name: fc, out: 16777216}}]\n", TDM_E_CHECKPOINT, "shape");
    check_text("tandem: 1\nname: ${env:HOME}\nmodel:\n  input: [2]\n", TDM_E_CHECKPOINT, "${");
    check_text("a: &a [1, 1]\nb: &b [*a, *a]\n", TDM_E_CHECKPOINT, "tandem.model");
}

/* Neither is looked at: files that the text names, and settings of training. */
TEST(texts_lead_nowhere) {
    tdm_model *model = NULL;
    const float x[2] = {1, 2};
    float y[2];
    const tdm_tensor two[] = {
        tensors[0],
        tensors[1],
        {.name = "fd.weight", .dtype = TDM_ST_F32, .ndim = 2, .dim = {2, 3}, .bytes = 24, .data = weight},
        {.name = "fd.bias", .dtype = TDM_ST_F32, .ndim = 1, .dim = {2}, .bytes = 8, .data = weight},
    };
    write_file(tensors, 2,
               "tandem: 1\nmodel: {input: [2], weights: /dev/zero, layers: [{linear: {name: fc, out: 3}}]}\n"
               "data: {train: {format: idx, images: /dev/zero, labels: /dev/zero}}\n"
               "parallel: {mode: ddp, device: cuda, device_ids: [0, 1]}\ntrain: {accumulate: 2, batch: {global: 8}}\n"
               "run: {dir: /proc/none}\n",
               NULL);
    CHECK_OK(tdm_model_open(&model, path, NULL));
    tdm_model_close(model);
    /* A stage needs a device of its own, and here is one. */
    write_file(two, 4,
               HEAD "  input: [2]\n  layers: [{linear: {name: fc, out: 3}}, {linear: {name: fd, out: 2}}]\n"
                    "parallel: {device_ids: [0, 1], stages: 2}\n",
               NULL);
    REQUIRE_OK(tdm_model_open(&model, path, NULL));
    CHECK_OK(tdm_model_predict(model, TDM_INPUT_FLOATS, x, 1, y));
    tdm_model_close(model);
}

TEST(tensors_that_are_others) {
    tdm_tensor other[3] = {tensors[0], tensors[1], tensors[1]};
    write_file(tensors, 1, SMALL, NULL);
    check_refused(TDM_E_CHECKPOINT, "it has 1 tensors, and its model 2");
    other[2].name = "more";
    write_file(other, 3, SMALL, NULL);
    check_refused(TDM_E_CHECKPOINT, "it has 3 tensors, and its model 2");
    other[1].name = "fc.bios";
    write_file(other, 2, SMALL, NULL);
    check_refused(TDM_E_CHECKPOINT, "'fc.bias' of its model is missing");
    other[1] = tensors[1];
    other[0].dim[0] = 2, other[0].dim[1] = 3;
    write_file(other, 2, SMALL, NULL);
    check_refused(TDM_E_CHECKPOINT, "'fc.weight' has another shape");
    other[0] = tensors[0];
    other[0].dtype = TDM_ST_I32;
    write_file(other, 2, SMALL, NULL);
    check_refused(TDM_E_CHECKPOINT, "'fc.weight' must be F32, it is I32");
}

TEST(classes_that_are_none) {
    static const char *const bad[] = {"[\"b\", \"a\"]", "{}", "[1]", "", "[\"a\", \"b\", \"c\", \"d\"]"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        write_file(tensors, 2, SMALL, bad[i]);
        check_refused(TDM_E_CHECKPOINT, "tandem.classes");
    }
}

TEST(models_that_need_a_batch) {
    const float ones[4] = {1, 1, 1, 1};
    const tdm_tensor norm[] = {
        {.name = "bn.weight", .dtype = TDM_ST_F32, .ndim = 1, .dim = {4}, .bytes = 16, .data = ones},
        {.name = "bn.bias", .dtype = TDM_ST_F32, .ndim = 1, .dim = {4}, .bytes = 16, .data = ones},
    };
    write_file(norm, 2, HEAD "  input: [4]\n  layers:\n    - batchnorm1d: {name: bn, track_running_stats: false}\n",
               NULL);
    check_refused(TDM_E_UNSUPPORTED, "cannot predict one sample by itself");
}

static void put(const void *bytes, size_t count) {
    FILE *to = fopen(path, "wb");
    REQUIRE(to != NULL);
    CHECK(fwrite(bytes, 1, count, to) == count);
    fclose(to);
}

/* Other tools save weights in 16 bits. */
TEST(weights_of_16_bits_are_refused) {
    static const char *const types[] = {"BF16", "F16"};
    for (int i = 0; i < 2; i++) {
        char header[512];
        const int length =
            snprintf(header + 8, sizeof(header) - 8,
                     "{\"__metadata__\":{\"tandem.model\":\"tandem: 1\\nname: small\\nmodel: {input: [2], "
                     "layers: [{linear: {name: fc, out: 3, bias: false}}]}\"},\"fc.weight\":"
                     "{\"dtype\":\"%s\",\"shape\":[3,2],\"data_offsets\":[0,12]}}",
                     types[i]);
        for (int k = 0; k < 8; k++) header[k] = (char)((uint64_t)length >> (8 * k));
        memset(header + 8 + length, 0, 12);
        put(header, 8 + (size_t)length + 12);
        check_refused(TDM_E_CHECKPOINT, i == 0 ? "'fc.weight' must be F32, it is BF16" : "it is F16");
    }
}

TEST(files_that_are_cut_short) {
    static char all[4096];
    write_file(tensors, 2, SMALL, NULL);
    FILE *from = fopen(path, "rb");
    REQUIRE(from != NULL);
    const size_t bytes = fread(all, 1, sizeof(all), from);
    fclose(from);
    REQUIRE(bytes > 64 && bytes < sizeof(all));
    for (size_t part = 0; part < bytes; part += 7) {
        put(all, part);
        check_refused(TDM_E_CHECKPOINT, "");
    }
    memset(all, 0xFF, 8); /* a header of 2^64 - 1 bytes */
    put(all, bytes);
    check_refused(TDM_E_CHECKPOINT, "header");
    (void)unlink(path);
    check_refused(TDM_E_CHECKPOINT, "no such file");
    tdm_model *model = NULL;
    CHECK_STATUS(tdm_model_open(&model, folder, NULL), TDM_E_CHECKPOINT);
    CHECK_HAS(tdm_error_message(), "found a folder; tdm_model_export makes one of a run");
}

/* Random bytes of a good file: it opens with other numbers, or is refused. */
TEST(files_with_other_bytes) {
    static char all[4096];
    write_file(tensors, 2, SMALL, NULL);
    FILE *from = fopen(path, "rb");
    REQUIRE(from != NULL);
    const size_t bytes = fread(all, 1, sizeof(all), from);
    fclose(from);
    uint32_t drawn = 1;
    for (int i = 0; i < 200; i++) {
        tdm_model *model = NULL;
        drawn = drawn * 1664525u + 1013904223u;
        const size_t at = drawn / 256 % bytes;
        const char kept = all[at];
        all[at] = (char)(drawn >> 24);
        const tdm_status status = tdm_model_open_memory(&model, all, bytes, NULL);
        CHECK(status == TDM_OK || status == TDM_E_CHECKPOINT || status == TDM_E_UNSUPPORTED);
        CHECK((model != NULL) == (status == TDM_OK));
        tdm_model_close(model);
        all[at] = kept;
    }
}

TEST_MAIN(test_folder_make(folder); snprintf(path, sizeof(path), "%s/m.tandem", folder); RUN(good_files_open);
          RUN(texts_that_are_no_model); RUN(texts_lead_nowhere); RUN(tensors_that_are_others);
          RUN(classes_that_are_none); RUN(models_that_need_a_batch); RUN(weights_of_16_bits_are_refused);
          RUN(files_that_are_cut_short); RUN(files_with_other_bytes); test_folder_remove(folder);)
