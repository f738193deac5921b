/* Tensor files: round trips, files of other writers, and hostile ones. */
#include <float.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/ckpt/ckpt_support.h"

static char folder[256], path[512];

static tdm_status open_path(tdm_tensor_file **file) {
    return tdm__tensor_file_open(file, tdm_host_default(), NULL, path);
}

/* Of every float, in any piece of a tensor; what others wrote is read as it is. */
TEST(not_finite) {
    enum { MANY = 100 * 1000 };
    static const struct {
        const char *dtype;
        size_t bytes;
        uint64_t infinity;
    } forms[] = {
        {"F16", 2, 0x7C00}, {"BF16", 2, 0x7F80}, {"F32", 4, 0x7F800000}, {"F64", 8, UINT64_C(0x7FF0000000000000)}};
    static char data[8 * MANY], got[8 * MANY];
    snprintf(path, sizeof(path), "%s/infinite", folder);
    for (int i = 0; i < 4; i++) {
        size_t bytes = forms[i].bytes;
        tdm_tensor tensor = {.name = "t", .dtype = TDM_ST_OTHER, .ndim = 1, .dim = {MANY}, .bytes = bytes * MANY};
        tdm_tensor_file *file;
        tdm_bad_number bad;
        tdm_hash128 hash;
        memset(data, 0, sizeof(data));
        strcpy(tensor.dtype_name, forms[i].dtype);
        tensor.data = data;
        REQUIRE_OK(tdm__tensor_file_write(tdm_host_default(), &tdm__file_system, NULL, path, &tensor, 1, NULL, NULL,
                                          NULL, NULL));
        support_patch(path, "t", &forms[i].infinity, bytes);
        REQUIRE_OK(open_path(&file));
        CHECK_OK(tdm__tensor_file_hash(file, NULL, &hash, &bad));
        CHECK(bad.tensor == tdm__tensor_file_get(file, 0) && bad.at == 0 && !bad.is_negative);
        CHECK_OK(tdm__tensor_file_read(file, tdm__tensor_file_get(file, 0), got));
        CHECK(memcmp(got, &forms[i].infinity, bytes) == 0);
        tdm__tensor_file_close(file);
        REQUIRE(unlink(path) == 0);

        memcpy(data + bytes * (MANY - 1), &forms[i].infinity, bytes);
        CHECK_STATUS(tdm__tensor_file_write(tdm_host_default(), &tdm__file_system, NULL, path, &tensor, 1, NULL, NULL,
                                            NULL, NULL),
                     TDM_E_NUMERIC);
        CHECK_HAS(tdm_error_message(), "tensor 't' is not finite (element 99999 is infinite or NaN)");
        CHECK(!support_exists(folder, "infinite"));
    }
}

