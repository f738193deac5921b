/* Samples of the embedder's own: in arrays, or from a callback for several samples or for one. */
#include <string.h>

#include "runtime/base/call/sized.h"
#include "runtime/base/status.h"
#include "runtime/base/text/utf8.h"
#include "runtime/data/formats.h"
#include "runtime/data/transform.h"

typedef struct own_dataset {
    tdm_dataset base;
    tdm_source source;
    tdm_data_wanted wanted;
    size_t width;                 /* numbers of a sample */
    size_t x_bytes, target_bytes; /* of a sample */
    tdm_input_array *inputs;      /* [source.input_count]; NULL: samples are in one array */
    bool to_float;                /* of `inputs` */
} own_dataset;

static tdm_status check_label(const own_dataset *own, int64_t index, const void *target) {
    int64_t label;
    if (own->base.target_kind != TDM_TARGET_CLASS) return TDM_OK;
    memcpy(&label, target, sizeof(label));
    if (!tdm__label_fits(&own->wanted, label))
        TDM_FAIL(TDM_E_DATA, "sample %lld of the program's own source: label must be 0 to %lld, found %lld",
                 (long long)index, (long long)own->wanted.classes - 1, (long long)label);
    return TDM_OK;
}

/* ---- a callback for one sample ---- */

static tdm_status callback_read(const tdm_sample_reader *reader, int64_t index, void *x, void *target) {
    const own_dataset *own = (const own_dataset *)reader->dataset;
    int answer = own->source.read(own->source.user, index, x, target);
    if (answer != 0)
        TDM_FAIL(TDM_E_DATA, "sample %lld of the program's own source: read returned %d", (long long)index, answer);
    return check_label(own, index, target);
}

static const tdm_dataset_ops callback_ops = {.name = "source", .bytes = sizeof(own_dataset), .read = callback_read};

/* ---- a callback for several ---- */

static tdm_status rows_read_rows(const tdm_sample_reader *reader, const int64_t *index, int64_t rows, void *x,
                                 void *targets) {
    const own_dataset *own = (const own_dataset *)reader->dataset;
    tdm_source_rows call = {.size = sizeof(call),
                            .rows = rows,
                            .width = (int64_t)own->width,
                            .target_width = own->base.target_kind == TDM_TARGET_CLASS ? 1 : own->base.target_width,
                            .index = index,
                            .x = x,
                            .targets = targets,
                            .failed = -1};
    const int answer = own->source.read_rows(own->source.user, &call);
    if (answer != 0 && call.failed >= 0)
        TDM_FAIL(TDM_E_DATA, "sample %lld of the program's own source: read_rows returned %d", (long long)call.failed,
                 answer);
    if (answer != 0)
        TDM_FAIL(TDM_E_DATA,
                 "%lld samples of the program's own source, the first of them %lld: read_rows returned %d, and did not "
                 "set `failed`",
                 (long long)rows, (long long)index[0], answer);
    for (int64_t i = 0; i < rows; i++)
        TDM_TRY(check_label(own, index[i], (const char *)targets + (size_t)i * own->target_bytes));
    return TDM_OK;
}

static tdm_status rows_read(const tdm_sample_reader *reader, int64_t index, void *x, void *target) {
    return rows_read_rows(reader, &index, 1, x, target);
}

static const tdm_dataset_ops rows_ops = {
    .name = "source", .bytes = sizeof(own_dataset), .read = rows_read, .read_rows = rows_read_rows};

/* ---- arrays ---- */

/* A sample of an array for each input. */
static void gather(const own_dataset *own, size_t index, float *x) {
    for (int k = 0; k < own->source.input_count; k++) {
        const size_t count = own->base.inputs.item[k].count;
        tdm__transform_to_floats(&own->inputs[k], own->to_float, index * count, count, x);
        x += count;
    }
}

