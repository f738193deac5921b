/* The strict JSON reader: what it takes, what it refuses, and windows that end in the middle of anything. */
#include <fcntl.h>
#include <unistd.h>

#include "runtime/base/text/json.h"
#include "tests/ckpt/ckpt_support.h"

/* Reads any JSON of the shapes below: every value is visited. Counts them. */
static bool visit(tdm_json *json, int *values) {
    char key[64];
    size_t length;
    if (!tdm__json_object(json)) return false;
    while (tdm__json_key(json, key, sizeof(key), &length)) {
        ++*values;
        if (strncmp(key, "text", 4) == 0) {
            if (!tdm__json_string(json, key, sizeof(key), &length)) return false;
        } else if (strncmp(key, "list", 4) == 0) {
            int64_t number;
            if (!tdm__json_array(json)) return false;
            while (tdm__json_item(json)) {
                if (!tdm__json_integer(json, &number)) return false;
            }
        } else if (strncmp(key, "object", 6) == 0) {
            if (!visit(json, values)) return false;
        } else {
            double number;
            if (!tdm__json_number(json, &number)) return false;
        }
        if (json->failed) return false;
    }
    return !json->failed;
}

static bool reads(const char *text, char why[256]) {
    tdm_json json;
    int values = 0;
    tdm__json_open(&json, text, strlen(text), 3);
    bool good = visit(&json, &values) && tdm__json_end(&json);
    if (why != NULL) strcpy(why, json.why);
    return good;
}

TEST(takes_json) {
    CHECK(reads("{}", NULL));
    CHECK(reads(" \t\r\n{ } \n", NULL));
    CHECK(reads("{\"a\":0,\"b\":-1.5e+3,\"list\":[1,-2,3],\"list2\":[],\"text\":\"\",\"object\":{\"x\":1}}", NULL));
    CHECK(reads("{\"a\": 0.5, \"b\": 1E-2, \"object\": {\"object\": {\"c\": 3}}}", NULL));
}

TEST(refuses_what_is_not_json) {
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"", "expected an object {...}, but the text ends (byte 0)"},
        {"[]", "expected an object {...}, found '['"},
        {"{\"a\":1,}", "expected a string in \"quotes\", found '}' (byte 7)"},
        {"{,\"a\":1}", "expected a string in \"quotes\", found ','"},
        {"{\"a\" 1}", "expected ':', found '1'"},
        {"{\"a\":1 \"b\":2}", "expected ',' or '}', found '\"'"},
        {"{\"a\":1", "expected ',' or '}', but the text ends"},
        {"{\"a\":01}", "starts with 0"},
        {"{\"a\":.5}", "expected a digit, found '.'"},
        {"{\"a\":1.}", "expected a digit, found '}'"},
        {"{\"a\":1e}", "expected a digit"},
        {"{\"a\":+1}", "expected a digit, found '+'"},
        {"{\"a\":NaN}", "expected a digit, found 'N'"},
        {"{\"a\":1e999}", "is not a finite number"},
        {"{\"list\":[1,]}", "expected a whole number"},
        {"{\"list\":[1.0]}", "expected a whole number, found '.'"},
        {"{\"list\":[1e2]}", "found 'e'"},
        {"{\"list\":[-]}", "expected a digit after '-'"},
        {"{\"list\":[9223372036854775808]}", "beyond 64 bits"},
        {"{\"list\":[12345678901234567890]}", "more than 19 digits"},
        {"{\"text\":\"a\nb\"}", "unescaped control character 0x0a"},
        {"{\"text\":\"abc", "expected the closing '\"', but the text ends"},
        {"{\"text\":\"\\x\"}", "an escape after '\\', found 'x'"},
        {"{\"text\":\"\\u12g4\"}", "four hex digits"},
        {"{\"text\":\"\\u0000\"}", "NUL"},
        {"{\"text\":\"\\ud800\"}", "half a surrogate pair \\ud800"},
        {"{\"text\":\"\\udc00\"}", "half a surrogate pair"},
        {"{\"text\":\"\\ud800\\u0041\"}", "half a surrogate pair"},
        {"{\"text\":\"\xC0\x80\"}", "not valid UTF-8"},
        {"{\"text\":\"\x80\"}", "not valid UTF-8"},
        {"{\"text\":\"\xED\xA0\x80\"}", "not valid UTF-8"},
        {"{\"text\":\"\xF5\x80\x80\x80\"}", "not valid UTF-8"},
        {"{\"text\":\"\xE2\x82\"}", "not valid UTF-8"},
        {"{\"object\":{\"object\":{\"object\":{}}}}", "nested deeper than 3"},
        {"{} x", "expected the end, found 'x' (byte 3)"},
        {"{\"text\":\"0123456789012345678901234567890123456789012345678901234567890123\"}", "longer than 63 bytes"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char why[256];
        CHECK(!reads(cases[i].text, why));
        CHECK_HAS(why, cases[i].why);
    }
}