TEST(round_trip) {
    static const char *const metadata[] = {"format", "pt", "quote", "\"\\\n\xE4\xB8\xAD", NULL};
    float f[6] = {1, -2, 3.5f, -0.0f, FLT_MAX, 1e-40f};
    double d[2] = {1.0 / 3, -2};
    int64_t i64 = -123456789012;
    int32_t i32[3] = {1, 2, -3};
    uint8_t u8[5] = {0, 1, 2, 254, 255}, line[64] = {7, 8};
    uint16_t bf16[1] = {0x3F80};
    const tdm_tensor tensors[] = {
        {.name = "z.u8", .dtype = TDM_ST_U8, .ndim = 1, .dim = {5}, .bytes = 5, .data = u8},
        {.name = "b.weight", .dtype = TDM_ST_F32, .ndim = 2, .dim = {2, 3}, .bytes = 24, .data = f},
        {.name = "bf", .dtype = TDM_ST_OTHER, .dtype_name = "BF16", .ndim = 1, .dim = {1}, .bytes = 2, .data = bf16},
        {.name = "n", .dtype = TDM_ST_I64, .ndim = 0, .bytes = 8, .data = &i64},
        {.name = "empty", .dtype = TDM_ST_F32, .ndim = 2, .dim = {0, 7}, .bytes = 0, .data = NULL},
        {.name = "a\"\\\xE5\xB1\x82", .dtype = TDM_ST_I32, .ndim = 1, .dim = {3}, .bytes = 12, .data = i32},
        {.name = "d", .dtype = TDM_ST_F64, .ndim = 1, .dim = {2}, .bytes = 16, .data = d},
        {.name = "line", .dtype = TDM_ST_U8, .ndim = 1, .dim = {64}, .bytes = 64, .data = line},
    };
    static const char *const in_file[] = {"empty", "line", "d", "n", "a\"\\\xE5\xB1\x82", "b.weight", "bf", "z.u8"};
    enum { COUNT = sizeof(tensors) / sizeof(tensors[0]) };
    tdm_hash128 hashes[COUNT], file_hash;
    uint64_t file_bytes;
    tdm_tensor_file *file;
    snprintf(path, sizeof(path), "%s/round", folder);
    REQUIRE_OK(tdm__tensor_file_write(tdm_host_default(), &tdm__file_system, NULL, path, tensors, COUNT, metadata,
                                      hashes, &file_hash, &file_bytes));
    CHECK_STATUS(tdm__tensor_file_write(tdm_host_default(), &tdm__file_system, NULL, path, tensors, COUNT, NULL, NULL,
                                        NULL, NULL),
                 TDM_E_IO);
    size_t size;
    char *bytes = support_read(path, &size);
    CHECK_INT(size, file_bytes);
    CHECK(tdm__hash_equal(tdm__hash(bytes, size), file_hash));
    static const char metadata_text[] =
        "{\"__metadata__\":{\"format\":\"pt\",\"quote\":\"\\\"\\\\\\n\xE4\xB8\xAD\"},\"empty\":{";
    CHECK(memcmp(bytes + 8, metadata_text, sizeof(metadata_text) - 1) == 0);
    free(bytes);

    REQUIRE_OK(open_path(&file));
    CHECK_INT(tdm__tensor_file_count(file), COUNT);
    CHECK_INT((file->header_bytes + 8) % 64, 0);
    CHECK(!file->is_tandems);
    CHECK(tdm__tensor_file_find(file, "absent") == NULL);
    CHECK(tdm__tensor_file_get(file, COUNT) == NULL && tdm__tensor_file_get(file, -1) == NULL);
    for (int i = 0; i < COUNT; i++) {
        char got[64];
        const tdm_tensor *want = &tensors[i], *tensor = tdm__tensor_file_find(file, want->name);
        CHECK_TEXT(tdm__tensor_file_get(file, i)->name, in_file[i]);
        REQUIRE(tensor != NULL);
        CHECK_INT(tensor->dtype, want->dtype);
        CHECK_INT(tensor->ndim, want->ndim);
        for (int k = 0; k < want->ndim; k++) CHECK_INT(tensor->dim[k], want->dim[k]);
        REQUIRE(tensor->bytes == want->bytes);
        CHECK_OK(tdm__tensor_file_read(file, tensor, got));
        CHECK(want->bytes == 0 || memcmp(got, want->data, want->bytes) == 0);
        CHECK(tdm__hash_equal(hashes[i], tdm__hash(want->data, want->bytes)));
    }
    CHECK_TEXT(tdm__tensor_file_find(file, "bf")->dtype_name, "BF16");
    tdm__tensor_file_close(file);

    /* No tensors at all, and no metadata. */
    snprintf(path, sizeof(path), "%s/none", folder);
    REQUIRE_OK(
        tdm__tensor_file_write(tdm_host_default(), &tdm__file_system, NULL, path, NULL, 0, NULL, NULL, NULL, NULL));
    REQUIRE_OK(open_path(&file));
    CHECK_INT(tdm__tensor_file_count(file), 0);
    CHECK(tdm__tensor_file_find(file, "x") == NULL && !file->is_tandems);
    tdm__tensor_file_close(file);
}

