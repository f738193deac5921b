/* Reading a setting as its row describes it. Types are strict. If the value is wrong, a clause says what is expected
 * and what was written. */
#include "runtime/base/field/field.h"

#include <math.h>
#include <string.h>

#include "runtime/base/field/field_range.h"

bool tdm__field_lacks_memory(const tdm_text *why) {
    const size_t length = strlen(tdm__field_no_memory);
    return why->failed || why->data == NULL ||
           (why->length >= length && strcmp(why->data + why->length - length, tdm__field_no_memory) == 0);
}

const tdm_field *tdm__field_find(const tdm_field *rows, const char *key) {
    for (; rows != NULL && rows->key != NULL; rows++) {
        if (tdm__text_same(rows->key, key)) return rows;
    }
    return NULL;
}

const tdm_field *tdm__field_main(const tdm_field *rows) {
    for (; rows != NULL && rows->key != NULL; rows++) {
        if ((rows->flags & TDM_FIELD_MAIN) != 0) return rows;
    }
    return NULL;
}

static bool is_nullable(const tdm_field *row) {
    return (row->flags & TDM_FIELD_NULLABLE) != 0;
}

void tdm__field_set_zero(const tdm_field *row, void *value) {
    memset(value, 0, tdm__field_traits[row->kind].bytes);
}

void tdm__field_set_null(const tdm_field *row, void *value) {
    tdm__field_set_zero(row, value);
    if (row->kind == TDM_FIELD_INT || row->kind == TDM_FIELD_SIZE) *(int64_t *)value = TDM_INT_NULL;
    if (row->kind == TDM_FIELD_FLOAT || row->kind == TDM_FIELD_DURATION) *(double *)value = NAN;
}

/* Behind what a whole setting may be. One that its type requires is not null, though the row has no other default. */
static void put_or_null(const tdm_field *row, tdm_text *why) {
    if (is_nullable(row) && (row->flags & TDM_FIELD_NEEDED) == 0) tdm__text_puts(why, " or null");
}

/* The row by which an item of a list is read: only the whole list may be null. */
static tdm_field row_of_item(const tdm_field *row) {
    tdm_field item = *row;
    item.flags &= ~TDM_FIELD_NULLABLE;
    return item;
}

/* "must be an integer from 1 to 512, got '600'". The caller may append a hint. */
static bool refuse(const tdm_field *row, const char *what, const char *got, tdm_text *why) {
    tdm__text_printf(why, "must be %s", what);
    tdm__field_demand_range(row, why);
    put_or_null(row, why);
    tdm__text_printf(why, ", got '%s'", got);
    return false;
}

static bool in_range(const tdm_field *row, double value) {
    tdm_range range = tdm__field_range(row);
    if (range.has_min && (value < range.min || (range.open_min && value == range.min))) return false;
    return !range.has_max || value < range.max || (!range.open_max && value == range.max);
}

/* Some readers of YAML take 010 for eight, others for ten. *plain is the number without the zeros. */
static bool has_leading_zeros(const char *text, const char **plain) {
    const char *at = text + (*text == '-' || *text == '+');
    if (at[0] != '0' || at[1] == '\0' || at[strspn(at, "0123456789_")] != '\0') return false;
    while (*at == '0' || *at == '_') at++;
    *plain = *at == '\0' ? at - 1 : at;
    return true;
}

static void hint_leading_zeros(const char *text, const char *plain, tdm_text *why) {
    tdm__text_printf(why, ": leading zeros are not allowed; write %s%s", *text == '-' ? "-" : "", plain);
}

static bool read_int(const tdm_field *row, const char *text, int64_t *out, tdm_text *why) {
    const char *plain;
    double number;
    int64_t value;
    if (tdm__parse_int(text, &value)) {
        if (value == TDM_INT_NULL || !in_range(row, (double)value)) return refuse(row, "an integer", text, why);
        *out = value;
        return true;
    }
    refuse(row, "an integer", text, why);
    if (has_leading_zeros(text, &plain))
        hint_leading_zeros(text, plain, why);
    else if (tdm__parse_float(text, &number) && number == trunc(number) && fabs(number) < 1e15)
        tdm__text_printf(why, "; write %lld", (long long)number);
    return false;
}

