/* The growing text, JSON strings, UTF-8. */
#include "runtime/base/text/json_write.h"

#include <locale.h>
#include <stdarg.h>

#include <tandem/tandem.h>

#include "runtime/base/memory.h"
#include "runtime/base/text/utf8.h"
#include "tests/support/tdm_failing_host.h"
#include "tests/support/tdm_test.h"

TEST(building) {
    tdm_text text;
    char *taken;
    tdm__text_init(&text, tdm_host_default());
    tdm__text_puts(&text, "abc");
    tdm__text_add(&text, "d\0e", 3);
    CHECK_INT(text.length, 6);
    CHECK(memcmp(text.data, "abcd\0e", 7) == 0);
    tdm__text_deinit(&text);
    CHECK(text.data == NULL && text.length == 0);
    for (int i = 0; i < 1000; i++) tdm__text_printf(&text, "%d,", i);
    tdm__text_printf(&text, "%01000d", 1);
    CHECK_INT(text.length, 10 * 2 + 90 * 3 + 900 * 4 + 1000);
    REQUIRE_OK(tdm__text_take_public(&text, &taken));
    CHECK(strncmp(taken, "0,1,2,", 6) == 0 && taken[strlen(taken) - 1] == '1');
    tdm_free(taken);
    CHECK(text.data == NULL);
    REQUIRE_OK(tdm__text_take_public(&text, &taken));
    CHECK_TEXT(taken, "");
    tdm_free(taken);
}

TEST(public_text) {
    tdm_failing_host failing;
    tdm_text text;
    char *taken;
    tdm_failing_host_init(&failing, 0);
    tdm__text_init(&text, &failing.host);
    tdm__text_puts(&text, "for the caller");
    REQUIRE_OK(tdm__text_take_public(&text, &taken));
    CHECK_INT(failing.live, 0);
    CHECK_TEXT(taken, "for the caller");
    tdm_free(taken);
    REQUIRE_OK(tdm__text_take_public(&text, &taken));
    CHECK_TEXT(taken, "");
    tdm_free(taken);
    tdm_free(NULL);
}

TEST(sticky_failure) {
    for (long k = 1; k <= 3; k++) {
        tdm_failing_host failing;
        tdm_failing_host_init(&failing, k);
        tdm_text text;
        char *taken = NULL;
        tdm__text_init(&text, &failing.host);
        for (int i = 0; i < 100; i++) tdm__text_printf(&text, "line %d\n", i);
        CHECK(text.failed);
        tdm__text_puts(&text, "more");
        CHECK(text.data == NULL || strstr(text.data, "more") == NULL);
        CHECK_STATUS(tdm__text_take_public(&text, &taken), TDM_E_MEMORY);
        CHECK(taken == NULL);
        CHECK_INT(failing.live, 0);
    }
}

static const char *json(tdm_text *text, const char *from) {
    tdm__text_deinit(text);
    tdm__text_json_string(text, from);
    return text->data;
}

TEST(json_strings) {
    tdm_text text;
    tdm__text_init(&text, tdm_host_default());
    CHECK_TEXT(json(&text, ""), "\"\"");
    CHECK_TEXT(json(&text, "a\"b\\c/d"), "\"a\\\"b\\\\c/d\"");
    CHECK_TEXT(json(&text, "\n\r\t\x01\x1f\x7f"), "\"\\n\\r\\t\\u0001\\u001f\\u007f\"");
    CHECK_TEXT(json(&text, "中文 \xF0\x9F\x98\x80"), "\"中文 \xF0\x9F\x98\x80\"");
    CHECK_TEXT(json(&text, "a\xFFz\xE4\xB8"), "\"a\\ufffdz\\ufffd\\ufffd\"");
    tdm__text_deinit(&text);
    tdm__text_json_number(&text, 0.1);
    tdm__text_puts(&text, " ");
    tdm__text_json_number(&text, NAN);
    tdm__text_puts(&text, " ");
    tdm__text_json_number(&text, -INFINITY);
    tdm__text_puts(&text, " ");
    tdm__text_json_number(&text, 3);
    CHECK_TEXT(text.data, "0.10000000000000001 null null 3");
    tdm__text_deinit(&text);
}