TEST(writer_refuses_what_no_reader_takes) {
    float x = 1;
    const tdm_tensor good = {.name = "a", .dtype = TDM_ST_F32, .ndim = 1, .dim = {1}, .bytes = 4, .data = &x};
    tdm_tensor cases[8];
    for (int i = 0; i < 8; i++) cases[i] = good;
    cases[0].bytes = 8;
    cases[1].dim[0] = -1;
    cases[2].name = "";
    cases[3].name = "\xFF";
    cases[4].name = "__metadata__";
    cases[5].dtype = TDM_ST_OTHER;
    cases[6].ndim = 17;
    cases[7].ndim = 2;
    cases[7].dim[0] = cases[7].dim[1] = (int64_t)1 << 40;
    snprintf(path, sizeof(path), "%s/refused", folder);
    for (int i = 0; i < 8; i++) {
        CHECK_STATUS(tdm__tensor_file_write(tdm_host_default(), &tdm__file_system, NULL, path, &cases[i], 1, NULL, NULL,
                                            NULL, NULL),
                     TDM_E_INTERNAL);
    }
    const tdm_tensor twice[2] = {good, good};
    CHECK_STATUS(
        tdm__tensor_file_write(tdm_host_default(), &tdm__file_system, NULL, path, twice, 2, NULL, NULL, NULL, NULL),
        TDM_E_INTERNAL);
    CHECK_HAS(tdm_error_message(), "'a'");
    CHECK(!support_exists(folder, "refused"));
}

TEST(reads_files_of_the_python_library) {
    tdm_tensor_file *file;
    float weight[24];
    int64_t batches;
    double mean;
    int32_t classes[2];
    snprintf(path, sizeof(path), "%s/fixtures/torch.safetensors", TDM_TEST_DATA);
    REQUIRE_OK(open_path(&file));
    CHECK_INT(tdm__tensor_file_count(file), 9);
    CHECK(!file->is_tandems); /* and the quotes and letters of its metadata are valid */
    const tdm_tensor *tensor = tdm__tensor_file_find(file, "conv.weight");
    REQUIRE(tensor != NULL && tensor->bytes == sizeof(weight) && tensor->ndim == 4 && tensor->dim[1] == 3);
    CHECK_OK(tdm__tensor_file_read(file, tensor, weight));
    for (int i = 0; i < 24; i++) CHECK(weight[i] == (float)i / 8);
    tensor = tdm__tensor_file_find(file, "bn.num_batches_tracked");
    REQUIRE(tensor != NULL && tensor->dtype == TDM_ST_I64 && tensor->ndim == 0);
    CHECK_OK(tdm__tensor_file_read(file, tensor, &batches));
    CHECK_INT(batches, 123456789012);
    tensor = tdm__tensor_file_find(file, "mean64");
    REQUIRE(tensor != NULL && tensor->dtype == TDM_ST_F64);
    CHECK_OK(tdm__tensor_file_read(file, tensor, &mean));
    CHECK(mean == 1.0 / 3);
    tensor = tdm__tensor_file_find(file, "classes");
    REQUIRE(tensor != NULL && tensor->dtype == TDM_ST_I32);
    CHECK_OK(tdm__tensor_file_read(file, tensor, classes));
    CHECK(classes[0] == 3 && classes[1] == -4);
    tensor = tdm__tensor_file_find(file, "half");
    REQUIRE(tensor != NULL);
    CHECK(tensor->dtype == TDM_ST_OTHER);
    CHECK_TEXT(tensor->dtype_name, "F16");
    CHECK(tdm__tensor_file_find(file, "empty")->bytes == 0);
    CHECK(tdm__tensor_file_find(file, "\xE5\xB1\x82.weight") != NULL);
    tdm__tensor_file_close(file);
}

TEST(module_prefix_is_taken_off) {
    support_host host;
    tdm_ckpt *ckpt;
    float values[2];
    support_host_init(&host);
    snprintf(path, sizeof(path), "%s/fixtures/wrapped.safetensors", TDM_TEST_DATA);
    REQUIRE_OK(tdm__ckpt_open_any(&ckpt, &host.host, path));
    CHECK(tdm__ckpt_state(ckpt) == NULL && tdm__ckpt_optimizer(ckpt) == NULL);
    CHECK_TEXT(tdm__ckpt_path(ckpt), path);
    CHECK_HAS(host.log, "\"module.\" is removed from 2 names");
    const tdm_tensor *tensor = tdm__tensor_file_find(tdm__ckpt_model(ckpt), "b");
    REQUIRE(tensor != NULL);
    CHECK_OK(tdm__tensor_file_read(tdm__ckpt_model(ckpt), tensor, values));
    CHECK(values[0] == 3 && values[1] == 4);
    CHECK(tdm__tensor_file_find(tdm__ckpt_model(ckpt), "a") != NULL);
    tdm__ckpt_close(ckpt);
    CHECK_INT(host.live, 0);

    /* Two names that become one are refused; in tandem's own files "module." is a layer. */
    snprintf(path, sizeof(path), "%s/clash", folder);
    support_tensor_file(path,
                        "{\"module.a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
                        "\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}",
                        2);
    CHECK_STATUS(tdm__ckpt_open_any(&ckpt, &host.host, path), TDM_E_CHECKPOINT);
    CHECK_HAS(tdm_error_message(), "tensor 'a': the name appears twice");
    snprintf(path, sizeof(path), "%s/own", folder);
    support_tensor_file(path,
                        "{\"__metadata__\":{\"tandem.format\":\"1\"},"
                        "\"module.a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}",
                        1);
    REQUIRE_OK(tdm__ckpt_open_any(&ckpt, &host.host, path));
    CHECK(tdm__tensor_file_find(tdm__ckpt_model(ckpt), "module.a") != NULL);
    tdm__ckpt_close(ckpt);
}

