/* NumPy's files: every type that is read, and headers that lie. */
#include "tests/data/support.h"

static const int64_t shape[] = {2, 3};
static char x_path[256], y_path[256];
static unsigned char file[1 << 17];

/* A file of `version` with this header text and `count` bytes behind it; its length. */
static size_t build(int version, const char *header, const void *data, size_t count) {
    size_t length = strlen(header), at = 8;
    memcpy(file, "\x93NUMPY", 6);
    file[6] = (unsigned char)version;
    file[7] = 0;
    for (int i = 0; i < (version == 1 ? 2 : 4); i++) file[at++] = (unsigned char)(length >> 8 * i);
    memcpy(file + at, header, length);
    memcpy(file + at + length, data, count);
    return at + length + count;
}

static size_t build_array(const char *type, const char *dims, const void *data, size_t count) {
    char header[200];
    snprintf(header, sizeof(header), "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", type, dims);
    return build(1, header, data, count);
}

static void write_x(void) {
    float x[24];
    for (int i = 0; i < 24; i++) x[i] = (float)i * 0.5f - 3.0f;
    write_file(x_path, file, build_array("<f4", "4, 2, 3", x, sizeof(x)));
}

static void write_y(void) {
    int64_t y[] = {3, 0, 2, 1};
    write_file(y_path, file, build_array("<i8", "4,", y, sizeof(y)));
}

static void set_up(void) {
    strcpy(x_path, scratch_path("x.npy"));
    strcpy(y_path, scratch_path("y.npy"));
    write_x();
    write_y();
}

static tdm_data_spec spec_now(void) {
    return (tdm_data_spec){.format = TDM_DATA_NPY, .x = x_path, .y = y_path};
}

static tdm_data_wanted wanted_values(int64_t width) {
    tdm_data_wanted wanted = wanted_classes(2, shape, 0);
    wanted.target_kind = TDM_TARGET_VALUES;
    wanted.target_width = width;
    return wanted;
}

static tdm_status open_now(void) {
    tdm_data_spec spec = spec_now();
    tdm_data_wanted wanted = wanted_classes(2, shape, 4);
    return try_open(&spec, &wanted);
}

TEST(x_types) {
    set_up();
    float f4[24];
    double f8[24];
    unsigned char u1[24];
    for (int i = 0; i < 24; i++) {
        u1[i] = (unsigned char)(10 * i);
        f8[i] = 1.0 / (i + 3);
        f4[i] = (float)f8[i];
    }
    const struct {
        const char *type;
        const void *data;
        size_t bytes;
    } cases[] = {{"<f4", f4, sizeof(f4)}, {"<f8", f8, sizeof(f8)}, {"|u1", u1, sizeof(u1)}};
    for (size_t c = 0; c < 3; c++) {
        write_file(x_path, file, build_array(cases[c].type, "4, 2, 3", cases[c].data, cases[c].bytes));
        tdm_data_spec spec = spec_now();
        tdm_data_wanted wanted = wanted_classes(2, shape, 4);
        tdm_dataset *dataset;
        REQUIRE_OK(tdm__dataset_open(&dataset, tdm_host_default(), &spec, &wanted));
        CHECK_INT(dataset->count, 4);
        CHECK_INT(dataset->x_is_bytes, c == 2);
        CHECK_INT(dataset->resident_bytes, 24 * (c == 2 ? 1 : sizeof(float)));
        float x[6];
        int64_t label = -1;
        REQUIRE_OK(tdm__dataset_read(dataset, 3, NULL, &label));
        CHECK_INT(label, 1);
        REQUIRE_OK(tdm__dataset_read(dataset, 2, x, &label));
        CHECK_INT(label, 2);
        CHECK(memcmp(x, c == 2 ? (void *)(u1 + 12) : (void *)(f4 + 12), c == 2 ? 6 : sizeof(x)) == 0);
        tdm__dataset_close(dataset);
    }
    static const char *const refused[] = {"|f4", "|O", "<U4", "=f4", "f4", "", "<f16", "<c8", "<m8", "<i3"};
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        write_file(x_path, file, build_array(refused[i], "4, 2, 3", f4, sizeof(f4)));
        CHECK_STATUS(open_now(), TDM_E_DATA);
    }
}