TEST(json_templates) {
    tdm_text text;
    const char *volatile none = NULL;
    tdm__text_init(&text, tdm_host_default());
    tdm_json_out json = tdm__json_out(&text, "");
    tdm__json_put(&json, "{ kind:train n:%d none:%s list:[ %lld %zu %llu ] loss:%.3g", -3, none, (long long)INT64_MIN,
                  (size_t)7, (unsigned long long)UINT64_MAX, 0.12345);
    tdm__json_put_bool(&json, "on", true);
    tdm__json_put_integers(&json, "shape", (int64_t[]){2, 3}, 2);
    tdm__json_put(&json, "%s:{} empty:[] a:%.2f b:%.9g off:false }\n", "k\"", 1.0 / 3.0, NAN);
    CHECK_TEXT(text.data,
               "{\"kind\":\"train\",\"n\":-3,\"none\":null,\"list\":[-9223372036854775808,7,18446744073709551615],"
               "\"loss\":0.123,\"on\":true,\"shape\":[2,3],\"k\\\"\":{},\"empty\":[],\"a\":0.33,\"b\":null,"
               "\"off\":false}\n");
    tdm__text_deinit(&text);
    json = tdm__json_out(&text, " ");
    tdm__json_put(&json, "{ rows:[\n");
    for (int i = 0; i < 2; i++) tdm__json_put(&json, "{ name:%s at:{\n i:%d }}", "a b", i);
    tdm__json_put(&json, "] none:[\n ] %s:%s }\n", "last", "]");
    CHECK_TEXT(text.data, "{\"rows\": [\n  {\"name\": \"a b\", \"at\": {\n    \"i\": 0\n  }},\n"
                          "  {\"name\": \"a b\", \"at\": {\n    \"i\": 1\n  }}\n], \"none\": [], \"last\": \"]\"}\n");
    tdm__text_deinit(&text);
}

TEST(utf8) {
    static const struct {
        const char *bytes;
        int bad; /* -1: valid */
    } cases[] = {
        {"", -1},
        {"plain", -1},
        {"\xC2\x80 \xDF\xBF", -1},
        {"\xE0\xA0\x80\xED\x9F\xBF\xEE\x80\x80\xEF\xBF\xBF", -1},
        {"\xF0\x90\x80\x80\xF4\x8F\xBF\xBF", -1},
        {"a\x80", 1},            /* lonely continuation */
        {"ab\xC0\x80", 2},       /* overlong NUL */
        {"\xC1\xBF", 0},         /* overlong */
        {"x\xE0\x9F\xBF", 1},    /* overlong */
        {"\xF0\x8F\xBF\xBF", 0}, /* overlong */
        {"\xED\xA0\x80", 0},     /* surrogate */
        {"\xED\xBF\xBF", 0},     /* surrogate */
        {"\xF4\x90\x80\x80", 0}, /* beyond U+10FFFF */
        {"\xF5\x80\x80\x80", 0},
        {"\xFF", 0},
        {"ok\xE4\xB8", 2}, /* cut short */
        {"ok\xE4\xB8 ", 2},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        size_t bad = 99;
        bool valid = tdm__text_is_utf8(cases[i].bytes, strlen(cases[i].bytes), &bad);
        CHECK_INT(valid, cases[i].bad < 0);
        if (!valid) CHECK_INT(bad, cases[i].bad);
    }
    uint32_t code;
    CHECK_INT(tdm__utf8_next("\xF0\x9F\x98\x80", 4, &code), 4);
    CHECK_INT(code, 0x1F600);
    CHECK_INT(tdm__utf8_next("\xF0\x9F\x98\x80", 3, &code), 0);
}

