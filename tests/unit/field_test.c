/* Settings by their rows: what is taken, what is refused and in which words, and that printing reads back. */
#include "runtime/base/field/field_range.h"

#include "runtime/base/random/rng.h"
#include "runtime/base/status.h"
#include "tests/support/tdm_failing_host.h"
#include "tests/support/tdm_test.h"

typedef struct settings {
    bool flag;
    int64_t count, seed, any, version, padding;
    double rate, share, clip;
    const char *name, *note, *path;
    int type;
    int64_t kernel[2], stride[2], total;
    tdm_ints ids;
    tdm_floats betas;
    tdm_numbers shares;
    tdm_texts files;
    tdm_interval every, log;
    double timeout, pause;
    int64_t room;
} settings;

static const char *const types[] = {"sgd", "adam", "adamw", NULL}, *const paddings[] = {"same", "valid", NULL};

#define AT(member) .offset = offsetof(settings, member)
static const tdm_field rows[] = {
    {.key = "flag", .kind = TDM_FIELD_BOOL, AT(flag), .initial = "true"},
    {.key = "count", .kind = TDM_FIELD_INT, AT(count), .initial = "8", .min = 1, .max = 512, .flags = TDM_FIELD_MAIN},
    {.key = "seed",
     .kind = TDM_FIELD_INT,
     AT(seed),
     .initial = "null",
     .min = 0,
     .max = INFINITY,
     .flags = TDM_FIELD_NULLABLE},
    {.key = "any", .kind = TDM_FIELD_INT, AT(any), .flags = TDM_FIELD_REQUIRED},
    {.key = "rate", .kind = TDM_FIELD_FLOAT, AT(rate), .initial = "1e-3", .flags = TDM_FIELD_OPEN_MIN},
    {.key = "share", .kind = TDM_FIELD_FLOAT, AT(share), .initial = "0.5", .max = 1},
    {.key = "clip",
     .kind = TDM_FIELD_FLOAT,
     AT(clip),
     .initial = "null",
     .max = 10,
     .flags = TDM_FIELD_NULLABLE | TDM_FIELD_OPEN_MIN},
    {.key = "name", .kind = TDM_FIELD_TEXT, AT(name), .initial = "run"},
    {.key = "note", .kind = TDM_FIELD_TEXT, AT(note), .initial = "null", .flags = TDM_FIELD_NULLABLE},
    {.key = "path", .kind = TDM_FIELD_PATH, AT(path), .flags = TDM_FIELD_REQUIRED},
    {.key = "type", .kind = TDM_FIELD_ENUM, AT(type), .initial = "adam", .names = types},
    {.key = "kernel", .kind = TDM_FIELD_PAIR, AT(kernel), .initial = "3", .min = 1, .max = -1},
    {.key = "stride",
     .kind = TDM_FIELD_PAIR,
     AT(stride),
     .initial = "null",
     .min = 1,
     .max = 9,
     .flags = TDM_FIELD_NULLABLE},
    {.key = "total",
     .kind = TDM_FIELD_INT,
     AT(total),
     .initial = "null",
     .min = 1,
     .max = 9,
     .flags = TDM_FIELD_NULLABLE | TDM_FIELD_NEEDED},
    {.key = "padding", .kind = TDM_FIELD_INT, AT(padding), .initial = "0", .max = 9, .names = paddings},
    {.key = "ids",
     .kind = TDM_FIELD_INTS,
     AT(ids),
     .initial = "[0]",
     .min = 0,
     .max = INFINITY,
     .min_items = 1,
     .max_items = 4},
    {.key = "betas",
     .kind = TDM_FIELD_FLOATS,
     AT(betas),
     .initial = "[0.9, 0.999]",
     .max = 1,
     .min_items = 2,
     .max_items = 2},
    {.key = "shares",
     .kind = TDM_FIELD_NUMBERS,
     AT(shares),
     .initial = "null",
     .max = 1e30,
     .min_items = 2,
     .flags = TDM_FIELD_NULLABLE},
    {.key = "files", .kind = TDM_FIELD_PATHS, AT(files), .initial = "null", .flags = TDM_FIELD_NULLABLE},
    {.key = "every", .kind = TDM_FIELD_INTERVAL, AT(every), .initial = "1 epoch"},
    {.key = "log", .kind = TDM_FIELD_INTERVAL, AT(log), .initial = "null", .flags = TDM_FIELD_NULLABLE},
    {.key = "timeout",
     .kind = TDM_FIELD_DURATION,
     AT(timeout),
     .initial = "10m",
     .min = 1,
     .max = 86400,
     .unit = "seconds"},
    {.key = "pause", .kind = TDM_FIELD_DURATION, AT(pause), .initial = "null", .flags = TDM_FIELD_NULLABLE},
    {.key = "room",
     .kind = TDM_FIELD_SIZE,
     AT(room),
     .initial = "null",
     .min = 1024,
     .max = 1099511627776.0,
     .flags = TDM_FIELD_NULLABLE},
    {.key = "version", .kind = TDM_FIELD_INT, AT(version), .initial = "1", .min = 1, .max = 1},
    {.key = NULL},
};

