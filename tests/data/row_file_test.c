/* Rows that stay in their file: the same numbers as in memory, files larger than 4 GiB, files that change, and what ranks
 * compare. The large files are sparse: almost nothing of them is on the disk. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/data/read/row_file.h"
#include "runtime/data/transform.h"
#include "tests/data/support.h"

enum { ROWS = 40, WIDTH = 6, HEADER = 128 };
static char small_path[256], large_path[256], y_path[256];

/* An .npy file of `rows` rows of `width` numbers; `data` begins at its first row, the rest are zeros. */
static void write_rows(const char *path, const char *type, size_t rows, size_t width, const void *data, size_t bytes) {
    char header[HEADER + 1];
    const int length =
        snprintf(header, sizeof(header), "..........{'descr': '%s', 'fortran_order': False, 'shape': (%zu, %zu), }",
                 type, rows, width);
    memset(header + length, ' ', (size_t)(HEADER - length));
    memcpy(header, "\x93NUMPY\x01\x00\x76\x00", 10);
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    CHECK(pwrite(fd, header, HEADER, 0) == HEADER && pwrite(fd, data, bytes, HEADER) == (ssize_t)bytes);
    CHECK_INT(ftruncate(fd, (off_t)(HEADER + rows * width * (size_t)(type[2] - '0'))), 0);
    CHECK_INT(close(fd), 0);
}

static void write_array(const char *path, const char *type, size_t rows, const void *data, size_t bytes) {
    write_rows(path, type, rows, WIDTH, data, bytes);
}

/* So that a later write gives the file another time, however soon. */
static void make_old(const char *path) {
    const struct timespec times[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    CHECK_INT(utimensat(AT_FDCWD, path, times, 0), 0);
}

static size_t rows_that_stay(size_t cell) {
    return TDM_DATA_HELD_BYTES / (WIDTH * cell) + 1;
}

static void set_up(void) {
    strcpy(small_path, scratch_path("small.npy"));
    strcpy(large_path, scratch_path("large.npy"));
    strcpy(y_path, scratch_path("y.npy"));
}

static tdm_data_wanted wanted_rows(void) {
    static const int64_t shape[] = {WIDTH};
    tdm_data_wanted wanted = wanted_classes(1, shape, 0);
    wanted.target_kind = TDM_TARGET_VALUES;
    wanted.target_width = 1;
    return wanted;
}

static tdm_data_spec spec_of(const char *x) {
    return (tdm_data_spec){.format = TDM_DATA_NPY, .x = x, .without_targets = true, .seed = 3};
}

static tdm_dataset *open_now(const tdm_data_spec *spec, const tdm_data_wanted *wanted) {
    tdm_dataset *dataset = NULL;
    CHECK_OK(tdm__dataset_open(&dataset, tdm_host_default(), spec, wanted));
    if (dataset == NULL) exit(1);
    return dataset;
}

static tdm_dataset *open_part(const char *x, int64_t first, int64_t end) {
    tdm_data_spec spec = spec_of(x);
    const tdm_data_wanted wanted = wanted_rows();
    spec.range = (tdm_ints){2, {first, end}};
    return open_now(&spec, &wanted);
}

/* The rows that are not zero. */
static tdm_dataset *open_rows(const char *x) {
    return open_part(x, 0, ROWS);
}

static void make_cells(unsigned char cells[ROWS * WIDTH * 8], const char *type, size_t cell) {
    for (size_t i = 0; i < ROWS * WIDTH * cell; i++) cells[i] = (unsigned char)(i * 37 + i / 7);
    if (type[1] != 'f') return;
    /* No NaN, whose bits a conversion need not keep. */
    for (size_t i = 0; i < ROWS * WIDTH; i++) cells[i * cell + (type[0] == '>' ? 0 : cell - 1)] &= 0x3f;
}

/* ---- the same numbers ---- */

static void are_equal(const tdm_dataset *a, const tdm_dataset *b) {
    float x[WIDTH], y[WIDTH], target[2];
    CHECK_INT(a->count, b->count);
    CHECK_INT(a->x_is_bytes, b->x_is_bytes);
    CHECK_INT(a->resident_bytes, b->resident_bytes);
    for (int64_t i = 0; i < a->count; i++) {
        CHECK_OK(tdm__dataset_read(a, i, x, &target[0]));
        CHECK_OK(tdm__dataset_read(b, i, y, &target[1]));
        CHECK(memcmp(x, y, tdm__dataset_x_bytes(a)) == 0);
    }
}

TEST(types) {
    static const char *const types[] = {"|u1", "|i1", "|b1", "<f4", ">f4", "<f8", ">f8", "<f2",
                                        ">f2", "<u2", ">i2", "<i4", ">u4", "<u8", ">i8"};
    static unsigned char cells[ROWS * WIDTH * 8];
    set_up();
    for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
        const size_t cell = (size_t)(types[t][2] - '0');
        make_cells(cells, types[t], cell);
        write_array(small_path, types[t], ROWS, cells, ROWS * WIDTH * cell);
        write_array(large_path, types[t], rows_that_stay(cell), cells, ROWS * WIDTH * cell);
        tdm_dataset *small = open_rows(small_path), *large = open_rows(large_path);
        CHECK(small->row_files == NULL && large->row_files != NULL);
        CHECK(large->memory_bytes < small->memory_bytes + 1000);
        are_equal(small, large);
        tdm__dataset_close(small);
        tdm__dataset_close(large);
    }
}

