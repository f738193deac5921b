/* Describes rows to people: ranges, descriptions in English and Chinese, durations. */
#include <math.h>
#include <string.h>

#include "runtime/base/field/field_range.h"

const char tdm__field_no_memory[] = "could not be kept: out of memory";

tdm_range tdm__field_range(const tdm_field *row) {
    tdm_range range = {.min = row->min, .max = row->max};
    if (row->min == 0.0 && row->max == 0.0) {
        range.open_min = (row->flags & TDM_FIELD_OPEN_MIN) != 0; /* means "above 0", without a maximum */
        range.has_min = range.open_min;
        return range;
    }
    /* A bound beyond the range of int64_t adds nothing to the type. */
    range.has_min = row->min > -9.2e18;
    range.has_max = row->max >= row->min && row->max < 9.2e18;
    range.open_min = range.has_min && (row->flags & TDM_FIELD_OPEN_MIN) != 0;
    range.open_max = range.has_max && (row->flags & TDM_FIELD_OPEN_MAX) != 0;
    return range;
}

int tdm__field_max_items(const tdm_field *row) {
    const int most = row->kind == TDM_FIELD_NUMBERS ? TDM_NUMBERS_MAX : TDM_LIST_MAX;
    return row->max_items > 0 && row->max_items < most ? row->max_items : most;
}

bool tdm__field_is_list(const tdm_field *row) {
    return tdm__field_traits[row->kind].is_list;
}