/* One zone and one message buffer for the tests below. */
static tdm_zone zone;
static tdm_text why;
static settings now;

static bool set(const char *key, const char *text) {
    tdm__text_deinit(&why);
    tdm__text_init(&why, tdm_host_default());
    return tdm__field_set_text(tdm__field_find(rows, key), &now, text, &zone, &why);
}

/* The clause that `text` earns; "taken" if it is accepted. */
static const char *refusal(const char *key, const char *text) {
    settings before = now;
    if (set(key, text)) return "taken";
    CHECK(memcmp(&before, &now, sizeof(now)) == 0); /* a refused value changes nothing */
    return why.data;
}

static const char *printed(const char *key) {
    tdm__text_deinit(&why);
    tdm__text_init(&why, tdm_host_default());
    tdm__field_print(tdm__field_find(rows, key), &now, &why);
    return why.data;
}

static bool is_equal(const tdm_field *row, const settings *a, const settings *b) {
    const void *left = (const char *)a + row->offset, *right = (const char *)b + row->offset;
    if (row->kind == TDM_FIELD_INTERVAL) {
        const tdm_interval *x = left, *y = right;
        return x->kind == y->kind && (x->kind == TDM_INTERVAL_NEVER || x->amount == y->amount);
    }
    if (row->kind != TDM_FIELD_TEXT && row->kind != TDM_FIELD_PATH && row->kind != TDM_FIELD_PATHS &&
        row->kind != TDM_FIELD_NUMBERS)
        return memcmp(left, right, tdm__field_traits[row->kind].bytes) == 0;
    tdm_text text[2];
    for (int i = 0; i < 2; i++) {
        tdm__text_init(&text[i], tdm_host_default());
        tdm__field_print(row, i == 0 ? a : b, &text[i]);
    }
    bool same = strcmp(text[0].data, text[1].data) == 0;
    for (int i = 0; i < 2; i++) tdm__text_deinit(&text[i]);
    return same;
}

/* What setting `text` prints as; setting that again must give an equal value. */
static const char *round_trip(const char *key, const char *text) {
    static char kept[1024];
    const tdm_field *row = tdm__field_find(rows, key);
    if (!set(key, text)) return why.data;
    settings first = now;
    snprintf(kept, sizeof(kept), "%s", printed(key));
    CHECK(set(key, kept));
    CHECK(is_equal(row, &first, &now));
    return kept;
}

static const char *described(const char *key, bool chinese) {
    tdm__text_deinit(&why);
    tdm__text_init(&why, tdm_host_default());
    tdm__field_describe(tdm__field_find(rows, key), &why, chinese);
    return why.data;
}

TEST(finding) {
    CHECK(tdm__field_find(rows, "rate") == &rows[4]);
    CHECK(tdm__field_find(rows, "rat") == NULL);
    CHECK(tdm__field_main(rows) == &rows[1]);
    CHECK(tdm__field_main(rows + 2) == NULL);
}

TEST(initial) {
    memset(&now, 0x5A, sizeof(now));
    REQUIRE_OK(tdm__field_set_initial(rows, &now, &zone));
    CHECK(now.flag && now.count == 8 && now.seed == TDM_INT_NULL && now.any == 0);
    CHECK(now.rate == 1e-3 && now.share == 0.5 && isnan(now.clip));
    CHECK_TEXT(now.name, "run");
    CHECK(now.note == NULL && now.path == NULL);
    CHECK(now.type == 1 && now.kernel[0] == 3 && now.kernel[1] == 3);
    CHECK(now.ids.count == 1 && now.ids.item[0] == 0 && now.betas.count == 2 && now.betas.item[1] == 0.999);
    CHECK_INT(now.files.count, 0);
    CHECK(now.shares.count == 0 && now.shares.item == NULL);
    CHECK(now.every.kind == TDM_INTERVAL_EPOCHS && now.every.amount == 1 && now.log.kind == TDM_INTERVAL_NEVER);
    CHECK(now.timeout == 600 && isnan(now.pause));
}

