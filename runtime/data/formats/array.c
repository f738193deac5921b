/* Datasets of two arrays, see array.h. */
#include "runtime/data/formats/array.h"

#include <stdio.h>
#include <string.h>

#include "runtime/base/status.h"

/* One of the two files, and what it must be. */
typedef struct side {
    const char *name, *path;
    const tdm_origin *at;
    const char *purpose; /* "the loss needs class labels" */
    const char *types;   /* the types that it may have, of three characters each */
    const char *dims;    /* "[n, rows, columns]" */
    int least_dims, most_dims;
} side;

static tdm_status check_type(const tdm_reader *reader, const side *s, const tdm_array *array) {
    char type[24];
    snprintf(type, sizeof(type), "%c%c%zu", array->order, array->kind, array->bytes);
    if (strstr(s->types, type) == NULL)
        TDM_FAIL_READ(reader, "%s of one of the types %s, found %s", s->purpose, s->types, type);
    if (array->ndim < s->least_dims || array->ndim > s->most_dims)
        TDM_FAIL_READ(reader, "expected dimensions %s, at most %d, found %d dimension%s%s", s->dims, s->most_dims,
                      array->ndim, array->ndim == 1 ? "" : "s",
                      array->ndim == 0   ? ": a single number"
                      : array->ndim == 1 ? "; is this the labels file?"
                                         : "");
    if (array->fortran_order && array->ndim > 1)
        TDM_FAIL_READ(reader, "fortran_order is True; save numpy.ascontiguousarray(...) instead");
    return TDM_OK;
}

/* Counts the elements, and checks the size of the file. */
static tdm_status check_size(const tdm_reader *reader, tdm_array *array) {
    char shape[96];
    size_t header = reader->given, total;
    bool fits = true;
    array->elements = 1;
    for (int i = 0; i < array->ndim; i++) {
        if (array->dim[i] == 0) TDM_FAIL_READ(reader, "dimension %d of the header is 0", i);
        fits = fits && tdm__mul_fits(array->elements, array->dim[i], &array->elements);
    }
    fits = fits && tdm__mul_fits(array->elements, array->bytes, &total) && tdm__add_fits(total, header, &total);
    if (!fits) TDM_FAIL_READ(reader, "the dimensions in the header overflow");
    snprintf(shape, sizeof(shape), "header %zu + %zu numbers of %zu", header, array->elements, array->bytes);
    return tdm__reader_expect(reader, total, shape);
}

static tdm_status read_file(tdm_dataset *dataset, const tdm_array_format *format, const side *s, tdm_array *array,
                            void **block) {
    tdm_status status = TDM_OK;
    tdm_reader reader;
    *array = (tdm_array){.ndim = 0};
    TDM_TRY(tdm__error_at(tdm__reader_open(&reader, dataset->host, s->name, s->path, format->may_be_gzip), s->at));
    TDM_TRY_DONE(format->read_header(&reader, array));
    TDM_TRY_DONE(check_type(&reader, s, array));
    TDM_TRY_DONE(check_size(&reader, array));
    TDM_TRY_DONE(tdm__dataset_take(dataset, block, array->elements, array->bytes, s->name));
    TDM_TRY_DONE(tdm__reader_take(&reader, *block, array->elements * array->bytes));
    TDM_TRY_DONE(tdm__reader_end(&reader));
done:
    tdm__reader_close(&reader);
    return tdm__error_at(status, s->at);
}

static tdm_column column_of(const tdm_array *array, const void *block) {
    size_t width = array->elements / array->dim[0];
    return (tdm_column){.first = block,
                        .stride = width * array->bytes,
                        .width = width,
                        .cell = array->kind == 'u'              ? TDM_CELL_U8
                                : array->bytes == sizeof(float) ? TDM_CELL_F32
                                                                : TDM_CELL_F64};
}