static const struct {
    const char *name;
    int64_t ms;
} units[] = {{"d", 86400000}, {"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}};
enum { UNIT_COUNT = sizeof(units) / sizeof(units[0]) };

bool tdm__parse_duration(const char *text, double *seconds) {
    int64_t total = 0;
    int next = 0;
    do {
        size_t digits = strspn(text, "0123456789");
        if (digits == 0 || digits > 15) return false;
        int64_t amount = 0;
        for (size_t i = 0; i < digits; i++) amount = amount * 10 + (text[i] - '0');
        text += digits;
        size_t letters = strspn(text, "dhms");
        int unit = next;
        while (unit < UNIT_COUNT &&
               (strlen(units[unit].name) != letters || memcmp(units[unit].name, text, letters) != 0))
            unit++;
        if (unit == UNIT_COUNT || __builtin_mul_overflow(amount, units[unit].ms, &amount) ||
            __builtin_add_overflow(total, amount, &total))
            return false;
        next = unit + 1;
        text += letters;
    } while (*text != '\0');
    *seconds = (double)total / 1000.0;
    return true;
}

void tdm__print_duration(double seconds, tdm_text *out) {
    if (!(seconds > 0.0) || seconds > 9e15) {
        tdm__text_puts(out, seconds > 0.0 ? ".inf" : "0s");
        return;
    }
    int64_t left = llround(seconds * 1000.0);
    if (left == 0) left = 1;
    for (int i = 0; i < UNIT_COUNT; i++) {
        int64_t amount = left / units[i].ms;
        if (amount > 0) tdm__text_printf(out, "%lld%s", (long long)amount, units[i].name);
        left -= amount * units[i].ms;
    }
}

/* A number, or a duration if the row is one. */
static void print_bound(const tdm_field *row, double value, tdm_text *out) {
    char number[32];
    if (row->kind == TDM_FIELD_DURATION && value >= 0.0) {
        tdm__print_duration(value, out);
    } else if (row->kind == TDM_FIELD_SIZE) {
        tdm__print_size((int64_t)value, out);
    } else if (row->kind == TDM_FIELD_INT || row->kind == TDM_FIELD_INTS || row->kind == TDM_FIELD_PAIR) {
        tdm__text_printf(out, "%.0f", value); /* without an exponent */
    } else {
        tdm__print_float(number, value);
        tdm__text_puts(out, number);
    }
}

/* The words before a bound; `and_` stands before an upper bound that follows a lower one. */
typedef struct range_words {
    const char *exactly, *from, *to, *above, *least, *below, *most, *and_below, *and_most;
} range_words;

static void put_range(const tdm_field *row, const range_words *words, tdm_text *out) {
    const tdm_range range = tdm__field_range(row);
    const bool has_both = range.has_min && range.has_max, is_one = has_both && range.min == range.max;
    const bool is_closed = has_both && !range.open_min && !range.open_max;
    if (range.has_min) {
        tdm__text_puts(out, is_one           ? words->exactly
                            : is_closed      ? words->from
                            : range.open_min ? words->above
                                             : words->least);
        print_bound(row, range.min, out);
    }
    if (range.has_max && !is_one) {
        const char *below = range.has_min ? words->and_below : words->below;
        const char *most = range.has_min ? words->and_most : words->most;
        tdm__text_puts(out, is_closed ? words->to : range.open_max ? below : most);
        print_bound(row, range.max, out);
    }
}

void tdm__field_demand_range(const tdm_field *row, tdm_text *out) {
    static const range_words words = {" of exactly ", " from ",       " to ",        " above ",      " of at least ",
                                      " below ",      " of at most ", " and below ", " and at most "};
    put_range(row, &words, out);
}

static void describe_range(const tdm_field *row, tdm_text *out, bool chinese) {
    static const range_words words[] = {
        {", exactly ", ", ", " to ", ", above ", ", at least ", ", below ", ", at most ", ", below ", ", at most "},
        {"，恰为 ", "，", " 到 ", "，大于 ", "，不小于 ", "，小于 ", "，不大于 ", "，小于 ", "，不大于 "},
    };
    put_range(row, &words[chinese], out);
}

static void describe_count(const tdm_field *row, tdm_text *out, bool chinese) {
    int least = row->min_items, most = tdm__field_max_items(row);
    if (least == most) {
        tdm__text_printf(out, chinese ? "，恰好 %d 个" : ", exactly %d", least);
    } else {
        if (least > 0) tdm__text_printf(out, chinese ? "，至少 %d 个" : ", at least %d of them", least);
        if (row->max_items > 0) tdm__text_printf(out, chinese ? "，至多 %d 个" : ", at most %d of them", most);
    }
}

static void describe_names(const tdm_field *row, tdm_text *out, bool chinese) {
    tdm__text_puts(out, chinese ? "以下之一：" : "one of ");
    for (int i = 0; row->names[i] != NULL; i++) {
        if (i > 0) tdm__text_puts(out, chinese ? "、" : ", ");
        tdm__text_puts(out, row->names[i]);
    }
}

const tdm_field_traits tdm__field_traits[TDM_FIELD_KIND_COUNT] = {
    [TDM_FIELD_BOOL] = {sizeof(bool), false, false, "", "true or false", "true 或 false"},
    [TDM_FIELD_INT] = {sizeof(int64_t), false, true, "an ", "integer", "整数"},
    [TDM_FIELD_FLOAT] = {sizeof(double), false, true, "a ", "number", "数值"},
    [TDM_FIELD_TEXT] = {sizeof(const char *), false, false, "a ", "text", "文本"},
    [TDM_FIELD_PATH] = {sizeof(const char *), false, false, "a ", "path", "路径"},
    [TDM_FIELD_ENUM] = {sizeof(int), false, false, NULL, NULL, NULL},
    [TDM_FIELD_PAIR] = {2 * sizeof(int64_t), false, true, "", "one integer, or two as [3, 5] or 3x5",
                        "一个整数，或两个整数，写作 [3, 5] 或 3x5"},
    [TDM_FIELD_INTS] = {sizeof(tdm_ints), true, true, "a ", "list of integers", "整数列表"},
    [TDM_FIELD_FLOATS] = {sizeof(tdm_floats), true, true, "a ", "list of numbers", "数值列表"},
    [TDM_FIELD_PATHS] = {sizeof(tdm_texts), true, false, "a ", "list of paths", "路径列表"},
    [TDM_FIELD_TEXTS] = {sizeof(tdm_texts), true, false, "a ", "list of texts", "文本列表"},
    [TDM_FIELD_MAP] = {sizeof(tdm_texts), true, false, "a ", "mapping of texts to texts", "文本到文本的映射"},
    [TDM_FIELD_INTERVAL] = {sizeof(tdm_interval), false, false, "an ", "interval such as 50 steps, 1 epoch or 30m",
                            "间隔，例如 50 steps、1 epoch 或 30m"},
    [TDM_FIELD_DURATION] = {sizeof(double), false, true, "a ", "duration such as 500ms, 30s, 10m or 1h30m",
                            "时长，例如 500ms、30s、10m 或 1h30m"},
    [TDM_FIELD_NUMBERS] = {sizeof(tdm_numbers), true, true, "a ", "list of numbers", "数值列表"},
    [TDM_FIELD_SIZE] = {sizeof(int64_t), false, true, "a ", "size such as 64KiB, 512MiB or 2GiB",
                        "大小，例如 64KiB、512MiB 或 2GiB"},
    [TDM_FIELD_SHAPES] = {sizeof(tdm_shapes), true, true, "a ", "mapping of names to shapes", "名字到形状的映射"},
};

void tdm__field_describe(const tdm_field *row, tdm_text *out, bool chinese) {
    const tdm_field_traits *traits = &tdm__field_traits[row->kind];
    if (row->kind == TDM_FIELD_ENUM)
        describe_names(row, out, chinese);
    else
        tdm__text_puts(out, chinese ? traits->name_zh : traits->name);
    if (traits->is_list) describe_count(row, out, chinese);
    if (traits->has_range) describe_range(row, out, chinese);
    if (row->unit != NULL) tdm__text_printf(out, chinese ? "（%s）" : " (%s)", row->unit);
    for (int i = 0; row->kind != TDM_FIELD_ENUM && row->names != NULL && row->names[i] != NULL; i++)
        tdm__text_printf(out, chinese ? "，或 %s" : ", or %s", row->names[i]);
    if ((row->flags & TDM_FIELD_NULLABLE) != 0) {
        if (row->kind == TDM_FIELD_INTERVAL)
            tdm__text_puts(out, chinese ? "，或 never" : ", or never");
        else
            tdm__text_puts(out, chinese ? "，或 null" : ", or null");
    }
}
