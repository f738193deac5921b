/* The list of faults: messages, excerpts with a caret, sorting, and output as text and JSON. */
#include "config/fault.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/text/json_write.h"
#include "runtime/base/text/utf8.h"

enum { EXCERPT_COLUMNS = 120, MESSAGE_BYTES = 480, LINES_PER_MARK = 16, LONGEST_LINE = 16 * 1024 };

static const struct {
    const char *number, *meaning;
} fault_ids[TDM_FAULT_COUNT] = {
#define X(id, number, meaning) [TDM_FAULT_##id] = {number, meaning},
    TDM_FAULT_MAP(X)
#undef X
};

const char *tdm__fault_number(tdm_fault_id id) {
    return fault_ids[id].number;
}

const char *tdm__fault_meaning(tdm_fault_id id) {
    return fault_ids[id].meaning;
}

void tdm__faults_init(tdm_fault_list *list, tdm_zone *zone) {
    *list = (tdm_fault_list){.zone = zone};
}

bool tdm__fault_skip(tdm_fault_list *list) {
    if (list->count < TDM_FAULTS_KEPT) return false;
    list->total++;
    return true;
}

/* Room for a text in the zone; NULL, and list->status is set, if there is no memory. */
static char *new_text(tdm_fault_list *list, size_t bytes) {
    char *text = NULL;
    tdm_status status = tdm__zone_new(list->zone, &text, bytes, 1);
    if (status != TDM_OK) list->status = status;
    return text;
}

static const char *format_text(tdm_fault_list *list, const char *format, va_list arguments) TDM_PRINTF(2, 0);
static const char *format_text(tdm_fault_list *list, const char *format, va_list arguments) {
    const char *text;
    tdm_status status = tdm__zone_vprintf(list->zone, &text, format, arguments);
    if (status != TDM_OK) list->status = status;
    return text == NULL ? "" : text;
}

const char *tdm__fault_text(tdm_fault_list *list, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const char *text = format_text(list, format, arguments);
    va_end(arguments);
    return text;
}

const char *tdm__fault_key(tdm_fault_list *list, const char *section, const char *key) {
    return section[0] == '\0' ? key : tdm__fault_text(list, "%s.%s", section, key);
}

const char *tdm__fault_list_of(tdm_fault_list *list, const char *const *names, int count) {
    size_t bytes = 1, used = 0;
    for (int i = 0; i < count; i++) bytes += strlen(names[i]) + 2;
    char *text = new_text(list, bytes);
    for (int i = 0; text != NULL && i < count; i++)
        used += (size_t)snprintf(text + used, bytes - used, "%s%s", i > 0 ? ", " : "", names[i]);
    return text == NULL ? "" : text;
}

/* Length of the line break at `at`, by libyaml's rules; 0 if there is none. */
static size_t line_break(const char *at, const char *end) {
    size_t left = (size_t)(end - at);
    if (left >= 2 && at[0] == '\r' && at[1] == '\n') return 2;
    if (left >= 1 && (at[0] == '\n' || at[0] == '\r')) return 1;
    if (left >= 2 && memcmp(at, "\xC2\x85", 2) == 0) return 2;
    if (left >= 3 && (memcmp(at, "\xE2\x80\xA8", 3) == 0 || memcmp(at, "\xE2\x80\xA9", 3) == 0)) return 3;
    return 0;
}

/* The next line break and its length, or the end with length 0. */
static const char *find_break(const char *at, const char *end, size_t *length) {
    *length = 0;
    while ((at += tdm__utf8_plain(at, (size_t)(end - at))) < end) {
        *length = line_break(at, end);
        if (*length > 0) break;
        at++;
    }
    return at;
}

const char *tdm__line_after(const char *at, const char *end) {
    size_t length;
    at = find_break(at, end, &length);
    return at == end ? NULL : at + length;
}