/* 0x3555 is 0.333251953125, 0x8001 the smallest half below zero. */
TEST(other_types) {
    set_up();
    static const struct {
        const char *type;
        unsigned char first[8], second[8];
        size_t bytes;
        float wanted[2];
    } cases[] = {
        {"<f2", {0x55, 0x35}, {0x01, 0x80}, 2, {0.333251953125f, -0x1p-24f}},
        {">f2", {0x35, 0x55}, {0x7b, 0xff}, 2, {0.333251953125f, 65504.0f}},
        {">f4", {0x3f, 0xc0, 0, 0}, {0xc1, 0x20, 0, 0}, 4, {1.5f, -10.0f}},
        {">f8", {0x3f, 0xd5, 0x55, 0x55, 0x55, 0x55, 0x55, 0x55}, {0x40}, 8, {(float)(1.0 / 3.0), 2.0f}},
        {"|i1", {0xff}, {0x7f}, 1, {-1.0f, 127.0f}},
        {"|b1", {1}, {0}, 1, {1.0f, 0.0f}},
        {">i2", {0x80, 0x00}, {0x01, 0x02}, 2, {-32768.0f, 258.0f}},
        {"<u2", {0xff, 0xff}, {0x01, 0x02}, 2, {65535.0f, 513.0f}},
        {"<i4", {0x01, 0, 0, 0x01}, {0xff, 0xff, 0xff, 0xff}, 4, {16777216.0f, -1.0f}}, /* 2^24 + 1: ties to even */
        {"<u8", {0, 0, 0, 0, 0, 0, 0, 0x80}, {7}, 8, {0x1p63f, 7.0f}},
        {">i8", {0, 0, 0, 0, 0, 0, 0, 9}, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe}, 8, {9.0f, -2.0f}},
    };
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        unsigned char data[24 * 8] = {0};
        memcpy(data, cases[c].first, cases[c].bytes);
        memcpy(data + cases[c].bytes, cases[c].second, cases[c].bytes);
        write_file(x_path, file, build_array(cases[c].type, "4, 2, 3", data, 24 * cases[c].bytes));
        tdm_data_spec spec = spec_now();
        tdm_data_wanted wanted = wanted_classes(2, shape, 4);
        tdm_dataset *dataset;
        REQUIRE_OK(tdm__dataset_open(&dataset, tdm_host_default(), &spec, &wanted));
        CHECK_INT(dataset->x_is_bytes, 0);
        float x[6];
        int64_t label;
        REQUIRE_OK(tdm__dataset_read(dataset, 0, x, &label));
        CHECK(x[0] == cases[c].wanted[0] && x[1] == cases[c].wanted[1] && x[2] == 0.0f);
        tdm__dataset_close(dataset);
    }
}

/* More numbers than are read at once. */
TEST(many_numbers) {
    set_up();
    enum { COUNT = 30000 };
    static unsigned char data[COUNT * 2];
    static float x[COUNT / 4];
    for (int i = 0; i < COUNT; i++) data[2 * i] = (unsigned char)(i >> 8), data[2 * i + 1] = (unsigned char)i;
    write_file(x_path, file, build_array(">u2", "4, 7500", data, sizeof(data)));
    tdm_data_spec spec = spec_now();
    tdm_data_wanted wanted = {.classes = 4, .ignore_index = -100};
    tdm_dataset *dataset;
    REQUIRE_OK(tdm__dataset_open(&dataset, tdm_host_default(), &spec, &wanted));
    int64_t label;
    REQUIRE_OK(tdm__dataset_read(dataset, 3, x, &label));
    for (int i = 0; i < COUNT / 4; i++) CHECK(x[i] == (float)(22500 + i));
    tdm__dataset_close(dataset);
}

