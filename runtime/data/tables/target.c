/* Cells: numbers, gaps, and the target of a table whose loss compares with numbers. Two names instead of numbers are 0
 * and 1, in the order of their letters. */
#include <math.h>
#include <string.h>

#include "runtime/base/status.h"
#include "runtime/data/tables/build.h"

bool tdm__cell_number(const char *cell, float *to) {
    double number;
    if (!tdm__parse_float(cell, &number) || !isfinite((float)number)) return false;
    *to = (float)number;
    return true;
}

tdm_status tdm__table_next(tdm_table_build *b, bool *more) {
    TDM_TRY(tdm__csv_next(&b->csv, more));
    if (*more && (b->csv.column >= b->columns || (b->csv.ends_row && b->csv.column != b->columns - 1)))
        TDM_FAIL_TABLE(b, "line %lld: expected %lld columns as in the first row, found %s", (long long)b->csv.line,
                       (long long)b->columns, b->csv.column >= b->columns ? "more" : "fewer");
    return TDM_OK;
}

tdm_status tdm__table_check_size(const tdm_table_build *b) {
    float number;
    if (!tdm__is_decimal(b->csv.cell) || tdm__cell_number(b->csv.cell, &number)) return TDM_OK;
    TDM_FAIL_CELL(&b->csv,
                  "the number %.64s is too large for a float, which ends at 3.4e38; give the column another unit",
                  b->csv.cell);
}

bool tdm__cell_is_gap(const char *cell, size_t length) {
    static const char *const words[] = {"NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(cell, words[i]) == 0) return true;
    }
    return length == 0;
}

static tdm_status fail_target(const tdm_table_build *b) {
    const char *const *name = b->two_name;
    if (b->two_count == 2)
        TDM_FAIL_CELL(&b->csv, "expected '%.64s' or '%.64s', which are 0 and 1, found '%s'", name[0], name[1],
                      b->csv.cell);
    TDM_FAIL_CELL(&b->csv,
                  "expected a number, as the loss needs, found '%s'; for several classes use a loss over labels",
                  b->csv.cell);
}

/* A number behind a name: the name is the one to look at. */
static tdm_status fail_mixed(const tdm_table_build *b) {
    TDM_FAIL_CELL(&b->csv, "found the number %.64s, but line %lld has '%.64s'; targets are numbers, or two names%s",
                  b->csv.cell, (long long)b->two_line, b->two_name[0], tdm__table_header_hint(b, b->two_line));
}

static tdm_status read_name(tdm_table_build *b, int64_t row) {
    int at = 0;
    while (at < b->two_count && strcmp(b->two_name[at], b->csv.cell) != 0) at++;
    const bool is_new = at == b->two_count;
    if (is_new && b->two_count > 0 && b->known == NULL && tdm__is_decimal(b->csv.cell)) return fail_mixed(b);
    if (is_new && (b->two_count == 2 || b->has_number || b->known != NULL)) return fail_target(b);
    if (is_new) TDM_TRY(tdm__csv_check_utf8(&b->csv, "name"));
    if (is_new && b->two_count == 0) b->two_line = b->csv.line;
    if (is_new) TDM_TRY(tdm__zone_text(&b->to->zone, &b->two_name[b->two_count++], b->csv.cell));
    b->value[row] = (float)at;
    return TDM_OK;
}

tdm_status tdm__table_read_target(tdm_table_build *b, int64_t row) {
    TDM_TRY(tdm__table_check_size(b));
    if (b->two_count > 0 || !tdm__cell_number(b->csv.cell, &b->value[row])) return read_name(b, row);
    b->has_number = true;
    return TDM_OK;
}

tdm_status tdm__table_take_two(tdm_table_build *b) {
    const char **name = b->two_name;
    if (b->known != NULL || b->two_count == 0) return TDM_OK;
    if (b->two_count == 1) TDM_FAIL_TABLE(b, "every label is '%.64s'; there is nothing to learn", name[0]);
    if (strcmp(name[0], name[1]) > 0) {
        const char *first = name[0];
        name[0] = name[1], name[1] = first;
        for (int64_t i = 0; i < b->rows; i++) b->value[i] = 1.0f - b->value[i];
    }
    const char **list;
    TDM_TRY(tdm__zone_new(&b->to->zone, &list, 2, sizeof(*list)));
    list[0] = name[0], list[1] = name[1];
    b->to->features.target.values = (tdm_classes){.count = 2, .name = list};
    return TDM_OK;
}