#define T(name, dtype, shape, begin, end) \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":[" #begin "," #end "]}"

/* Headers that must be refused, with what the message must say. */
static const struct {
    const char *header;
    size_t data;
    const char *why;
} hostile[] = {
    {"{" T("a", "F32", "[2]", 0, 8) "," T("b", "F32", "[2]", 4, 12) "}", 12, "overlap"},
    {"{" T("a", "F32", "[2]", 0, 8) "," T("b", "F32", "[2]", 0, 8) "}", 8,
     "overlap: tensor 'b' begins at 0, 'a' before it ends at 8"},
    {"{" T("a", "F32", "[1]", 0, 4) "," T("b", "F32", "[1]", 2, 6) "," T("c", "F32", "[1]", 8, 12) "}", 12,
     "overlap: tensor 'b' begins at 2, 'a' before it ends at 4"},
    {"{" T("a", "F32", "[1]", 0, 4) "," T("b", "F32", "[1]", 8, 12) "}", 12,
     "a hole: tensor 'b' begins at 8, 'a' before it ends at 4"},
    {"{" T("a", "F32", "[1]", 4, 8) "}", 8, "a hole: tensor 'a' begins at 4, none before it"},
    {"{" T("a", "F32", "[1]", 0, 4) "}", 7, "end at byte 4 of the data, the file has 7: 3 bytes at its end"},
    {"{" T("a", "F32", "[2]", 0, 8) "}", 4, "tensor 'a': data_offsets [0, 8] reach beyond the 4 bytes of data"},
    {"{}", 5, "5 bytes at its end"},
    {"{" T("a", "F32", "[2]", 0, 4) "}", 4, "tensor 'a': dtype and shape give 8 bytes, data_offsets [0, 4] give 4"},
    {"{" T("a", "F32", "[]", 0, 8) "}", 8, "give 4 bytes"},
    {"{" T("a", "F32", "[1]", 4, 0) "}", 4, "end before they begin"},
    {"{" T("a", "U8", "[1]", 0, 1) "," T("a", "U8", "[1]", 1, 2) "}", 2, "tensor 'a': the name appears twice"},
    {"{" T("a", "U8", "[1]", 0, 1) "," T("\\u0061", "U8", "[1]", 1, 2) "}", 2, "the name appears twice"},
    {"{" T("a", "U8", "[4294967296,4294967296]", 0, 0) "}", 0, "overflows"},
    {"{" T("a", "F64", "[2305843009213693952]", 0, 0) "}", 0, "overflows"},
    {"{" T("a", "U8", "[9223372036854775808]", 0, 0) "}", 0, "beyond 64 bits"},
    {"{" T("a", "U8", "[99999999999999999999]", 0, 0) "}", 0, "more than 19 digits"},
    {"{" T("a", "U8", "[1]", 0, 18446744073709551615) "}", 1, "more than 19 digits"},
    {"{" T("a", "U8", "[1152921504606846976]", 0, 1152921504606846976) "}", 1, "reach beyond the 1 bytes"},
    {"{" T("a", "U8", "[-1]", 0, 1) "}", 1, "tensor 'a': expected a whole number, found '-'"},
    {"{" T("a", "U8", "[1.0]", 0, 1) "}", 1, "found '.'"},
    {"{" T("a", "U8", "[1e0]", 0, 1) "}", 1, "found 'e'"},
    {"{" T("a", "U8", "[01]", 0, 1) "}", 1, "starts with 0"},
    {"{" T("a", "U8", "[true]", 0, 1) "}", 1, "found 't'"},
    {"{" T("a", "U8", "[[1]]", 0, 1) "}", 1, "found '['"},
    {"{" T("a", "U8", "null", 0, 1) "}", 1, "expected a list [...], found 'n'"},
    {"{" T("a", "U8", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", 0, 1) "}", 1, "more than 16 dimensions"},
    {"{" T("a", "F4", "[1]", 0, 1) "}", 1, "not a whole number of bytes"},
    {"{" T("a", "F99", "[1]", 0, 4) "}", 4, "unknown dtype 'F99'"},
    {"{" T("a", "f32", "[1]", 0, 4) "}", 4, "unknown dtype 'f32'"},
    {"{" T("a", "F32F32F32F32F32", "[1]", 0, 4) "}", 4, "longer than 11 bytes"},
    {"{" T("", "U8", "[1]", 0, 1) "}", 1, "without a name"},
    {"{" T("a\\u0000b", "U8", "[1]", 0, 1) "}", 1, "NUL"},
    {"{" T("a\xFF", "U8", "[1]", 0, 1) "}", 1, "not valid UTF-8"},
    {"{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "'dtype' appears twice"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1],\"x\":1}}", 1, "unknown key 'x'"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1]}}", 1, "'data_offsets' is missing"},
    {"{\"a\":{\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "'dtype' is missing"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0]}}", 1, "must have two numbers, has 1"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1,2]}}", 1, "more than two numbers"},
    {"{\"a\":{\"dtype\":{\"b\":{\"c\":{\"d\":1}}}}}", 1, "found '{'"},
    {"{\"a\":[]}", 0, "expected an object {...}, found '['"},
    {"{\"a\":1}", 0, "expected an object"},
    {"{\"__metadata__\":{\"a\":1}}", 0, "expected a string"},
    {"{\"__metadata__\":{\"a\":{\"b\":\"c\"}}}", 0, "expected a string"},
    {"{\"__metadata__\":{\"a\":\"b\",\"a\":\"c\"}}", 0, "__metadata__: key 'a' appears twice"},
    {"{\"__metadata__\":{},\"__metadata__\":{}}", 0, "__metadata__ appears twice"},
    {"{\"__metadata__\":[]}", 0, "expected an object"},
    {"{} x", 0, "expected the end, found 'x'"},
    {"{}{}", 0, "expected the end, found '{'"},
    {"{", 0, "at least 10 bytes, found 9"},
    {"{ ", 0, "the text ends"},
    {"[]", 0, "starts with '{', found byte 0x5b"},
    {" {}", 0, "starts with '{', found byte 0x20"},
    {"", 8, "starts with '{', found byte 0x00 and a length of 0"},
    {"\xEF\xBB\xBF{}", 0, "starts with '{'"},
};

