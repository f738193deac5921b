/* A strict JSON reader over a window; see json.h. */
#include "runtime/base/text/json.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/text/text.h"
#include "runtime/base/text/utf8.h"

void tdm__json_open(tdm_json *json, const void *text, size_t count, int max_depth) {
    *json = (tdm_json){.start = text, .at = text, .text_bytes = count, .fd = -1, .max_depth = max_depth};
    json->end = json->start + count;
}

void tdm__json_open_file(tdm_json *json, int fd, uint64_t offset, uint64_t count, void *window, int max_depth) {
    *json = (tdm_json){.start = window,
                       .at = window,
                       .end = window,
                       .window = window,
                       .text_bytes = count,
                       .file_offset = offset,
                       .fd = fd,
                       .max_depth = max_depth};
}

bool tdm__json_fail(tdm_json *json, const char *format, ...) {
    char clause[200];
    va_list arguments;
    if (json->failed) return false;
    json->failed = true;
    va_start(arguments, format);
    tdm__format(clause, sizeof(clause), format, arguments);
    va_end(arguments);
    unsigned long long offset = json->start_offset + (uint64_t)(json->at - json->start);
    snprintf(json->why, sizeof(json->why), "%s (byte %llu)", clause, offset);
    return false;
}

/* Reads the next window of the file. False at the end of the text. */
static bool refill(tdm_json *json) {
    if (json->fd < 0 || json->failed) return false;
    uint64_t next = json->start_offset + (uint64_t)(json->end - json->start);
    uint64_t left = json->text_bytes - next;
    if (left == 0) return false;
    size_t count = left < TDM_JSON_WINDOW ? (size_t)left : TDM_JSON_WINDOW;
    ssize_t got;
    do {
        got = pread(json->fd, json->window, count, (off_t)(json->file_offset + next));
    } while (got < 0 && errno == EINTR);
    if (got <= 0) {
        json->error = got < 0 ? errno : 0;
        return tdm__json_fail(json, got < 0 ? "cannot be read" : "the file ends inside it");
    }
    json->start = json->at = json->window;
    json->end = json->window + got;
    json->start_offset = next;
    return true;
}

/* The next byte without consuming it; -1 at the end. */
static inline int peek(tdm_json *json) {
    return json->at < json->end || refill(json) ? *json->at : -1;
}

static inline int take(tdm_json *json) {
    return json->at < json->end || refill(json) ? *json->at++ : -1;
}

