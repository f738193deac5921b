/* A setting written as one text, as on the command line and in tables: a scalar, a quoted scalar or a [flow, list]. */
#include <stdio.h>
#include <string.h>

#include "runtime/base/field/field_range.h"

static const char blank[] = " \t";

/* Encodes one code point below U+10000, not a surrogate, as UTF-8. Returns the number of bytes. */
static size_t put_code(char *to, unsigned code) {
    if (code < 0x80) {
        to[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        to[0] = (char)(0xC0 | code >> 6);
        to[1] = (char)(0x80 | (code & 0x3F));
        return 2;
    }
    to[0] = (char)(0xE0 | code >> 12);
    to[1] = (char)(0x80 | (code >> 6 & 0x3F));
    to[2] = (char)(0x80 | (code & 0x3F));
    return 3;
}

static bool read_hex4(const char *at, unsigned *out) {
    unsigned value = 0;
    for (int i = 0; i < 4; i++) {
        const char *digits = "0123456789abcdef0123456789ABCDEF";
        const char *digit = at[i] == '\0' ? NULL : strchr(digits, at[i]);
        if (digit == NULL) return false;
        value = value << 4 | (unsigned)((digit - digits) % 16);
    }
    *out = value;
    return value != 0 && (value < 0xD800 || value > 0xDFFF);
}

/* Reads from after the opening double quote. Returns the place after the closing one; NULL if the text is malformed.
 * Writes no more bytes than it reads. */
static const char *read_double_quoted(const char *at, char *to) {
    static const char letters[] = "\\\"/ntr", meanings[] = "\\\"/\n\t\r";
    while (*at != '"') {
        unsigned code;
        if (*at == '\0') return NULL;
        if (*at != '\\') {
            *to++ = *at++;
        } else if (at[1] == 'u') {
            if (!read_hex4(at + 2, &code)) return NULL;
            to += put_code(to, code);
            at += 6;
        } else {
            const char *letter = at[1] == '\0' ? NULL : strchr(letters, at[1]);
            if (letter == NULL) return NULL;
            *to++ = meanings[letter - letters];
            at += 2;
        }
    }
    *to = '\0';
    return at + 1;
}

static const char *read_single_quoted(const char *at, char *to) {
    for (; *at != '\0'; at++) {
        if (at[0] == '\'' && at[1] != '\'') {
            *to = '\0';
            return at + 1;
        }
        if (*at == '\'') at++;
        *to++ = *at;
    }
    return NULL;
}

/* Reads one scalar up to a character of `stop`. `to` has room for the whole rest of the text. NULL if malformed. */
static const char *read_scalar(const char *at, const char *stop, char *to, bool *quoted) {
    at += strspn(at, blank);
    *quoted = *at == '"' || *at == '\'';
    if (*quoted) {
        at = *at == '"' ? read_double_quoted(at + 1, to) : read_single_quoted(at + 1, to);
        if (at == NULL) return NULL;
        at += strspn(at, blank);
        return *at == '\0' || strchr(stop, *at) != NULL ? at : NULL;
    }
    size_t length = strcspn(at, stop);
    const char *end = at + length;
    while (length > 0 && strchr(blank, at[length - 1]) != NULL) length--;
    memcpy(to, at, length);
    to[length] = '\0';
    return end;
}

/* Reads [a, b, c]; `text` begins at the bracket. A comma may follow the last item. False if malformed or too long. */
static bool read_list(const char *text, char *room, const char *items[TDM_LIST_MAX], int *count) {
    const char *at = text + 1;
    *count = 0;
    for (;;) {
        bool quoted;
        at += strspn(at, blank);
        if (*at == ']') break;
        at = read_scalar(at, ",[]", room, &quoted);
        if (at == NULL || (!quoted && room[0] == '\0') || *count == TDM_LIST_MAX) return false;
        items[(*count)++] = room;
        room += strlen(room) + 1;
        if (*at == ',')
            at++;
        else if (*at != ']')
            return false;
    }
    at++;
    return at[strspn(at, blank)] == '\0';
}

/* `room` has as many bytes as the text, its terminator included. */
static bool set_text(const tdm_field *row, void *object, const char *text, char *room, tdm_arena *arena,
                     tdm_text *why) {
    const char *items[TDM_LIST_MAX];
    tdm_written written = {.item = items, .count = 1};
    const char *start = text + strspn(text, blank);
    bool good;
    if (*start == '[') {
        written.is_list = true;
        good = read_list(start, room, items, &written.count);
        if (!good)
            tdm__text_printf(why, "must be a list such as [a, b] of at most %d items, got '%s'", TDM_LIST_MAX, text);
    } else {
        bool quoted;
        const char *end = read_scalar(start, "", room, &quoted);
        good = end != NULL && *end == '\0';
        if (!good) tdm__text_printf(why, "has unmatched quotes: %s", text);
        items[0] = room;
        bool is_text = row->kind == TDM_FIELD_TEXT && (row->flags & TDM_FIELD_NULLABLE) == 0;
        written.is_null =
            good && !quoted && (strcmp(room, "null") == 0 || strcmp(room, "~") == 0 || (room[0] == '\0' && !is_text));
    }
    return good && tdm__field_set(row, object, &written, arena, why);
}

bool tdm__field_set_text(const tdm_field *row, void *object, const char *text, tdm_arena *arena, tdm_text *why) {
    char small[128], *room = small;
    size_t bytes = strlen(text) + 1;
    /* The length of the text is enough: each item's terminator takes the place of its comma, bracket or quote. */
    if (bytes > sizeof(small) && tdm__new(arena->host, &room, bytes, 1, "setting") != TDM_OK) {
        tdm__text_puts(why, tdm__field_no_memory);
        return false;
    }
    bool good = set_text(row, object, text, room, arena, why);
    if (room != small) tdm__delete(arena->host, room);
    return good;
}