/* Runs once, when the first fault quotes the text. Without an index every fault would scan the text from its start. */
static void index_lines(tdm_fault_list *list, const tdm_yaml_text *text) {
    const char *end = text->bytes + text->count;
    list->indexed = text;
    list->mark_count = 0;
    tdm_status status = tdm__zone_new(list->zone, &list->mark, text->count / LINES_PER_MARK + 2, sizeof(char *));
    if (status != TDM_OK) {
        list->status = status;
        return;
    }
    int line = 1;
    for (const char *at = text->bytes; at != NULL; at = tdm__line_after(at, end), line++) {
        if (line % LINES_PER_MARK == 1) list->mark[list->mark_count++] = at;
    }
}

bool tdm__position_bytes(tdm_fault_list *list, tdm_position position, const char **start, const char **stop) {
    const char *at = position.text->bytes, *end = at + position.text->count;
    if (list->indexed != position.text) index_lines(list, position.text);
    int mark = (position.line - 1) / LINES_PER_MARK, line = 1;
    if (position.line >= 1 && mark < list->mark_count) {
        at = list->mark[mark];
        line = mark * LINES_PER_MARK + 1;
    }
    for (; line < position.line && at != NULL; line++) at = tdm__line_after(at, end);
    if (at == NULL) return false;
    *start = at;
    if (end - at > LONGEST_LINE) end = at + LONGEST_LINE;
    size_t length;
    *stop = find_break(at, end, &length);
    return true;
}

const char *tdm__position_line(tdm_fault_list *list, tdm_position at) {
    const char *start, *stop;
    if (at.text == NULL || !tdm__position_bytes(list, at, &start, &stop)) return "";
    while (start < stop && (*start == ' ' || *start == '\t')) start++;
    const char *comment = start; /* the quote ends before " #" */
    while (comment < stop && !(comment[0] == '#' && comment > start && comment[-1] == ' ')) comment++;
    while (comment > start && (comment[-1] == ' ' || comment[-1] == '\t')) comment--;
    const int length = (int)(comment - start);
    if (length <= 60) return tdm__fault_text(list, "%.*s", length, start);
    return tdm__fault_text(list, "%.*s...", (int)tdm__utf8_cut(start, 57), start);
}

const char *tdm__position_words(tdm_fault_list *list, tdm_position at) {
    if (at.text == NULL) return "the default";
    if (at.text->order != 0) return "the command line";
    return tdm__fault_text(list, "line %d", at.line);
}

tdm_origin tdm__position_origin(tdm_position at) {
    if (at.text == NULL) return (tdm_origin){0};
    if (at.text->order != 0) return (tdm_origin){.file = at.text->name};
    return (tdm_origin){at.text->name, at.line, at.column};
}

tdm_origin tdm__key_origin(tdm_fault_list *list, tdm_position at, const char *key) {
    tdm_origin origin = tdm__position_origin(at);
    if (origin.file != NULL && origin.line == 0) origin.file = tdm__fault_text(list, "%s: %s", origin.file, key);
    return origin;
}

static const char *next_char(const char *at, const char *stop) {
    uint32_t code;
    int length = tdm__utf8_next(at, (size_t)(stop - at), &code);
    return at + (length > 0 ? length : 1);
}

/* Skips `count` characters, at most to the end. */
static const char *skip_chars(const char *at, const char *stop, size_t count) {
    while (count > 0 && at < stop) {
        const size_t left = (size_t)(stop - at), plain = tdm__utf8_plain(at, count < left ? count : left);
        at = plain > 0 ? at + plain : next_char(at, stop);
        count -= plain > 0 ? plain : 1;
    }
    return at;
}

/* A copy that is safe to print on a terminal. */
static const char *shown_text(tdm_fault_list *list, const char *text, bool keeps_lines) {
    const size_t bytes = tdm_text_printable(NULL, 0, text, keeps_lines) + 1;
    char *copy = new_text(list, bytes);
    if (copy == NULL) return "";
    (void)tdm_text_printable(copy, bytes, text, keeps_lines);
    return copy;
}

