/* Which columns of a table are inputs, which is the target, and which are left out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/status.h"
#include "runtime/data/tables/blanks.h"
#include "runtime/data/tables/build.h"

enum { COLUMNS_MAX = 1 << 16 };

const char *tdm__column_print(char out[TDM_COLUMN_TEXT], const tdm_table_build *b, int64_t column) {
    if (b->column[column].name != NULL)
        snprintf(out, TDM_COLUMN_TEXT, "'%.64s'", b->column[column].name);
    else
        snprintf(out, TDM_COLUMN_TEXT, "%lld", (long long)column);
    return out;
}

/* Counts the columns. The row has names if none of its cells is a number. */
static tdm_status count_columns(tdm_table_build *b) {
    bool more;
    b->has_names = true;
    tdm__csv_begin(&b->csv, "csv", b->spec->path, b->text, b->bytes);
    do {
        TDM_TRY(tdm__csv_next(&b->csv, &more));
        if (!more) TDM_FAIL_TABLE(b, "the file is empty");
        b->first_line = b->csv.line;
        if (b->columns == 0 && tdm__text_same(b->csv.cell, "sep="))
            TDM_FAIL_TABLE(b, "line %lld: `sep=` is for Excel alone; remove this line", (long long)b->csv.line);
        if (tdm__is_decimal(b->csv.cell)) b->has_names = false;
        b->columns++;
        if (b->columns > COLUMNS_MAX)
            TDM_FAIL_TABLE(b, "the first row has more than %d columns; split the table, or convert it to npy",
                           COLUMNS_MAX);
    } while (!b->csv.ends_row);
    if (b->spec->header != TDM_CSV_HEADER_AUTO) b->has_names = b->spec->header == TDM_CSV_HEADER_YES;
    if (b->columns < 2 && !b->spec->without_targets)
        TDM_FAIL_TABLE(b,
                       "one column only; a table needs numbers and a label, separated by commas, semicolons or tabs");
    return TDM_OK;
}

tdm_status tdm__table_read_head(tdm_table_build *b) {
    bool more;
    TDM_TRY(count_columns(b));
    TDM_TRY(tdm__zone_new(&b->zone, &b->column, (size_t)b->columns, sizeof(*b->column)));
    tdm__csv_begin(&b->csv, "csv", b->spec->path, b->text, b->bytes);
    for (int64_t i = 0; i < b->columns && b->has_names; i++) {
        TDM_TRY(tdm__csv_next(&b->csv, &more));
        TDM_TRY(tdm__csv_check_utf8(&b->csv, "name of the column"));
        TDM_TRY(tdm__zone_text(&b->zone, &b->column[i].name, b->csv.cell));
    }
    return TDM_OK;
}

/* The column of that name, -1: there is none. It is probably `near`. */
static int64_t find_name(const tdm_table_build *b, const char *name, int64_t near) {
    for (int64_t i = 0; i < b->columns && b->has_names; i++) {
        const int64_t at = (near + i) % b->columns;
        if (tdm__text_same(b->column[at].name, name)) return at;
    }
    return -1;
}

const char *tdm__table_header_hint(const tdm_table_build *b, int64_t line) {
    if (b->spec->header != TDM_CSV_HEADER_NO || b->has_names || line != b->first_line) return "";
    return "; if the first row has the names of the columns, remove `header: no`";
}

/* The names of the first columns. */
static const char *print_names(char *out, size_t bytes, const tdm_table_build *b) {
    enum { SHOWN = 8 };
    size_t at = 0;
    for (int64_t i = 0; i < b->columns && i < SHOWN; i++) {
        const int more = snprintf(out + at, bytes - at, "%s'%.32s'", i > 0 ? ", " : "", b->column[i].name);
        at += (size_t)more;
    }
    snprintf(out + at, bytes - at, "%s", b->columns > SHOWN ? ", ..." : "");
    return out;
}

static tdm_status fail_column(const tdm_table_build *b, const char *wanted, const char *key) {
    char names[320];
    if (b->has_names)
        TDM_FAIL_TABLE(b,
                       "`%s`: there is no column '%.64s'; write a name, %s, or a number from 0 to %lld (-1: the last)",
                       key, wanted, print_names(names, sizeof(names), b), (long long)b->columns - 1);
    TDM_FAIL_TABLE(b, "`%s`: there is no column '%.64s': %s; write a number from 0 to %lld (-1: the last)", key, wanted,
                   b->spec->header == TDM_CSV_HEADER_NO ? "`header: no` says that the columns have no names"
                                                        : "the first row holds numbers, not names",
                   (long long)b->columns - 1);
}

