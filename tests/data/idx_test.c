/* MNIST's files: what is read, and that nothing but a whole and honest file is. */
#include "tests/data/support.h"

#include <sys/stat.h>
#include <unistd.h>

enum { N = 5, ROWS = 3, COLUMNS = 4, RECORD = ROWS * COLUMNS, IMAGES = 16 + N * RECORD, LABELS = 8 + N };

static unsigned char images[IMAGES], labels[LABELS];
static char images_path[256], labels_path[256];
static const int64_t shape[] = {1, ROWS, COLUMNS};

static size_t put_header(unsigned char *out, int ndim, const uint32_t *dim) {
    memcpy(out, (unsigned char[]){0, 0, 8, (unsigned char)ndim}, 4);
    for (int i = 0; i < ndim; i++) {
        for (int b = 0; b < 4; b++) out[4 + 4 * i + b] = (unsigned char)(dim[i] >> (24 - 8 * b));
    }
    return 4 + 4 * (size_t)ndim;
}

static void set_up(void) {
    size_t at = put_header(images, 3, (uint32_t[]){N, ROWS, COLUMNS});
    for (size_t i = at; i < IMAGES; i++) images[i] = (unsigned char)(7 * i + 3);
    at = put_header(labels, 1, (uint32_t[]){N});
    for (size_t i = 0; i < N; i++) labels[at + i] = (unsigned char)i;
    strcpy(images_path, scratch_path("images"));
    strcpy(labels_path, scratch_path("labels"));
    write_file(images_path, images, IMAGES);
    write_file(labels_path, labels, LABELS);
}

static tdm_data_spec spec_now(void) {
    return (tdm_data_spec){.format = TDM_DATA_IDX, .images = images_path, .labels = labels_path};
}

static tdm_status open_now(void) {
    tdm_data_spec spec = spec_now();
    tdm_data_wanted wanted = wanted_classes(3, shape, 10);
    return try_open(&spec, &wanted);
}

static void check_content(const tdm_dataset *dataset, int64_t first) {
    unsigned char x[RECORD];
    int64_t label;
    CHECK(dataset->x_is_bytes);
    for (int64_t i = 0; i < dataset->count; i++) {
        REQUIRE_OK(tdm__dataset_read(dataset, i, x, &label));
        CHECK(memcmp(x, images + 16 + (size_t)(first + i) * RECORD, RECORD) == 0);
        CHECK_INT(label, first + i);
    }
}

TEST(reads_plain_and_gzip) {
    set_up();
    tdm_data_wanted wanted = wanted_classes(3, shape, 10);
    tdm_data_spec spec = spec_now();
    tdm_dataset *dataset;
    for (int kind = 0; kind < 3; kind++) {
        tdm_bytes whole = gzip(images, IMAGES), head = gzip(images, 20), rest = gzip(images + 20, IMAGES - 20);
        if (kind == 1) write_file(images_path, whole.data, whole.count);
        if (kind == 2) { /* two members, as `cat a.gz b.gz` makes */
            head.data = realloc(head.data, head.count + rest.count);
            memcpy(head.data + head.count, rest.data, rest.count);
            write_file(images_path, head.data, head.count + rest.count);
        }
        REQUIRE_OK(tdm__dataset_open(&dataset, tdm_host_default(), &spec, &wanted));
        CHECK_INT(dataset->count, N);
        CHECK_INT(dataset->classes, 10);
        CHECK(!dataset->has_ignored);
        check_content(dataset, 0);
        tdm__dataset_close(dataset);
        free(whole.data);
        free(head.data);
        free(rest.data);
    }
}