TEST(label_types) {
    set_up();
    static const struct {
        const char *type;
        size_t bytes;
    } types[] = {{"|u1", 1}, {"|i1", 1}, {"<u2", 2}, {"<i2", 2}, {"<u4", 4}, {"<i4", 4}, {"<u8", 8},
                 {"<i8", 8}, {">u2", 2}, {">i2", 2}, {">u4", 4}, {">i4", 4}, {">u8", 8}, {">i8", 8}};
    for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
        const size_t low = types[t].type[0] == '>' ? types[t].bytes - 1 : 0;
        bool is_signed = types[t].type[1] == 'i';
        unsigned char data[32] = {0};
        for (size_t i = 0; i < 4; i++) data[i * types[t].bytes + low] = (unsigned char)(3 - i);
        if (is_signed) memset(data + types[t].bytes, 0xff, types[t].bytes); /* sample 1: -1, the ignored one */
        write_file(y_path, file, build_array(types[t].type, "4,", data, 4 * types[t].bytes));
        tdm_data_spec spec = spec_now();
        tdm_data_wanted wanted = wanted_classes(2, shape, 4);
        wanted.ignore_index = -1;
        tdm_dataset *dataset;
        REQUIRE_OK(tdm__dataset_open(&dataset, tdm_host_default(), &spec, &wanted));
        CHECK_INT(dataset->has_ignored, is_signed);
        for (int64_t i = 0; i < 4; i++) {
            float x[6];
            int64_t label;
            REQUIRE_OK(tdm__dataset_read(dataset, i, x, &label));
            CHECK_INT(label, i == 1 && is_signed ? -1 : 3 - i);
        }
        tdm__dataset_close(dataset);
        wanted.ignore_index = -100;
        CHECK_STATUS(try_open(&spec, &wanted), is_signed ? TDM_E_DATA : TDM_OK);
    }
    uint64_t huge[4] = {0, UINT64_MAX - 99, 0, 0}; /* -100 if it were signed */
    write_file(y_path, file, build_array("<u8", "4,", huge, sizeof(huge)));
    CHECK_STATUS(open_now(), TDM_E_DATA);
    int64_t large[4] = {0, 0, 4, 0};
    write_file(y_path, file, build_array("<i8", "4,", large, sizeof(large)));
    CHECK_STATUS(open_now(), TDM_E_DATA);
    CHECK_HAS(tdm_error_message(), "label of sample 2 must be 0 to 3 (the model has 4 outputs), found 4");
    write_file(y_path, file, build_array("<i8", "2, 2", large, sizeof(large)));
    CHECK_STATUS(open_now(), TDM_E_DATA);
    write_file(y_path, file, build_array("<i8", "3,", large, 24));
    CHECK_STATUS(open_now(), TDM_E_DATA);
    CHECK_HAS(tdm_error_message(), "holds 4 samples");
    write_file(y_path, file, build_array("<f8", "4,", large, sizeof(large)));
    CHECK_STATUS(open_now(), TDM_E_DATA);
    CHECK_HAS(tdm_error_message(), "class labels");
    tdm_data_spec spec = spec_now();
    tdm_data_wanted wanted = wanted_classes(2, shape, 4);
    wanted.loss_of_values = "soft_cross_entropy";
    CHECK_STATUS(try_open(&spec, &wanted), TDM_E_DATA);
    CHECK_HAS(tdm_error_message(), "found <f8; save labels as integers, or, if these are the probabilities of the "
                                   "classes, use the loss soft_cross_entropy");
}

TEST(float_targets) {
    set_up();
    double y[8];
    for (int i = 0; i < 8; i++) y[i] = i / 3.0;
    write_file(y_path, file, build_array("<f8", "4, 2", y, sizeof(y)));
    tdm_data_spec spec = spec_now();
    tdm_data_wanted wanted = wanted_values(2);
    tdm_dataset *dataset;
    REQUIRE_OK(tdm__dataset_open(&dataset, tdm_host_default(), &spec, &wanted));
    CHECK_INT(dataset->target_width, 2);
    float x[6], target[2];
    REQUIRE_OK(tdm__dataset_read(dataset, 3, x, target));
    CHECK(x[5] == 8.5f && target[0] == (float)(6 / 3.0) && target[1] == (float)(7 / 3.0));
    tdm__dataset_close(dataset);
    wanted = wanted_values(3);
    CHECK_STATUS(try_open(&spec, &wanted), TDM_E_DATA);
    CHECK_HAS(tdm_error_message(), "the model has 3 outputs per sample, found 2 targets");
    write_y();
    wanted = wanted_values(1);
    REQUIRE_OK(tdm__dataset_open(&dataset, tdm_host_default(), &spec, &wanted));
    REQUIRE_OK(tdm__dataset_read(dataset, 0, x, target)); /* integers are targets, too */
    CHECK(target[0] == 3.0f);
    tdm__dataset_close(dataset);
    const unsigned char bytes[] = {3, 0, 200, 1};
    write_file(y_path, file, build_array("|u1", "4,", bytes, sizeof(bytes)));
    REQUIRE_OK(tdm__dataset_open(&dataset, tdm_host_default(), &spec, &wanted));
    REQUIRE_OK(tdm__dataset_read(dataset, 2, x, target));
    CHECK(target[0] == 200.0f);
    tdm__dataset_close(dataset);
}