TEST(hostile_headers) {
    snprintf(path, sizeof(path), "%s/hostile", folder);
    for (size_t i = 0; i < sizeof(hostile) / sizeof(hostile[0]); i++) {
        tdm_tensor_file *file;
        support_host host;
        support_host_init(&host);
        support_tensor_file(path, hostile[i].header, hostile[i].data);
        CHECK_STATUS(tdm__tensor_file_open(&file, &host.host, NULL, path), TDM_E_CHECKPOINT);
        CHECK(file == NULL);
        CHECK_INT(host.live, 0);
        CHECK_HAS(tdm_error_message(), hostile[i].why);
        CHECK_HAS(tdm_error_message(), path);
    }
}

TEST(lengths_that_lie) {
    static const struct {
        uint64_t length;
        const char *why;
    } cases[] = {
        {8000001, "at most 8000000 bytes, found a header of 8000001"},
        {8000000, "cut short: its header has 8000000 bytes, but only 24 follow"},
        {25, "has 25 bytes, but only 24 follow"},
        {UINT64_MAX, "a header of 18446744073709551615"},
        {1, "a length of 1"},
    };
    snprintf(path, sizeof(path), "%s/lies", folder);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        tdm_tensor_file *file;
        support_host host;
        char bytes[32] = "01234567{}                      ";
        support_host_init(&host);
        for (int k = 0; k < 8; k++) bytes[k] = (char)(cases[i].length >> (8 * k) & 0xFF);
        support_write(path, bytes, sizeof(bytes));
        CHECK_STATUS(tdm__tensor_file_open(&file, &host.host, NULL, path), TDM_E_CHECKPOINT);
        CHECK_HAS(tdm_error_message(), cases[i].why);
        CHECK(host.peak < 32768);
    }
    for (size_t size = 0; size < 10; size++) {
        tdm_tensor_file *file;
        support_write(path, "\2\0\0\0\0\0\0\0{}", size);
        CHECK_STATUS(open_path(&file), TDM_E_CHECKPOINT);
    }
    support_write(path, "PK\3\4..............", 18);
    tdm_tensor_file *file;
    CHECK_STATUS(open_path(&file), TDM_E_CHECKPOINT);
    CHECK_HAS(tdm_error_message(), "zip archive (a PyTorch .pt?); `tandem ckpt convert` makes");
}