TEST(shapes) {
    set_up();
    tdm_data_spec spec = spec_now();
    static const struct {
        tdm_shape input;
        bool fits;
    } cases[] = {
        {{3, {1, ROWS, COLUMNS}}, true}, {{2, {ROWS, COLUMNS}}, true},     {{1, {RECORD}}, true},
        {{3, {RECORD, 1, 1}}, true},     {{3, {1, COLUMNS, ROWS}}, false}, {{3, {3, ROWS, COLUMNS}}, false},
        {{3, {1, ROWS, 5}}, false},      {{1, {RECORD + 1}}, false},       {{3, {2, 2, 3}}, false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        tdm_data_wanted wanted = wanted_classes(cases[i].input.ndim, cases[i].input.dim, 10);
        CHECK_STATUS(try_open(&spec, &wanted), cases[i].fits ? TDM_OK : TDM_E_DATA);
        if (!cases[i].fits) CHECK_HAS(tdm_error_message(), "found [1, 3, 4]");
    }
    tdm_data_wanted values = wanted_classes(3, shape, 0);
    values.target_kind = TDM_TARGET_VALUES;
    values.target_width = 1;
    CHECK_STATUS(try_open(&spec, &values), TDM_E_DATA);
}

TEST(range) {
    set_up();
    tdm_data_spec spec = spec_now();
    tdm_data_wanted wanted = wanted_classes(3, shape, 4); /* label 4 is too large, but outside of the range */
    tdm_dataset *dataset;
    CHECK_STATUS(try_open(&spec, &wanted), TDM_E_DATA);
    CHECK_HAS(tdm_error_message(), "label of sample 4 must be 0 to 3 (the model has 4 outputs), found 4");
    spec.range = (tdm_ints){2, {1, 4}};
    REQUIRE_OK(tdm__dataset_open(&dataset, tdm_host_default(), &spec, &wanted));
    CHECK_INT(dataset->count, 3);
    CHECK_INT(dataset->first, 1);
    check_content(dataset, 1);
    tdm__dataset_close(dataset);
    static const tdm_ints bad[] = {{2, {0, N + 1}}, {2, {-1, 2}}, {2, {2, 2}}, {2, {3, 2}}, {1, {3}}};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        spec.range = bad[i];
        CHECK_STATUS(try_open(&spec, &wanted), TDM_E_DATA);
    }
    wanted.ignore_index = 4;
    spec.range.count = 0;
    REQUIRE_OK(tdm__dataset_open(&dataset, tdm_host_default(), &spec, &wanted));
    CHECK(dataset->has_ignored);
    tdm__dataset_close(dataset);
}

TEST(every_length) {
    set_up();
    unsigned char longer[IMAGES + 1] = {0};
    memcpy(longer, images, IMAGES);
    for (size_t length = 0; length <= IMAGES + 1; length++) {
        write_file(images_path, longer, length);
        CHECK_STATUS(open_now(), length == IMAGES ? TDM_OK : TDM_E_DATA);
        if (length > 16 && length != IMAGES) {
            char found[64];
            snprintf(found, sizeof(found), "expected %d bytes", IMAGES);
            CHECK_HAS(tdm_error_message(), found);
            snprintf(found, sizeof(found), "found %zu", length);
            CHECK_HAS(tdm_error_message(), found);
        }
    }
    set_up();
    memcpy(longer, labels, LABELS);
    for (size_t length = 0; length <= LABELS + 1; length++) {
        write_file(labels_path, longer, length);
        CHECK_STATUS(open_now(), length == LABELS ? TDM_OK : TDM_E_DATA);
    }
}

