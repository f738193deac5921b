/* Tables as text: one sample a row; one column is the label or target, the others are numbers or categories. The files
 * of runtime/data/tables know what becomes of the columns. */
#include <math.h>
#include <string.h>

#include "runtime/base/status.h"
#include "runtime/base/text/text.h"
#include "runtime/data/classes.h"
#include "runtime/data/tables/build.h"

/* Counts the rows, and checks that all have the same columns. */
static tdm_status count_rows(tdm_table_build *b) {
    bool more = true;
    tdm__csv_begin(&b->csv, "csv", b->spec->path, b->text, b->bytes);
    while (more) TDM_TRY(tdm__table_next(b, &more));
    b->rows = b->csv.row - b->has_names;
    if (b->rows < 1) TDM_FAIL_TABLE(b, "the table has no rows");
    return TDM_OK;
}

static tdm_status take_memory(tdm_table_build *b, bool is_class) {
    tdm_dataset *base = &b->to->table.base;
    const size_t rows = (size_t)b->rows, categories = (size_t)b->categories;
    size_t numbers;
    if (!tdm__mul_fits(rows, (size_t)b->numbers + categories, &numbers)) TDM_FAIL_TABLE(b, "the table is too large");
    TDM_TRY(tdm__dataset_take(base, &b->x, numbers, sizeof(float), "csv"));
    if (is_class) TDM_TRY(tdm__dataset_take(base, &b->to->table.labels, rows, sizeof(int64_t), "labels"));
    if (!is_class) TDM_TRY(tdm__dataset_take(base, &b->value, rows, sizeof(float), "csv"));
    if (is_class) TDM_TRY(tdm__new(base->host, &b->label_at, rows, sizeof(*b->label_at), "labels"));
    if (is_class || categories > 0)
        TDM_TRY(tdm__new(base->host, &b->line, rows, sizeof(*b->line), "lines of the table"));
    if (categories == 0) return TDM_OK;
    return tdm__new(base->host, &b->category_at, rows * categories, sizeof(*b->category_at), "categories");
}

/* ---- cells ---- */

/* Is a missing number filled? Those of a table with known features are if they were in the data trained on. */
static bool fills(const tdm_table_build *b, int64_t item) {
    if (b->known != NULL) return !isnan(b->known->item[item].fill);
    return b->spec->missing != TDM_MISSING_ERROR;
}

static tdm_status fail_number(const tdm_table_build *b, const char *hint) {
    const tdm_csv *csv = &b->csv;
    const char *header = tdm__table_header_hint(b, csv->line);
    if (header[0] != '\0') hint = header;
    if (csv->length == 0) TDM_FAIL_CELL(csv, "expected a number, found nothing%s", hint);
    TDM_FAIL_CELL(csv, "expected a number, found '%s'%s", csv->cell, hint);
}

static tdm_status read_number(tdm_table_build *b, const tdm_table_column *column, float *to) {
    if (tdm__cell_number(b->csv.cell, to)) return TDM_OK;
    TDM_TRY(tdm__table_check_size(b));
    if (!tdm__cell_is_gap(b->csv.cell, b->csv.length))
        return fail_number(b, "; a column of words belongs in `categories` or `ignore`");
    if (!fills(b, column->item)) return fail_number(b, "; to fill gaps write `missing: mean` or `missing: zero`");
    *to = NAN;
    return TDM_OK;
}

static tdm_status keep_text(tdm_table_build *b, size_t *at) {
    *at = b->texts.length;
    tdm__text_add(&b->texts, b->csv.cell, b->csv.length + 1);
    if (b->texts.failed) TDM_FAIL(TDM_E_MEMORY, "csv '%s': out of memory for its texts", b->spec->path);
    return TDM_OK;
}

static tdm_status read_category(tdm_table_build *b, const tdm_table_column *column, int64_t row) {
    TDM_TRY(tdm__csv_check_utf8(&b->csv, "category"));
    return keep_text(b, &b->category_at[row * b->categories + column->item - b->numbers]);
}

static tdm_status read_label(tdm_table_build *b, int64_t row) {
    if (b->csv.length == 0) TDM_FAIL_CELL(&b->csv, "the label is missing");
    if (tdm__cell_is_gap(b->csv.cell, b->csv.length) && b->label_gaps++ == 0) b->gap_line = b->csv.line;
    if (b->value != NULL) return tdm__table_read_target(b, row);
    TDM_TRY(tdm__csv_check_utf8(&b->csv, "label"));
    return keep_text(b, &b->label_at[row]);
}

/* Some labels may be called so. */
static tdm_status check_labels(const tdm_table_build *b) {
    if (b->known != NULL || b->label_gaps < b->rows) return TDM_OK;
    TDM_FAIL_TABLE(b, "line %lld, column %lld: the label is missing, as in every row", (long long)b->gap_line,
                   (long long)b->target + 1);
}

static tdm_status read_cell(tdm_table_build *b, int64_t row) {
    const tdm_table_column *column = &b->column[b->csv.column];
    switch (column->role) {
    case TDM_ROLE_TARGET:
        return read_label(b, row);
    case TDM_ROLE_NUMBER:
        return read_number(b, column, &b->x[row * (b->numbers + b->categories) + column->item]);
    case TDM_ROLE_CATEGORY:
        return read_category(b, column, row);
    case TDM_ROLE_IGNORED:
        break;
    }
    return TDM_OK;
}