/* A file of exactly the bytes that are held is, and one that has a row more is not. */
TEST(the_size_decides) {
    set_up();
    for (size_t more = 0; more < 2; more++) {
        const size_t rows = (TDM_DATA_HELD_BYTES - HEADER) / WIDTH + more;
        write_array(large_path, "|u1", rows, "", 0);
        tdm_dataset *dataset = open_rows(large_path);
        CHECK_INT(dataset->row_files != NULL, more);
        CHECK((dataset->memory_bytes > TDM_DATA_HELD_BYTES / 2) == (more == 0));
        tdm__dataset_close(dataset);
    }
}

static void write_floats(void) {
    static float x[ROWS * WIDTH];
    for (int i = 0; i < ROWS * WIDTH; i++) x[i] = (float)i * 0.5f - 7.0f;
    write_array(small_path, "<f4", ROWS, x, sizeof(x));
    write_array(large_path, "<f4", rows_that_stay(4), x, sizeof(x));
}

static tdm_dataset *open_held_out(const char *x, int split) {
    tdm_data_spec spec = spec_of(x);
    const tdm_data_wanted wanted = wanted_rows();
    spec.range = (tdm_ints){2, {5, 35}};
    spec.holdout = 0.3;
    spec.split = split;
    return open_now(&spec, &wanted);
}

TEST(parts_of_the_data) {
    set_up();
    write_floats();
    for (int split = TDM_SPLIT_TRAIN; split <= TDM_SPLIT_TEST; split++) {
        tdm_dataset *small = open_held_out(small_path, split), *large = open_held_out(large_path, split);
        are_equal(small, large);
        tdm__dataset_close(small);
        tdm__dataset_close(large);
    }
}

/* What a device keeps is read in one go. */
TEST(filled) {
    set_up();
    write_floats();
    tdm_dataset *large = open_rows(large_path);
    tdm_transform none;
    REQUIRE_OK(tdm__transform_init(&none, tdm_host_default(), NULL, large));
    float x[ROWS * WIDTH];
    float targets[ROWS];
    CHECK_OK(tdm__dataset_fill(large, &none, 0, ROWS, x, targets));
    for (int i = 0; i < ROWS * WIDTH; i++) CHECK(x[i] == (float)i * 0.5f - 7.0f);
    tdm__transform_deinit(&none);
    tdm__dataset_close(large);
}