TEST(bad_table) {
    static const tdm_field wrong[] = {{.key = "size", .kind = TDM_FIELD_INT, .initial = "none", .offset = 0},
                                      {.key = NULL}};
    int64_t value;
    CHECK_STATUS(tdm__field_set_initial(wrong, &value, &zone), TDM_E_INTERNAL);
    CHECK_TEXT(tdm_error_message(), "default of size must be an integer, got 'none'");
}

TEST(booleans) {
    CHECK_TEXT(round_trip("flag", "false"), "false");
    CHECK_TEXT(round_trip("flag", " true "), "true");
    CHECK_TEXT(refusal("flag", "yes"), "must be true or false, got 'yes'; write true");
    CHECK_TEXT(refusal("flag", "No"), "must be true or false, got 'No'; write false");
    CHECK_TEXT(refusal("flag", "FALSE"), "must be true or false, got 'FALSE'; write false");
    CHECK_TEXT(refusal("flag", "0"), "must be true or false, got '0'; write false");
    CHECK_TEXT(refusal("flag", "maybe"), "must be true or false, got 'maybe'");
    CHECK_TEXT(refusal("flag", "null"), "must be true or false, got null");
    CHECK_TEXT(refusal("flag", "[true]"), "must be true or false, got a list");
}

TEST(integers) {
    CHECK_TEXT(round_trip("count", "512"), "512");
    CHECK_TEXT(round_trip("count", "1_0"), "10");
    CHECK_TEXT(round_trip("count", "\"12\""), "12");
    CHECK_TEXT(round_trip("seed", "null"), "null");
    CHECK_TEXT(round_trip("seed", "~"), "null");
    CHECK_TEXT(round_trip("seed", ""), "null");
    CHECK_TEXT(round_trip("seed", "9223372036854775807"), "9223372036854775807");
    CHECK_TEXT(round_trip("any", "-9223372036854775807"), "-9223372036854775807");
    CHECK_TEXT(refusal("count", "three"), "must be an integer from 1 to 512, got 'three'");
    CHECK_TEXT(refusal("count", "0"), "must be an integer from 1 to 512, got '0'");
    CHECK_TEXT(refusal("count", "513"), "must be an integer from 1 to 512, got '513'");
    CHECK_TEXT(refusal("count", "null"), "must be an integer from 1 to 512, got null");
    CHECK_TEXT(refusal("count", ""), "must be an integer from 1 to 512, got null");
    CHECK_TEXT(refusal("count", "010"),
               "must be an integer from 1 to 512, got '010': leading zeros are not allowed; write 10");
    CHECK_TEXT(refusal("any", "-007"), "must be an integer, got '-007': leading zeros are not allowed; write -7");
    CHECK_TEXT(refusal("any", "00"), "must be an integer, got '00': leading zeros are not allowed; write 0");
    CHECK_TEXT(refusal("count", "1.0"), "must be an integer from 1 to 512, got '1.0'; write 1");
    CHECK_TEXT(refusal("any", "1e3"), "must be an integer, got '1e3'; write 1000");
    CHECK_TEXT(refusal("any", "1.5"), "must be an integer, got '1.5'");
    CHECK_TEXT(refusal("any", "99999999999999999999"), "must be an integer, got '99999999999999999999'");
    CHECK_TEXT(refusal("any", "-9223372036854775808"), "must be an integer, got '-9223372036854775808'");
    CHECK_TEXT(refusal("version", "2"), "must be an integer of exactly 1, got '2'");
    CHECK_TEXT(refusal("seed", "-1"), "must be an integer of at least 0 or null, got '-1'");
    CHECK_TEXT(refusal("seed", "[1, 2]"), "must be an integer of at least 0 or null, got a list");
    CHECK_TEXT(refusal("total", "0"), "must be an integer from 1 to 9, got '0'"); /* its type needs a number */
    CHECK_TEXT(refusal("count", "[1, 2]"), "must be an integer from 1 to 512, got a list");
}