/* A column by its name, or by its number from 0; from the end if negative. -1: there is none. */
static int64_t column_of(const tdm_table_build *b, const char *wanted) {
    int64_t number;
    const int64_t at = find_name(b, wanted, 0);
    if (at >= 0) return at;
    if (!tdm__parse_int(wanted, &number) || number < -b->columns || number >= b->columns) return -1;
    return number < 0 ? b->columns + number : number;
}

static tdm_status find(const tdm_table_build *b, const char *wanted, const char *key, int64_t *out) {
    *out = column_of(b, wanted);
    return *out >= 0 ? TDM_OK : fail_column(b, wanted, key);
}

static tdm_status mark(tdm_table_build *b, const tdm_texts *names, const char *key, tdm_role role) {
    char text[TDM_COLUMN_TEXT];
    for (int i = 0; i < names->count; i++) {
        int64_t at;
        TDM_TRY(find(b, names->item[i], key, &at));
        if (at == b->target || (b->column[at].role != TDM_ROLE_NUMBER && b->column[at].role != role))
            TDM_FAIL_TABLE(b, "column %s is %s, and cannot be in `%s`", tdm__column_print(text, b, at),
                           at == b->target ? "the label" : "in `ignore`", key);
        b->column[at].role = role;
    }
    return TDM_OK;
}

/* As the spec says. Categories follow the numbers. */
static tdm_status roles_of_spec(tdm_table_build *b) {
    b->numbers = b->categories = 0;
    for (int64_t i = 0; i < b->columns; i++) b->column[i].role = TDM_ROLE_NUMBER;
    if (b->target >= 0) b->column[b->target].role = TDM_ROLE_TARGET;
    TDM_TRY(mark(b, &b->spec->ignore, "ignore", TDM_ROLE_IGNORED));
    TDM_TRY(mark(b, &b->spec->categories, "categories", TDM_ROLE_CATEGORY));
    for (int64_t i = 0; i < b->columns; i++) {
        if (b->column[i].role == TDM_ROLE_NUMBER) b->column[i].item = b->numbers++;
    }
    for (int64_t i = 0; i < b->columns; i++) {
        if (b->column[i].role == TDM_ROLE_CATEGORY) b->column[i].item = b->numbers + b->categories++;
    }
    return TDM_OK;
}

/* By their names, blanks around these apart; then as in the table. */
static int order(const void *a, const void *b) {
    const tdm_table_column *const *x = a, *const *y = b;
    const int by_name = tdm__blanks_compare((*x)->name, (*y)->name);
    return by_name != 0 ? by_name : (*x > *y) - (*x < *y);
}

static tdm_status check_name(const tdm_table_build *b, int64_t column) {
    const char *name = b->column[column].name;
    if (!tdm__is_blank(name)) return TDM_OK;
    TDM_FAIL_TABLE(b, "line %lld, column %lld: the column has no name; write one, or `ignore: [\"%lld\"]`",
                   (long long)b->first_line, (long long)column + 1, (long long)column);
}

/* Tables to come are matched by these names. */
static tdm_status check_names(tdm_table_build *b) {
    const tdm_table_column **used;
    int64_t count = 0;
    if (!b->has_names) return TDM_OK;
    TDM_TRY(tdm__zone_new(&b->zone, &used, (size_t)b->columns, sizeof(*used)));
    for (int64_t i = 0; i < b->columns; i++) {
        if (b->column[i].role == TDM_ROLE_IGNORED) continue;
        TDM_TRY(check_name(b, i));
        used[count++] = &b->column[i];
    }
    qsort(used, (size_t)count, sizeof(*used), order);
    for (int64_t i = 1; i < count; i++) {
        if (tdm__blanks_compare(used[i - 1]->name, used[i]->name) != 0) continue;
        const long long at = used[i] - b->column, other = used[i - 1] - b->column;
        TDM_FAIL_TABLE(b,
                       "line %lld, column %lld: the name '%.64s' is that of column %lld, too%s; rename one, or write "
                       "`ignore: [\"%lld\"]`",
                       (long long)b->first_line, at + 1, used[i]->name, other + 1,
                       tdm__text_same(used[i - 1]->name, used[i]->name) ? "" : ", but for blanks", at);
    }
    return TDM_OK;
}

tdm_status tdm__table_find_target(tdm_table_build *b) {
    b->target = b->columns - 1;
    if (b->spec->label == NULL) return TDM_OK;
    return tdm__error_at(find(b, b->spec->label, "label", &b->target), &b->spec->targets_at);
}

static tdm_status roles_to_learn(tdm_table_build *b) {
    TDM_TRY(tdm__table_find_target(b));
    TDM_TRY(roles_of_spec(b));
    if (b->numbers + b->categories == 0) TDM_FAIL_TABLE(b, "no column is left beside the label and `ignore`");
    return check_names(b);
}