static tdm_status array_read(const tdm_sample_reader *reader, int64_t index, void *x, void *target) {
    const own_dataset *own = (const own_dataset *)reader->dataset;
    if (x != NULL && own->inputs != NULL)
        gather(own, (size_t)index, x);
    else if (x != NULL)
        memcpy(x, (const char *)own->source.x + (size_t)index * own->x_bytes, own->x_bytes);
    memcpy(target, (const char *)own->source.targets + (size_t)index * own->target_bytes, own->target_bytes);
    return check_label(own, index, target);
}

static const tdm_dataset_ops array_ops = {.name = "source", .bytes = sizeof(own_dataset), .read = array_read};

/* Every label before the first step, as in files. */
static tdm_status check_arrays(const own_dataset *own) {
    const tdm_source *source = &own->source;
    size_t bytes;
    if (source->targets == NULL)
        TDM_FAIL(TDM_E_USAGE, "tdm_source.targets is NULL, and tdm_source.%s",
                 own->inputs != NULL ? "inputs are arrays" : "x is an array");
    if (source->width == 0 && own->inputs == NULL)
        TDM_FAIL(TDM_E_USAGE, "tdm_source.width is 0; arrays need the numbers of a sample");
    if (!tdm__mul_fits((size_t)source->count, own->x_bytes, &bytes) ||
        !tdm__mul_fits((size_t)source->count, own->target_bytes, &bytes))
        TDM_FAIL(TDM_E_USAGE, "tdm_source.count: no array has %lld samples of %zu bytes", (long long)source->count,
                 own->x_bytes);
    for (int64_t i = 0; i < source->count; i++)
        TDM_TRY(check_label(own, i, (const char *)source->targets + (size_t)i * own->target_bytes));
    return TDM_OK;
}

/* ---- opening ---- */

/* An older caller's struct is shorter; what it does not have is zero. */
static tdm_status take(tdm_source *to, const tdm_source *from) {
    const size_t oldest = offsetof(tdm_source, input);
    *to = (tdm_source){0};
    return tdm__sized_take("tdm_source", to, sizeof(*to), from, oldest);
}

static tdm_status check_inputs(const tdm_source *source, const tdm_data_inputs *inputs) {
    if (source->inputs == NULL) return TDM_OK;
    if (source->x != NULL) TDM_FAIL(TDM_E_USAGE, "tdm_source has both `x` and `inputs`; leave out one");
    TDM_TRY(tdm__data_arrays_check("tdm_source", source->inputs, source->input_count, inputs));
    for (int k = 1; k < source->input_count; k++) {
        if ((source->inputs[k].input == TDM_INPUT_READY) != (source->inputs[0].input == TDM_INPUT_READY))
            TDM_FAIL(TDM_E_USAGE, "tdm_source.inputs: all of them are TDM_INPUT_READY, or none is");
    }
    return TDM_OK;
}

static tdm_status check(const tdm_source *source, const tdm_data_wanted *wanted) {
    size_t elements;
    if (source->x == NULL && source->inputs == NULL && source->read_rows == NULL && source->read == NULL)
        TDM_FAIL(TDM_E_USAGE,
                 "tdm_source needs an array `x` or `inputs`, or a function `read_rows` or `read`; all are NULL");
    TDM_TRY(check_inputs(source, &wanted->inputs));
    if (source->count < 1)
        TDM_FAIL(TDM_E_USAGE, "tdm_source.count must be at least 1, got %lld", (long long)source->count);
    if (!tdm__is_input(source->input))
        TDM_FAIL(TDM_E_USAGE, "tdm_source.input must be one of tdm_input, got %d", source->input);
    if (!tdm__shape_elements(&wanted->input, &elements)) TDM_FAIL(TDM_E_USAGE, "the model has no input shape");
    if (source->width != 0 && (source->width < 0 || (size_t)source->width != elements))
        TDM_FAIL(TDM_E_USAGE, "tdm_source.width is %lld, but the model takes samples of %zu numbers",
                 (long long)source->width, elements);
    if ((source->has_labels != 0) != (wanted->target_kind == TDM_TARGET_CLASS))
        TDM_FAIL(TDM_E_USAGE, "tdm_source.has_labels is %d, but the loss needs %s%s%s", source->has_labels,
                 wanted->target_kind == TDM_TARGET_CLASS ? "class labels" : "float targets",
                 wanted->loss_of_values != NULL ? "; probabilities of the classes are for the loss " : "",
                 wanted->loss_of_values != NULL ? wanted->loss_of_values : "");
    return TDM_OK;
}