TEST(floats) {
    CHECK_TEXT(round_trip("rate", "1e-3"), "1.0e-3");
    CHECK_TEXT(round_trip("rate", "0.1"), "0.1");
    CHECK_TEXT(round_trip("rate", "64"), "64");
    CHECK_TEXT(round_trip("rate", "1_000"), "1000");
    CHECK_TEXT(round_trip("share", "0"), "0");
    CHECK_TEXT(round_trip("share", "1"), "1");
    CHECK_TEXT(round_trip("clip", "null"), "null");
    CHECK_TEXT(refusal("rate", "0"), "must be a number above 0, got '0'");
    CHECK_TEXT(refusal("rate", "nan"), "must be a number above 0, got 'nan'");
    CHECK_TEXT(refusal("rate", ".inf"), "must be a number above 0, got '.inf'");
    CHECK_TEXT(refusal("rate", "0,1"), "must be a number above 0, got '0,1'; write 0.1");
    CHECK_TEXT(refusal("rate", "010"), "must be a number above 0, got '010': leading zeros are not allowed; write 10");
    CHECK_TEXT(refusal("share", "1.01"), "must be a number from 0 to 1, got '1.01'");
    CHECK_TEXT(refusal("share", "-0.1"), "must be a number from 0 to 1, got '-0.1'");
    CHECK_TEXT(refusal("clip", "0"), "must be a number above 0 and at most 10 or null, got '0'");
    CHECK_TEXT(refusal("share", "null"), "must be a number from 0 to 1, got null");
}

TEST(texts) {
    CHECK_TEXT(round_trip("name", "first run"), "first run");
    CHECK_TEXT(round_trip("name", "训练"), "训练");
    CHECK_TEXT(round_trip("name", "\"a\\tb \\\"c\\\" \\u4e2d\""), "\"a\\tb \\\"c\\\" 中\"");
    CHECK_TEXT(round_trip("name", "'it''s'"), "\"it's\"");
    CHECK_TEXT(round_trip("name", ""), "\"\"");
    CHECK_TEXT(round_trip("name", "tcp://10.0.0.1:29500"), "tcp://10.0.0.1:29500");
    CHECK_TEXT(round_trip("path", "../data/x.npy"), "../data/x.npy");
    CHECK_TEXT(round_trip("path", "/a b/${name}"), "\"/a b/${name}\"");
    CHECK_TEXT(round_trip("note", "null"), "null");
    CHECK_TEXT(round_trip("note", "'null'"), "\"null\"");
    CHECK_TEXT(refusal("name", "null"), "must be a text, got null");
    CHECK_TEXT(refusal("path", "\"\""), "must be a path, got ''");
    CHECK_TEXT(refusal("name", "\"open"), "has unmatched quotes or a wrong escape: \"open");
    CHECK_TEXT(refusal("name", "'a' b"), "has unmatched quotes or a wrong escape: 'a' b");
    CHECK_TEXT(refusal("name", "\"\\q\""), "has unmatched quotes or a wrong escape: \"\\q\"");
    CHECK_TEXT(refusal("name", "a\xFF"), "must be text in UTF-8, got the byte 0xFF at offset 1");
    /* Each of these is something else than this text to some reader of YAML. */
    static const char *const ambiguous[] = {
        "true",       "No", "on",   "y",  "null", "~",     "12",   "1e3",          "0x1F", "0o7", "1:30",
        "2026-11-20", ".5", ".inf", "-",  "- a",  "a: b",  "a #b", "a:",           "#a",   "&a",  "*a",
        "!a",         "%a", "@a",   "`a", "[a]",  "{a",    "a,b",  "a]b",          "?",    "=",   "<<",
        " a",         "a ", "a\nb", "|",  ">",    "\"a\"", "'a'",  "\xE2\x80\xA8", "\x7F"};
    for (size_t i = 0; i < sizeof(ambiguous) / sizeof(ambiguous[0]); i++) {
        now.name = ambiguous[i];
        char text[64];
        snprintf(text, sizeof(text), "%s", printed("name"));
        CHECK_INT(text[0], '"');
        CHECK(set("name", text));
        CHECK_TEXT(now.name, ambiguous[i]);
    }
    static const char *const plain[] = {"a", "runs/one", "a.b-c_d+e", "./x", "../x", "x1", "http://a/b", "/dev/null"};
    for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++) {
        now.name = plain[i];
        CHECK_TEXT(printed("name"), plain[i]);
    }
    now.name = "run";
}