/* '{' and then before, an eight-digit number, after, over and over; the number counts, or is always 0. */
static size_t repeat(char *to, size_t room, const char *before, const char *after, bool counts) {
    size_t used = 1;
    to[0] = '{';
    for (int i = 0;; i++) {
        char item[160];
        int length = snprintf(item, sizeof(item), "%s%08d%s", before, counts ? i : 0, after);
        if (used + (size_t)length + 1 > room) break;
        memcpy(to + used, item, (size_t)length);
        used += (size_t)length;
    }
    return used;
}

/* Long headers, each wrong in its own way, only at the end or everywhere: memory stays small in all of them. */
#define EMPTY_TENSOR "\":{\"dtype\":\"U8\",\"shape\":[0,1,2,3,4,5,6,7,8,9,10,11],\"data_offsets\":[0,0]},"

TEST(long_headers_take_little_memory) {
    enum { SIZE = 4 * 1000 * 1000 };
    static const struct {
        const char *before, *after; /* NULL: spaces */
        bool counts;
        const char *why;
    } cases[] = {
        {"[", "[", false, "found '['"},
        {"\"a\":{\"", "\":{", false, "unknown key '00000000'"},
        {NULL, NULL, false, "the text ends"},
        {"\"", EMPTY_TENSOR, true, "expected a string in \"quotes\""},
        {"\"", EMPTY_TENSOR, false, "the name appears twice"},
        {"\"", "\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]},", true,
         "'00050000': more than 50000 tensors"},
        {"\"__metadata__\":{\"", "\":\"", false, "expected ',' or '}', found '_'"},
    };
    char *header = malloc(SIZE + 1);
    snprintf(path, sizeof(path), "%s/long", folder);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        tdm_tensor_file *file;
        support_host host;
        support_host_init(&host);
        memset(header, ' ', SIZE);
        size_t used = SIZE;
        if (cases[i].before != NULL) used = repeat(header, SIZE, cases[i].before, cases[i].after, cases[i].counts);
        header[0] = '{';
        header[used] = '\0';
        support_tensor_file(path, header, 10);
        CHECK_STATUS(tdm__tensor_file_open(&file, &host.host, NULL, path), TDM_E_CHECKPOINT);
        CHECK_HAS(tdm_error_message(), cases[i].why);
        CHECK(host.peak < 3 << 20);
        CHECK_INT(host.live, 0);
    }
    /* Metadata of more than a mebibyte, and a name of more than 1024 bytes. */
    for (int i = 0; i < 2; i++) {
        tdm_tensor_file *file;
        support_host host;
        support_host_init(&host);
        memset(header, 'x', SIZE);
        memcpy(header, i == 0 ? "{\"__metadata__\":{\"k\":\"" : "{\"", i == 0 ? 22 : 2);
        header[SIZE] = '\0';
        support_tensor_file(path, header, 0);
        CHECK_STATUS(tdm__tensor_file_open(&file, &host.host, NULL, path), TDM_E_CHECKPOINT);
        CHECK_HAS(tdm_error_message(), i == 0 ? "longer than 1048573 bytes" : "longer than 1024 bytes");
        CHECK(host.peak < 3 << 20);
    }
    free(header);
}

/* `count` tensors of one byte, which lie in the order of a walk of `stride` through the data; `name` and `place` tell
 * what goes wrong with the last. */