TEST(every_length) {
    set_up();
    float x[24] = {0};
    for (int version = 1; version <= 3; version++) {
        size_t length = build(version, "{'descr':'<f4','fortran_order':False,'shape':(4,2,3)}\n", x, sizeof(x));
        file[length] = 0;
        for (size_t cut = 0; cut <= length + 1; cut++) {
            write_file(x_path, file, cut);
            CHECK_STATUS(open_now(), cut == length ? TDM_OK : TDM_E_DATA);
        }
        CHECK_HAS(tdm_error_message(), "expected");
    }
    write_x();
    int64_t y[4] = {0};
    size_t length = build_array("<i8", "4,", y, sizeof(y));
    file[length] = 0;
    for (size_t cut = 0; cut <= length + 1; cut++) {
        write_file(y_path, file, cut);
        CHECK_STATUS(open_now(), cut == length ? TDM_OK : TDM_E_DATA);
    }
}

TEST(good_headers) {
    set_up();
    float x[24] = {0};
    static const char *const good[] = {
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 2, 3), }             \n",
        "{\"shape\":(4,2,3,),\"fortran_order\":False,\"descr\":\"<f4\"}",
        "  {'shape' : ( 4 , 2 , 3 ) , 'descr' : '<f4' , 'fortran_order' : False , } \n\n",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 6)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 1, 2, 1, 3)}",
    };
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        write_file(x_path, file, build(1, good[i], x, sizeof(x)));
        CHECK_OK(open_now());
    }
}

TEST(bad_headers) {
    set_up();
    float x[24] = {0};
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"", "expected '{'"},
        {"{", "expected a key"},
        {"{}", "but one is missing"},
        {"{'descr': '<f4', 'shape': (4, 2, 3)}", "but one is missing"},
        {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (4, 2, 3)}", "duplicate key 'descr'"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4, 2, 3), 'more': 1}", "unknown key 'more'"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4, 2, 3)} x", "nothing after"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4, 2, 3)", "',' or '}'"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4, 2, 3", "',' or ')'"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4, 2, -3)}", "a whole number"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4, 2, 3.0)}", "',' or ')'"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': [4, 2, 3]}", "'(' of the shape"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (24)}", "',' in a shape of one dimension"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': ()}", "expected"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4, 0, 3)}", "is 0"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4, 2, 4)}", "expected"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4,2,3,1,1,1,1,1,1)}", "at most 8 dimensions"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4,2,1,1,1,1,1,3)}",
         "dimensions [n, ...], at most 7, found 8"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4, 2, 18446744073709551616)}", "below 2^64"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296, 4)}", "overflow"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4, 4611686018427387904)}", "overflow"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4, 1152921504606846975)}", "overflow"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 4611686018427387900)}", "overflow"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4, 2000000000)}", "expected"},
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (4, 2, 3)}", "ascontiguousarray"},
        {"{'descr': '<f4', 'fortran_order': 0, 'shape': (4, 2, 3)}", "True or False"},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (4, 2, 3)}", "a simple type"},
        {"{'descr': '<f4\\'', 'fortran_order': False, 'shape': (4, 2, 3)}", "a simple type"},
        {"{'descr': '<f0', 'fortran_order': False, 'shape': (4, 2, 3)}", "not a plain number"},
        {"{descr: '<f4', 'fortran_order': False, 'shape': (4, 2, 3)}", "expected a key"},
        {"{'descr' '<f4', 'fortran_order': False, 'shape': (4, 2, 3)}", "':'"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        write_file(x_path, file, build(1, bad[i].text, x, sizeof(x)));
        CHECK_STATUS(open_now(), TDM_E_DATA);
        CHECK_HAS(tdm_error_message(), bad[i].says);
        CHECK_HAS(tdm_error_message(), x_path);
    }
    size_t length = build_array("<f4", "", x, sizeof(x[0]));
    write_file(x_path, file, length);
    CHECK_STATUS(open_now(), TDM_E_DATA);
    CHECK_HAS(tdm_error_message(), "single number");
    length = build_array("<f4", "4, 2, 3", x, sizeof(x));
    file[0] = 'x';
    write_file(x_path, file, length);
    CHECK_STATUS(open_now(), TDM_E_DATA);
    CHECK_HAS(tdm_error_message(), "not a npy file");
    length = build(4, "{}", x, sizeof(x));
    write_file(x_path, file, length);
    CHECK_STATUS(open_now(), TDM_E_DATA);
    CHECK_HAS(tdm_error_message(), "found 4.0");
}

