/* A dataset of rows, in memory or on the disk. */
#include "runtime/data/read/table.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/status.h"
#include "runtime/data/transform.h"

/* Bytes are copied as bytes, floats as float32. */
static tdm_status copy_cells(const tdm_column *column, int64_t index, void *out) {
    if (column->file != NULL) return tdm__row_file_read(column->file, index, column->cell == TDM_CELL_F32, out);
    const unsigned char *at = column->first + (size_t)index * column->stride;
    if (column->cell != TDM_CELL_F64) {
        memcpy(out, at, column->width * (column->cell == TDM_CELL_U8 ? 1 : sizeof(float)));
        return TDM_OK;
    }
    float *to = out;
    for (size_t i = 0; i < column->width; i++) {
        double value;
        memcpy(&value, at + i * sizeof(value), sizeof(value));
        to[i] = (float)value;
    }
    return TDM_OK;
}

/* Cells as floats. */
static tdm_status copy_floats(const tdm_column *column, int64_t index, bool to_float, float *out) {
    const tdm_input_array bytes = {column->first, TDM_INPUT_BYTES};
    if (column->cell != TDM_CELL_U8) return copy_cells(column, index, out);
    if (column->file != NULL) {
        TDM_TRY(tdm__row_file_read(column->file, index, true, out));
        for (size_t i = 0; to_float && i < column->width; i++) out[i] /= 255.0f;
        return TDM_OK;
    }
    tdm__transform_to_floats(&bytes, to_float, (size_t)index * column->stride, column->width, out);
    return TDM_OK;
}

static tdm_status copy_sample(const tdm_table *table, int64_t row, void *x) {
    float *at = x;
    if (table->inputs == NULL) return copy_cells(&table->x, row, x);
    for (int k = 0; k < table->input_count; at += table->inputs[k++].width)
        TDM_TRY(copy_floats(&table->inputs[k], row, table->to_float, at));
    return TDM_OK;
}

/* `x`: the sample as it is read. */
static tdm_status check_index(const tdm_table *table, const tdm_data_index *index, int64_t row, const void *x) {
    for (int64_t k = index->first; k < index->first + index->count; k++) {
        const float found = table->base.x_is_bytes ? (float)((const unsigned char *)x)[k] : ((const float *)x)[k];
        if (found >= 0.0f && found < (float)index->below && found == truncf(found)) continue;
        TDM_FAIL(TDM_E_DATA,
                 "%s: number %lld of sample %lld is %g, and %s takes whole numbers from 0 to %lld; change its "
                 "vocabulary, or the data",
                 table->source, (long long)k, (long long)row, (double)found, index->layer, (long long)index->below - 1);
    }
    return TDM_OK;
}

/* Reads a sample into x and checks it. */
static tdm_status take_sample(const tdm_table *table, int64_t row, void *x) {
    TDM_TRY(copy_sample(table, row, x));
    for (int i = 0; i < table->index_count; i++) TDM_TRY(check_index(table, &table->index[i], row, x));
    return TDM_OK;
}

tdm_status tdm__table_read(const tdm_sample_reader *reader, int64_t index, void *x, void *target) {
    const tdm_dataset *dataset = reader->dataset;
    const tdm_table *table = (const tdm_table *)dataset;
    index = tdm__dataset_row(dataset, index);
    if (x != NULL) TDM_TRY(take_sample(table, index, x));
    if (dataset->target_kind != TDM_TARGET_CLASS) return copy_floats(&table->values, index, false, target);
    memcpy(target, &table->labels[index], sizeof(table->labels[index]));
    return TDM_OK;
}

/* Of numbers in memory. A view without gaps is one piece. */
static void add_column(const tdm_dataset *dataset, const tdm_column *column, tdm_hasher *hasher) {
    if (column->file != NULL) return;
    static const size_t cell_bytes[] = {
        [TDM_CELL_U8] = 1, [TDM_CELL_F32] = sizeof(float), [TDM_CELL_F64] = sizeof(double)};
    const size_t bytes = column->width * cell_bytes[column->cell];
    const int64_t at_once = dataset->rows == NULL && column->stride == bytes ? dataset->count : 1;
    for (int64_t i = 0; i < dataset->count; i += at_once)
        tdm__hash_add(hasher, column->first + (size_t)tdm__dataset_row(dataset, i) * column->stride,
                      (size_t)at_once * bytes);
}

void tdm__table_add_content(const tdm_dataset *dataset, tdm_hasher *hasher) {
    const tdm_table *table = (const tdm_table *)dataset;
    const tdm_column labels = {.first = (const unsigned char *)table->labels,
                               .stride = sizeof(int64_t),
                               .width = sizeof(int64_t),
                               .cell = TDM_CELL_U8};
    if (table->inputs == NULL) add_column(dataset, &table->x, hasher);
    for (int k = 0; k < table->input_count; k++) add_column(dataset, &table->inputs[k], hasher);
    add_column(dataset, dataset->target_kind == TDM_TARGET_CLASS ? &labels : &table->values, hasher);
}