static bool is_space(int c) {
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* Skips white space and peeks at the next byte. Headers may be padded with megabytes of spaces, so spaces are skipped
 * eight at a time. */
static int after_space(tdm_json *json) {
    static const char spaces[8] = {' ', ' ', ' ', ' ', ' ', ' ', ' ', ' '};
    int c;
    while (is_space(c = peek(json))) {
        json->at++;
        while (json->end - json->at >= 8 && memcmp(json->at, spaces, 8) == 0) json->at += 8;
    }
    return json->failed ? -1 : c;
}

static bool unexpected(tdm_json *json, const char *expected) {
    int c = peek(json);
    if (c < 0) return tdm__json_fail(json, "expected %s, but the text ends", expected);
    if (c >= 0x21 && c < 0x7F) return tdm__json_fail(json, "expected %s, found '%c'", expected, c);
    return tdm__json_fail(json, "expected %s, found byte 0x%02x", expected, (unsigned)c);
}

static bool enter(tdm_json *json, int bracket, const char *expected) {
    if (after_space(json) != bracket) return unexpected(json, expected);
    if (json->depth >= json->max_depth) return tdm__json_fail(json, "nested deeper than %d", json->max_depth);
    json->at++;
    json->first[++json->depth] = true;
    return true;
}

/* Is there another member? Consumes the comma before it, or the closing bracket. */
static bool another(tdm_json *json, int bracket, const char *expected) {
    int c = after_space(json);
    if (json->failed) return false;
    bool first = json->first[json->depth];
    if (c == bracket) {
        json->at++;
        json->depth--;
        return false;
    }
    json->first[json->depth] = false;
    if (first) return true;
    if (c != ',') return unexpected(json, expected);
    json->at++;
    return true;
}

bool tdm__json_object(tdm_json *json) {
    return enter(json, '{', "an object {...}");
}

bool tdm__json_array(tdm_json *json) {
    return enter(json, '[', "a list [...]");
}

bool tdm__json_item(tdm_json *json) {
    return another(json, ']', "',' or ']'");
}

bool tdm__json_key(tdm_json *json, char *out, size_t capacity, size_t *length) {
    if (!another(json, '}', "',' or '}'")) return false;
    if (!tdm__json_string(json, out, capacity, length)) return false;
    if (after_space(json) != ':') return unexpected(json, "':'");
    json->at++;
    return true;
}

/* The buffer for a string (NULL: none), and how much of it has been written. */
typedef struct string_out {
    char *out;
    size_t capacity, length;
} string_out;

static bool put(tdm_json *json, string_out *to, const char *bytes, size_t count) {
    if (count >= to->capacity - to->length)
        return tdm__json_fail(json, "a string is longer than %zu bytes", to->capacity - 1);
    if (to->out != NULL) memcpy(to->out + to->length, bytes, count);
    to->length += count;
    return true;
}

static bool put_code(tdm_json *json, string_out *to, uint32_t code) {
    static const unsigned char lead[] = {0, 0xC0, 0xE0, 0xF0};
    const int following = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    char bytes[4];
    for (int i = following; i > 0; i--, code >>= 6) bytes[i] = (char)(0x80 | (code & 0x3F));
    bytes[0] = (char)(lead[following] | code);
    return put(json, to, bytes, (size_t)following + 1);
}

static bool four_hex(tdm_json *json, uint32_t *code) {
    *code = 0;
    for (int i = 0; i < 4; i++) {
        static const char digits[] = "0123456789abcdef0123456789ABCDEF";
        const int c = peek(json);
        const char *digit = c > 0 ? strchr(digits, c) : NULL;
        if (digit == NULL) return unexpected(json, "four hex digits after \\u");
        json->at++;
        *code = *code << 4 | (uint32_t)((digit - digits) % 16);
    }
    return true;
}

static bool unicode_escape(tdm_json *json, string_out *to) {
    uint32_t code, low;
    if (!four_hex(json, &code)) return false;
    if (code == 0) return tdm__json_fail(json, "a string contains a NUL");
    if (code >= 0xDC00 && code < 0xE000) return tdm__json_fail(json, "half a surrogate pair \\u%04x", code);
    if (code >= 0xD800 && code < 0xDC00) {
        if (take(json) != '\\' || take(json) != 'u') return tdm__json_fail(json, "half a surrogate pair \\u%04x", code);
        if (!four_hex(json, &low)) return false;
        if (low < 0xDC00 || low >= 0xE000) return tdm__json_fail(json, "half a surrogate pair \\u%04x", code);
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    return put_code(json, to, code);
}

static bool escape(tdm_json *json, string_out *to) {
    static const char letter[] = "\"\\/bfnrt", meaning[] = "\"\\/\b\f\n\r\t";
    int c = peek(json);
    if (c == 'u') {
        json->at++;
        return unicode_escape(json, to);
    }
    const char *found = c > 0 ? strchr(letter, c) : NULL;
    if (found == NULL) return unexpected(json, "an escape after '\\'");
    json->at++;
    return put(json, to, &meaning[found - letter], 1);
}

/* A character of several bytes. It may lie across two windows. */
static bool wide_character(tdm_json *json, string_out *to) {
    char bytes[4];
    uint32_t code;
    int first = take(json), count = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
    bytes[0] = (char)first;
    for (int i = 1; i < count; i++) {
        int c = peek(json);
        if (c < 0x80 || c >= 0xC0) return tdm__json_fail(json, "not valid UTF-8");
        bytes[i] = (char)c;
        json->at++;
    }
    if (tdm__utf8_next(bytes, (size_t)count, &code) != count) return tdm__json_fail(json, "not valid UTF-8");
    return put(json, to, bytes, (size_t)count);
}

bool tdm__json_string(tdm_json *json, char *out, size_t capacity, size_t *length) {
    string_out to = {out, capacity, 0};
    *length = 0;
    if (after_space(json) != '"') return unexpected(json, "a string in \"quotes\"");
    if (capacity == 0) return tdm__json_fail(json, "no room for another string");
    json->string_offset = json->start_offset + (uint64_t)(json->at - json->start);
    json->at++;
    for (;;) {
        const unsigned char *p = json->at;
        while (p < json->end && *p >= 0x20 && *p < 0x80 && *p != '"' && *p != '\\') p++;
        if (p > json->at && !put(json, &to, (const char *)json->at, (size_t)(p - json->at))) return false;
        json->at = p;
        int c = peek(json);
        if (c < 0) return unexpected(json, "the closing '\"'");
        if (c == '"') break;
        bool good = true;
        if (c == '\\') {
            json->at++;
            good = escape(json, &to);
        } else if (c >= 0x80) {
            good = wide_character(json, &to);
        } else if (c < 0x20) {
            good = tdm__json_fail(json, "an unescaped control character 0x%02x in a string", (unsigned)c);
        }
        if (!good) return false;
    }
    json->at++;
    if (out != NULL) out[to.length] = '\0';
    *length = to.length;
    return true;
}

bool tdm__json_natural(tdm_json *json, uint64_t *out) {
    uint64_t value = 0;
    int digits = 0, c = after_space(json), first = c;
    *out = 0;
    if (c < '0' || c > '9') return unexpected(json, "a whole number");
    for (; c >= '0' && c <= '9'; c = peek(json)) {
        if (++digits > 19) return tdm__json_fail(json, "a number has more than 19 digits");
        value = value * 10 + (uint64_t)(c - '0');
        json->at++;
    }
    if (digits > 1 && first == '0') return tdm__json_fail(json, "a number starts with 0");
    if (c == '.' || c == 'e' || c == 'E') return unexpected(json, "a whole number");
    *out = value;
    return !json->failed;
}

bool tdm__json_integer(tdm_json *json, int64_t *out) {
    uint64_t value;
    *out = 0;
    bool negative = after_space(json) == '-';
    if (negative) {
        json->at++;
        int c = peek(json);
        if (c < '0' || c > '9') return unexpected(json, "a digit after '-'");
    }
    if (!tdm__json_natural(json, &value)) return false;
    if (value > INT64_MAX) return tdm__json_fail(json, "a number is beyond 64 bits");
    *out = negative ? -(int64_t)value : (int64_t)value;
    return true;
}

/* Appends [0-9]+ to `text`. False if there is no digit or no room. */
static bool digits_to(tdm_json *json, char *text, size_t capacity, size_t *length) {
    size_t before = *length;
    for (int c = peek(json); c >= '0' && c <= '9'; c = peek(json)) {
        if (*length + 2 >= capacity)
            return tdm__json_fail(json, "a number is longer than %zu characters", capacity - 2);
        text[(*length)++] = (char)c;
        json->at++;
    }
    return *length > before || unexpected(json, "a digit");
}

bool tdm__json_number(tdm_json *json, double *out) {
    char text[64];
    size_t length = 0;
    *out = 0;
    if (after_space(json) == '-') text[length++] = (char)take(json);
    size_t first = length;
    if (!digits_to(json, text, sizeof(text), &length)) return false;
    if (text[first] == '0' && length > first + 1) return tdm__json_fail(json, "a number starts with 0");
    if (peek(json) == '.') {
        text[length++] = (char)take(json);
        if (!digits_to(json, text, sizeof(text), &length)) return false;
    }
    int c = peek(json);
    if (c == 'e' || c == 'E') {
        text[length++] = (char)take(json);
        c = peek(json);
        if ((c == '+' || c == '-') && length + 2 < sizeof(text)) text[length++] = (char)take(json);
        if (!digits_to(json, text, sizeof(text), &length)) return false;
    }
    text[length] = '\0';
    if (!tdm__parse_float(text, out)) return tdm__json_fail(json, "'%s' is not a finite number", text);
    return true;
}

static bool literal(tdm_json *json, const char *word) {
    for (const char *c = word; *c != '\0'; c++) {
        if (take(json) != *c) return tdm__json_fail(json, "expected %s", word);
    }
    return true;
}

/* Recurses at most max_depth times. */
bool tdm__json_skip(tdm_json *json) {
    size_t length;
    double number;
    switch (after_space(json)) {
    case '"':
        return tdm__json_string(json, NULL, SIZE_MAX, &length);
    case '{':
        if (!tdm__json_object(json)) return false;
        while (tdm__json_key(json, NULL, SIZE_MAX, &length)) {
            if (!tdm__json_skip(json)) return false;
        }
        return !json->failed;
    case '[':
        if (!tdm__json_array(json)) return false;
        while (tdm__json_item(json)) {
            if (!tdm__json_skip(json)) return false;
        }
        return !json->failed;
    case 't':
        return literal(json, "true");
    case 'f':
        return literal(json, "false");
    case 'n':
        return literal(json, "null");
    default:
        return tdm__json_number(json, &number);
    }
}

bool tdm__json_end(tdm_json *json) {
    int c = after_space(json);
    if (json->failed) return false;
    return c < 0 || unexpected(json, "the end");
}