static tdm_status take_identity(tdm_dataset *base, const char *identity) {
    uint32_t code;
    size_t at = 0;
    if (identity == NULL) return TDM_OK;
    const size_t length = strnlen(identity, TDM_DATA_CALLED);
    for (int bytes = 1; at < length && bytes > 0; at += (size_t)bytes) {
        bytes = tdm__utf8_next(identity + at, length - at, &code);
        if (bytes > 0 && !tdm__utf8_is_printable(code)) break;
    }
    if (length == 0 || length == TDM_DATA_CALLED || at < length)
        TDM_FAIL(TDM_E_USAGE, "tdm_source.identity must be 1 to %d bytes of printable UTF-8", TDM_DATA_CALLED - 1);
    memcpy(base->identity, identity, length);
    return TDM_OK;
}

static void describe(own_dataset *own, const tdm_data_wanted *wanted) {
    tdm_dataset *base = &own->base;
    own->wanted = *wanted;
    own->to_float = wanted->transform != NULL && wanted->transform->to_float;
    base->inputs = wanted->inputs;
    base->count = own->source.count;
    base->x_shape = wanted->input;
    const int kind = own->inputs != NULL ? own->inputs[0].input : own->source.input;
    base->x_is_bytes = own->inputs == NULL && kind == TDM_INPUT_BYTES;
    base->x_is_ready = kind == TDM_INPUT_READY;
    base->target_kind = wanted->target_kind;
    base->target_width = wanted->target_kind == TDM_TARGET_VALUES ? wanted->target_width : 0;
    base->classes = wanted->classes;
    base->has_ignored = wanted->target_kind == TDM_TARGET_CLASS;
    (void)tdm__shape_elements(&base->x_shape, &own->width);
    own->x_bytes = tdm__dataset_x_bytes(base);
    own->target_bytes = tdm__dataset_target_bytes(base);
}

static tdm_status open_source(own_dataset *own, const tdm_source *source, const tdm_data_wanted *wanted,
                              bool has_arrays) {
    own->source = *source;
    own->source.identity = NULL; /* copied */
    TDM_TRY(take_identity(&own->base, source->identity));
    if (source->inputs != NULL) {
        const size_t count = (size_t)source->input_count;
        TDM_TRY(tdm__dataset_take(&own->base, &own->inputs, count, sizeof(*own->inputs), "inputs"));
        memcpy(own->inputs, source->inputs, count * sizeof(*own->inputs));
    }
    describe(own, wanted);
    if (!has_arrays) return TDM_OK;
    tdm__dataset_set_resident(&own->base, SIZE_MAX);
    return check_arrays(own);
}

tdm_status tdm__dataset_open_source(tdm_dataset **out, const tdm_host *host, const tdm_source *source,
                                    const tdm_data_wanted *wanted) {
    tdm_source taken;
    *out = NULL;
    TDM_TRY(take(&taken, source));
    TDM_TRY(check(&taken, wanted));
    const bool has_arrays = taken.x != NULL || taken.inputs != NULL;
    TDM_TRY(tdm__dataset_new(out, host, has_arrays ? &array_ops : taken.read_rows != NULL ? &rows_ops : &callback_ops));
    const tdm_status status = open_source((own_dataset *)*out, &taken, wanted, has_arrays);
    if (status == TDM_OK) return TDM_OK;
    tdm__dataset_close(*out);
    *out = NULL;
    return status;
}

bool tdm__dataset_is_function(const tdm_dataset *dataset) {
    return dataset->ops == &callback_ops || dataset->ops == &rows_ops;
}
