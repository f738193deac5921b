/* `tandem data make` and `tandem data check`: what is written can be read, and is described rightly. */
#include "tests/data/support.h"

#include <tandem/data.h>

#include <sys/stat.h>
#include <unistd.h>

static char folder[256], first[320], second[320];

/* The spec that reads what tdm_data_make has written. */
static tdm_data_spec made(const char *format, const char *name, int64_t samples, int64_t seed) {
    tdm_data_spec spec = {0};
    strcpy(folder, scratch_path(name));
    CHECK_OK(tdm_data_make(NULL, format, folder, samples, seed));
    if (strcmp(format, "idx") == 0) {
        snprintf(first, sizeof(first), "%s/images-idx3-ubyte", folder);
        snprintf(second, sizeof(second), "%s/labels-idx1-ubyte", folder);
        spec.format = TDM_DATA_IDX;
    } else if (strcmp(format, "npy") == 0) {
        snprintf(first, sizeof(first), "%s/x.npy", folder);
        snprintf(second, sizeof(second), "%s/y.npy", folder);
        spec.format = TDM_DATA_NPY;
    } else {
        snprintf(first, sizeof(first), "%s/data_batch_1.bin", folder);
        spec.format = TDM_DATA_CIFAR10;
    }
    spec.images = spec.x = first;
    spec.labels = spec.y = second;
    spec.files = (tdm_texts){1, {first}};
    return spec;
}

static void remove_made(void) {
    unlink(first);
    unlink(second);
    rmdir(folder);
}

TEST(made_and_read) {
    static const struct {
        const char *format;
        int64_t shape[3];
    } cases[] = {{"idx", {1, 28, 28}}, {"cifar10", {3, 32, 32}}, {"npy", {1, 28, 28}}};
    for (size_t c = 0; c < 3; c++) {
        tdm_data_spec spec = made(cases[c].format, "made", 70, 5);
        tdm_data_spec glyphs = {.format = TDM_DATA_GLYPHS, .samples = 70, .seed = 5, .noise = 0.1};
        tdm_data_wanted wanted = wanted_classes(3, cases[c].shape, 10);
        tdm_dataset *read, *drawn;
        REQUIRE_OK(tdm__dataset_open(&read, tdm_host_default(), &spec, &wanted));
        REQUIRE_OK(tdm__dataset_open(&drawn, tdm_host_default(), &glyphs, &wanted));
        CHECK_INT(read->count, 70);
        size_t bytes = (size_t)(cases[c].shape[0] * cases[c].shape[1] * cases[c].shape[2]);
        for (int64_t i = 0; i < 70; i++) {
            unsigned char a[3072], b[3072];
            int64_t label_a, label_b;
            CHECK_OK(tdm__dataset_read(read, i, a, &label_a));
            CHECK_OK(tdm__dataset_read(drawn, i, b, &label_b));
            CHECK(memcmp(a, b, bytes) == 0 && label_a == label_b);
        }
        tdm__dataset_close(read);
        tdm__dataset_close(drawn);
        CHECK_STATUS(tdm_data_make(NULL, cases[c].format, folder, 70, 5), TDM_E_IO); /* nothing is overwritten */
        remove_made();
    }
}

TEST(refusals) {
    char *report;
    CHECK_STATUS(tdm_data_make(NULL, "jpeg", scratch_path("made"), 10, 1), TDM_E_USAGE);
    CHECK_STATUS(tdm_data_make(NULL, "idx", scratch_path("made"), 0, 1), TDM_E_USAGE);
    CHECK_STATUS(tdm_data_make(NULL, "idx", scratch_path("made"), INT64_MAX, 1), TDM_E_USAGE);
    write_file(scratch_path("file"), "x", 1);
    CHECK_STATUS(tdm_data_make(NULL, "idx", scratch_path("file"), 10, 1), TDM_E_IO);
    tdm_data_spec absent = {.format = TDM_DATA_IDX, .images = "absent", .labels = "absent"};
    CHECK_STATUS(tdm_data_check(NULL, &absent, NULL, &report), TDM_E_DATA);
    CHECK(report == NULL);
    tdm_data_use use = {.size = 3};
    CHECK_STATUS(tdm_data_check(NULL, &absent, &use, &report), TDM_E_USAGE);
}

static void check_report(const tdm_data_spec *spec, const tdm_data_use *use, const char *want) {
    char *report = NULL;
    CHECK_OK(tdm_data_check(NULL, spec, use, &report));
    CHECK_TEXT(report, want);
    tdm_free(report);
}