/* Targets stay, too, and inputs of which one is in memory; bytes become floats. */
TEST(inputs_and_targets) {
    static unsigned char bytes[ROWS * WIDTH];
    char bytes_path[256];
    set_up();
    write_floats();
    strcpy(bytes_path, scratch_path("bytes.npy"));
    for (int i = 0; i < ROWS * WIDTH; i++) bytes[i] = (unsigned char)(3 * i);
    write_array(bytes_path, "|u1", rows_that_stay(1), bytes, sizeof(bytes));
    static float f[ROWS * WIDTH];
    write_array(large_path, "<f4", rows_that_stay(1), f, sizeof(f));
    for (int to_float = 0; to_float < 2; to_float++) {
        static const int64_t row[] = {2 * WIDTH};
        const tdm_transform_spec transform = {.to_float = to_float};
        tdm_data_wanted wanted = wanted_classes(1, row, 0);
        wanted.target_kind = TDM_TARGET_VALUES;
        wanted.target_width = WIDTH;
        wanted.transform = &transform;
        wanted.inputs = (tdm_data_inputs){2,
                                          {{.name = "a", .shape = {1, {WIDTH}}, .count = WIDTH},
                                           {.name = "b", .shape = {1, {WIDTH}}, .first = WIDTH, .count = WIDTH}}};
        const tdm_data_spec spec = {
            .format = TDM_DATA_NPY, .inputs = {4, {"a", bytes_path, "b", large_path}}, .y = bytes_path};
        tdm_dataset *dataset = NULL;
        float x[2 * WIDTH], y[WIDTH];
        REQUIRE_OK(tdm__dataset_open(&dataset, tdm_host_default(), &spec, &wanted));
        CHECK(dataset->memory_bytes < 2000);
        CHECK_OK(tdm__dataset_read(dataset, 9, x, y));
        for (int i = 0; i < WIDTH; i++) {
            const float byte = (float)bytes[9 * WIDTH + i];
            CHECK(x[i] == (to_float ? byte / 255.0f : byte) && x[WIDTH + i] == 0.0f && y[i] == byte);
        }
        tdm__dataset_close(dataset);
    }
}

TEST(more_than_4_GiB) {
    enum { WIDE = 1 << 16 };
    static double x[WIDE];
    static const int64_t shape[] = {WIDE};
    set_up();
    const size_t rows = ((size_t)5 << 30) / sizeof(x);
    write_rows(large_path, "<f8", rows, WIDE, "", 0);
    write_rows(y_path, "|u1", rows, 1, "\1", 1);
    x[0] = 1.5, x[WIDE - 1] = 2.5;
    const int fd = open(large_path, O_WRONLY | O_CLOEXEC);
    CHECK(pwrite(fd, x, sizeof(x), (off_t)(HEADER + (rows - 1) * sizeof(x))) == sizeof(x));
    CHECK_INT(close(fd), 0);
    watched_host host;
    watch(&host, 1 << 20);
    const tdm_data_wanted wanted = wanted_classes(1, shape, 2);
    const tdm_data_spec spec = {.format = TDM_DATA_NPY, .x = large_path, .y = y_path};
    tdm_dataset *dataset = NULL;
    static float found[WIDE];
    int64_t label = -1;
    REQUIRE_OK(tdm__dataset_open(&dataset, &host.host, &spec, &wanted));
    CHECK_INT(dataset->count, rows);
    CHECK_OK(tdm__dataset_read(dataset, 0, found, &label));
    CHECK(label == 1 && found[0] == 0.0f);
    CHECK_OK(tdm__dataset_read(dataset, (int64_t)rows - 1, found, &label));
    CHECK(label == 0 && found[0] == 1.5f && found[1] == 0.0f && found[WIDE - 1] == 2.5f);
    tdm__dataset_close(dataset);
}

/* ---- what goes wrong later ---- */

static void refused(const tdm_dataset *dataset, int64_t index, const char *part) {
    float x[WIDTH];
    float target;
    CHECK_STATUS(tdm__dataset_read(dataset, index, x, &target), TDM_E_DATA);
    CHECK_HAS(tdm_error_message(), part);
    CHECK_HAS(tdm_error_message(), large_path);
}

