/* Prints values in YAML flow style. Reading the text gives the same value again. */
#include <ctype.h>
#include <math.h>
#include <string.h>

#include "runtime/base/field/field_range.h"
#include "runtime/base/text/utf8.h"

/* Words that a reader of YAML 1.1 or 1.2 may take for something other than text. */
static const char *const reserved[] = {"null", "true", "false", "yes", "no", "on", "off", "y", "n", "never"};

static bool is_reserved(const char *text) {
    for (size_t i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++) {
        if (strcasecmp(text, reserved[i]) == 0) return true;
    }
    return false;
}

/* Stricter than YAML: a text that starts like a number is quoted, because readers of YAML 1.1 know octal numbers, dates
 * and base 60. */
static bool is_plain(const char *text) {
    const char *at = text, *end = text + strlen(text);
    bool dots = at[0] == '.' && (at[1] == '/' || at[1] == '.');
    uint32_t code;
    if (*at == '\0' || is_reserved(text) || end[-1] == ' ' || end[-1] == ':') return false;
    if ((unsigned char)*at < 0x80 && !isalpha((unsigned char)*at) && *at != '_' && *at != '/' && !dots) return false;
    for (int length; at < end; at += length) {
        length = tdm__utf8_next(at, (size_t)(end - at), &code);
        if (length == 0) return false;
        if (code < 0x80) {
            if (!isalnum((int)code) && strchr("_./+-: ", (int)code) == NULL) return false;
            if (code == ':' && at[1] == ' ') return false;
        } else if (code < 0xA1 || !tdm__utf8_is_printable(code)) {
            return false;
        }
    }
    return true;
}

static void print_text(const char *text, tdm_text *out) {
    if (text == NULL)
        tdm__text_puts(out, "null");
    else if (is_plain(text))
        tdm__text_puts(out, text);
    else
        tdm__text_json_string(out, text);
}

static void print_int(int64_t value, tdm_text *out) {
    if (value == TDM_INT_NULL)
        tdm__text_puts(out, "null");
    else
        tdm__text_printf(out, "%lld", (long long)value);
}

static void print_size(int64_t bytes, tdm_text *out) {
    if (bytes == TDM_INT_NULL)
        tdm__text_puts(out, "null");
    else
        tdm__print_size(bytes, out);
}

static void print_number(const tdm_field *row, double value, tdm_text *out) {
    char text[32];
    if (isnan(value) && (row->flags & TDM_FIELD_NULLABLE) != 0) {
        tdm__text_puts(out, "null");
    } else if (row->kind == TDM_FIELD_DURATION) {
        tdm__print_duration(value, out);
    } else {
        tdm__print_float(text, value);
        tdm__text_puts(out, text);
    }
}

static void print_interval(const tdm_interval *interval, tdm_text *out) {
    char number[32];
    const char *unit = interval->kind == TDM_INTERVAL_STEPS ? "step" : "epoch";
    if (interval->kind == TDM_INTERVAL_NEVER) {
        tdm__text_puts(out, "never");
    } else if (interval->kind == TDM_INTERVAL_SECONDS) {
        tdm__print_duration(interval->amount, out);
    } else {
        tdm__print_float(number, interval->amount);
        tdm__text_printf(out, "%s %s%s", number, unit, interval->amount == 1.0 ? "" : "s");
    }
}

static void print_int_or_word(const tdm_field *row, int64_t value, tdm_text *out) {
    if (row->names != NULL && value < 0 && value != TDM_INT_NULL)
        tdm__text_puts(out, row->names[-1 - value]);
    else
        print_int(value, out);
}

/* A null pair is stored as two zeros. */
static void print_pair(const tdm_field *row, const int64_t *pair, tdm_text *out) {
    if ((row->flags & TDM_FIELD_NULLABLE) != 0 && pair[0] == 0 && pair[1] == 0)
        tdm__text_puts(out, "null");
    else if (row->names != NULL && pair[0] < 0)
        tdm__text_puts(out, row->names[-1 - pair[0]]);
    else
        tdm__text_printf(out, "[%lld, %lld]", (long long)pair[0], (long long)pair[1]);
}