/* The source line and a caret; long lines are cut to the part around the column. */
static const char *excerpt_of(tdm_fault_list *list, tdm_position at) {
    const char *start, *stop;
    if (at.text == NULL || at.line < 1 || at.column > LONGEST_LINE / 4 || !tdm__position_bytes(list, at, &start, &stop))
        return "";
    const int column = at.column < 1 ? 1 : at.column;
    const int skipped = column > EXCERPT_COLUMNS - 20 ? column - (EXCERPT_COLUMNS - 20) : 0;
    start = skip_chars(start, stop, (size_t)skipped);
    const char *cut = skip_chars(start, stop, EXCERPT_COLUMNS);
    char pad[4 * EXCERPT_COLUMNS + 1];
    const size_t before = (size_t)(column - 1 - skipped);
    size_t used = tdm__utf8_plain(start, (size_t)(cut - start) < before ? (size_t)(cut - start) : before);
    memset(pad, ' ', used);
    const char *walk = start + used;
    for (size_t i = used; i < before && walk < cut && used + 2 < sizeof(pad); i++) {
        const char *next = next_char(walk, cut);
        char one[8] = {0}, shown[16];
        memcpy(one, walk, (size_t)(next - walk));
        (void)tdm_text_printable(shown, sizeof(shown), one, 1);
        /* A tab stays a tab, so that the caret is in the right column for any tab width. */
        int columns = *walk == '\t' ? 1 : tdm_text_columns(shown);
        for (int k = 0; k < columns && used + 1 < sizeof(pad); k++) pad[used++] = *walk == '\t' ? '\t' : ' ';
        walk = next;
    }
    pad[used] = '\0';
    return shown_text(list, tdm__fault_text(list, "%.*s\n%s^", (int)(cut - start), start, pad), true);
}

/* One line of bounded length: line breaks become spaces, and a long text is cut between two characters. */
static const char *one_line(tdm_fault_list *list, const char *message) {
    size_t length = strlen(message);
    bool cut = length > MESSAGE_BYTES;
    if (cut) length = tdm__utf8_cut(message, MESSAGE_BYTES);
    char *copy = new_text(list, length + 4);
    if (copy == NULL) return "";
    for (size_t i = 0; i < length; i++) copy[i] = isspace((unsigned char)message[i]) ? ' ' : message[i];
    if (cut) memcpy(copy + length, "...", 3);
    return shown_text(list, copy, false);
}

/* A block has its fault in each of its uses. */
static bool is_repeated(const tdm_fault_list *list, tdm_fault_id id, tdm_position at) {
    for (int i = 0; i < list->count && list->within.use_at.text != NULL; i++) {
        const tdm_position other = list->position[i];
        if (other.text == at.text && other.line == at.line && other.column == at.column &&
            strcmp(list->item[i].id, fault_ids[id].number) == 0)
            return true;
    }
    return false;
}

/* Adds the other of the two positions: of the line in the block, and of the block's use. */
static const char *add_block(tdm_fault_list *list, const char *message, tdm_position at) {
    const tdm_fault_block *within = &list->within;
    if (within->use_at.text == NULL) return message;
    if (at.line == within->use_at.line)
        return tdm__fault_text(list, "%s (block '%s', line %d)", message, within->block, within->line_at.line);
    return tdm__fault_text(list, "%s (block '%s', used on line %d)", message, within->block, within->use_at.line);
}

void tdm__fault_add(tdm_fault_list *list, tdm_fault_id id, tdm_position at, const char *key, const char *hint,
                    const char *format, ...) {
    if (is_repeated(list, id, at) || tdm__fault_skip(list)) return;
    list->total++;
    va_list arguments;
    va_start(arguments, format);
    const char *message = format_text(list, format, arguments);
    va_end(arguments);
    message = add_block(list, message, at);
    tdm_origin origin = tdm__position_origin(at);
    list->position[list->count] = at;
    list->item[list->count++] = (tdm_fault){
        .id = fault_ids[id].number,
        .file = origin.file != NULL ? origin.file : "",
        .line = origin.line,
        .column = origin.column,
        .key = one_line(list, key),
        .message = one_line(list, message),
        .hint = one_line(list, hint),
        .excerpt = excerpt_of(list, at),
    };
}