static bool read_float(const tdm_field *row, const char *text, double *out, tdm_text *why) {
    const char *plain;
    double value;
    int64_t whole;
    bool zeros = has_leading_zeros(text, &plain);
    bool good = !zeros && tdm__parse_float(text, &value);
    if (!good && !zeros && tdm__parse_int(text, &whole)) { /* 1_000 */
        value = (double)whole;
        good = true;
    }
    if (good && in_range(row, value)) {
        *out = value;
        return true;
    }
    refuse(row, "a number", text, why);
    if (zeros) {
        hint_leading_zeros(text, plain, why);
    } else if (!good) {
        size_t comma = strcspn(text, ",");
        if (comma > 0 && comma < 20 && text[comma] == ',' && text[comma + 1] != '\0' &&
            strspn(text + comma + 1, "0123456789") == strlen(text + comma + 1) && strspn(text, "0123456789") == comma)
            tdm__text_printf(why, "; write %.*s.%s", (int)comma, text, text + comma + 1);
    }
    return false;
}

static bool read_bool(const char *text, bool *out, tdm_text *why) {
    static const char *const synonym[2][6] = {{"no", "n", "off", "0", "false", NULL},
                                              {"yes", "y", "on", "1", "true", NULL}};
    if (tdm__parse_bool(text, out)) return true;
    tdm__text_printf(why, "must be true or false, got '%s'", text);
    for (int truth = 0; truth < 2; truth++) {
        for (int i = 0; synonym[truth][i] != NULL; i++) {
            if (strcasecmp(text, synonym[truth][i]) == 0) tdm__text_printf(why, "; write %s", truth ? "true" : "false");
        }
    }
    return false;
}

static void put_names(const tdm_field *row, tdm_text *why) {
    tdm__text_puts(why, "must be one of ");
    for (int i = 0; row->names[i] != NULL; i++) tdm__text_printf(why, "%s%s", i > 0 ? ", " : "", row->names[i]);
}

static bool read_enum(const tdm_field *row, const char *text, void *out, tdm_text *why) {
    int count = 0;
    for (; row->names[count] != NULL; count++) {
        if (tdm__text_same(row->names[count], text)) {
            memcpy(out, &count, sizeof(count));
            return true;
        }
    }
    put_names(row, why);
    put_or_null(row, why);
    tdm__text_printf(why, ", got '%s'", text);
    const char *nearest = tdm_text_nearest(text, row->names, count);
    if (nearest != NULL) tdm__text_printf(why, "; did you mean %s?", nearest);
    return false;
}

static bool read_duration(const tdm_field *row, const char *text, double *out, tdm_text *why) {
    double seconds;
    int64_t number;
    bool good = tdm__parse_duration(text, &seconds);
    if (good && in_range(row, seconds)) {
        *out = seconds;
        return true;
    }
    refuse(row, good ? "a duration" : "a duration such as 500ms, 30s, 10m or 1h30m", text, why);
    if (!good && tdm__parse_int(text, &number) && number >= 0)
        tdm__text_printf(why, "; write %llds", (long long)number);
    return false;
}

static bool read_size(const tdm_field *row, const char *text, int64_t *out, tdm_text *why) {
    int64_t bytes;
    const bool good = tdm__parse_size(text, &bytes);
    if (good && in_range(row, (double)bytes)) {
        *out = bytes;
        return true;
    }
    return refuse(row, good ? "a size" : "a size such as 64KiB, 512MiB or 2GiB", text, why);
}