static tdm_status read_x(tdm_table *table, const tdm_array_format *format, const side *s, const tdm_data_spec *spec,
                         const tdm_data_wanted *wanted) {
    tdm_array array;
    void *block;
    tdm_shape shape = {0};
    TDM_TRY(read_file(&table->base, format, s, &array, &block));
    table->x = column_of(&array, block);
    table->base.count = (int64_t)array.dim[0];
    if (array.ndim == 1 || (format->is_images && array.ndim == 3)) shape.dim[shape.ndim++] = 1;
    for (int i = 1; i < array.ndim; i++) shape.dim[shape.ndim++] = (int64_t)array.dim[i];
    return tdm__dataset_take_shape(&table->base, spec, wanted, &shape, s->path);
}

/* Reads one integer. An unsigned one beyond int64 becomes -1, which is not a label either. */
static int64_t integer_at(const unsigned char *at, const tdm_array *array) {
    uint64_t value = 0;
    memcpy(&value, at, array->bytes);
    unsigned unused = 64 - 8 * (unsigned)array->bytes;
    if (array->kind == 'i') return (int64_t)(value << unused) >> unused;
    return value > INT64_MAX ? -1 : (int64_t)value;
}

static tdm_status take_labels(tdm_table *table, const side *s, const tdm_array *array, const unsigned char *bytes) {
    if (array->elements != array->dim[0])
        TDM_FAIL_AT(s->at, TDM_E_DATA, "%s '%s': the loss needs one label per sample, found %zu", s->name, s->path,
                    array->elements / array->dim[0]);
    TDM_TRY(tdm__dataset_take(&table->base, &table->labels, array->elements, sizeof(*table->labels), "labels"));
    for (size_t i = 0; i < array->elements; i++) table->labels[i] = integer_at(bytes + i * array->bytes, array);
    return TDM_OK;
}

static tdm_status take_values(tdm_table *table, const side *s, const tdm_array *array, const void *block,
                              int64_t wanted) {
    table->values = column_of(array, block);
    if (wanted > 0 && table->values.width != (size_t)wanted)
        TDM_FAIL_AT(s->at, TDM_E_DATA, "%s '%s': the model has %lld outputs per sample, found %zu targets", s->name,
                    s->path, (long long)wanted, table->values.width);
    table->base.target_width = (int64_t)table->values.width;
    return TDM_OK;
}

tdm_status tdm__arrays_open(tdm_dataset *dataset, const tdm_array_format *format, const char *x, const char *y,
                            const tdm_data_spec *spec, const tdm_data_wanted *wanted) {
    tdm_table *table = (tdm_table *)dataset;
    bool is_class = wanted->target_kind == TDM_TARGET_CLASS;
    tdm_array array;
    void *block;
    side samples = {.name = format->x_name,
                    .path = x,
                    .at = &spec->inputs_at,
                    .purpose = "expected numbers",
                    .types = "<f4 <f8 |u1",
                    .dims = format->is_images ? "[n, rows, columns]" : "[n, ...]",
                    .least_dims = format->is_images ? 2 : 1,
                    .most_dims = TDM_MAX_DIMS + 1};
    side targets = {.name = format->y_name,
                    .path = y,
                    .at = &spec->targets_at,
                    .purpose = is_class ? "the loss needs class labels" : "the loss needs float targets",
                    .types = is_class ? "|u1 |i1 <u2 <i2 <u4 <i4 <u8 <i8" : "<f4 <f8",
                    .dims = format->is_images ? "[n]" : "[n, ...]",
                    .least_dims = 1,
                    .most_dims = format->is_images ? 1 : TDM_ARRAY_MAX_DIMS};
    TDM_TRY(read_x(table, format, &samples, spec, wanted));
    TDM_TRY(read_file(dataset, format, &targets, &array, &block));
    if (array.dim[0] != (size_t)dataset->count)
        TDM_FAIL_AT(targets.at, TDM_E_DATA, "%s '%s' holds %lld samples, %s '%s' holds %zu; they must be equal",
                    samples.name, x, (long long)dataset->count, targets.name, y, array.dim[0]);
    dataset->target_kind = wanted->target_kind;
    TDM_TRY(is_class ? take_labels(table, &targets, &array, block)
                     : take_values(table, &targets, &array, block, wanted->target_width));
    return tdm__table_finish(table, spec, wanted, y);
}