static bool comes_before(tdm_position a, tdm_position b) {
    int a_order = a.text == NULL ? 0 : a.text->order, b_order = b.text == NULL ? 0 : b.text->order;
    if (a_order != b_order) return a_order < b_order;
    if (a.line != b.line) return a.line < b.line;
    return a.column < b.column;
}

void tdm__faults_sort(tdm_fault_list *list) {
    for (int i = 1; i < list->count; i++) {
        for (int k = i; k > 0 && comes_before(list->position[k], list->position[k - 1]); k--) {
            tdm_fault fault = list->item[k];
            tdm_position position = list->position[k];
            list->item[k] = list->item[k - 1], list->position[k] = list->position[k - 1];
            list->item[k - 1] = fault, list->position[k - 1] = position;
        }
    }
    if (list->count > TDM_FAULTS_SHOWN) list->count = TDM_FAULTS_SHOWN;
}

void tdm__faults_print(const tdm_fault_list *list, tdm_text *out) {
    for (const tdm_fault *fault = list->item; fault < list->item + list->count; fault++) {
        tdm__text_shown(out, fault->file);
        if (fault->line > 0) tdm__text_printf(out, ":%d:%d", fault->line, fault->column);
        tdm__text_printf(out, ": error[%s]: %s\n", fault->id, fault->message);
        if (fault->excerpt[0] != '\0') tdm__text_printf(out, "%s\n", fault->excerpt);
        if (fault->hint[0] != '\0') tdm__text_printf(out, "  hint: %s\n", fault->hint);
    }
    int more = list->total - list->count;
    if (more > 0)
        tdm__text_printf(out, "... and %s%d more fault%s\n", list->is_cut ? "at least " : "", more,
                         more == 1 ? "" : "s");
}

void tdm__faults_print_json(const tdm_fault_list *list, tdm_text *out) {
    tdm_json_out json = tdm__json_out(out, " ");
    tdm__json_put(&json, "{ faults:[\n");
    for (const tdm_fault *fault = list->item; fault < list->item + list->count; fault++)
        tdm__json_put(&json, "{ id:%s file:%s line:%d column:%d key:%s message:%s hint:%s excerpt:%s }", fault->id,
                      fault->file, fault->line, fault->column, fault->key, fault->message, fault->hint, fault->excerpt);
    tdm__json_put(&json, "] more:%d }\n", list->total - list->count);
}

static const struct {
    const char *wide, *plain;
} wide_marks[] = {
    {"\xEF\xBC\x9A", ":"},  {"\xEF\xBC\x8C", ","},  {"\xEF\xBC\xBB", "["}, {"\xEF\xBC\xBD", "]"}, {"\xEF\xBD\x9B", "{"},
    {"\xEF\xBD\x9D", "}"},  {"\xE3\x80\x90", "["},  {"\xE3\x80\x91", "]"}, {"\xEF\xBC\x9D", "="}, {"\xEF\xBC\x8D", "-"},
    {"\xE2\x80\x9C", "\""}, {"\xE2\x80\x9D", "\""}, {"\xE3\x80\x80", " "}, {"\xEF\xBC\x83", "#"}, {"\xE3\x80\x81", ","},
};

const char *tdm__fault_wide_hint(tdm_fault_list *list, tdm_position at) {
    const char *start, *stop;
    if (at.text == NULL || !tdm__position_bytes(list, at, &start, &stop)) return "";
    if (tdm__utf8_plain(start, (size_t)(stop - start)) == (size_t)(stop - start)) return "";
    int column = 1;
    for (const char *walk = start; walk < stop; walk = next_char(walk, stop), column++) {
        if (*walk == '#' && (walk == start || walk[-1] == ' ')) break;
        if ((unsigned char)*walk < 0x80) continue;
        for (size_t i = 0; i < sizeof(wide_marks) / sizeof(wide_marks[0]); i++) {
            size_t length = strlen(wide_marks[i].wide);
            if ((size_t)(stop - walk) < length || memcmp(walk, wide_marks[i].wide, length) != 0) continue;
            return tdm__fault_text(list, "column %d holds the full-width '%s'; write the plain '%s'", column,
                                   wide_marks[i].wide, wide_marks[i].plain);
        }
    }
    return "";
}
