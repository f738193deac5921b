/* Tables of numbers as text: one sample a row, one column the label or target, all others the input. */
#include <string.h>

#include "runtime/base/status.h"
#include "runtime/base/text/text.h"
#include "runtime/data/classes.h"
#include "runtime/data/formats/csv_cells.h"
#include "runtime/data/formats/table.h"

typedef struct csv_build {
    tdm_table *table;
    const tdm_data_spec *spec;
    tdm_csv csv;
    char *text;
    size_t bytes;
    int64_t columns, rows; /* without the row of names */
    bool has_names;        /* the first row names the columns */
    int64_t label;         /* column of the label */
    float *x, *value;      /* value: the targets, if they are floats */
    tdm_text labels;       /* the labels as texts, one behind the other */
    size_t *label_at;
} csv_build;

static void restart(csv_build *b) {
    tdm__csv_begin(&b->csv, "csv", b->spec->path, b->text, b->bytes);
}

/* Is the cell the name of the label's column? */
static bool is_label(const csv_build *b) {
    return b->spec->label != NULL && strcmp(b->csv.cell, b->spec->label) == 0;
}

/* The first row: how many columns, and whether it names them. It does if none of its cells is a number. */
static tdm_status read_first_row(csv_build *b) {
    bool more;
    double number;
    b->has_names = true;
    b->label = -1;
    restart(b);
    do {
        TDM_TRY(tdm__csv_next(&b->csv, &more));
        if (!more) TDM_FAIL(TDM_E_DATA, "csv '%s': the file is empty", b->spec->path);
        if (tdm__parse_float(b->csv.cell, &number)) b->has_names = false;
        if (is_label(b)) b->label = b->csv.column;
        b->columns++;
    } while (!b->csv.ends_row);
    if (b->spec->header != TDM_CSV_HEADER_AUTO) b->has_names = b->spec->header == TDM_CSV_HEADER_YES;
    if (b->columns < 2)
        TDM_FAIL(TDM_E_DATA, "csv '%s': one column only; a table needs numbers and a label, separated by commas",
                 b->spec->path);
    return TDM_OK;
}

static tdm_status find_label(csv_build *b) {
    const char *wanted = b->spec->label;
    int64_t number;
    if (wanted == NULL) {
        b->label = b->columns - 1;
    } else if (b->label >= 0 && b->has_names) {
        /* found by its name */
    } else if (tdm__parse_int(wanted, &number) && number >= -b->columns && number < b->columns) {
        b->label = number < 0 ? b->columns + number : number;
    } else {
        TDM_FAIL(TDM_E_DATA, "csv '%s': there is no column '%s'%s; name a column, or its number from 0", b->spec->path,
                 wanted, b->has_names ? "" : ", and the first row holds numbers, not names");
    }
    return TDM_OK;
}

/* Counts the rows, and checks that all have the same columns. */
static tdm_status count_rows(csv_build *b) {
    bool more = true;
    restart(b);
    for (;;) {
        TDM_TRY(tdm__csv_next(&b->csv, &more));
        if (!more) break;
        if (b->csv.column >= b->columns || (b->csv.ends_row && b->csv.column != b->columns - 1))
            TDM_FAIL(TDM_E_DATA, "csv '%s', line %lld: expected %lld columns as in the first row, found %s",
                     b->spec->path, (long long)b->csv.line, (long long)b->columns,
                     b->csv.column >= b->columns ? "more" : "fewer");
    }
    b->rows = b->csv.row - b->has_names;
    if (b->rows < 1) TDM_FAIL(TDM_E_DATA, "csv '%s': the table has no rows", b->spec->path);
    return TDM_OK;
}

static tdm_status take_memory(csv_build *b, bool is_class) {
    tdm_dataset *base = &b->table->base;
    size_t numbers;
    if (!tdm__mul_fits((size_t)b->rows, (size_t)b->columns - 1, &numbers))
        TDM_FAIL(TDM_E_DATA, "csv '%s': the table is too large", b->spec->path);
    TDM_TRY(tdm__dataset_take(base, &b->x, numbers, sizeof(float), "csv"));
    if (!is_class) return tdm__dataset_take(base, &b->value, (size_t)b->rows, sizeof(float), "csv");
    TDM_TRY(tdm__dataset_take(base, &b->table->labels, (size_t)b->rows, sizeof(int64_t), "labels"));
    return tdm__new(base->host, &b->label_at, (size_t)b->rows, sizeof(*b->label_at), "labels");
}