TEST(long_header) {
    set_up();
    float x[24] = {0};
    static char text[70000];
    memset(text, ' ', sizeof(text));
    const char *literal = "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 2, 3)}";
    memcpy(text, literal, strlen(literal));
    for (int extra = 0; extra < 2; extra++) {
        text[65536 + extra] = '\0';
        write_file(x_path, file, build(2, text, x, sizeof(x)));
        CHECK_STATUS(open_now(), extra == 0 ? TDM_OK : TDM_E_DATA);
        text[65536 + extra] = ' ';
    }
    CHECK_HAS(tdm_error_message(), "at most 65536");
}

/* Whatever one byte of the header is changed to, the answer is data of the same size or a refusal. */
TEST(every_byte) {
    set_up();
    float x[24] = {0};
    size_t length = build_array("<f4", "4, 2, 3", x, sizeof(x));
    static const unsigned char values[] = {0,   1,   0x7f, 0xff, ' ', ',', '(', ')',
                                           '{', '}', '\'', '"',  '0', '9', '8', 'u'};
    for (size_t at = 0; at < length - sizeof(x); at++) {
        unsigned char before = file[at];
        for (size_t v = 0; v < sizeof(values); v++) {
            file[at] = values[v];
            write_file(x_path, file, length);
            tdm_status status = open_now();
            CHECK(status == TDM_OK || status == TDM_E_DATA);
        }
        file[at] = before;
    }
}

/* To predict for: what is no key of the YAML. */
/* ---- a file for each input ---- */

static char bytes_path[256];

static tdm_data_wanted wanted_inputs(void) {
    static const int64_t row[] = {8};
    tdm_data_wanted wanted = wanted_classes(1, row, 4);
    wanted.inputs = (tdm_data_inputs){2,
                                      {{.name = "picture", .shape = {3, {1, 1, 2}}, .first = 0, .count = 2},
                                       {.name = "facts", .shape = {2, {2, 3}}, .first = 2, .count = 6}}};
    return wanted;
}

static tdm_data_spec spec_of_inputs(void) {
    return (tdm_data_spec){
        .format = TDM_DATA_NPY, .inputs = {4, {"facts", x_path, "picture", bytes_path}}, .y = y_path};
}

static void write_bytes(const char *dims) {
    const unsigned char bytes[] = {0, 51, 255, 3, 7, 102, 1, 2};
    strcpy(bytes_path, scratch_path("bytes.npy"));
    write_file(bytes_path, file, build_array("|u1", dims, bytes, sizeof(bytes)));
}

TEST(a_file_for_each_input) {
    set_up();
    write_bytes("4, 1, 2");
    for (int to_float = 0; to_float < 2; to_float++) {
        const tdm_transform_spec transform = {.to_float = to_float};
        tdm_data_spec spec = spec_of_inputs();
        tdm_data_wanted wanted = wanted_inputs();
        tdm_dataset *dataset = NULL;
        float x[8];
        int64_t label;
        wanted.transform = &transform;
        spec.range = (tdm_ints){2, {1, 4}};
        REQUIRE_OK(tdm__dataset_open(&dataset, tdm_host_default(), &spec, &wanted));
        CHECK_INT(dataset->count, 3);
        CHECK(!dataset->x_is_bytes);
        CHECK_INT(tdm__dataset_x_bytes(dataset), sizeof(x));
        CHECK_OK(tdm__dataset_read(dataset, 1, x, &label)); /* sample 2 of the files */
        CHECK_INT(label, 2);
        CHECK(x[0] == (to_float ? 7.0f / 255.0f : 7.0f) && x[1] == (to_float ? 102.0f / 255.0f : 102.0f));
        for (int i = 0; i < 6; i++) CHECK(x[2 + i] == (float)(12 + i) * 0.5f - 3.0f);
        tdm__dataset_close(dataset);
    }
}