static char *many(int count, int stride, int last_name, int last_place) {
    const size_t room = (size_t)count * 96 + 16;
    char *header = malloc(room);
    size_t used = (size_t)snprintf(header, room, "{");
    for (int i = 0; i < count; i++) {
        int name = i, place = (int)((int64_t)i * stride % count);
        if (i == count - 1 && last_name >= 0) name = last_name;
        if (i == count - 1 && last_place >= 0) place = last_place;
        used += (size_t)snprintf(header + used, room - used,
                                 "%s\"layer.%d.weight\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[%d,%d]}",
                                 i > 0 ? "," : "", name, place, place + 1);
    }
    snprintf(header + used, room - used, "}");
    return header;
}

/* As many tensors as a file may have, in the order of their data or all over it; and what is wrong only at the end. */
TEST(many_tensors) {
    enum { MOST = 50000 };
    static const struct {
        int count, stride, last_name, last_place, data;
        const char *why; /* NULL: nothing */
    } cases[] = {
        {MOST, 1, -1, -1, MOST, NULL},
        {MOST, 12347, -1, -1, MOST, NULL},
        {MOST + 1, 1, -1, -1, MOST + 1, "tensor 'layer.50000.weight': more than 50000 tensors"},
        {MOST, 1, 7, -1, MOST, "tensor 'layer.7.weight': the name appears twice"},
        {MOST, 1, -1, 20000, MOST, "overlap: tensor 'layer.49999.weight' begins at 20000, 'layer.20000.weight' before"},
        {MOST, 12347, -1, -1, MOST + 1, "1 bytes at its end"},
        {MOST, 1, -1, MOST, MOST + 1,
         "a hole: tensor 'layer.49999.weight' begins at 50000, 'layer.49998.weight' before"},
    };
    snprintf(path, sizeof(path), "%s/many", folder);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        tdm_tensor_file *file;
        support_host host;
        char *header = many(cases[i].count, cases[i].stride, cases[i].last_name, cases[i].last_place);
        support_host_init(&host);
        support_tensor_file(path, header, (size_t)cases[i].data);
        free(header);
        tdm_status status = tdm__tensor_file_open(&file, &host.host, NULL, path);
        CHECK(host.peak < 16 * 1000 * 1000);
        if (cases[i].why == NULL) {
            REQUIRE_OK(status);
            CHECK_INT(tdm__tensor_file_count(file), MOST);
            for (int k = 0; k < MOST; k += 4999) {
                char name[32];
                snprintf(name, sizeof(name), "layer.%d.weight", k);
                const tdm_tensor *tensor = tdm__tensor_file_find(file, name);
                REQUIRE(tensor != NULL);
                CHECK(tensor == tdm__tensor_file_get(file, (int)((int64_t)k * cases[i].stride % MOST)));
            }
            CHECK(tdm__tensor_file_find(file, "layer.50000.weight") == NULL);
            tdm__tensor_file_close(file);
        } else {
            CHECK_STATUS(status, TDM_E_CHECKPOINT);
            CHECK_HAS(tdm_error_message(), cases[i].why);
            CHECK(host.peak < 3 << 20);
        }
        CHECK_INT(host.live, 0);
    }
}

/* Keys of the metadata: as many as are taken, one more, and one twice. */
TEST(metadata_keys) {
    static char header[65536];
    snprintf(path, sizeof(path), "%s/keys", folder);
    for (int fault = 0; fault < 3; fault++) {
        tdm_tensor_file *file;
        int used = snprintf(header, sizeof(header), "{\"__metadata__\":{");
        for (int i = 0; i < 4096; i++)
            used += snprintf(header + used, sizeof(header) - (size_t)used, "%s\"%d\":\"\"", i > 0 ? "," : "", 4096 - i);
        if (fault > 0) used += snprintf(header + used, sizeof(header) - (size_t)used, ",\"0\":\"\"");
        if (fault > 1) memcpy(strstr(header, "\"4096\""), "\"4095\"", 6);
        snprintf(header + used, sizeof(header) - (size_t)used, "}}");
        support_tensor_file(path, header, 0);
        tdm_status status = open_path(&file);
        if (fault == 0) {
            REQUIRE_OK(status);
            CHECK(!file->is_tandems);
            tdm__tensor_file_close(file);
        } else {
            CHECK_STATUS(status, TDM_E_CHECKPOINT);
            CHECK_HAS(tdm_error_message(),
                      fault == 1 ? "__metadata__ has more than 4096 keys" : "'4095' appears twice");
        }
    }
}