TEST(cut_short) {
    set_up();
    write_floats();
    tdm_dataset *dataset = open_rows(large_path);
    CHECK_INT(truncate(large_path, HEADER + 10 * WIDTH * 4 + 3), 0);
    refused(dataset, 10, "sample 10 cannot be read: the file had 268435592 bytes when it was opened and has 371 now");
    refused(dataset, 30, "sample 30 cannot be read");
    refused(dataset, 2, "sample 2 cannot be read"); /* it may be another file's row by now */
    tdm__dataset_close(dataset);
}

TEST(written_to) {
    float x[WIDTH];
    float target;
    set_up();
    write_floats();
    make_old(large_path);
    tdm_dataset *dataset = open_rows(large_path);
    CHECK_OK(tdm__dataset_read(dataset, 7, x, &target));
    const int fd = open(large_path, O_WRONLY | O_CLOEXEC);
    CHECK_INT(pwrite(fd, "1234", 4, HEADER + 7 * WIDTH * 4), 4);
    CHECK_INT(close(fd), 0);
    refused(dataset, 7,
            "sample 7 cannot be read: the file had 268435592 bytes when it was opened and has 268435592 now, "
            "and has been written to; do not change a file that a job reads");
    tdm__dataset_close(dataset);
}

/* A file of another name is another file. */
TEST(replaced) {
    float x[WIDTH];
    float target;
    set_up();
    write_floats();
    tdm_dataset *dataset = open_rows(large_path);
    CHECK_INT(rename(small_path, large_path), 0);
    CHECK_OK(tdm__dataset_read(dataset, 1, x, &target));
    CHECK(x[0] == -4.0f);
    CHECK_INT(unlink(large_path), 0);
    CHECK_OK(tdm__dataset_read(dataset, 2, x, &target));
    tdm__dataset_close(dataset);
}

/* What a layer looks something up by is checked in each sample that is read. */
TEST(numbers_that_are_looked_up) {
    static unsigned char x[ROWS * WIDTH];
    set_up();
    memset(x, 7, sizeof(x));
    x[3 * WIDTH + 2] = 9;
    x[4 * WIDTH + 4] = 9;
    write_array(large_path, "|u1", rows_that_stay(1), x, sizeof(x));
    const tdm_data_index index = {.first = 1, .count = 3, .below = 9, .layer = "embedding 'e'"};
    tdm_data_wanted wanted = wanted_rows();
    wanted.index = &index, wanted.index_count = 1;
    const tdm_data_spec spec = spec_of(large_path);
    tdm_dataset *dataset = NULL;
    unsigned char found[WIDTH];
    float target;
    REQUIRE_OK(tdm__dataset_open(&dataset, tdm_host_default(), &spec, &wanted));
    CHECK_OK(tdm__dataset_read(dataset, 2, found, &target));
    CHECK_OK(tdm__dataset_read(dataset, 4, found, &target));
    refused(dataset, 3, "number 2 of sample 3 is 9, and embedding 'e' takes whole numbers from 0 to 8");
    tdm__dataset_close(dataset);
}

/* ---- what ranks compare ---- */

static uint64_t sum_of(const tdm_dataset *dataset, int parts) {
    uint64_t sum = 0;
    for (int i = 0; i < parts; i++) CHECK_OK(tdm__row_files_add(dataset, i, parts, &sum));
    return sum;
}

static void put(const char *path, size_t at, const char *byte) {
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    CHECK_INT(pwrite(fd, byte, 1, (off_t)at), 1);
    CHECK_INT(close(fd), 0);
}

/* Of the second third of the rows. */
static uint64_t sum_of_middle(void) {
    const int64_t third = (int64_t)rows_that_stay(1) / 3;
    tdm_dataset *dataset = open_part(large_path, third, 2 * third);
    const uint64_t sum = sum_of(dataset, 1);
    CHECK(sum_of(dataset, 3) == sum);
    tdm__dataset_close(dataset);
    return sum;
}