TEST(printable) {
    static const struct {
        const char *from, *one_line, *lines;
    } row[] = {
        {"", "", ""},
        {NULL, "", ""},
        {"plain, \xE4\xB8\xAD\xE6\x96\x87 \xF0\x9F\x98\x80 e\xCC\x81",
         "plain, \xE4\xB8\xAD\xE6\x96\x87 \xF0\x9F\x98\x80 e\xCC\x81",
         "plain, \xE4\xB8\xAD\xE6\x96\x87 \xF0\x9F\x98\x80 e\xCC\x81"},
        {"a\nb\tc\r", "a\\x0ab\\x09c\\x0d", "a\nb\tc\\x0d"},
        {"\x1B[31m\x07\x7F", "\\x1b[31m\\x07\\x7f", "\\x1b[31m\\x07\\x7f"},
        {"\xC2\x9B"
         "2J\xC2\x85",
         "\\u009b2J\\u0085", "\\u009b2J\\u0085"},
        {"\x9B"
         "2J\xFF\xC2",
         "\\x9b2J\\xff\\xc2", "\\x9b2J\\xff\\xc2"},
        {"\xE2\x80\xAE\xE2\x81\xA6\xD8\x9C", "\\u202e\\u2066\\u061c", "\\u202e\\u2066\\u061c"},
        {"\xE2\x80\xA8\xE2\x80\x8F\xEF\xBB\xBF", "\\u2028\\u200f\\ufeff", "\\u2028\\u200f\\ufeff"},
        {"\xC2\xAD\xE2\x80\x8B\xF3\xA0\x81\x81", "\\u00ad\\u200b\\ue0041", "\\u00ad\\u200b\\ue0041"},
        {"\xC0\x9B\xED\xA0\x80", "\\xc0\\x9b\\xed\\xa0\\x80", "\\xc0\\x9b\\xed\\xa0\\x80"},
    };
    char out[128], again[128];
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        CHECK_INT(tdm_text_printable(out, sizeof(out), row[i].from, 0), strlen(row[i].one_line));
        CHECK_TEXT(out, row[i].one_line);
        CHECK_INT(tdm_text_printable(NULL, 0, row[i].from, 0), strlen(row[i].one_line));
        tdm_text_printable(again, sizeof(again), out, 0);
        CHECK_TEXT(again, out);
        tdm_text_printable(out, sizeof(out), row[i].from, 1);
        CHECK_TEXT(out, row[i].lines);
    }
    CHECK_INT(tdm_text_printable(out, 8,
                                 "abc\x1B"
                                 "def",
                                 0),
              10);
    CHECK_TEXT(out, "abc\\x1b");
    CHECK_INT(tdm_text_printable(out, 7,
                                 "abc\x1B"
                                 "def",
                                 0),
              10);
    CHECK_TEXT(out, "abc");
    CHECK_INT(tdm_text_printable(out, 3, "\xE4\xB8\xAD", 0), 3);
    CHECK_TEXT(out, "");
}

TEST(columns) {
    CHECK_INT(tdm_text_columns(""), 0);
    CHECK_INT(tdm_text_columns("abc"), 3);
    CHECK_INT(tdm_text_columns("训练，ok"), 8);
    CHECK_INT(tdm_text_columns("é"), 1);
    CHECK_INT(tdm_text_columns("e\xCC\x81"), 1); /* combining accent */
    CHECK_INT(tdm_text_columns("한"), 2);
    CHECK_INT(tdm_text_columns("\xF0\x9F\x98\x80"), 2);
    CHECK_INT(tdm_text_columns("a\xFF"), 2);
}

static int format_to(char *out, size_t bytes, const char *format, ...) TDM_PRINTF(3, 4);
static int format_to(char *out, size_t bytes, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = tdm__format(out, bytes, format, arguments);
    va_end(arguments);
    return length;
}

/* With a decimal comma where the machine has such a locale; without one this still tests the C locale. */
TEST(formatting_ignores_the_locale) {
    const char *names[] = {"de_DE.UTF-8", "de_DE", "fr_FR.UTF-8", "ru_RU.UTF-8", "C"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && setlocale(LC_ALL, names[i]) == NULL; i++) continue;
    char out[16];
    CHECK_INT(format_to(out, sizeof(out), "%.2f", 1.5), 4);
    CHECK_TEXT(out, "1.50");
    double value = 0;
    CHECK(tdm__parse_float("2.5", &value) && value == 2.5);
    CHECK_INT(format_to(out, 4, "%s", "longer"), 6);
    CHECK_TEXT(out, "lon");
    setlocale(LC_ALL, "C");
}

TEST_MAIN(RUN(building); RUN(public_text); RUN(sticky_failure); RUN(json_strings); RUN(json_templates); RUN(utf8);
          RUN(printable); RUN(columns); RUN(formatting_ignores_the_locale);)
