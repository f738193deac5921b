/* What ranks compare of their data before the first step: of samples in memory everything, of pictures the names, labels
 * and sizes of the files. */
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/data/read/row_file.h"
#include "runtime/image/codec.h"
#include "tests/data/support.h"

typedef struct content {
    char text[TDM_HASH_TEXT];
} content;

static content content_of(const tdm_data_spec *spec, const tdm_data_wanted *wanted) {
    tdm_dataset *dataset = NULL;
    content c = {"not opened"};
    CHECK_OK(tdm__dataset_open(&dataset, tdm_host_default(), spec, wanted));
    uint64_t of_files = 0;
    if (dataset != NULL) CHECK_OK(tdm__row_files_add(dataset, 0, 1, &of_files));
    if (dataset != NULL) CHECK_OK(tdm__dataset_hash_content(dataset, of_files, c.text));
    tdm__dataset_close(dataset);
    return c;
}

static bool are_same(content a, content b) {
    return strcmp(a.text, b.text) == 0;
}

/* ---- arrays ---- */

enum { SAMPLES = 40, WIDTH = 3, HEADER = 10 + 118 };
static char x_path[256], y_path[256];

/* An .npy file; its elements begin at HEADER. */
static void write_array(const char *path, const char *type, const char *dims, const void *data, size_t bytes) {
    static unsigned char file[HEADER + SAMPLES * WIDTH * 8];
    memcpy(file, "\x93NUMPY\x01\x00\x76\x00", 10);
    memset(file + 10, ' ', HEADER - 10);
    const int length = snprintf((char *)file + 10, HEADER - 10,
                                "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", type, dims);
    file[10 + length] = ' ';
    memcpy(file + HEADER, data, bytes);
    write_file(path, file, HEADER + bytes);
}

static float x[SAMPLES * WIDTH];
static int64_t y[SAMPLES];

static void write_arrays(void) {
    write_array(x_path, "<f4", "40, 3", x, sizeof(x));
    write_array(y_path, "<i8", "40,", y, sizeof(y));
}

static void make_arrays(void) {
    strcpy(x_path, scratch_path("x.npy"));
    strcpy(y_path, scratch_path("y.npy"));
    for (int i = 0; i < SAMPLES * WIDTH; i++) x[i] = (float)i * 0.25f;
    for (int i = 0; i < SAMPLES; i++) y[i] = i % 4;
    write_arrays();
}

/* What is found if one number of sample `row`, and then if its label is another. */
static void change(const tdm_data_spec *spec, int row, bool is_found) {
    static const int64_t shape[] = {WIDTH};
    const tdm_data_wanted wanted = wanted_classes(1, shape, 4);
    const content before = content_of(spec, &wanted);
    float *number = &x[row * WIDTH + row % WIDTH];
    *number += 0.125f;
    write_arrays();
    CHECK(are_same(before, content_of(spec, &wanted)) != is_found);
    *number -= 0.125f;
    y[row] = (y[row] + 1) % 4;
    write_arrays();
    CHECK(are_same(before, content_of(spec, &wanted)) != is_found);
    y[row] = (y[row] + 3) % 4;
    write_arrays();
    CHECK(are_same(before, content_of(spec, &wanted)));
}

TEST(every_number_and_label) {
    make_arrays();
    const tdm_data_spec all = {.format = TDM_DATA_NPY, .x = x_path, .y = y_path};
    for (int row = 0; row < SAMPLES; row++) change(&all, row, true);
}

/* Only what is read counts. */
TEST(of_a_view) {
    make_arrays();
    tdm_data_spec spec = {.format = TDM_DATA_NPY, .x = x_path, .y = y_path};
    spec.range = (tdm_ints){.count = 2, .item = {10, 20}};
    for (int row = 0; row < SAMPLES; row += 3) change(&spec, row, row >= 10 && row < 20);
}

/* ---- tables ---- */

static content of_table(const char *text) {
    static char path[256];
    const tdm_data_wanted any = {.ignore_index = INT64_MIN};
    strcpy(path, scratch_path("t.csv"));
    write_file(path, text, strlen(text));
    const tdm_data_spec spec = {.format = TDM_DATA_CSV, .path = path, .seed = TDM_INT_NULL};
    return content_of(&spec, &any);
}

TEST(cells_and_names) {
    const content plain = of_table("a,b,kind\n1,2,cat\n3,4,dog\n5,6,cat\n");
    CHECK(are_same(plain, of_table("a;b;kind\r\n1;2;\"cat\"\r\n3.0;4;dog\r\n5;6e0;cat\r\n")));
    CHECK(!are_same(plain, of_table("a,b,kind\n1,2,cat\n3,4,dog\n5,7,cat\n")));
    CHECK(!are_same(plain, of_table("a,b,kind\n1,2,cat\n3,4,dog\n5,6,dog\n")));
    CHECK(!are_same(plain, of_table("a,b,kind\n1,2,cow\n3,4,dog\n5,6,cow\n")));
    CHECK(!are_same(plain, of_table("a,c,kind\n1,2,cat\n3,4,dog\n5,6,cat\n")));
}

/* ---- pictures: nothing decodes them ---- */

static char root[256];

static void put(const char *name, const char *bytes) {
    char path[300];
    snprintf(path, sizeof(path), "%s/%s", root, name);
    write_file(path, bytes, strlen(bytes));
}

static void move(const char *from, const char *to) {
    char a[300], b[300];
    snprintf(a, sizeof(a), "%s/%s", root, from);
    snprintf(b, sizeof(b), "%s/%s", root, to);
    CHECK_INT(rename(a, b), 0);
}

static content of_pictures(void) {
    static const int64_t shape[] = {3, 8, 8};
    const tdm_data_wanted wanted = wanted_classes(3, shape, 2);
    const tdm_data_spec spec = {.format = TDM_DATA_IMAGE_FOLDER, .path = root, .seed = TDM_INT_NULL};
    return content_of(&spec, &wanted);
}

static void make_pictures(void) {
    snprintf(root, sizeof(root), "%s", scratch_path("pictures"));
    CHECK(mkdir(root, 0700) == 0);
    for (int c = 0; c < 2; c++) {
        char path[300];
        snprintf(path, sizeof(path), "%s/%c", root, 'a' + c);
        CHECK(mkdir(path, 0700) == 0);
    }
    for (int i = 0; i < SAMPLES; i++) {
        char name[32];
        snprintf(name, sizeof(name), "%c/%02d.png", 'a' + i % 2, i);
        put(name, "1234");
    }
}

TEST(names_labels_and_sizes) {
    const tdm_image_ops *codec;
    if (tdm__codec_open(&codec, tdm_host_default(), NULL) != TDM_OK) SKIP_TEST("the module image is not there");
    make_pictures();
    const content plain = of_pictures();
    put("a/02.png", "12345");
    CHECK(!are_same(plain, of_pictures()));
    put("a/02.png", "4321"); /* its content is not read */
    CHECK(are_same(plain, of_pictures()));
    move("a/02.png", "a/03.png");
    CHECK(!are_same(plain, of_pictures()));
    move("a/03.png", "b/02.png");
    CHECK(!are_same(plain, of_pictures()));
    move("b/02.png", "a/02.png");
    CHECK(are_same(plain, of_pictures()));
}

TEST_MAIN(RUN(every_number_and_label); RUN(of_a_view); RUN(cells_and_names); RUN(names_labels_and_sizes);)