TEST(every_byte_that_is_used) {
    set_up();
    const size_t rows = rows_that_stay(1), first = HEADER + rows / 3 * WIDTH, end = HEADER + rows / 3 * 2 * WIDTH;
    const size_t places[] = {first - 1, first, first + (1 << 20) - 1, first + (1 << 20), end - 1, end};
    write_array(large_path, "|u1", rows, "", 0);
    const uint64_t before = sum_of_middle();
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        put(large_path, places[i], "\1");
        CHECK((sum_of_middle() == before) == (places[i] < first || places[i] >= end));
        put(large_path, places[i], "\0");
    }
    /* The same bytes at other places. */
    put(large_path, first, "\1");
    const uint64_t one = sum_of_middle();
    put(large_path, first, "\0");
    put(large_path, first + (1 << 20), "\1");
    CHECK(sum_of_middle() != one);
}

/* Bytes that this process has asked files for; 0: the system does not say. */
static size_t bytes_read(void) {
    char text[512] = "";
    const int fd = open("/proc/self/io", O_RDONLY | O_CLOEXEC);
    const ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0) CHECK_INT(close(fd), 0);
    return length > 0 ? (size_t)strtoull(text + strlen("rchar: "), NULL, 10) : 0;
}

TEST(a_part_reads_its_share) {
    enum { MEBI = 1 << 20, MORE = 4096 /* what /proc/self/io itself adds */ };
    set_up();
    if (bytes_read() == 0) SKIP_TEST("/proc/self/io is not there");
    write_floats();
    float x[WIDTH];
    float target;
    size_t before = bytes_read();
    tdm_dataset *dataset = open_part(large_path, 0, (int64_t)rows_that_stay(4));
    for (int64_t i = 0; i < 10; i++) CHECK_OK(tdm__dataset_read(dataset, i * 1000, x, &target));
    CHECK(bytes_read() - before < MORE);
    for (int part = 0; part < 4; part++) {
        uint64_t sum = 0;
        before = bytes_read();
        CHECK_OK(tdm__row_files_add(dataset, part, 4, &sum));
        const size_t share = bytes_read() - before;
        CHECK(share >= TDM_DATA_HELD_BYTES / 4 && share <= TDM_DATA_HELD_BYTES / 4 + MEBI + MORE);
    }
    tdm__dataset_close(dataset);
}

TEST(who_has_the_same_file) {
    set_up();
    write_floats();
    make_old(large_path);
    tdm_dataset *dataset = open_rows(large_path), *again = open_rows(large_path), *small = open_rows(small_path);
    tdm_dataset *other_range = open_part(large_path, 1, ROWS);
    const uint64_t files = tdm__row_files_hash(dataset);
    CHECK(files != 0 && files == tdm__row_files_hash(again));
    CHECK(files != tdm__row_files_hash(other_range));
    CHECK(tdm__row_files_hash(small) == 0);
    put(large_path, HEADER, "\1");
    tdm_dataset *changed = open_rows(large_path);
    CHECK(files != tdm__row_files_hash(changed));
    char copy[256];
    strcpy(copy, scratch_path("copy.npy"));
    write_array(copy, "<f4", rows_that_stay(4), "", 0);
    make_old(copy);
    tdm_dataset *other = open_rows(copy);
    CHECK(files != tdm__row_files_hash(other));
    tdm_dataset *const all[] = {dataset, again, small, other_range, changed, other};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) tdm__dataset_close(all[i]);
}

TEST_MAIN(RUN(types); RUN(the_size_decides); RUN(parts_of_the_data); RUN(filled); RUN(inputs_and_targets);
          RUN(more_than_4_GiB); RUN(cut_short); RUN(written_to); RUN(replaced); RUN(numbers_that_are_looked_up);
          RUN(every_byte_that_is_used); RUN(a_part_reads_its_share); RUN(who_has_the_same_file);)
