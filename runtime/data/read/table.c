/* A dataset whose samples are all in memory. */
#include "runtime/data/read/table.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/status.h"
#include "runtime/data/transform.h"

/* Bytes are copied as bytes, floats as float32. */
static void copy_cells(const tdm_column *column, int64_t index, void *out) {
    const unsigned char *at = column->first + (size_t)index * column->stride;
    if (column->cell != TDM_CELL_F64) {
        memcpy(out, at, column->width * (column->cell == TDM_CELL_U8 ? 1 : sizeof(float)));
        return;
    }
    float *to = out;
    for (size_t i = 0; i < column->width; i++) {
        double value;
        memcpy(&value, at + i * sizeof(value), sizeof(value));
        to[i] = (float)value;
    }
}

/* Cells as floats. */
static void copy_floats(const tdm_column *column, int64_t index, bool to_float, float *out) {
    if (column->cell != TDM_CELL_U8) {
        copy_cells(column, index, out);
        return;
    }
    const tdm_input_array bytes = {column->first, TDM_INPUT_BYTES};
    tdm__transform_to_floats(&bytes, to_float, (size_t)index * column->stride, column->width, out);
}

static void copy_sample(const tdm_table *table, int64_t index, void *x) {
    float *at = x;
    if (table->inputs == NULL) copy_cells(&table->x, index, x);
    for (int k = 0; k < table->input_count; at += table->inputs[k++].width)
        copy_floats(&table->inputs[k], index, table->to_float, at);
}

tdm_status tdm__table_read(const tdm_sample_reader *reader, int64_t index, void *x, void *target) {
    const tdm_dataset *dataset = reader->dataset;
    const tdm_table *table = (const tdm_table *)dataset;
    index = tdm__dataset_row(dataset, index);
    if (x != NULL) copy_sample(table, index, x);
    if (dataset->target_kind == TDM_TARGET_CLASS) {
        memcpy(target, &table->labels[index], sizeof(table->labels[index]));
    } else {
        copy_floats(&table->values, index, false, target);
    }
    return TDM_OK;
}

/* A view without gaps is one piece. */
static void add_column(const tdm_dataset *dataset, const tdm_column *column, tdm_hasher *hasher) {
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
    const tdm_column labels = {(const unsigned char *)table->labels, sizeof(int64_t), sizeof(int64_t), TDM_CELL_U8};
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

static float number_at(const tdm_column *column, int64_t row, int64_t item) {
    const unsigned char *at = column->first + (size_t)row * column->stride;
    float narrow;
    double wide;
    switch (column->cell) {
    case TDM_CELL_U8:
        return (float)at[item];
    case TDM_CELL_F32:
        memcpy(&narrow, at + (size_t)item * sizeof(narrow), sizeof(narrow));
        return narrow;
    case TDM_CELL_F64:
        memcpy(&wide, at + (size_t)item * sizeof(wide), sizeof(wide));
        return (float)wide;
    }
    return 0.0f;
}

/* Number `item` of a sample. */
static float item_at(const tdm_table *table, int64_t row, int64_t item) {
    int k = 0;
    if (table->inputs == NULL) return number_at(&table->x, row, item);
    while (item >= (int64_t)table->inputs[k].width) item -= (int64_t)table->inputs[k++].width;
    const float number = number_at(&table->inputs[k], row, item);
    return table->inputs[k].cell == TDM_CELL_U8 && table->to_float ? number / 255.0f : number;
}

static tdm_status check_index(const tdm_table *table, const tdm_data_index *index, const tdm_data_spec *spec,
                              const char *source) {
    const tdm_dataset *base = &table->base;
    for (int64_t i = 0; i < base->count; i++) {
        const int64_t row = tdm__dataset_row(base, i);
        for (int64_t k = index->first; k < index->first + index->count; k++) {
            const float found = item_at(table, row, k);
            if (found >= 0.0f && found < (float)index->below && found == truncf(found)) continue;
            TDM_FAIL_AT(&spec->inputs_at, TDM_E_DATA,
                        "%s: number %lld of sample %lld is %g, and %s takes whole numbers from 0 to %lld; change its "
                        "vocabulary, or the data",
                        source, (long long)k, (long long)row, (double)found, index->layer, (long long)index->below - 1);
        }
    }
    return TDM_OK;
}

tdm_status tdm__table_check_indices(const tdm_table *table, const tdm_data_spec *spec, const tdm_data_wanted *wanted,
                                    const char *source) {
    const tdm_transform_spec *transform = wanted->transform;
    if (table->base.steps != NULL) return TDM_OK;
    for (int i = 0; i < wanted->index_count; i++) {
        if (transform != NULL && tdm__transform_normalizes(transform, &wanted->inputs, (size_t)wanted->index[i].first))
            continue;
        if (wanted->index[i].first + wanted->index[i].count <= (int64_t)tdm__dataset_numbers(&table->base))
            TDM_TRY(check_index(table, &wanted->index[i], spec, source));
    }
    return TDM_OK;
}

tdm_status tdm__table_finish(tdm_table *table, const tdm_data_spec *spec, const tdm_data_wanted *wanted,
                             const char *source) {
    table->base.x_is_bytes = table->inputs == NULL && table->x.cell == TDM_CELL_U8;
    TDM_TRY(tdm__dataset_take_part(&table->base, spec, wanted, source));
    if (table->base.target_kind == TDM_TARGET_CLASS) TDM_TRY(check_labels(table, spec, wanted, source));
    tdm__dataset_set_resident(&table->base, SIZE_MAX);
    return TDM_OK;
}
