/* A setting written as one text, as on the command line and in tables: a scalar, a quoted scalar, a [flow, list]
 * or a {flow: mapping}. */
#include <string.h>

#include "runtime/base/field/field_range.h"
#include "runtime/base/text/json.h"

static const char blank[] = " \t";

/* Reads from the opening double quote: the escapes are JSON's. Returns the position after the closing one; NULL if the
 * text is malformed. Writes no more bytes than it reads. */
static const char *read_double_quoted(const char *at, char *to) {
    tdm_json json;
    size_t length;
    tdm__json_open(&json, at, strlen(at), 0);
    return tdm__json_string(&json, to, strlen(at) + 1, &length) ? (const char *)json.at : NULL;
}

/* The same for single quotes, where two of them stand for one. */
static const char *read_single_quoted(const char *at, char *to) {
    for (at++; *at != '\0'; at++) {
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
        at = *at == '"' ? read_double_quoted(at, to) : read_single_quoted(at, to);
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

/* Reads an item that is itself a list, up to its bracket. NULL if malformed. */
static const char *read_inner_list(const char *at, char *to) {
    const size_t length = strcspn(at, "]");
    if (at[length] == '\0') return NULL;
    memcpy(to, at, length + 1);
    to[length + 1] = '\0';
    at += length + 1;
    return at + strspn(at, blank);
}

/* Reads [a, b, c], or {a: b, c: [1, 2]} as a, b, c, [1, 2]; `text` begins at the bracket. A comma may follow the last
 * item. False if malformed, or if there are more than `most`. */
static bool read_items(const char *text, char *room, const char **items, int most, int *count) {
    const char *at = text + 1;
    const bool is_map = *text == '{';
    *count = 0;
    for (;;) {
        bool quoted = false;
        const bool is_key = is_map && *count % 2 == 0;
        at += strspn(at, blank);
        if (*at == (is_map ? '}' : ']') && (!is_map || is_key)) break;
        if (is_map && !is_key && *at == '[')
            at = read_inner_list(at, room);
        else
            at = read_scalar(at, is_key ? ":" : is_map ? ",{}" : ",[]", room, &quoted);
        if (at == NULL || (!quoted && room[0] == '\0') || *count == most) return false;
        items[(*count)++] = room;
        room += strlen(room) + 1;
        if (*at == (is_key ? ':' : ','))
            at++;
        else if (is_key || *at != (is_map ? '}' : ']'))
            return false;
    }
    at++;
    return at[strspn(at, blank)] == '\0';
}

/* Where a value in `text` may have more than TDM_LIST_MAX items: as many as it can have. */
static int most_items(const tdm_field *row, const char *text) {
    int most = TDM_LIST_MAX;
    if (row->kind != TDM_FIELD_NUMBERS) return most;
    for (; *text != '\0' && most < TDM_NUMBERS_MAX; text++) most += *text == ',';
    return most;
}

/* `room` has as many bytes as the text, its terminator included; `items`: for `most`. */
static bool set_text(const tdm_field *row, void *object, const char *text, char *room, const char **items, int most,
                     tdm_zone *zone, tdm_text *why) {
    tdm_written written = {.item = items, .count = 1};
    const char *start = text + strspn(text, blank);
    bool good;
    if (*start == '[' || (*start == '{' && tdm__field_is_map(row))) {
        written.is_list = true;
        written.is_map = *start == '{';
        good = read_items(start, room, items, most, &written.count);
        if (!good)
            tdm__text_printf(why, "must be a %s of at most %d items, got '%s'",
                             written.is_map ? "mapping such as {a: b}" : "list such as [a, b]",
                             tdm__field_is_list(row) ? tdm__field_max_items(row) : TDM_LIST_MAX, text);
    } else {
        bool quoted;
        const char *end = read_scalar(start, "", room, &quoted);
        good = end != NULL && *end == '\0';
        if (!good) tdm__text_printf(why, "has unmatched quotes or a wrong escape: %s", text);
        items[0] = room;
        bool is_text = row->kind == TDM_FIELD_TEXT && (row->flags & TDM_FIELD_NULLABLE) == 0;
        written.is_null =
            good && !quoted && (strcmp(room, "null") == 0 || strcmp(room, "~") == 0 || (room[0] == '\0' && !is_text));
    }
    return good && tdm__field_set(row, object, &written, zone, why);
}

bool tdm__field_set_text(const tdm_field *row, void *object, const char *text, tdm_zone *zone, tdm_text *why) {
    const char *few[TDM_LIST_MAX], **items = few;
    char small[128], *room = small;
    const size_t bytes = strlen(text) + 1;
    const int most = most_items(row, text);
    /* The length of the text is enough: each item's terminator takes the place of its comma, bracket or quote. */
    if (bytes > sizeof(small) && tdm__new(zone->host, &room, bytes, 1, "setting") != TDM_OK) {
        tdm__text_puts(why, tdm__field_no_memory);
        return false;
    }
    bool good = most <= TDM_LIST_MAX || tdm__new(zone->host, &items, (size_t)most, sizeof(*items), "items") == TDM_OK;
    if (good)
        good = set_text(row, object, text, room, items, most, zone, why);
    else
        tdm__text_puts(why, tdm__field_no_memory);
    if (items != few) tdm__delete(zone->host, items);
    if (room != small) tdm__delete(zone->host, room);
    return good;
}