static tdm_status read_number(csv_build *b, float *to) {
    double number;
    if (!tdm__parse_float(b->csv.cell, &number) || (float)number - (float)number != 0.0f)
        TDM_FAIL_CELL(&b->csv, "expected a number, found %s%s%s", b->csv.length > 0 ? "'" : "",
                      b->csv.length > 0 ? b->csv.cell : "nothing", b->csv.length > 0 ? "'" : "");
    *to = (float)number;
    return TDM_OK;
}

static tdm_status read_label(csv_build *b, int64_t row) {
    if (b->value != NULL) return read_number(b, &b->value[row]);
    if (b->csv.length == 0) TDM_FAIL_CELL(&b->csv, "the label is missing");
    b->label_at[row] = b->labels.length;
    tdm__text_add(&b->labels, b->csv.cell, b->csv.length + 1);
    if (b->labels.failed) TDM_FAIL(TDM_E_MEMORY, "csv '%s': out of memory for the labels", b->spec->path);
    return TDM_OK;
}

static tdm_status read_rows(csv_build *b) {
    bool more = true;
    float *x = b->x;
    restart(b);
    for (;;) {
        TDM_TRY(tdm__csv_next(&b->csv, &more));
        if (!more) return TDM_OK;
        const int64_t row = b->csv.row - b->has_names;
        if (row < 0) continue;
        if (b->csv.column == b->label) {
            TDM_TRY(read_label(b, row));
        } else {
            TDM_TRY(read_number(b, x++));
        }
    }
}

static tdm_status build(csv_build *b, const tdm_data_wanted *wanted) {
    tdm_table *table = b->table;
    tdm_dataset *base = &table->base;
    const bool is_class = wanted->target_kind == TDM_TARGET_CLASS;
    TDM_TRY(tdm__csv_load(base->host, "csv", b->spec->path, &b->text, &b->bytes));
    TDM_TRY(read_first_row(b));
    TDM_TRY(find_label(b));
    TDM_TRY(count_rows(b));
    const tdm_shape shape = {1, {b->columns - 1}};
    TDM_TRY(tdm__dataset_take_shape(base, b->spec, wanted, &shape, b->spec->path));
    TDM_TRY(take_memory(b, is_class));
    TDM_TRY(read_rows(b));
    const size_t width = (size_t)b->columns - 1;
    table->x = (tdm_column){(const unsigned char *)b->x, width * sizeof(float), width, TDM_CELL_F32};
    base->count = b->rows;
    base->target_kind = wanted->target_kind;
    if (is_class)
        return tdm__classes_from_texts(base, wanted, b->spec->path, b->labels.data, b->label_at, b->rows,
                                       table->labels);
    if (wanted->target_width > 1)
        TDM_FAIL(TDM_E_DATA, "csv '%s': the model has %lld outputs per sample, and a table has one target",
                 b->spec->path, (long long)wanted->target_width);
    table->values = (tdm_column){(const unsigned char *)b->value, sizeof(float), 1, TDM_CELL_F32};
    base->target_width = 1;
    return TDM_OK;
}

static tdm_status csv_open(tdm_dataset *dataset, const tdm_data_spec *spec, const tdm_data_wanted *wanted) {
    csv_build b = {.table = (tdm_table *)dataset, .spec = spec};
    tdm__text_init(&b.labels, dataset->host);
    const tdm_status status = tdm__error_at(build(&b, wanted), &spec->inputs_at);
    tdm__text_deinit(&b.labels);
    tdm__delete(dataset->host, b.label_at);
    tdm__delete(dataset->host, b.text);
    return status == TDM_OK ? tdm__table_finish(b.table, spec, wanted, spec->path) : status;
}

const tdm_dataset_ops tdm__csv_data = {
    .name = "csv", .bytes = sizeof(tdm_table), .open = csv_open, .read = tdm__table_read};