static tdm_status read_rows(tdm_table_build *b) {
    bool more = true;
    tdm__csv_begin(&b->csv, "csv", b->spec->path, b->text, b->bytes);
    for (;;) {
        TDM_TRY(tdm__csv_next(&b->csv, &more));
        if (!more) return TDM_OK;
        const int64_t row = b->csv.row - b->has_names;
        if (row < 0) continue;
        if (b->line != NULL) b->line[row] = b->csv.line;
        TDM_TRY(read_cell(b, row));
    }
}

/* ---- opening ---- */

static tdm_status take_targets(tdm_table_build *b, const tdm_data_wanted *wanted) {
    tdm_table *table = &b->to->table;
    tdm_dataset *base = &table->base;
    base->target_kind = wanted->target_kind;
    if (wanted->target_kind == TDM_TARGET_CLASS) {
        if (b->target < 0) return TDM_OK; /* all 0: nobody reads them */
        TDM_TRY(
            tdm__classes_from_texts(base, wanted, b->spec->path, b->texts.data, b->label_at, b->rows, table->labels));
        const bool are_known = wanted->class_names != NULL && wanted->class_names->count > 0;
        return are_known ? TDM_OK : tdm__table_check_blanks(b, b->target, &base->class_names, b->label_at, 1);
    }
    if (wanted->target_width > 1)
        TDM_FAIL_TABLE(b, "the model has %lld outputs per sample, and a table has one target",
                       (long long)wanted->target_width);
    table->values = (tdm_column){
        .first = (const unsigned char *)b->value, .stride = sizeof(float), .width = 1, .cell = TDM_CELL_F32};
    base->target_width = 1;
    return tdm__table_take_two(b);
}

static void take_known(tdm_table_build *b, const tdm_data_wanted *wanted) {
    if (wanted->features == NULL) return;
    const tdm_classes *two = &wanted->features->target.values;
    b->known = wanted->features;
    b->two_count = two->count == 2 ? 2 : 0;
    for (int i = 0; i < b->two_count; i++) b->two_name[i] = two->name[i];
}

static tdm_status build(tdm_table_build *b, const tdm_data_wanted *wanted) {
    tdm_table *table = &b->to->table;
    tdm_dataset *base = &table->base;
    take_known(b, wanted);
    TDM_TRY(tdm__csv_load(base->host, "csv", b->spec->path, &b->text, &b->bytes));
    TDM_TRY(tdm__table_read_head(b));
    TDM_TRY(tdm__table_give_roles(b));
    TDM_TRY(count_rows(b));
    const tdm_shape shape = {1, {b->numbers + b->categories}};
    TDM_TRY(tdm__dataset_take_shape(base, b->spec, wanted, &shape, b->spec->path));
    TDM_TRY(take_memory(b, wanted->target_kind == TDM_TARGET_CLASS));
    TDM_TRY(read_rows(b));
    TDM_TRY(check_labels(b));
    const size_t width = (size_t)shape.dim[0];
    table->x = (tdm_column){
        .first = (const unsigned char *)b->x, .stride = width * sizeof(float), .width = width, .cell = TDM_CELL_F32};
    base->count = b->rows;
    return take_targets(b, wanted);
}

static void csv_close(tdm_dataset *dataset) {
    tdm__zone_deinit(&((tdm_csv_table *)dataset)->zone);
}

static tdm_status csv_open(tdm_dataset *dataset, const tdm_data_spec *spec, const tdm_data_wanted *wanted) {
    tdm_table_build b = {.to = (tdm_csv_table *)dataset, .spec = spec, .target = -1};
    tdm__zone_init(&b.to->zone, dataset->host);
    tdm__zone_init(&b.zone, dataset->host);
    tdm__text_init(&b.texts, dataset->host);
    tdm_status status = tdm__error_at(build(&b, wanted), &spec->inputs_at);
    b.to->table.line = b.line;
    b.to->table.label_column = b.target;
    if (status == TDM_OK) status = tdm__table_finish(&b.to->table, spec, wanted, spec->path);
    b.to->table.line = NULL;
    if (status == TDM_OK) status = tdm__error_at(tdm__table_fit(&b), &spec->inputs_at);
    if (status == TDM_OK) status = tdm__error_at(tdm__table_check_vocabularies(&b, wanted), &spec->inputs_at);
    if (status == TDM_OK) status = tdm__table_check_indices(&b.to->table, spec, wanted, spec->path);
    tdm__text_deinit(&b.texts);
    tdm__delete(dataset->host, b.label_at);
    tdm__delete(dataset->host, b.category_at);
    tdm__delete(dataset->host, b.line);
    tdm__delete(dataset->host, b.text);
    tdm__zone_deinit(&b.zone);
    return status;
}

const tdm_dataset_ops tdm__csv_data = {.name = "csv",
                                       .bytes = sizeof(tdm_csv_table),
                                       .open = csv_open,
                                       .read = tdm__table_read,
                                       .add_content = tdm__table_add_content,
                                       .close = csv_close};