TEST(enums) {
    CHECK_TEXT(round_trip("type", "adamw"), "adamw");
    CHECK_TEXT(refusal("type", "adm"), "must be one of sgd, adam, adamw, got 'adm'; did you mean adam?");
    CHECK_TEXT(refusal("type", "SGD"), "must be one of sgd, adam, adamw, got 'SGD'; did you mean sgd?");
    CHECK_TEXT(refusal("type", "rmsprop"), "must be one of sgd, adam, adamw, got 'rmsprop'");
    CHECK_TEXT(refusal("type", "null"), "must be one of sgd, adam, adamw, got null");
}

TEST(words_for_numbers) {
    CHECK_TEXT(round_trip("padding", "3"), "3");
    CHECK_TEXT(round_trip("padding", "same"), "same");
    CHECK_INT(now.padding, -1);
    CHECK_TEXT(round_trip("padding", "valid"), "valid");
    CHECK_INT(now.padding, -2);
    CHECK_TEXT(refusal("padding", "-1"), "must be an integer from 0 to 9, got '-1'; it may also be same or valid");
    CHECK_TEXT(refusal("padding", "Same"), "must be an integer from 0 to 9, got 'Same'; it may also be same or valid");
}

TEST(pairs) {
    CHECK_TEXT(round_trip("kernel", "5"), "[5, 5]");
    CHECK_TEXT(round_trip("kernel", "[3, 1]"), "[3, 1]");
    CHECK_TEXT(round_trip("kernel", "3x1"), "[3, 1]");
    CHECK_TEXT(round_trip("kernel", "10x12"), "[10, 12]");
    CHECK_TEXT(refusal("kernel", "3x0"), "must be an integer of at least 1, got '0'");
    CHECK_TEXT(refusal("kernel", "03x1"),
               "must be an integer of at least 1, got '03': leading zeros are not allowed; write 3");
    CHECK_TEXT(refusal("kernel", "3x99999999999999999999"),
               "must be an integer of at least 1, got '99999999999999999999'");
    CHECK_TEXT(refusal("kernel", "3x1x1"),
               "must be an integer of at least 1, got '3x1x1'; two are written [3, 5] or 3x5");
    CHECK_TEXT(refusal("kernel", "3X1"), "must be an integer of at least 1, got '3X1'; two are written [3, 5] or 3x5");
    CHECK_TEXT(refusal("kernel", "x3"), "must be an integer of at least 1, got 'x3'");
    CHECK_TEXT(refusal("kernel", "[3x1, 2]"), "must be an integer of at least 1, got '3x1'");
    CHECK_TEXT(refusal("kernel", "[3]"), "must be one integer, or two as [3, 5] or 3x5, got a list of 1");
    CHECK_TEXT(refusal("kernel", "[]"), "must be one integer, or two as [3, 5] or 3x5, got a list of 0");
    CHECK_TEXT(refusal("kernel", "[1, 2, 3]"), "must be one integer, or two as [3, 5] or 3x5, got a list of 3");
    CHECK_TEXT(refusal("kernel", "[3, 0]"), "must be an integer of at least 1, got '0'");
    CHECK_TEXT(refusal("stride", "0"), "must be an integer from 1 to 9 or null, got '0'");
    CHECK_TEXT(refusal("stride", "[3, 0]"), "must be an integer from 1 to 9, got '0'");
    CHECK_TEXT(refusal("stride", "3x0"), "must be an integer from 1 to 9, got '0'");
    CHECK_TEXT(refusal("stride", "[3]"), "must be one integer, or two as [3, 5] or 3x5 or null, got a list of 1");
    CHECK_TEXT(refusal("kernel", "null"), "must be one integer, or two as [3, 5] or 3x5, got null");
}