/* "50 steps", "1 epoch", "30m"; "never" if the field may be null. */
static bool read_interval(const tdm_field *row, const char *text, tdm_interval *out, tdm_text *why) {
    static const struct {
        const char *one, *many;
        tdm_interval_kind kind;
    } unit[] = {{"step", "steps", TDM_INTERVAL_STEPS}, {"epoch", "epochs", TDM_INTERVAL_EPOCHS}};
    double seconds;
    int64_t number;
    char digits[24];
    if (is_nullable(row) && strcmp(text, "never") == 0) {
        tdm__field_set_null(row, out);
        return true;
    }
    size_t length = strcspn(text, " ");
    if (length < sizeof(digits) && text[length] == ' ') {
        memcpy(digits, text, length);
        digits[length] = '\0';
        const char *name = text + length + strspn(text + length, " ");
        for (size_t i = 0; i < 2; i++) {
            if ((strcmp(name, unit[i].one) != 0 && strcmp(name, unit[i].many) != 0) ||
                !tdm__parse_int(digits, &number) || number < 1 || number > (int64_t)1 << 53)
                continue;
            *out = (tdm_interval){unit[i].kind, (double)number};
            return true;
        }
    }
    if (tdm__parse_duration(text, &seconds) && seconds > 0.0) {
        *out = (tdm_interval){TDM_INTERVAL_SECONDS, seconds};
        return true;
    }
    tdm__text_printf(why, "must be an interval such as 50 steps, 1 epoch%s, got '%s'",
                     is_nullable(row) ? ", 30m or never" : " or 30m", text);
    if (tdm__parse_int(text, &number) && number > 0)
        tdm__text_printf(why, "; write %lld step%s", (long long)number, number == 1 ? "" : "s");
    return false;
}

static bool read_text(const tdm_field *row, const char *text, const char **out, tdm_zone *zone, tdm_text *why) {
    bool is_path = row->kind == TDM_FIELD_PATH || row->kind == TDM_FIELD_PATHS;
    size_t bad;
    if (is_path && text[0] == '\0') {
        tdm__text_puts(why, "must be a path, got ''");
        return false;
    }
    if (!is_path && !tdm__text_is_utf8(text, strlen(text), &bad)) {
        tdm__text_printf(why, "must be text in UTF-8, got the byte 0x%02X at offset %zu", (unsigned char)text[bad],
                         bad);
        return false;
    }
    if (tdm__zone_text(zone, out, text) != TDM_OK) {
        tdm__text_puts(why, tdm__field_no_memory);
        return false;
    }
    return true;
}

static const char *list_noun(const tdm_field *row) {
    if (row->kind == TDM_FIELD_TEXTS || row->kind == TDM_FIELD_MAP) return "text";
    if (row->kind == TDM_FIELD_FLOATS || row->kind == TDM_FIELD_NUMBERS) return "number";
    return row->kind == TDM_FIELD_PATHS ? "path" : "integer";
}

static bool has_right_count(const tdm_field *row, int count, tdm_text *why) {
    int least = row->min_items, most = tdm__field_max_items(row);
    if (count >= least && count <= most) return true;
    int bound = count < least ? least : most;
    const char *how = least == most ? "" : count < least ? "at least " : "at most ";
    tdm__text_printf(why, "must have %s%d %s%s, got %d", how, bound, list_noun(row), bound == 1 ? "" : "s", count);
    return false;
}

static bool read_item(const tdm_field *row, const char *text, int index, double *out, tdm_text *why) {
    tdm_text clause;
    tdm__text_init(&clause, why->host);
    const bool good = read_float(row, text, out, &clause);
    if (!good) tdm__text_printf(why, "item %d %s", index + 1, clause.data == NULL ? "is wrong" : clause.data);
    tdm__text_deinit(&clause);
    return good;
}