static tdm_status find_shared_names(tdm_table_build *b) {
    tdm_table_column **sorted;
    TDM_TRY(tdm__zone_new(&b->zone, &sorted, (size_t)b->columns, sizeof(*sorted)));
    for (int64_t i = 0; i < b->columns; i++) sorted[i] = &b->column[i];
    qsort(sorted, (size_t)b->columns, sizeof(*sorted), order);
    for (int64_t i = 1; i < b->columns; i++) {
        if (tdm__blanks_compare(sorted[i - 1]->name, sorted[i]->name) == 0)
            sorted[i - 1]->shares_name = sorted[i]->shares_name = true;
    }
    return TDM_OK;
}

static bool is_ignored(const tdm_table_build *b, int64_t column) {
    for (int i = 0; i < b->spec->ignore.count; i++)
        if (column_of(b, b->spec->ignore.item[i]) == column) return true;
    return false;
}

/* The column of a name that is known, -1: there is none. Of several the one that `ignore` leaves, as when it was
 * learned. */
static tdm_status find_known(const tdm_table_build *b, const char *name, int64_t near, int64_t *out) {
    *out = find_name(b, name, near);
    if (*out < 0 || !b->column[*out].shares_name) return TDM_OK;
    *out = -1;
    for (int64_t i = 0; i < b->columns; i++) {
        if (!tdm__text_same(b->column[i].name, name) || is_ignored(b, i)) continue;
        if (*out >= 0)
            TDM_FAIL_TABLE(b, "line %lld, column %lld: the name '%.64s' is that of column %lld, too; rename one",
                           (long long)b->first_line, (long long)i + 1, name, (long long)*out + 1);
        *out = i;
    }
    return TDM_OK;
}

/* The target of a table with known features; a table to predict for may have none. */
static tdm_status find_known_target(tdm_table_build *b) {
    const char *name = b->known->target.name;
    const int64_t others = b->known->numbers + b->known->categories + b->spec->ignore.count;
    b->target = -1;
    if (name != NULL && b->has_names) TDM_TRY(find_known(b, name, b->columns - 1, &b->target));
    if (b->target < 0 && b->spec->without_targets && (b->has_names || b->columns == others)) return TDM_OK;
    if (b->target < 0 && (name == NULL || !b->has_names)) {
        TDM_TRY(tdm__table_find_target(b));
    }
    if (b->target < 0) TDM_FAIL_TABLE(b, "there is no column '%.64s', the label of the data trained on", name);
    b->column[b->target].role = TDM_ROLE_TARGET;
    return TDM_OK;
}

/* By name: the columns may be in any order, and others may lie between them. */
static tdm_status known_by_name(tdm_table_build *b) {
    const tdm_features *known = b->known;
    int64_t near = 0;
    for (int64_t k = 0; k < known->numbers + known->categories; k++) {
        int64_t at;
        TDM_TRY(find_known(b, known->item[k].name, near, &at));
        if (at < 0) TDM_FAIL_TABLE(b, "there is no column '%.64s', which the data trained on has", known->item[k].name);
        if (b->column[at].role != TDM_ROLE_IGNORED)
            TDM_FAIL_TABLE(b, "the column '%.64s' is wanted twice", known->item[k].name);
        b->column[at].role = k < known->numbers ? TDM_ROLE_NUMBER : TDM_ROLE_CATEGORY;
        b->column[at].item = k;
        near = at + 1;
    }
    return TDM_OK;
}

static tdm_status roles_of_known(tdm_table_build *b) {
    const tdm_features *known = b->known;
    const int64_t inputs = known->numbers + known->categories;
    const bool has_names = inputs > 0 && known->item[0].name != NULL;
    b->numbers = known->numbers;
    b->categories = known->categories;
    if (b->has_names) TDM_TRY(find_shared_names(b));
    TDM_TRY(find_known_target(b));
    if (has_names && b->has_names) return known_by_name(b);
    if (has_names != b->has_names)
        TDM_FAIL_TABLE(b, "the data trained on %s, and this table %s; see `header`",
                       has_names ? "has names of columns" : "has no names of columns",
                       b->has_names ? "has them" : "has none");
    TDM_TRY(roles_of_spec(b)); /* without names only positions count */
    if (b->numbers != known->numbers || b->categories != known->categories)
        TDM_FAIL_TABLE(b, "the data trained on has %lld numbers and %lld categories, found %lld and %lld",
                       (long long)known->numbers, (long long)known->categories, (long long)b->numbers,
                       (long long)b->categories);
    return TDM_OK;
}

tdm_status tdm__table_give_roles(tdm_table_build *b) {
    return b->known != NULL ? roles_of_known(b) : roles_to_learn(b);
}
