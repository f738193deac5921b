/* The error record of each thread. Its size is fixed, so that "out of memory" can be reported without memory. */
#include "runtime/base/status.h"

#include <stdarg.h>
#include <string.h>

#include "runtime/base/text/text.h"
#include "runtime/base/text/utf8.h"

static _Thread_local tdm_error record;

/* A text that was truncated to its buffer may end in the middle of a UTF-8 character: removes that part. */
static void drop_half_character(char *text) {
    size_t end = strlen(text);
    size_t first = end;
    while (first > 0 && end - first < 4 && !tdm__utf8_begins(text[first - 1])) first--;
    if (first == 0) return;
    unsigned char lead = (unsigned char)text[first - 1];
    size_t following = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : lead >= 0xC0 ? 1 : 0;
    if (end - first < following) text[first - 1] = '\0';
}

static void make_one_line(char *text) {
    for (char *c = text; *c != '\0'; c++) {
        if (*c == '\n' || *c == '\r' || *c == '\t') *c = ' ';
    }
}

static void copy_text(char *to, size_t capacity, const char *from) {
    size_t length = strlen(from);
    if (length >= capacity) length = capacity - 1;
    memmove(to, from, length);
    to[length] = '\0';
    drop_half_character(to);
}

tdm_status tdm__fail(tdm_status status, const char *file, int line, const tdm_origin *origin, const char *format, ...) {
    /* Formatted into a copy first: an argument may be the record's own message, which this one wraps. */
    char message[sizeof(record.message)];
    va_list arguments;
    va_start(arguments, format);
    tdm__format(message, sizeof(message), format, arguments);
    va_end(arguments);
    make_one_line(message);
    drop_half_character(message);

    record.status = status;
    (void)tdm_text_printable(record.message, sizeof(record.message), message, 0);
    record.file[0] = '\0';
    record.line = record.column = 0;
    if (origin != NULL) (void)tdm__error_at(status, origin);
    record.frame_count = 0;
    return tdm__frame(status, file, line);
}

tdm_status tdm__frame(tdm_status status, const char *file, int line) {
    if (record.frame_count < TDM_ERROR_FRAMES) {
        record.frame[record.frame_count].file = file;
        record.frame[record.frame_count].line = line;
        record.frame_count++;
    }
    return status;
}

/* The place of an override ends in its key. Where the message begins with the key, too, the place goes without. */
static void drop_key(const char *message, char *place) {
    char *colon = strstr(place, ": ");
    const size_t length = colon != NULL ? strlen(colon + 2) : 0;
    if (length == 0 || strncmp(message, colon + 2, length) != 0) return;
    if (message[length] == ' ' || message[length] == ':') *colon = '\0';
}

tdm_status tdm__error_at(tdm_status status, const tdm_origin *origin) {
    if (status == TDM_OK || record.file[0] != '\0' || origin->file == NULL) return status;
    copy_text(record.file, sizeof(record.file), origin->file);
    if (origin->line == 0) drop_key(record.message, record.file);
    record.line = origin->line;
    record.column = origin->column;
    return status;
}

void tdm__error_save(tdm_error *out) {
    *out = record;
}

tdm_status tdm__error_restore(const tdm_error *saved, const char *prefix) {
    if (saved != &record) record = *saved;
    if (prefix != NULL && prefix[0] != '\0') {
        char message[sizeof(record.message)];
        copy_text(message, sizeof(message), record.message);
        copy_text(record.message, sizeof(record.message), prefix);
        size_t length = strlen(record.message);
        copy_text(record.message + length, sizeof(record.message) - length, message);
    }
    return record.status;
}

const tdm_error *tdm_error_last(void) {
    return &record;
}

const char *tdm_error_message(void) {
    return record.message;
}

const char *tdm_status_name(tdm_status status) {
    switch (status) {
#define X(name, number, text) \
    case TDM_##name:          \
        return #name;
        TDM_STATUS_MAP(X)
#undef X
    }
    return "unknown";
}

const char *tdm_status_text(tdm_status status) {
    switch (status) {
#define X(name, number, text) \
    case TDM_##name:          \
        return text;
        TDM_STATUS_MAP(X)
#undef X
    }
    return "unknown";
}