static tdm_status fail_label(const tdm_table *table, const tdm_data_spec *spec, const tdm_data_wanted *wanted,
                             const char *source, int64_t i) {
    const int64_t label = table->labels[i];
    const tdm_origin *at =
        spec->targets_at.file != NULL ? &spec->targets_at : &spec->inputs_at; /* cifar10 has both in one file */
    char where[64], range[96] = "0 or more";
    snprintf(where, sizeof(where), "label of sample %lld", (long long)i);
    if (table->line != NULL)
        snprintf(where, sizeof(where), "line %lld, column %lld: the label", (long long)table->line[i],
                 (long long)table->label_column + 1);
    if (wanted->classes > 0)
        snprintf(range, sizeof(range), "0 to %lld (the model has %lld outputs)", (long long)wanted->classes - 1,
                 (long long)wanted->classes);
    if (label < 0)
        TDM_FAIL_AT(at, TDM_E_DATA,
                    "%s: %s must be %s, found %lld; write loss.ignore_index: %lld if it says that there is none",
                    source, where, range, (long long)label, (long long)label);
    const tdm_classes *names = &table->base.class_names;
    if (label < names->count)
        TDM_FAIL_AT(at, TDM_E_DATA,
                    "%s: %s is '%.64s', class %lld of %lld names, and the model has %lld outputs; give it %lld, or "
                    "write whole numbers alone, which are no names",
                    source, where, names->name[label], (long long)label, (long long)names->count,
                    (long long)wanted->classes, (long long)names->count);
    TDM_FAIL_AT(at, TDM_E_DATA, "%s: %s must be %s, found %lld; classes are numbered from 0", source, where, range,
                (long long)label);
}

static tdm_status check_labels(tdm_table *table, const tdm_data_spec *spec, const tdm_data_wanted *wanted,
                               const char *source) {
    tdm_dataset *base = &table->base;
    int64_t classes = wanted->classes;
    for (int64_t index = 0; index < base->count; index++) {
        const int64_t i = tdm__dataset_row(base, index), label = table->labels[i];
        if (!tdm__label_fits(wanted, label)) return fail_label(table, spec, wanted, source, i);
        if (label == wanted->ignore_index) {
            base->has_ignored = true;
        } else if (wanted->classes <= 0 && label >= classes) {
            classes = label < INT64_MAX ? label + 1 : label;
        }
    }
    base->classes = classes;
    return TDM_OK;
}

/* Keeps those of wanted->index that tandem can check before `normalize`. */
static tdm_status keep_indices(tdm_table *table, const tdm_data_wanted *wanted) {
    const tdm_transform_spec *transform = wanted->transform;
    TDM_TRY(tdm__dataset_take(&table->base, &table->index, (size_t)wanted->index_count, sizeof(*table->index),
                              "numbers that are looked up"));
    for (int i = 0; i < wanted->index_count; i++) {
        const tdm_data_index *index = &wanted->index[i];
        if (transform != NULL && tdm__transform_normalizes(transform, &wanted->inputs, (size_t)index->first)) continue;
        if (index->first + index->count <= (int64_t)tdm__dataset_numbers(&table->base))
            table->index[table->index_count++] = *index;
    }
    return TDM_OK;
}

tdm_status tdm__table_check_indices(tdm_table *table, const tdm_data_spec *spec, const tdm_data_wanted *wanted,
                                    const char *source) {
    const tdm_dataset *base = &table->base;
    void *x;
    if (base->steps != NULL || wanted->index_count == 0) return TDM_OK;
    table->source = source;
    TDM_TRY(keep_indices(table, wanted));
    if (table->index_count == 0 || base->row_files != NULL) return TDM_OK;
    TDM_TRY(tdm__new(base->host, &x, 1, tdm__dataset_x_bytes(base), "sample"));
    tdm_status status = TDM_OK;
    for (int64_t i = 0; i < base->count && status == TDM_OK; i++)
        status = take_sample(table, tdm__dataset_row(base, i), x);
    tdm__delete(base->host, x);
    table->index_count = 0; /* they are checked */
    return tdm__error_at(status, &spec->inputs_at);
}

tdm_status tdm__table_finish(tdm_table *table, const tdm_data_spec *spec, const tdm_data_wanted *wanted,
                             const char *source) {
    table->base.x_is_bytes = table->inputs == NULL && table->x.cell == TDM_CELL_U8;
    TDM_TRY(tdm__dataset_take_part(&table->base, spec, wanted, source));
    if (table->base.target_kind == TDM_TARGET_CLASS) TDM_TRY(check_labels(table, spec, wanted, source));
    tdm__dataset_set_resident(&table->base, SIZE_MAX);
    return TDM_OK;
}