/* Keys and texts always have quotes, as JSON has them: a prefix that ends with a colon or a dot stays a text. */
static void print_map(const tdm_texts *texts, tdm_text *out) {
    tdm__text_puts(out, "{");
    for (int i = 0; i < texts->count; i++) {
        if (i > 0) tdm__text_puts(out, i % 2 == 0 ? ", " : ": ");
        tdm__text_json_string(out, texts->item[i]);
    }
    tdm__text_puts(out, "}");
}

static void print_list(const tdm_field *row, const void *value, tdm_text *out) {
    const tdm_ints *ints = value;
    const tdm_floats *floats = value;
    const tdm_numbers *numbers = value;
    const tdm_texts *texts = value;
    const int count = ints->count; /* every list begins with its count */
    if (count == 0 && (row->flags & TDM_FIELD_NULLABLE) != 0) {
        tdm__text_puts(out, "null");
        return;
    }
    tdm__text_puts(out, "[");
    for (int i = 0; i < count; i++) {
        if (i > 0) tdm__text_puts(out, ", ");
        if (row->kind == TDM_FIELD_INTS)
            print_int(ints->item[i], out);
        else if (row->kind == TDM_FIELD_FLOATS)
            print_number(row, floats->item[i], out);
        else if (row->kind == TDM_FIELD_NUMBERS)
            print_number(row, numbers->item[i], out);
        else
            print_text(texts->item[i], out);
    }
    tdm__text_puts(out, "]");
}

static void print_shapes(const tdm_field *row, const tdm_shapes *shapes, tdm_text *out) {
    if (shapes->count == 0 && (row->flags & TDM_FIELD_NULLABLE) != 0)
        tdm__text_puts(out, "null");
    else
        tdm__field_print_shapes(shapes, out);
}

void tdm__field_print(const tdm_field *row, const void *object, tdm_text *out) {
    const void *value = (const char *)object + row->offset;
    switch (row->kind) {
    case TDM_FIELD_BOOL:
        tdm__text_puts(out, *(const bool *)value ? "true" : "false");
        break;
    case TDM_FIELD_INT:
        print_int_or_word(row, *(const int64_t *)value, out);
        break;
    case TDM_FIELD_SIZE:
        print_size(*(const int64_t *)value, out);
        break;
    case TDM_FIELD_FLOAT:
    case TDM_FIELD_DURATION:
        print_number(row, *(const double *)value, out);
        break;
    case TDM_FIELD_TEXT:
    case TDM_FIELD_PATH:
        print_text(*(const char *const *)value, out);
        break;
    case TDM_FIELD_ENUM:
        tdm__text_puts(out, row->names[tdm__field_enum(row, object)]);
        break;
    case TDM_FIELD_PAIR:
        print_pair(row, value, out);
        break;
    case TDM_FIELD_INTS:
    case TDM_FIELD_FLOATS:
    case TDM_FIELD_NUMBERS:
    case TDM_FIELD_PATHS:
    case TDM_FIELD_TEXTS:
        print_list(row, value, out);
        break;
    case TDM_FIELD_MAP:
        print_map(value, out);
        break;
    case TDM_FIELD_SHAPES:
        print_shapes(row, value, out);
        break;
    case TDM_FIELD_INTERVAL:
        print_interval(value, out);
        break;
    case TDM_FIELD_KIND_COUNT:
        break;
    }
}

void tdm__fields_print(const tdm_field *rows, const void *object, tdm_text *out) {
    for (const tdm_field *row = rows; row != NULL && row->key != NULL; row++) {
        tdm__text_printf(out, " %s=", row->key);
        tdm__field_print(row, object, out);
    }
}