static bool read_numbers(const tdm_field *row, void *value, const tdm_written *written, tdm_zone *zone, tdm_text *why) {
    tdm_numbers *numbers = value;
    double *item;
    if (!has_right_count(row, written->count, why)) return false;
    if (tdm__zone_new(zone, &item, (size_t)written->count, sizeof(*item)) != TDM_OK) {
        tdm__text_puts(why, tdm__field_no_memory);
        return false;
    }
    const tdm_field of_item = row_of_item(row);
    for (int i = 0; i < written->count; i++)
        if (!read_item(&of_item, written->item[i], i, &item[i], why)) return false;
    *numbers = (tdm_numbers){written->count, item};
    return true;
}

static bool read_list(const tdm_field *row, void *value, const tdm_written *written, tdm_zone *zone, tdm_text *why) {
    union {
        tdm_ints ints;
        tdm_floats floats;
        tdm_texts texts;
    } list;
    memset(&list, 0, sizeof(list));
    if (!has_right_count(row, written->count, why)) return false;
    const tdm_field of_item = row_of_item(row);
    tdm_text clause;
    tdm__text_init(&clause, why->host);
    bool good = true;
    for (int i = 0; good && i < written->count; i++) {
        if (row->kind == TDM_FIELD_INTS)
            good = read_int(&of_item, written->item[i], &list.ints.item[i], &clause);
        else if (row->kind == TDM_FIELD_FLOATS)
            good = read_float(&of_item, written->item[i], &list.floats.item[i], &clause);
        else
            good = read_text(&of_item, written->item[i], &list.texts.item[i], zone, &clause);
        if (!good) tdm__text_printf(why, "item %d %s", i + 1, clause.data == NULL ? "is wrong" : clause.data);
    }
    tdm__text_deinit(&clause);
    if (!good) return false;
    list.ints.count = written->count; /* every list begins with its count */
    memcpy(value, &list, tdm__field_traits[row->kind].bytes);
    return true;
}

enum { HALF = 24 }; /* bytes: more digits than any integer has */

/* Splits `3x5`. False if the text is not of that form. */
static bool split_pair(const char *text, char halves[2][HALF]) {
    const size_t first = strspn(text, "0123456789");
    if (first == 0 || first >= HALF || text[first] != 'x') return false;
    const char *rest = text + first + 1;
    const size_t second = strspn(rest, "0123456789");
    if (second == 0 || second >= HALF || rest[second] != '\0') return false;
    memcpy(halves[0], text, first);
    halves[0][first] = '\0';
    memcpy(halves[1], rest, second + 1);
    return true;
}

/* Returns the number of a word of the row's names, -1 or below; 0: it is none of them. */
static int64_t number_of_word(const tdm_field *row, const char *text) {
    for (int i = 0; row->names != NULL && row->names[i] != NULL; i++)
        if (strcmp(text, row->names[i]) == 0) return -1 - i;
    return 0;
}

static void hint_words(const tdm_field *row, tdm_text *why) {
    for (int i = 0; row->names != NULL && row->names[i] != NULL; i++)
        tdm__text_printf(why, "%s %s", i == 0 ? "; it may also be" : " or", row->names[i]);
}

static bool read_int_or_word(const tdm_field *row, const char *text, int64_t *out, tdm_text *why) {
    const int64_t word = number_of_word(row, text);
    if (word != 0) {
        *out = word;
        return true;
    }
    if (read_int(row, text, out, why)) return true;
    hint_words(row, why);
    return false;
}