TEST(report_of_bytes) {
    const char *images = scratch_path("images"), *labels = scratch_path("labels");
    unsigned char pixels[16 + 8] = {0, 0, 8, 3, 0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 2, 255, 0, 255, 0, 0, 255, 0, 255};
    unsigned char classes[8 + 4] = {0, 0, 8, 1, 0, 0, 0, 4, 7, 0, 7, 1};
    write_file(images, pixels, sizeof(pixels));
    write_file(labels, classes, sizeof(classes));
    tdm_data_spec spec = {.format = TDM_DATA_IDX, .images = images, .labels = labels};
    check_report(&spec, NULL,
                 "samples     4\n"
                 "shape       [1, 1, 2], bytes\n"
                 "labels      0: 1, 1: 1, 7: 2\n"
                 "no samples  of 2, 3, 4, 5, 6\n"
                 "normalize   {mean: [0.5000], std: [0.5000]}\n");
    tdm_data_use use = {.size = sizeof(use), .classes = 7};
    char *report;
    CHECK_STATUS(tdm_data_check(NULL, &spec, &use, &report), TDM_E_DATA);
    CHECK_HAS(tdm_error_message(), "label of sample 0 must be 0 to 6");
}

static void write_npy(const char *path, const char *shape, const float numbers[6]) {
    char text[10 + 118 + 24 + 1] = "\x93NUMPY\x01\0\x76";
    snprintf(text + 10, 119, "{'descr': '<f4', 'fortran_order': False, 'shape': %s, }%60s", shape, "");
    memcpy(text + 10 + 118, numbers, 24);
    write_file(path, text, 10 + 118 + 24);
}

TEST(report_of_floats) {
    const char *x = scratch_path("x.npy"), *y = scratch_path("y.npy");
    float numbers[6] = {1, 10, 100, 3, 30, 300};
    write_npy(x, "(2, 3, 1, 1)", numbers);
    write_npy(y, "(2, 3)", numbers);
    tdm_data_spec spec = {.format = TDM_DATA_NPY, .x = x, .y = y};
    tdm_data_use use = {.size = sizeof(use), .float_targets = true};
    check_report(&spec, &use,
                 "samples     2\n"
                 "shape       [3, 1, 1], floats\n"
                 "targets     3 floats a sample\n"
                 "normalize   {mean: [2.0000, 20.0000, 200.0000], std: [1.0000, 10.0000, 100.0000]}\n");
    /* far from 0, small, and all equal */
    const float odd[6] = {16000000, 0.0001f, 7, 16000001, 0.0003f, 7};
    write_npy(x, "(2, 3, 1, 1)", odd);
    check_report(&spec, &use,
                 "samples     2\n"
                 "shape       [3, 1, 1], floats\n"
                 "targets     3 floats a sample\n"
                 "normalize   {mean: [16000000.5000, 0.0002, 7.0000], std: [0.5000, 0.0001, 1.0000]}\n");
}

static void check_refused(const tdm_data_spec *spec, const tdm_data_use *use, const char *part) {
    char *report;
    CHECK_STATUS(tdm_data_check(NULL, spec, use, &report), TDM_E_DATA);
    CHECK(report == NULL);
    CHECK_HAS(tdm_error_message(), part);
}

/* In inputs and in targets; by their numbers in the file, whatever the range. */
TEST(samples_that_are_not_finite_are_named) {
    const char *x = scratch_path("x.npy"), *y = scratch_path("y.npy");
    float numbers[6] = {1, 10, 100, 3, 30, 300};
    tdm_data_spec spec = {.format = TDM_DATA_NPY, .x = x, .y = y};
    tdm_data_use use = {.size = sizeof(use), .float_targets = true};
    write_npy(x, "(6, 1)", numbers);
    numbers[0] = INFINITY;
    numbers[4] = NAN;
    write_npy(y, "(6, 1)", numbers);
    check_refused(&spec, &use, "2 of 6 samples hold numbers that are not finite: 0, 4;");
    write_npy(x, "(6, 1)", numbers);
    numbers[5] = NAN;
    write_npy(y, "(6, 1)", numbers);
    spec.range = (tdm_ints){2, {3, 6}};
    check_refused(&spec, &use, "2 of 3 samples hold numbers that are not finite: 4, 5;");
}

TEST(failure_leaves_nothing) {
    strcpy(folder, scratch_path("made"));
    REQUIRE(mkdir(folder, 0700) == 0);
    snprintf(first, sizeof(first), "%s/images-idx3-ubyte", folder);
    snprintf(second, sizeof(second), "%s/labels-idx1-ubyte", folder);
    write_file(second, "", 0); /* the second file cannot be made, so the first must go again */
    CHECK_STATUS(tdm_data_make(NULL, "idx", folder, 10, 1), TDM_E_IO);
    CHECK(access(first, F_OK) != 0);
    remove_made();
}

TEST_MAIN(RUN(made_and_read); RUN(refusals); RUN(report_of_bytes); RUN(report_of_floats);
          RUN(samples_that_are_not_finite_are_named); RUN(failure_leaves_nothing);)