TEST(strings_are_decoded) {
    static const char text[] = "{\"\\\"\\\\\\/\\b\\f\\n\\r\\t\":\"\\u0041\\u00e9\\u20AC\\uD83D\\uDE00\xE2\x82\xAC\"}";
    char key[64], value[64];
    size_t length;
    tdm_json json;
    tdm__json_open(&json, text, sizeof(text) - 1, 1);
    CHECK(tdm__json_object(&json));
    CHECK(tdm__json_key(&json, key, sizeof(key), &length));
    CHECK_INT(length, 8);
    CHECK_TEXT(key, "\"\\/\b\f\n\r\t");
    CHECK(tdm__json_string(&json, value, sizeof(value), &length));
    CHECK_TEXT(value, "A\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\xE2\x82\xAC");
    CHECK_INT(length, 1 + 2 + 3 + 4 + 3);
    CHECK(!tdm__json_key(&json, key, sizeof(key), &length));
    CHECK(!json.failed && tdm__json_end(&json));
}

TEST(numbers) {
    static const char text[] = "[0, 9999999999999999999, -9223372036854775807, 0.033333333333333333, -1.5E3]";
    tdm_json json;
    uint64_t natural;
    int64_t integer;
    double number;
    tdm__json_open(&json, text, sizeof(text) - 1, 1);
    CHECK(tdm__json_array(&json));
    CHECK(tdm__json_item(&json) && tdm__json_natural(&json, &natural) && natural == 0);
    CHECK(tdm__json_item(&json) && tdm__json_natural(&json, &natural) && natural == 9999999999999999999ull);
    CHECK(tdm__json_item(&json) && tdm__json_integer(&json, &integer) && integer == -INT64_MAX);
    CHECK(tdm__json_item(&json) && tdm__json_number(&json, &number) && number == 0.1 / 3);
    CHECK(tdm__json_item(&json) && tdm__json_number(&json, &number) && number == -1500);
    CHECK(!tdm__json_item(&json) && tdm__json_end(&json));
}

/* From a file, with padding in front so that the first window ends inside every part of the text in turn. */
TEST(windows_end_anywhere) {
    static const char text[] =
        "{\"text\":\"\\u20AC\xE2\x82\xAC\xF0\x9F\x98\x80\\ud83d\\ude00\",\"list\":[12345,-7],\"n\":1.5e10}";
    char folder[256], path[300];
    static char bytes[TDM_JSON_WINDOW + sizeof(text)];
    static unsigned char window[TDM_JSON_WINDOW];
    test_folder_make(folder);
    snprintf(path, sizeof(path), "%s/x", folder);
    for (size_t cut = 0; cut < sizeof(text); cut++) {
        size_t pad = TDM_JSON_WINDOW - cut;
        memset(bytes, ' ', pad);
        memcpy(bytes + pad, text, sizeof(text) - 1);
        support_write(path, bytes, pad + sizeof(text) - 1);
        int fd = open(path, O_RDONLY), values = 0;
        REQUIRE(fd >= 0);
        tdm_json json;
        tdm__json_open_file(&json, fd, 0, pad + sizeof(text) - 1, window, 3);
        CHECK(visit(&json, &values) && tdm__json_end(&json));
        CHECK_INT(values, 3);
        /* A file that is shorter than announced is a fault, not an endless wait. */
        tdm__json_open_file(&json, fd, 0, pad + sizeof(text) + 7, window, 3);
        CHECK(!(visit(&json, &values) && tdm__json_end(&json)));
        CHECK_HAS(json.why, "the file ends inside it");
        close(fd);
    }
    test_folder_remove(folder);
}

TEST_MAIN(RUN(takes_json); RUN(refuses_what_is_not_json); RUN(strings_are_decoded); RUN(numbers);
          RUN(windows_end_anywhere);)
