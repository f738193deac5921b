/* NumPy arrays: x.npy holds the samples, y.npy the labels (integers) or the targets (floats), both [n, ...]. */
#include <string.h>

#include "runtime/base/status.h"
#include "runtime/data/npy_header.h"
#include "runtime/data/table.h"

/* What an array must be, and its name in messages. */
typedef struct array_spec {
    const char *what, *path;
    const char *purpose; /* "the loss needs class labels" */
    const char *types;   /* the types that it may have, of three characters each */
} array_spec;

static tdm_status check_type(const array_spec *array, const tdm_npy_header *header) {
    char type[16];
    if (strstr(array->types, tdm__npy_type_print(type, header)) == NULL)
        TDM_FAIL(TDM_E_DATA, "%s '%s': %s of one of the types %s, found %s", array->what, array->path, array->purpose,
                 array->types, type);
    if (header->ndim < 1)
        TDM_FAIL(TDM_E_DATA, "%s '%s': expected an array with one row per sample, found a single number", array->what,
                 array->path);
    if (header->fortran_order && header->ndim > 1)
        TDM_FAIL(TDM_E_DATA, "%s '%s': fortran_order is True; save numpy.ascontiguousarray(...) instead", array->what,
                 array->path);
    return TDM_OK;
}

/* Reads the header and the data of one file. The caller deletes *block. */
static tdm_status read_array(const tdm_host *host, const array_spec *array, tdm_npy_header *header, void **block) {
    tdm_status status = TDM_OK;
    tdm_reader reader;
    *block = NULL;
    TDM_TRY(tdm__reader_open(&reader, host, array->what, array->path, false));
    TDM_TRY_DONE(tdm__npy_header_read(&reader, header));
    TDM_TRY_DONE(check_type(array, header));
    TDM_TRY_DONE(tdm__new(host, block, header->elements, header->bytes, array->what));
    TDM_TRY_DONE(tdm__reader_take(&reader, *block, header->elements * header->bytes));
    TDM_TRY_DONE(tdm__reader_end(&reader));
done:
    tdm__reader_close(&reader);
    if (status != TDM_OK) {
        tdm__delete(host, *block);
        *block = NULL;
    }
    return status;
}

static tdm_cell cell_of(const tdm_npy_header *header) {
    return header->kind == 'u' ? TDM_CELL_U8 : header->bytes == sizeof(float) ? TDM_CELL_F32 : TDM_CELL_F64;
}

static tdm_column column_of(const tdm_npy_header *header, const void *block) {
    size_t width = header->elements / header->dim[0];
    return (tdm_column){.first = block, .stride = width * header->bytes, .width = width, .cell = cell_of(header)};
}

static tdm_status read_x(tdm_table *table, const tdm_data_spec *spec, const tdm_data_wanted *wanted) {
    tdm_npy_header header;
    array_spec array = {"x", spec->x, "expected numbers", "<f4 <f8 |u1"};
    TDM_TRY(tdm__error_at(read_array(table->base.host, &array, &header, &table->x_block), &spec->inputs_at));
    if (header.ndim - 1 > TDM_MAX_DIMS)
        TDM_FAIL_AT(&spec->inputs_at, TDM_E_DATA,
                    "x '%s': expected at most %d dimensions after that of the samples, found %d", spec->x, TDM_MAX_DIMS,
                    header.ndim - 1);
    table->x = column_of(&header, table->x_block);
    table->base.count = (int64_t)header.dim[0];
    tdm_shape shape = {.ndim = 1, .dim = {1}}; /* [n]: one number per sample */
    if (header.ndim > 1) shape.ndim = header.ndim - 1;
    for (int i = 1; i < header.ndim; i++) shape.dim[i - 1] = (int64_t)header.dim[i];
    TDM_TRY(tdm__dataset_take_shape(&table->base, spec, wanted, &shape, spec->x));
    return TDM_OK;
}

/* Reads one integer. An unsigned one beyond int64 becomes -1, which is not a label either. */
static int64_t integer_at(const unsigned char *at, const tdm_npy_header *header) {
    uint64_t value = 0;
    memcpy(&value, at, header->bytes);
    unsigned unused = 64 - 8 * (unsigned)header->bytes;
    if (header->kind == 'i') return (int64_t)(value << unused) >> unused;
    return value > INT64_MAX ? -1 : (int64_t)value;
}

static tdm_status take_labels(tdm_table *table, const tdm_data_spec *spec, const tdm_npy_header *header) {
    if (header->elements != header->dim[0])
        TDM_FAIL_AT(&spec->targets_at, TDM_E_DATA, "y '%s': the loss needs one label per sample, found %zu", spec->y,
                    header->elements / header->dim[0]);
    TDM_TRY(tdm__table_new_labels(table));
    const unsigned char *bytes = table->y_block;
    for (size_t i = 0; i < header->elements; i++) table->labels[i] = integer_at(bytes + i * header->bytes, header);
    return TDM_OK;
}

static tdm_status take_values(tdm_table *table, const tdm_data_spec *spec, const tdm_data_wanted *wanted,
                              const tdm_npy_header *header) {
    table->values = column_of(header, table->y_block);
    if (wanted->target_width > 0 && table->values.width != (size_t)wanted->target_width)
        TDM_FAIL_AT(&spec->targets_at, TDM_E_DATA, "y '%s': the model has %lld outputs per sample, found %zu targets",
                    spec->y, (long long)wanted->target_width, table->values.width);
    table->base.target_width = (int64_t)table->values.width;
    return TDM_OK;
}

static tdm_status read_y(tdm_table *table, const tdm_data_spec *spec, const tdm_data_wanted *wanted) {
    tdm_npy_header header;
    bool is_class = wanted->target_kind == TDM_TARGET_CLASS;
    array_spec array = {"y", spec->y, is_class ? "the loss needs class labels" : "the loss needs float targets",
                        is_class ? "|u1 |i1 <u2 <i2 <u4 <i4 <u8 <i8" : "<f4 <f8"};
    TDM_TRY(tdm__error_at(read_array(table->base.host, &array, &header, &table->y_block), &spec->targets_at));
    if (header.dim[0] != (size_t)table->base.count)
        TDM_FAIL_AT(&spec->targets_at, TDM_E_DATA, "x '%s' holds %lld samples, y '%s' holds %zu; they must be equal",
                    spec->x, (long long)table->base.count, spec->y, header.dim[0]);
    table->base.target_kind = wanted->target_kind;
    if (is_class) {
        TDM_TRY(take_labels(table, spec, &header));
    } else {
        TDM_TRY(take_values(table, spec, wanted, &header));
    }
    return TDM_OK;
}

tdm_status tdm__npy_open(tdm_dataset **out, const tdm_host *host, const tdm_data_spec *spec,
                         const tdm_data_wanted *wanted) {
    tdm_status status = TDM_OK;
    tdm_table *table;
    TDM_TRY(tdm__table_new(&table, host));
    TDM_TRY_DONE(read_x(table, spec, wanted));
    TDM_TRY_DONE(read_y(table, spec, wanted));
    TDM_TRY_DONE(tdm__table_finish(table, spec, wanted, spec->y));
    *out = &table->base;
done:
    if (status != TDM_OK) tdm__dataset_close(&table->base);
    return status;
}