TEST(every_gzip_length_and_flip) {
    set_up();
    tdm_bytes packed = gzip(images, IMAGES);
    for (size_t length = 0; length < packed.count; length++) {
        write_file(images_path, packed.data, length);
        CHECK_STATUS(open_now(), TDM_E_DATA);
    }
    unsigned char *longer = calloc(1, packed.count + 1);
    memcpy(longer, packed.data, packed.count);
    write_file(images_path, longer, packed.count + 1);
    CHECK_STATUS(open_now(), TDM_E_DATA);
    free(longer);
    for (size_t bit = 0; bit < packed.count * 8; bit++) {
        packed.data[bit / 8] ^= (unsigned char)(1 << bit % 8);
        write_file(images_path, packed.data, packed.count);
        tdm_data_spec spec = spec_now();
        tdm_data_wanted wanted = wanted_classes(3, shape, 10);
        tdm_dataset *dataset = NULL;
        tdm_status status = tdm__dataset_open(&dataset, tdm_host_default(), &spec, &wanted);
        CHECK(status == TDM_OK || status == TDM_E_DATA);
        if (status == TDM_OK) check_content(dataset, 0); /* the flip hit a time stamp */
        tdm__dataset_close(dataset);
        packed.data[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    free(packed.data);
}

TEST(bad_headers) {
    static const struct {
        int at;
        unsigned char byte;
        const char *says;
    } cases[] = {
        {0, 1, "expected 00 00 08 at its start"},
        {1, 0xff, "expected 00 00 08 at its start"},
        {2, 0x0d, "found type 0x0d"},
        {2, 9, "found type 0x09"},
        {3, 0, "found 0 dimensions"},
        {3, 1, "is this the labels file?"},
        {3, 8, "found 8 dimensions"},
        {3, 255, "found 255 dimensions"},
        {3, 2, "expected"},
        {7, 0, "dimension 0"},
        {11, 0, "dimension 1"},
        {4, 0x80, "expected"},
        {8, 0xff, "expected"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        set_up();
        images[cases[i].at] = cases[i].byte;
        write_file(images_path, images, IMAGES);
        CHECK_STATUS(open_now(), TDM_E_DATA);
        CHECK_HAS(tdm_error_message(), cases[i].says);
        CHECK_HAS(tdm_error_message(), images_path);
    }
    set_up();
    put_header(images, 3, (uint32_t[]){UINT32_MAX, UINT32_MAX, UINT32_MAX});
    write_file(images_path, images, IMAGES);
    CHECK_STATUS(open_now(), TDM_E_DATA);
    CHECK_HAS(tdm_error_message(), "overflow");
    unsigned char many[32 + 1] = {0}; /* 2^64 elements: the product wraps to 0 */
    size_t length = put_header(many, 4, (uint32_t[]){1u << 16, 1u << 16, 1u << 16, 1u << 16});
    write_file(images_path, many, length);
    CHECK_STATUS(open_now(), TDM_E_DATA);
    CHECK_HAS(tdm_error_message(), "overflow");
}

TEST(counts_and_swaps) {
    set_up();
    put_header(labels, 1, (uint32_t[]){N - 1});
    write_file(labels_path, labels, LABELS - 1);
    CHECK_STATUS(open_now(), TDM_E_DATA);
    CHECK_HAS(tdm_error_message(), "holds 5 samples");
    set_up();
    strcpy(images_path, scratch_path("labels"));
    CHECK_STATUS(open_now(), TDM_E_DATA);
    CHECK_HAS(tdm_error_message(), "is this the labels file?");
    set_up();
    strcpy(labels_path, scratch_path("images"));
    CHECK_STATUS(open_now(), TDM_E_DATA);
}

/* What a header promises is believed only as far as the file can hold it. */
TEST(bombs) {
    enum { ZEROS = 8 << 20 };
    watched_host watched;
    set_up();
    tdm_data_spec spec = spec_now();
    tdm_data_wanted wanted = wanted_classes(3, shape, 10);
    tdm_dataset *dataset;
    unsigned char *zeros = calloc(1, ZEROS);
    struct {
        uint32_t samples;
        bool packed;
        const char *says;
    } cases[] = {
        {ZEROS / RECORD, true, "more than 200 to 1"}, /* all of it promised */
        {N, true, "found more"},                      /* five samples promised, megabytes behind them */
        {10 * ZEROS, true, "more than 200 to 1"},     /* promised, and not even there */
        {UINT32_MAX, true, "at most"},
        {UINT32_MAX, false, "expected"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        put_header(zeros, 3, (uint32_t[]){cases[i].samples, ROWS, COLUMNS});
        tdm_bytes packed = gzip(zeros, ZEROS);
        if (cases[i].packed) {
            write_file(images_path, packed.data, packed.count);
        } else {
            write_file(images_path, zeros, 1000);
        }
        watch(&watched, SIZE_MAX);
        CHECK_STATUS(tdm__dataset_open(&dataset, &watched.host, &spec, &wanted), TDM_E_DATA);
        CHECK_HAS(tdm_error_message(), cases[i].says);
        CHECK(watched.peak < 256 * 1024);
        CHECK_INT(watched.blocks, 0);
        free(packed.data);
    }
    free(zeros);
}

TEST(no_regular_file) {
    set_up();
    strcpy(images_path, scratch_path("absent"));
    CHECK_STATUS(open_now(), TDM_E_DATA);
    CHECK_HAS(tdm_error_message(), "absent");
    strcpy(images_path, scratch_path("fifo"));
    REQUIRE(mkfifo(images_path, 0600) == 0);
    CHECK_STATUS(open_now(), TDM_E_DATA); /* and does not wait for a writer */
    strcpy(images_path, ".");
    CHECK_STATUS(open_now(), TDM_E_DATA);
    strcpy(images_path, "/dev/zero");
    CHECK_STATUS(open_now(), TDM_E_DATA);
    tdm_data_spec spec = spec_now();
    tdm_data_wanted wanted = wanted_classes(3, shape, 10);
    spec.images = NULL;
    CHECK_STATUS(try_open(&spec, &wanted), TDM_E_DATA);
}

/* Every allocation may fail, and nothing is left behind. */
TEST(out_of_memory) {
    set_up();
    tdm_bytes packed = gzip(images, IMAGES);
    write_file(images_path, packed.data, packed.count);
    free(packed.data);
    tdm_data_spec spec = spec_now();
    tdm_data_wanted wanted = wanted_classes(3, shape, 10);
    watched_host watched;
    tdm_dataset *dataset;
    tdm_status status = TDM_E_MEMORY;
    for (size_t limit = 0; status != TDM_OK; limit += 64) {
        REQUIRE(limit < 1 << 20);
        watch(&watched, limit);
        status = tdm__dataset_open(&dataset, &watched.host, &spec, &wanted);
        CHECK(status == TDM_OK || status == TDM_E_MEMORY);
        CHECK(status == TDM_OK || watched.blocks == 0);
    }
    tdm__dataset_close(dataset);
    CHECK_INT(watched.blocks, 0);
}

TEST_MAIN(RUN(reads_plain_and_gzip); RUN(shapes); RUN(range); RUN(every_length); RUN(every_gzip_length_and_flip);
          RUN(bad_headers); RUN(counts_and_swaps); RUN(bombs); RUN(no_regular_file); RUN(out_of_memory);)
