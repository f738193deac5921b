/* text.c - small texts: numbers with commas, sizes, durations, words for a shell; and memory: where there is none, the
 * command says so and ends. */
#include "tools/tool.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/terminal/outlet.h"

static void (*last_act)(int code); /* of memory_missing; NULL: none */

void memory_at_end(void (*act)(int code)) {
    last_act = act;
}

void memory_freed(void *variable) {
    free(*(void **)variable);
}

void text_freed(char **text) {
    tdm_free(*text);
}

_Noreturn void memory_missing(void) {
    outlet_try(STDERR_FILENO, "tandem: error: out of memory\n");
    outlet_flush(true);
    if (last_act) last_act(TDM_E_MEMORY);
    _exit(TDM_E_MEMORY); /* not exit(): exit handlers may need memory */
}

char *text_format_list(const char *format, va_list args) {
    char *out;
    if (vasprintf(&out, format, args) < 0) memory_missing();
    return out;
}

char *text_format(const char *format, ...) {
    va_list args;
    va_start(args, format);
    char *out = text_format_list(format, args);
    va_end(args);
    return out;
}

char *text_copy(const char *text) {
    char *out = strdup(text);
    if (!out) memory_missing();
    return out;
}

char *text_printable(const char *text, bool keeps_lines) {
    size_t bytes = tdm_text_printable(NULL, 0, text, keeps_lines) + 1;
    char *out = memory_new(bytes, 1);
    tdm_text_printable(out, bytes, text, keeps_lines);
    return out;
}

char *text_format_printable(const char *format, va_list args) {
    FREED char *text = text_format_list(format, args);
    return text_printable(text, false);
}

void *memory_new(size_t count, size_t bytes) {
    void *out = calloc(count ? count : 1, bytes);
    if (!out) memory_missing();
    return out;
}

void *memory_grow(void *old, size_t *capacity, size_t needed, size_t bytes) {
    if (needed <= *capacity) return old;
    size_t room = *capacity ? *capacity * 2 : 16;
    if (room < needed) room = needed;
    void *out = reallocarray(old, room, bytes);
    if (!out) memory_missing();
    *capacity = room;
    return out;
}

const char *text_count(char out[32], int64_t number) {
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%lld", (long long)number);
    int used = 0;
    for (int i = 0; i < length; i++) {
        if (i > 0 && digits[i - 1] != '-' && (length - i) % 3 == 0) out[used++] = ',';
        out[used++] = digits[i];
    }
    out[used] = 0;
    return out;
}

const char *text_bytes(char out[32], double bytes) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    int unit = 0;
    while (bytes >= 1024 && unit < 4) {
        bytes /= 1024;
        unit++;
    }
    snprintf(out, 32, unit == 0 || bytes >= 100 ? "%.0f %s" : "%.1f %s", bytes, units[unit]);
    return out;
}

const char *text_time(char out[32], double seconds) {
    if (!isfinite(seconds) || seconds < 0 || seconds > 1e9) return strcpy(out, "?");
    long long whole = (long long)seconds;
    long long hours = whole / 3600, minutes = whole / 60 % 60;
    if (hours > 0) {
        snprintf(out, 32, "%lld:%02lld:%02lld", hours, minutes, whole % 60);
    } else {
        snprintf(out, 32, "%02lld:%02lld", minutes, whole % 60);
    }
    return out;
}

const char *text_number(char out[32], double value) {
    double size = fabs(value);
    if (!isfinite(value)) return strcpy(out, isnan(value) ? "-" : value < 0 ? "-inf" : "inf");
    if (value == floor(value) && size < 1e15) return text_count(out, (int64_t)value);
    if (size >= 1e3 && size < 1e15) return text_count(out, (int64_t)round(value));
    if (size > 0 && (size < 1e-3 || size >= 1e7)) {
        snprintf(out, 32, "%.2e", value);
    } else {
        snprintf(out, 32, "%.*f", size >= 100 ? 1 : size >= 10 ? 2 : size >= 1 ? 3 : 4, value);
    }
    return out;
}

const char *text_ms(char out[32], double ms) {
    if (!isfinite(ms)) return strcpy(out, "-");
    snprintf(out, 32, "%.*f", ms >= 100 ? 1 : ms >= 10 ? 2 : 3, ms);
    return out;
}

void *memory_take(size_t bytes) {
    void *out = malloc(bytes ? bytes : 1);
    if (!out) memory_missing();
    return out;
}

bool text_ends(const char *text, const char *end) {
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

void text_print(const char *text) {
    fputs(text, stdout);
    if (text[0] && !text_ends(text, "\n")) putchar('\n');
}

typedef struct stream {
    char **out;
    size_t *bytes, room;
} stream;

static ssize_t put_text(void *cookie, const char *text, size_t bytes) {
    stream *s = cookie;
    if (bytes >= s->room - *s->bytes) {
        char *larger = realloc(*s->out, s->room = 2 * (*s->bytes + bytes) + 1);
        if (!larger) memory_missing();
        *s->out = larger;
    }
    memcpy(*s->out + *s->bytes, text, bytes);
    *s->bytes += bytes;
    (*s->out)[*s->bytes] = 0;
    return (ssize_t)bytes;
}

static int end_text(void *cookie) {
    free(cookie);
    return 0;
}

/* Not open_memstream: when that one gets no memory, what is written is lost without a mark on the stream. */
FILE *text_open(char **out, size_t *bytes) {
    stream *s = memory_take(sizeof *s);
    *s = (stream){.out = out, .bytes = bytes, .room = 64};
    *bytes = 0;
    *out = memory_take(s->room);
    (*out)[0] = 0;
    FILE *to = fopencookie(s, "w", (cookie_io_functions_t){.write = put_text, .close = end_text});
    if (!to) memory_missing();
    return to;
}

void text_close(FILE *to) {
    bool failed = ferror(to) != 0;
    if (fclose(to) != 0 || failed) memory_missing();
}

const char *text_fact(const char *description, const char *key) {
    size_t length = strlen(key);
    for (const char *line = description; line; line = (line = strchr(line, '\n')) ? line + 1 : NULL) {
        if (strncmp(line, key, length) == 0 && line[length] == ' ') return line + length + 1;
    }
    return NULL;
}

static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./=:,@%+-";

char *text_quoted(const char *word) {
    if (word[0] && word[strspn(word, plain)] == 0) return text_copy(word);
    char *out = memory_new(4 * strlen(word) + 3, 1), *to = stpcpy(out, "'");
    for (; *word; word++) {
        if (*word == '\'') to = stpcpy(to, "'\\'");
        *to++ = *word;
    }
    stpcpy(to, "'");
    return out;
}

void text_add(text_list *to, const char *format, ...) {
    va_list args;
    va_start(args, format);
    to->text = memory_grow(to->text, &to->room, to->count + 2, sizeof *to->text);
    to->text[to->count++] = text_format_list(format, args);
    to->text[to->count] = NULL;
    va_end(args);
}

char *text_command(const text_list *words) {
    char *out = text_copy("");
    for (size_t i = 0; i < words->count; i++) {
        FREED char *before = out, *word = text_quoted(words->text[i]);
        out = text_format("%s%s%s", before, i ? " " : "", word);
    }
    return out;
}

void text_list_free(text_list *list) {
    for (size_t i = 0; i < list->count; i++) free(list->text[i]);
    free(list->text);
    *list = (text_list){0};
}
