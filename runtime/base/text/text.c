/* The growing text, and JSON literals in it. */
#include "runtime/base/text/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/base/text/utf8.h"

void tdm__text_init(tdm_text *text, const tdm_host *host) {
    *text = (tdm_text){.host = host};
}

void tdm__text_deinit(tdm_text *text) {
    tdm__delete(text->host, text->data);
    tdm__text_init(text, text->host);
}

/* Room for `count` more bytes and the terminator. */
static bool reserve(tdm_text *text, size_t count) {
    size_t needed;
    if (text->failed) return false;
    if (!tdm__add_fits(text->length, count, &needed) || !tdm__add_fits(needed, 1, &needed) ||
        tdm__grow(text->host, &text->data, &text->capacity, needed < 64 ? 64 : needed, 1, "text") != TDM_OK) {
        text->failed = true;
        return false;
    }
    return true;
}

void tdm__text_add(tdm_text *text, const char *bytes, size_t count) {
    if (!reserve(text, count)) return;
    if (count > 0) memcpy(text->data + text->length, bytes, count);
    text->length += count;
    text->data[text->length] = '\0';
}

void tdm__text_puts(tdm_text *text, const char *terminated) {
    tdm__text_add(text, terminated, strlen(terminated));
}

void tdm__text_printf(tdm_text *text, const char *format, ...) {
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    const size_t length = (size_t)tdm__format(NULL, 0, format, arguments);
    if (reserve(text, length)) {
        tdm__format(text->data + text->length, length + 1, format, again);
        text->length += length;
    }
    va_end(again);
    va_end(arguments);
}

void tdm__text_shown(tdm_text *text, const char *terminated) {
    const size_t bytes = tdm_text_printable(NULL, 0, terminated, 0);
    if (!reserve(text, bytes)) return;
    (void)tdm_text_printable(text->data + text->length, bytes + 1, terminated, 0);
    text->length += bytes;
}

/* The number of leading bytes that a JSON string holds unescaped: printable ASCII except '"' and '\\'. */
static size_t count_unescaped(const char *at, const char *end) {
    const char *start = at;
    while (at < end && *at >= ' ' && *at <= '~' && *at != '"' && *at != '\\') at++;
    return (size_t)(at - start);
}

void tdm__text_json_string(tdm_text *text, const char *terminated) {
    static const char escaped[] = "\"\\\n\r\t", letter[] = "\"\\nrt";
    const char *at = terminated, *end = terminated + strlen(terminated);
    tdm__text_puts(text, "\"");
    while (at < end) {
        const size_t plain = count_unescaped(at, end);
        if (plain > 0) {
            tdm__text_add(text, at, plain);
            at += plain;
            continue;
        }
        uint32_t code;
        int length = tdm__utf8_next(at, (size_t)(end - at), &code);
        if (length == 0) {
            tdm__text_puts(text, "\\ufffd");
            at++;
            continue;
        }
        const char *found = code != 0 && code < 0x80 ? strchr(escaped, (int)code) : NULL;
        if (found != NULL)
            tdm__text_printf(text, "\\%c", letter[found - escaped]);
        else if (tdm__utf8_is_printable(code))
            tdm__text_add(text, at, (size_t)length);
        else if (code > 0xFFFF) /* two surrogates */
            tdm__text_printf(text, "\\u%04x\\u%04x", 0xD7C0u + (code >> 10), 0xDC00u + (code & 0x3FF));
        else
            tdm__text_printf(text, "\\u%04x", (unsigned)code);
        at += length;
    }
    tdm__text_puts(text, "\"");
}

void tdm__text_json_number(tdm_text *text, double value) {
    if (isfinite(value))
        tdm__text_printf(text, "%.17g", value);
    else
        tdm__text_puts(text, "null");
}

tdm_status tdm__text_take_public(tdm_text *text, char **out) {
    const char *data = text->data == NULL ? "" : text->data;
    size_t bytes = text->failed ? 0 : tdm_text_printable(NULL, 0, data, 1) + 1;
    *out = text->failed ? NULL : malloc(bytes);
    if (*out != NULL) (void)tdm_text_printable(*out, bytes, data, 1);
    tdm__text_deinit(text);
    if (*out == NULL) TDM_FAIL(TDM_E_MEMORY, "text: out of memory, needed %zu bytes", bytes);
    return TDM_OK;
}
