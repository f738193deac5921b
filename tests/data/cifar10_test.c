/* CIFAR-10's binary files. */
#include "tests/data/support.h"

#include <unistd.h>

enum { PIXELS = 3072, RECORD = 3073 };

static unsigned char bytes[3 * RECORD + 1];
static const int64_t shape[] = {3, 32, 32};

static void fill(void) {
    for (size_t i = 0; i < sizeof(bytes); i++) bytes[i] = (unsigned char)(i * 31 + i / 256);
    for (int i = 0; i < 3; i++) bytes[i * RECORD] = (unsigned char)(9 - i);
}

static tdm_data_spec spec_of(int count, const char *a, const char *b) {
    tdm_data_spec spec = {.format = TDM_DATA_CIFAR10};
    spec.files = (tdm_texts){count, {a, b}};
    return spec;
}

TEST(reads_several_files) {
    fill();
    const char *a = scratch_path("a.bin"), *b = scratch_path("b.bin");
    write_file(a, bytes, RECORD);
    write_file(b, bytes + RECORD, 2 * RECORD);
    tdm_data_spec spec = spec_of(2, a, b);
    tdm_data_wanted wanted = wanted_classes(3, shape, 10);
    tdm_dataset *dataset;
    REQUIRE_OK(tdm__dataset_open(&dataset, tdm_host_default(), &spec, &wanted));
    CHECK_INT(dataset->count, 3);
    CHECK(dataset->x_is_bytes);
    for (int64_t i = 0; i < 3; i++) {
        unsigned char x[PIXELS];
        int64_t label;
        REQUIRE_OK(tdm__dataset_read(dataset, i, x, &label));
        CHECK_INT(label, 9 - i);
        CHECK(memcmp(x, bytes + i * RECORD + 1, PIXELS) == 0);
    }
    tdm__dataset_close(dataset);

    wanted = wanted_classes(1, (int64_t[]){PIXELS}, 10);
    CHECK_OK(try_open(&spec, &wanted));
    wanted = wanted_classes(3, (int64_t[]){32, 32, 3}, 10);
    CHECK_STATUS(try_open(&spec, &wanted), TDM_E_DATA);
    wanted = wanted_classes(3, (int64_t[]){1, 28, 28}, 10);
    CHECK_STATUS(try_open(&spec, &wanted), TDM_E_DATA);
    CHECK_HAS(tdm_error_message(), "needs samples of shape [1, 28, 28] (model.input), found [3, 32, 32]");
    wanted = wanted_classes(3, shape, 9);
    CHECK_STATUS(try_open(&spec, &wanted), TDM_E_DATA);
}

TEST(every_length) {
    fill();
    const char *a = scratch_path("a.bin");
    tdm_data_spec spec = spec_of(1, a, NULL);
    tdm_data_wanted wanted = wanted_classes(3, shape, 10);
    write_file(a, bytes, 2 * RECORD + 1);
    for (int length = 2 * RECORD + 1; length >= 0; length--) {
        REQUIRE(truncate(a, length) == 0);
        bool whole = length > 0 && length % RECORD == 0;
        CHECK_STATUS(try_open(&spec, &wanted), whole ? TDM_OK : TDM_E_DATA);
    }
    write_file(a, bytes, 2 * RECORD + 1);
    CHECK_STATUS(try_open(&spec, &wanted), TDM_E_DATA);
    CHECK_HAS(tdm_error_message(), "9219 for 3 of them, found 6147 bytes");
}

TEST(labels) {
    fill();
    const char *a = scratch_path("a.bin");
    tdm_data_spec spec = spec_of(1, a, NULL);
    tdm_data_wanted wanted = wanted_classes(3, shape, 100);
    for (int label = 0; label < 256; label++) {
        bytes[RECORD] = (unsigned char)label;
        write_file(a, bytes, 2 * RECORD);
        CHECK_STATUS(try_open(&spec, &wanted), label < 10 ? TDM_OK : TDM_E_DATA);
    }
    CHECK_HAS(tdm_error_message(), "label of record 1 must be 0 to 9, found 255");
}

TEST(files_that_are_none) {
    tdm_data_wanted wanted = wanted_classes(3, shape, 10);
    tdm_data_spec none = spec_of(0, NULL, NULL), absent = spec_of(1, scratch_path("absent"), NULL);
    tdm_data_spec device = spec_of(1, "/dev/zero", NULL);
    CHECK_STATUS(try_open(&none, &wanted), TDM_E_DATA);
    CHECK_STATUS(try_open(&absent, &wanted), TDM_E_DATA);
    CHECK_STATUS(try_open(&device, &wanted), TDM_E_DATA);
}

TEST_MAIN(RUN(reads_several_files); RUN(every_length); RUN(labels); RUN(files_that_are_none);)