static bool read_pair(const tdm_field *row, int64_t *value, const tdm_written *written, tdm_text *why) {
    const tdm_field of_item = row_of_item(row);
    int64_t pair[2];
    char halves[2][HALF];
    if (written->is_list && written->count != 2) {
        tdm__text_printf(why, "must be %s", tdm__field_traits[TDM_FIELD_PAIR].name);
        put_or_null(row, why);
        tdm__text_printf(why, ", got a list of %d", written->count);
        return false;
    }
    if (!written->is_list && split_pair(written->item[0], halves)) {
        if (!read_int(&of_item, halves[0], &pair[0], why) || !read_int(&of_item, halves[1], &pair[1], why))
            return false;
        memcpy(value, pair, sizeof(pair));
        return true;
    }
    if (!written->is_list && number_of_word(row, written->item[0]) != 0) {
        value[0] = value[1] = number_of_word(row, written->item[0]);
        return true;
    }
    if (!read_int(written->is_list ? &of_item : row, written->item[0], &pair[0], why)) {
        const size_t digits = strspn(written->item[0], "0123456789");
        const char after = written->item[0][digits];
        if (!written->is_list && digits > 0 && after != 0 && strchr("xX*,; ", after) != NULL)
            tdm__text_puts(why, "; two are written [3, 5] or 3x5");
        hint_words(row, why);
        return false;
    }
    pair[1] = pair[0];
    if (written->is_list && !read_int(&of_item, written->item[1], &pair[1], why)) return false;
    memcpy(value, pair, sizeof(pair));
    return true;
}

static bool read_scalar(const tdm_field *row, void *value, const char *text, tdm_zone *zone, tdm_text *why) {
    switch (row->kind) {
    case TDM_FIELD_BOOL:
        return read_bool(text, value, why);
    case TDM_FIELD_INT:
        return read_int_or_word(row, text, value, why);
    case TDM_FIELD_FLOAT:
        return read_float(row, text, value, why);
    case TDM_FIELD_TEXT:
    case TDM_FIELD_PATH:
        return read_text(row, text, value, zone, why);
    case TDM_FIELD_ENUM:
        return read_enum(row, text, value, why);
    case TDM_FIELD_INTERVAL:
        return read_interval(row, text, value, why);
    case TDM_FIELD_DURATION:
        return read_duration(row, text, value, why);
    case TDM_FIELD_SIZE:
        return read_size(row, text, value, why);
    case TDM_FIELD_PAIR:
    case TDM_FIELD_INTS:
    case TDM_FIELD_FLOATS:
    case TDM_FIELD_PATHS:
    case TDM_FIELD_TEXTS:
    case TDM_FIELD_MAP:
    case TDM_FIELD_NUMBERS:
    case TDM_FIELD_SHAPES:
    case TDM_FIELD_KIND_COUNT:
        break;
    }
    tdm__text_puts(why, "cannot hold a single value");
    return false;
}

/* The row takes no null, or no list. */
static bool refuse_shape(const tdm_field *row, const char *got, tdm_text *why) {
    const tdm_field_traits *traits = &tdm__field_traits[row->kind];
    if (row->kind == TDM_FIELD_ENUM)
        put_names(row, why);
    else
        tdm__text_printf(why, "must be %s%s", traits->article, traits->name);
    if (traits->has_range && !traits->is_list && row->kind != TDM_FIELD_PAIR) tdm__field_demand_range(row, why);
    put_or_null(row, why);
    tdm__text_printf(why, ", got %s", got);
    return false;
}

bool tdm__field_set(const tdm_field *row, void *object, const tdm_written *written, tdm_zone *zone, tdm_text *why) {
    void *value = (char *)object + row->offset;
    if (written->is_null) {
        if (!is_nullable(row)) return refuse_shape(row, "null", why);
        tdm__field_set_null(row, value);
        return true;
    }
    if (tdm__field_is_map(row) && !written->is_map) return refuse_shape(row, "another value", why);
    if (row->kind == TDM_FIELD_SHAPES) return tdm__field_read_shapes(row, value, written, zone, why);
    if (row->kind == TDM_FIELD_PAIR) return read_pair(row, value, written, why);
    if (row->kind == TDM_FIELD_NUMBERS) return read_numbers(row, value, written, zone, why);
    if (tdm__field_is_list(row)) return read_list(row, value, written, zone, why);
    if (written->is_list) return refuse_shape(row, "a list", why);
    return read_scalar(row, value, written->item[0], zone, why);
}
