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
    const char *types;   /* that it may have */
    const char *dims;    /* "[n, rows, columns]" */
    int least_dims, most_dims;
    bool as_integers;           /* labels: the elements are kept as they are */
    const char *loss_of_values; /* of labels: the loss that takes floats in their place; NULL: none */
} side;

enum { READ_AT_ONCE = 16 * 1024 };

static tdm_status check_type(const tdm_reader *reader, const side *s, const tdm_array *array) {
    const tdm_cell_type *type = &array->type;
    if (!tdm__cell_type_is(type, s->types) && s->loss_of_values != NULL && type->kind == 'f')
        TDM_FAIL_READ(reader,
                      "%s of one of the types %s, found %c%c%zu; save labels as integers, or, if these are the "
                      "probabilities of the classes, use the loss %s",
                      s->purpose, s->types, type->order, type->kind, type->bytes, s->loss_of_values);
    if (!tdm__cell_type_is(type, s->types))
        TDM_FAIL_READ(reader, "%s of one of the types %s, found %c%c%zu", s->purpose, s->types, type->order, type->kind,
                      type->bytes);
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

/* Labels are all checked at open, so they are in memory. */
static bool stays(const tdm_reader *reader, const side *s) {
    return !s->as_integers && reader->inflater == NULL && reader->file_bytes > TDM_DATA_HELD_BYTES;
}

/* Counts the elements, and checks the size of the file. */
static tdm_status check_size(const tdm_reader *reader, const side *s, tdm_array *array) {
    char shape[96];
    size_t header = reader->given, total;
    bool fits = true;
    array->elements = 1;
    for (int i = 0; i < array->ndim; i++) {
        if (array->dim[i] == 0) TDM_FAIL_READ(reader, "dimension %d of the header is 0", i);
        fits = fits && tdm__mul_fits(array->elements, array->dim[i], &array->elements);
    }
    fits = fits && tdm__mul_fits(array->elements, array->type.bytes, &total) && tdm__add_fits(total, header, &total);
    if (!fits) TDM_FAIL_READ(reader, "the dimensions in the header overflow");
    snprintf(shape, sizeof(shape), "header %zu + %zu numbers of %zu", header, array->elements, array->type.bytes);
    return tdm__reader_expect(reader, total, stays(reader, s) ? SIZE_MAX : TDM_DATA_MAX_BYTES, shape);
}

/* Bytes, little-endian floats and doubles stay as the file has them: a table reads these. */
static bool is_kept(const tdm_cell_type *type) {
    return type->kind == 'u' ? type->bytes == 1 : type->kind == 'f' && type->bytes > 2 && type->order == '<';
}

/* Reads the elements piece by piece, and keeps floats. */
static tdm_status read_as_floats(tdm_reader *reader, tdm_array *array, float *to) {
    unsigned char piece[READ_AT_ONCE];
    for (size_t done = 0, count; done < array->elements; done += count) {
        count = sizeof(piece) / array->type.bytes;
        if (count > array->elements - done) count = array->elements - done;
        TDM_TRY(tdm__reader_take(reader, piece, count * array->type.bytes));
        tdm__cells_to_floats(&array->type, piece, count, to + done);
    }
    array->type = (tdm_cell_type){'<', 'f', sizeof(float)};
    return TDM_OK;
}

static tdm_status read_elements(tdm_dataset *dataset, tdm_reader *reader, const side *s, tdm_array *array,
                                void **block) {
    if (!s->as_integers && !is_kept(&array->type)) {
        TDM_TRY(tdm__dataset_take(dataset, block, array->elements, sizeof(float), s->name));
        return read_as_floats(reader, array, *block);
    }
    TDM_TRY(tdm__dataset_take(dataset, block, array->elements, array->type.bytes, s->name));
    return tdm__reader_take(reader, *block, array->elements * array->type.bytes);
}

static tdm_column column_of(const tdm_array *array, const void *block, const tdm_row_file *file) {
    const size_t width = array->elements / array->dim[0];
    const bool is_bytes = array->type.kind == 'u' && array->type.bytes == 1;
    return (tdm_column){.first = block,
                        .stride = width * array->type.bytes,
                        .width = width,
                        .file = file,
                        .cell = is_bytes                                              ? TDM_CELL_U8
                                : file == NULL && array->type.bytes == sizeof(double) ? TDM_CELL_F64
                                                                                      : TDM_CELL_F32};
}

/* *column: its numbers, in memory or in the file. */
static tdm_status read_file(tdm_dataset *dataset, const tdm_array_format *format, const side *s, tdm_array *array,
                            tdm_column *column) {
    const tdm_row_file *file = NULL;
    void *block = NULL;
    tdm_status status = TDM_OK;
    tdm_reader reader;
    *array = (tdm_array){.ndim = 0};
    TDM_TRY(tdm__error_at(tdm__reader_open(&reader, dataset->host, s->name, s->path, format->may_be_gzip), s->at));
    TDM_TRY_DONE(format->read_header(&reader, array));
    TDM_TRY_DONE(check_type(&reader, s, array));
    TDM_TRY_DONE(check_size(&reader, s, array));
    if (stays(&reader, s)) {
        const size_t row_bytes = array->elements / array->dim[0] * array->type.bytes;
        TDM_TRY_DONE(tdm__row_file_open(&file, dataset, &reader, &array->type, row_bytes));
    } else {
        TDM_TRY_DONE(read_elements(dataset, &reader, s, array, &block));
        TDM_TRY_DONE(tdm__reader_end(&reader));
    }
    *column = column_of(array, block, file);
done:
    tdm__reader_close(&reader);
    return tdm__error_at(status, s->at);
}

/* *shape: of a sample. */
static tdm_status read_samples(tdm_table *table, const tdm_array_format *format, const side *s, tdm_column *column,
                               int64_t *count, tdm_shape *shape) {
    tdm_array array;
    *shape = (tdm_shape){0};
    TDM_TRY(read_file(&table->base, format, s, &array, column));
    *count = (int64_t)array.dim[0];
    if (array.ndim == 1 || (format->is_images && array.ndim == 3)) shape->dim[shape->ndim++] = 1;
    for (int i = 1; i < array.ndim; i++) shape->dim[shape->ndim++] = (int64_t)array.dim[i];
    return TDM_OK;
}

static tdm_status read_x(tdm_table *table, const tdm_array_format *format, const side *s, const tdm_data_spec *spec,
                         const tdm_data_wanted *wanted) {
    tdm_shape shape;
    TDM_TRY(read_samples(table, format, s, &table->x, &table->base.count, &shape));
    return tdm__dataset_take_shape(&table->base, spec, wanted, &shape, s->path);
}

/* ---- a file for each input ---- */

/* The file of an input; NULL: none. */
static const char *file_of(const tdm_texts *files, const char *name) {
    for (int i = 0; i + 1 < files->count; i += 2)
        if (strcmp(files->item[i], name) == 0) return files->item[i + 1];
    return NULL;
}

static tdm_status read_input(tdm_table *table, const tdm_array_format *format, const tdm_data_spec *spec, int index) {
    const tdm_data_input *input = &table->base.inputs.item[index];
    char found[TDM_DIMS_TEXT], expected[TDM_DIMS_TEXT];
    tdm_shape shape;
    int64_t count;
    const side s = {.name = input->name,
                    .path = file_of(&spec->inputs, input->name),
                    .at = &spec->inputs_at,
                    .purpose = "expected numbers",
                    .types = TDM_CELLS_ALL,
                    .dims = "[n, ...]",
                    .least_dims = 1,
                    .most_dims = TDM_MAX_DIMS + 1};
    TDM_TRY(read_samples(table, format, &s, &table->inputs[index], &count, &shape));
    if (!tdm__shape_fits(&shape, &input->shape))
        TDM_FAIL_AT(s.at, TDM_E_DATA, "%s '%s': the model needs samples of shape %s (model.inputs.%s), found %s",
                    s.name, s.path, tdm__dims_print(expected, &input->shape), s.name, tdm__dims_print(found, &shape));
    if (index > 0 && count != table->base.count)
        TDM_FAIL_AT(s.at, TDM_E_DATA, "%s '%s' holds %lld samples, %s '%s' holds %lld; they must be equal",
                    table->base.inputs.item[0].name, file_of(&spec->inputs, table->base.inputs.item[0].name),
                    (long long)table->base.count, s.name, s.path, (long long)count);
    table->base.count = count;
    return TDM_OK;
}

/* A file for each input of the model, and no other. */
static tdm_status check_names(const tdm_data_spec *spec, const tdm_data_inputs *inputs) {
    char names[TDM_INPUTS_TEXT];
    if (inputs->count == 0)
        TDM_FAIL_AT(&spec->inputs_at, TDM_E_DATA, "inputs: the model's input has no name (model.input); %s",
                    spec->inputs_at.file != NULL ? "write `x: FILE`, or model.inputs" : "give its array alone");
    for (int i = 0; i < spec->inputs.count; i += 2) {
        if (tdm__data_input_find(inputs, spec->inputs.item[i]) < 0)
            TDM_FAIL_AT(&spec->inputs_at, TDM_E_DATA, "inputs: the model has no input '%s'; its inputs are %s",
                        spec->inputs.item[i], tdm__data_inputs_print(names, inputs));
    }
    for (int k = 0; k < inputs->count; k++) {
        if (file_of(&spec->inputs, inputs->item[k].name) == NULL)
            TDM_FAIL_AT(&spec->inputs_at, TDM_E_DATA, "inputs: there is no file for the model's input '%s'",
                        inputs->item[k].name);
    }
    return TDM_OK;
}

static tdm_status read_inputs(tdm_table *table, const tdm_array_format *format, const tdm_data_spec *spec,
                              const tdm_data_wanted *wanted) {
    const tdm_data_inputs *inputs = &wanted->inputs;
    TDM_TRY(check_names(spec, inputs));
    TDM_TRY(tdm__dataset_take(&table->base, &table->inputs, (size_t)inputs->count, sizeof(*table->inputs), "inputs"));
    table->input_count = inputs->count;
    table->to_float = wanted->transform != NULL && wanted->transform->to_float;
    for (int k = 0; k < inputs->count; k++) TDM_TRY(read_input(table, format, spec, k));
    table->base.x_shape = wanted->input;
    return TDM_OK;
}

/* ---- targets ---- */

static tdm_status take_labels(tdm_table *table, const side *s, const tdm_array *array, const unsigned char *bytes) {
    if (array->elements != array->dim[0])
        TDM_FAIL_AT(s->at, TDM_E_DATA, "%s '%s': the loss needs one label per sample, found %zu", s->name, s->path,
                    array->elements / array->dim[0]);
    TDM_TRY(tdm__dataset_take(&table->base, &table->labels, array->elements, sizeof(*table->labels), "labels"));
    for (size_t i = 0; i < array->elements; i++)
        table->labels[i] = tdm__cell_integer(&array->type, bytes + i * array->type.bytes);
    return TDM_OK;
}

static tdm_status take_values(tdm_table *table, const side *s, const tdm_column *column, int64_t wanted) {
    table->values = *column;
    if (wanted > 0 && table->values.width != (size_t)wanted)
        TDM_FAIL_AT(s->at, TDM_E_DATA, "%s '%s': the model has %lld outputs per sample, found %zu targets", s->name,
                    s->path, (long long)wanted, table->values.width);
    table->base.target_width = (int64_t)table->values.width;
    return TDM_OK;
}

/* All 0, as nobody reads them. */
static tdm_status take_no_targets(tdm_table *table, const tdm_data_wanted *wanted) {
    const int64_t width = wanted->target_width > 0 ? wanted->target_width : 1;
    void *zeros;
    if (wanted->target_kind == TDM_TARGET_CLASS)
        return tdm__dataset_take(&table->base, &table->labels, (size_t)table->base.count, sizeof(*table->labels),
                                 "labels");
    TDM_TRY(tdm__dataset_take(&table->base, &zeros, (size_t)width, sizeof(float), "targets"));
    table->values = (tdm_column){.first = zeros, .stride = 0, .width = (size_t)width, .cell = TDM_CELL_F32};
    table->base.target_width = width;
    return TDM_OK;
}

static tdm_status read_targets(tdm_table *table, const tdm_array_format *format, const side *s, const char *x,
                               const tdm_data_wanted *wanted) {
    tdm_array array;
    tdm_column column;
    TDM_TRY(read_file(&table->base, format, s, &array, &column));
    if (array.dim[0] != (size_t)table->base.count)
        TDM_FAIL_AT(s->at, TDM_E_DATA, "%s '%s' holds %lld samples, %s '%s' holds %zu; they must be equal",
                    format->x_name, x, (long long)table->base.count, s->name, s->path, array.dim[0]);
    return s->as_integers ? take_labels(table, s, &array, column.first)
                          : take_values(table, s, &column, wanted->target_width);
}

tdm_status tdm__arrays_open(tdm_dataset *dataset, const tdm_array_format *format, const char *x, const char *y,
                            const tdm_data_spec *spec, const tdm_data_wanted *wanted) {
    tdm_table *table = (tdm_table *)dataset;
    bool is_class = wanted->target_kind == TDM_TARGET_CLASS;
    side samples = {.name = format->x_name,
                    .path = x,
                    .at = &spec->inputs_at,
                    .purpose = "expected numbers",
                    .types = TDM_CELLS_ALL,
                    .dims = format->is_images ? "[n, rows, columns]" : "[n, ...]",
                    .least_dims = format->is_images ? 2 : 1,
                    .most_dims = TDM_MAX_DIMS + 1};
    side targets = {.name = format->y_name,
                    .path = y,
                    .at = &spec->targets_at,
                    .purpose = is_class ? "the loss needs class labels" : "the loss needs float targets",
                    .types = is_class ? TDM_CELLS_INTEGERS : TDM_CELLS_ALL,
                    .as_integers = is_class,
                    .loss_of_values = wanted->loss_of_values,
                    .dims = format->is_images ? "[n]" : "[n, ...]",
                    .least_dims = 1,
                    .most_dims = format->is_images ? 1 : TDM_ARRAY_MAX_DIMS};
    const bool has_inputs = x == NULL && spec->inputs.count > 1;
    TDM_TRY(has_inputs ? read_inputs(table, format, spec, wanted) : read_x(table, format, &samples, spec, wanted));
    if (has_inputs) x = spec->inputs.item[1];
    dataset->target_kind = wanted->target_kind;
    TDM_TRY(y == NULL && spec->without_targets ? take_no_targets(table, wanted)
                                               : read_targets(table, format, &targets, x, wanted));
    TDM_TRY(tdm__table_finish(table, spec, wanted, y != NULL ? y : x));
    return tdm__table_check_indices(table, spec, wanted, x);
}