/* Lists of numbers are as long as they are written. */
TEST(numbers) {
    enum { MANY = 5000 };
    static char text[8 * MANY];
    size_t length = 0;
    CHECK_TEXT(round_trip("shares", "[0.5, 1,2.0e-3]"), "[0.5, 1, 2.0e-3]");
    CHECK_TEXT(round_trip("shares", "null"), "null");
    CHECK(now.shares.count == 0);
    for (int i = 0; i < MANY; i++)
        length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%d.5", i == 0 ? "[" : ", ", i % 100);
    snprintf(text + length, sizeof(text) - length, "]");
    REQUIRE(set("shares", text));
    REQUIRE(now.shares.count == MANY);
    for (int i = 0; i < MANY; i++) CHECK(now.shares.item[i] == i % 100 + 0.5);
    CHECK_TEXT(printed("shares"), text);
    text[length - 1] = 'x';
    snprintf(text + length, sizeof(text) - length, "]");
    CHECK_HAS(refusal("shares", text), "item 5000 must be a number of at least 0, got '99.x'");
    CHECK_TEXT(refusal("shares", "[1]"), "must have at least 2 numbers, got 1");
    CHECK_TEXT(refusal("shares", "[1, -1]"), "item 2 must be a number of at least 0, got '-1'");
    CHECK_HAS(refusal("shares", "[1, 2"), "must be a list such as [a, b] of at most 1048576 items, got '[1, 2'");
    CHECK_TEXT(described("shares", false), "list of numbers, at least 2 of them, at least 0, or null");
}

TEST(lists) {
    CHECK_TEXT(round_trip("ids", "[0, 1,2 , 3]"), "[0, 1, 2, 3]");
    CHECK_TEXT(round_trip("ids", " [ 7, ] "), "[7]");
    CHECK_TEXT(round_trip("betas", "[0.9, 1]"), "[0.9, 1]");
    CHECK_TEXT(round_trip("files", "[a.bin, 'b, c.bin', \"d\"]"), "[a.bin, \"b, c.bin\", d]");
    CHECK_TEXT(round_trip("files", "null"), "null");
    CHECK_TEXT(round_trip("files", "[]"), "null");
    CHECK_TEXT(round_trip("ids", "3"), "[3]");
    CHECK_TEXT(round_trip("files", "a.bin"), "[a.bin]");
    CHECK_TEXT(refusal("betas", "0.9"), "must have 2 numbers, got 1");
    CHECK_TEXT(refusal("ids", "[]"), "must have at least 1 integer, got 0");
    CHECK_TEXT(refusal("ids", "[1, 2, 3, 4, 5]"), "must have at most 4 integers, got 5");
    CHECK_TEXT(refusal("ids", "[1, -2]"), "item 2 must be an integer of at least 0, got '-2'");
    CHECK_TEXT(refusal("betas", "[0.9]"), "must have 2 numbers, got 1");
    CHECK_TEXT(refusal("betas", "[0.9, x]"), "item 2 must be a number from 0 to 1, got 'x'");
    CHECK_TEXT(refusal("betas", "null"), "must be a list of numbers, got null");
    static const char *const malformed[] = {"[",     "[1",    "[1, 2", "[,]",  "[1,,2]",
                                            "[1] 2", "[[1]]", "[1]]",  "['a]", "[\"a\" b]"};
    for (size_t i = 0; i < sizeof(malformed) / sizeof(malformed[0]); i++)
        CHECK_HAS(refusal("files", malformed[i]), "must be a list such as [a, b] of at most 64 items, got '[");
    char text[400] = "[0";
    for (int i = 1; i < TDM_LIST_MAX; i++) strcat(text, ",1");
    strcat(text, "]");
    CHECK_HAS(refusal("ids", text), "must have at most 4 integers, got 64");
    text[strlen(text) - 1] = '\0';
    strcat(text, ",1]");
    CHECK_HAS(refusal("files", text), "of at most 64 items");
    const char *items[] = {"1", "2"};
    tdm_written written = {.is_list = true, .count = 2, .item = items};
    CHECK(tdm__field_set(tdm__field_find(rows, "ids"), &now, &written, &zone, &why) && now.ids.item[1] == 2);
}

TEST(intervals) {
    CHECK_TEXT(round_trip("every", "50 steps"), "50 steps");
    CHECK_TEXT(round_trip("every", "1 step"), "1 step");
    CHECK_TEXT(round_trip("every", "1 steps"), "1 step");
    CHECK_TEXT(round_trip("every", "2  epochs"), "2 epochs");
    CHECK_TEXT(round_trip("every", "1 epoch"), "1 epoch");
    CHECK_TEXT(round_trip("every", "1_000 steps"), "1000 steps");
    CHECK_TEXT(round_trip("every", "30m"), "30m");
    CHECK_TEXT(round_trip("log", "never"), "never");
    CHECK_TEXT(round_trip("log", "null"), "never");
    CHECK_TEXT(refusal("every", "never"), "must be an interval such as 50 steps, 1 epoch or 30m, got 'never'");
    CHECK_TEXT(refusal("every", "null"), "must be an interval such as 50 steps, 1 epoch or 30m, got null");
    CHECK_TEXT(refusal("log", "often"), "must be an interval such as 50 steps, 1 epoch, 30m or never, got 'often'");
    CHECK_TEXT(refusal("every", "50"),
               "must be an interval such as 50 steps, 1 epoch or 30m, got '50'; write 50 steps");
    CHECK_HAS(refusal("every", "0 steps"), "got '0 steps'");
    CHECK_HAS(refusal("every", "-1 steps"), "got '-1 steps'");
    CHECK_HAS(refusal("every", "1.5 epochs"), "got '1.5 epochs'");
    CHECK_HAS(refusal("every", "0s"), "got '0s'");
    CHECK_HAS(refusal("every", "3 days"), "got '3 days'");
    CHECK_HAS(refusal("every", "9007199254740993 steps"), "got '9007199254740993 steps'");
}

TEST(sizes) {
    static const char *const bad[] = {"512",   "512MB",  "1.5GiB",       "MiB",
                                      "-1KiB", "010KiB", "8 388 608TiB", "9999999999TiB"};
    CHECK_TEXT(round_trip("room", "512MiB"), "512MiB");
    CHECK_TEXT(round_trip("room", "2048 MiB"), "2GiB");
    CHECK_TEXT(round_trip("room", "1025B"), "1025B");
    CHECK_TEXT(round_trip("room", "null"), "null");
    CHECK(set("room", "64KiB") && now.room == 65536);
    CHECK_TEXT(refusal("room", "2B"), "must be a size from 1KiB to 1TiB or null, got '2B'");
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        CHECK_HAS(refusal("room", bad[i]), "must be a size such as 64KiB, 512MiB or 2GiB");
    CHECK_TEXT(described("room", false), "size such as 64KiB, 512MiB or 2GiB, 1KiB to 1TiB, or null");
}

TEST(durations) {
    CHECK_TEXT(round_trip("timeout", "30s"), "30s");
    CHECK_TEXT(round_trip("timeout", "11h30m"), "11h30m");
    CHECK_TEXT(round_trip("timeout", "90m"), "1h30m");
    CHECK_TEXT(round_trip("timeout", "1d"), "1d");
    CHECK_TEXT(round_trip("pause", "500ms"), "500ms");
    CHECK_TEXT(round_trip("pause", "1m1ms"), "1m1ms");
    CHECK_TEXT(round_trip("pause", "0s"), "0s");
    CHECK_TEXT(round_trip("pause", "null"), "null");
    CHECK(set("pause", "1d2h3m4s5ms") && now.pause == 86400 + 7200 + 180 + 4.005);
    CHECK_TEXT(refusal("timeout", "30"),
               "must be a duration such as 500ms, 30s, 10m or 1h30m from 1s to 1d, got '30'; write 30s");
    CHECK_TEXT(refusal("timeout", "500ms"), "must be a duration from 1s to 1d, got '500ms'");
    CHECK_TEXT(refusal("timeout", "2d"), "must be a duration from 1s to 1d, got '2d'");
    static const char *const bad[] = {
        "1.5h", "m", "1 m", "30m1h", "1m1m", "-1s", "1x", "99999999999999999s", "999999999999999d", "1mss"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        CHECK_HAS(refusal("pause", bad[i]), "must be a duration such as 500ms, 30s, 10m or 1h30m or null, got '");
}

TEST(descriptions) {
    CHECK_TEXT(described("flag", false), "true or false");
    CHECK_TEXT(described("count", false), "integer, 1 to 512");
    CHECK_TEXT(described("version", false), "integer, exactly 1");
    CHECK_TEXT(described("seed", false), "integer, at least 0, or null");
    CHECK_TEXT(described("any", false), "integer");
    CHECK_TEXT(described("rate", false), "number, above 0");
    CHECK_TEXT(described("clip", false), "number, above 0, at most 10, or null");
    CHECK_TEXT(described("type", false), "one of sgd, adam, adamw");
    CHECK_TEXT(described("kernel", false), "one integer, or two as [3, 5] or 3x5, at least 1");
    CHECK_TEXT(described("padding", false), "integer, 0 to 9, or same, or valid");
    CHECK_TEXT(described("ids", false), "list of integers, at least 1 of them, at most 4 of them, at least 0");
    CHECK_TEXT(described("betas", false), "list of numbers, exactly 2, 0 to 1");
    CHECK_TEXT(described("log", false), "interval such as 50 steps, 1 epoch or 30m, or never");
    CHECK_TEXT(described("timeout", false), "duration such as 500ms, 30s, 10m or 1h30m, 1s to 1d (seconds)");
    CHECK_TEXT(described("count", true), "整数，1 到 512");
    CHECK_TEXT(described("type", true), "以下之一：sgd、adam、adamw");
    CHECK_TEXT(described("seed", true), "整数，不小于 0，或 null");
    CHECK_TEXT(described("clip", true), "数值，大于 0，不大于 10，或 null");
    for (const tdm_field *row = rows; row->key != NULL; row++) CHECK(strlen(described(row->key, true)) > 3);
}

/* Scraps of syntax in any order: nothing crashes, and whatever is taken prints as something that reads back equal. */
TEST(hostile) {
    static const char *const scrap[] = {
        "[",  "]",     ",",     "\"", "'",  "\\",          "\\u00e9", "\\u0000", "1",    "0", "-",    ".",    "e",
        "_",  "steps", "epoch", " ",  "  ", "m",           "h",       "ms",      "null", "~", "true", "adam", "\xFF",
        "中", "\n",    "#",     ": ", "{",  "99999999999", "nan",     "inf",     "0x",   "+", "\t"};
    tdm_rng rng;
    int taken = 0;
    tdm__rng_seed(&rng, 11, TDM_RNG_TORCH_AVX2);
    for (int i = 0; i < 40000; i++) {
        char text[256] = "";
        for (uint32_t left = tdm__rng_u32(&rng) % 9; left > 0; left--)
            strcat(text, scrap[tdm__rng_u32(&rng) % (sizeof(scrap) / sizeof(scrap[0]))]);
        const tdm_field *row = &rows[tdm__rng_u32(&rng) % (sizeof(rows) / sizeof(rows[0]) - 1)];
        if (!set(row->key, text)) {
            CHECK(why.length > 0);
            continue;
        }
        taken++;
        settings first = now;
        char kept[1024];
        if (row->kind == TDM_FIELD_PATH && !tdm__text_is_utf8(now.path, strlen(now.path), NULL)) continue;
        if (row->kind == TDM_FIELD_PATHS) {
            bool utf8 = true;
            for (int k = 0; k < now.files.count; k++)
                utf8 = utf8 && tdm__text_is_utf8(now.files.item[k], strlen(now.files.item[k]), NULL);
            if (!utf8) continue; /* file names may be any bytes, but what is printed is text */
        }
        snprintf(kept, sizeof(kept), "%s", printed(row->key));
        if (!set(row->key, kept) || !is_equal(row, &first, &now)) CHECK_TEXT(kept, text);
    }
    CHECK(taken > 1000);
}

TEST(without_memory) {
    for (long k = 1;; k++) {
        tdm_failing_host failing;
        tdm_failing_host_init(&failing, k);
        tdm_zone small;
        tdm_text message;
        settings local;
        tdm__zone_init(&small, &failing.host);
        tdm__text_init(&message, &failing.host);
        tdm_status status = tdm__field_set_initial(rows, &local, &small);
        bool good =
            status == TDM_OK && tdm__field_set_text(tdm__field_find(rows, "files"), &local, "[a, b]", &small, &message);
        tdm__text_deinit(&message);
        tdm__zone_deinit(&small);
        CHECK_INT(failing.live, 0);
        if (!failing.failed) {
            CHECK(good);
            break;
        }
        CHECK(!good);
        CHECK(status == TDM_OK || status == TDM_E_MEMORY);
    }
}

TEST_MAIN({
    tdm__zone_init(&zone, tdm_host_default());
    tdm__text_init(&why, tdm_host_default());
    memset(&now, 0, sizeof(now));
    RUN(finding);
    RUN(initial);
    RUN(bad_table);
    RUN(booleans);
    RUN(integers);
    RUN(floats);
    RUN(texts);
    RUN(enums);
    RUN(words_for_numbers);
    RUN(pairs);
    RUN(numbers);
    RUN(lists);
    RUN(intervals);
    RUN(sizes);
    RUN(durations);
    RUN(descriptions);

    RUN(hostile);
    RUN(without_memory);
    tdm__text_deinit(&why);
    tdm__zone_deinit(&zone);
})