TEST(limits_are_reached) {
    /* Just inside: a name of 1024 bytes, rank 16, a megabyte of padding behind the header. */
    static char header[1200000];
    char name[1025];
    tdm_tensor_file *file;
    memset(name, 'n', 1024);
    name[1024] = '\0';
    int used = snprintf(
        header, sizeof(header),
        "{\"%s\":{\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,3],\"data_offsets\":[0,3]}}", name);
    memset(header + used, ' ', 1000000);
    snprintf(path, sizeof(path), "%s/limits", folder);
    support_tensor_file(path, header, 3);
    REQUIRE_OK(open_path(&file));
    const tdm_tensor *tensor = tdm__tensor_file_find(file, name);
    REQUIRE(tensor != NULL);
    CHECK_INT(tensor->ndim, 16);
    CHECK_INT(tensor->bytes, 3);
    tdm__tensor_file_close(file);
}

TEST(only_regular_files) {
    tdm_tensor_file *file;
    snprintf(path, sizeof(path), "%s/absent", folder);
    CHECK_STATUS(open_path(&file), TDM_E_CHECKPOINT);
    CHECK_HAS(tdm_error_message(), "there is no such file");
    snprintf(path, sizeof(path), "%s/fifo", folder);
    REQUIRE(mkfifo(path, 0600) == 0);
    CHECK_STATUS(open_path(&file), TDM_E_CHECKPOINT);
    CHECK_HAS(tdm_error_message(), "expected a regular file, found a FIFO");
    snprintf(path, sizeof(path), "%s", folder);
    CHECK_STATUS(open_path(&file), TDM_E_CHECKPOINT);
    CHECK_HAS(tdm_error_message(), "found a folder");
    snprintf(path, sizeof(path), "/dev/zero");
    CHECK_STATUS(open_path(&file), TDM_E_CHECKPOINT);
    CHECK_HAS(tdm_error_message(), "found a device");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof(address.sun_path), "%.80s/socket", folder);
    snprintf(path, sizeof(path), "%s", address.sun_path);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    REQUIRE(fd >= 0 && bind(fd, (const struct sockaddr *)&address, sizeof(address)) == 0);
    CHECK_STATUS(open_path(&file), TDM_E_CHECKPOINT);
    close(fd);
}

/* A name from a file reaches messages without its control characters, and cut. */
TEST(names_in_messages) {
    char out[TDM_ST_PRINTABLE], longest[400];
    CHECK_TEXT(tdm__printable(out, "a\x1b[31m\nb\x7f"), "a\\x1b[31m\\x0ab\\x7f");
    memset(longest, 'x', sizeof(longest));
    memcpy(longest + 90, "\xE4\xB8\xAD", 3);
    longest[399] = '\0';
    tdm__printable(out, longest);
    CHECK_INT(strlen(out), 93);
    CHECK_TEXT(out + 88, "xx...");
    memset(longest, 'y', 95);
    longest[95] = '\0';
    CHECK_TEXT(tdm__printable(out, longest), longest);
}

/* Every length of a good file but its own is refused, by the header alone. */
TEST(every_truncation) {
    size_t size;
    char name[512];
    snprintf(name, sizeof(name), "%s/fixtures/torch.safetensors", TDM_TEST_DATA);
    char *bytes = support_read(name, &size);
    REQUIRE(bytes != NULL);
    bytes = realloc(bytes, size + 16);
    memset(bytes + size, ' ', 16);
    snprintf(path, sizeof(path), "%s/cut", folder);
    for (size_t length = 0; length <= size + 16; length++) {
        tdm_tensor_file *file;
        support_write(path, bytes, length);
        CHECK_STATUS(open_path(&file), length == size ? TDM_OK : TDM_E_CHECKPOINT);
        tdm__tensor_file_close(file);
    }
    free(bytes);
}

TEST_MAIN(test_folder_make(folder); RUN(round_trip); RUN(not_finite); RUN(writer_refuses_what_no_reader_takes);
          RUN(reads_files_of_the_python_library); RUN(module_prefix_is_taken_off); RUN(hostile_headers);
          RUN(lengths_that_lie); RUN(long_headers_take_little_memory); RUN(many_tensors); RUN(metadata_keys);
          RUN(limits_are_reached); RUN(only_regular_files); RUN(names_in_messages); RUN(every_truncation);
          test_folder_remove(folder);)