static void inputs_refused(const tdm_data_spec *spec, const tdm_data_wanted *wanted, const char *part) {
    CHECK_STATUS(try_open(spec, wanted), TDM_E_DATA);
    CHECK_HAS(tdm_error_message(), part);
}

TEST(files_that_are_not_the_inputs) {
    set_up();
    write_bytes("4, 1, 2");
    tdm_data_wanted wanted = wanted_inputs();
    tdm_data_spec spec = spec_of_inputs();
    const tdm_data_index whole = {.first = 0, .count = 2, .below = 103, .layer = "embedding 'e'"};
    wanted.index = &whole, wanted.index_count = 1;
    inputs_refused(&spec, &wanted, "number 0 of sample 1 is 255, and embedding 'e' takes whole numbers from 0 to 102");
    wanted.index_count = 0;
    spec.inputs.item[0] = "fact";
    inputs_refused(&spec, &wanted, "the model has no input 'fact'; its inputs are picture, facts");
    spec = spec_of_inputs();
    spec.inputs.count = 2;
    inputs_refused(&spec, &wanted, "there is no file for the model's input 'picture'");
    spec = spec_of_inputs();
    spec.inputs.item[3] = x_path;
    inputs_refused(&spec, &wanted, "the model needs samples of shape [1, 1, 2] (model.inputs.picture), found [2, 3]");
    write_bytes("2, 4");
    spec = spec_of_inputs();
    inputs_refused(&spec, &wanted, "picture");
    write_bytes("8,");
    wanted.inputs.item[0].shape = (tdm_shape){1, {1}};
    inputs_refused(&spec, &wanted, "holds 8 samples, facts");
    wanted.inputs.count = 0;
    inputs_refused(&spec, &wanted, "the model's input has no name (model.input); give its array alone");
    spec = spec_now(); /* one file, whose samples are not rows of both */
    wanted = wanted_inputs();
    inputs_refused(&spec, &wanted, "the model has 2 inputs (picture, facts), and a sample must be one row of their 8");
    spec.x = NULL;
    inputs_refused(&spec, &wanted, "the path of the file is missing");
}

TEST(without_targets) {
    set_up();
    tdm_data_spec spec = {.format = TDM_DATA_NPY, .x = x_path, .without_targets = true};
    tdm_data_wanted wanted = wanted_classes(2, shape, 4), values = wanted_values(3);
    tdm_dataset *dataset;
    float x[6], target[3] = {1, 1, 1};
    int64_t label = -1;
    REQUIRE_OK(tdm__dataset_open(&dataset, tdm_host_default(), &spec, &wanted));
    CHECK_INT(dataset->count, 4);
    REQUIRE_OK(tdm__dataset_read(dataset, 3, x, &label));
    CHECK_INT(label, 0);
    CHECK(x[0] == 6.0f && x[5] == 8.5f);
    tdm__dataset_close(dataset);
    REQUIRE_OK(tdm__dataset_open(&dataset, tdm_host_default(), &spec, &values));
    CHECK_INT(dataset->target_width, 3);
    REQUIRE_OK(tdm__dataset_read(dataset, 2, x, target));
    CHECK(x[0] == 3.0f && target[0] == 0.0f && target[2] == 0.0f);
    tdm__dataset_close(dataset);
    spec.y = y_path; /* given, they are read */
    REQUIRE_OK(tdm__dataset_open(&dataset, tdm_host_default(), &spec, &wanted));
    REQUIRE_OK(tdm__dataset_read(dataset, 0, x, &label));
    CHECK_INT(label, 3);
    tdm__dataset_close(dataset);
}

TEST_MAIN(RUN(x_types); RUN(other_types); RUN(many_numbers); RUN(label_types); RUN(float_targets); RUN(every_length);
          RUN(good_headers); RUN(bad_headers); RUN(long_header); RUN(every_byte); RUN(a_file_for_each_input);
          RUN(files_that_are_not_the_inputs); RUN(without_targets);)
