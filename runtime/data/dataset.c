/* What all formats share: sizes, and checks of the data against what the model and the loss expect. */
#include "runtime/data/formats.h"

#include <string.h>

#include "runtime/base/status.h"
#include "runtime/data/transforms/transforms.h"

tdm_status tdm__dataset_new(tdm_dataset **out, const tdm_host *host, const tdm_dataset_ops *ops) {
    TDM_TRY(tdm__new(host, out, 1, ops->bytes, ops->name));
    (*out)->ops = ops;
    (*out)->host = host;
    return TDM_OK;
}

tdm_status tdm__dataset_take(tdm_dataset *dataset, void *out, size_t count, size_t bytes, const char *what) {
    int i = 0;
    while (i < TDM_DATASET_BLOCKS && dataset->block[i] != NULL) i++;
    if (i == TDM_DATASET_BLOCKS) TDM_FAIL(TDM_E_INTERNAL, "%s: more than %d blocks of memory", dataset->ops->name, i);
    TDM_TRY(tdm__new(dataset->host, &dataset->block[i], count, bytes, what));
    dataset->memory_bytes += count * bytes;
    memcpy(out, &dataset->block[i], sizeof(void *));
    return TDM_OK;
}

void tdm__dataset_close(tdm_dataset *dataset) {
    if (dataset == NULL) return;
    if (dataset->ops->close != NULL) dataset->ops->close(dataset);
    for (int i = 0; i < TDM_DATASET_BLOCKS; i++) tdm__delete(dataset->host, dataset->block[i]);
    tdm__delete(dataset->host, dataset);
}

size_t tdm__dataset_numbers(const tdm_dataset *dataset) {
    size_t elements;
    return tdm__shape_elements(&dataset->x_shape, &elements) ? elements : 0;
}

size_t tdm__dataset_x_bytes(const tdm_dataset *dataset) {
    return tdm__dataset_numbers(dataset) * (dataset->x_is_bytes ? 1 : sizeof(float));
}

size_t tdm__dataset_target_bytes(const tdm_dataset *dataset) {
    return dataset->target_kind == TDM_TARGET_CLASS ? sizeof(int64_t) : (size_t)dataset->target_width * sizeof(float);
}

void tdm__dataset_set_resident(tdm_dataset *dataset, size_t most) {
    size_t bytes;
    bool fits = tdm__mul_fits((size_t)dataset->count, tdm__dataset_x_bytes(dataset), &bytes) && bytes <= most;
    dataset->resident_bytes = fits ? bytes : 0;
}

static tdm_shape without_ones(const tdm_shape *shape) {
    tdm_shape result = {0};
    for (int i = 0; i < shape->ndim; i++) {
        if (shape->dim[i] != 1) result.dim[result.ndim++] = shape->dim[i];
    }
    return result;
}

bool tdm__shape_fits(const tdm_shape *found, const tdm_shape *wanted) {
    size_t found_elements, wanted_elements;
    if (!tdm__shape_elements(found, &found_elements) || !tdm__shape_elements(wanted, &wanted_elements)) return false;
    if (found_elements != wanted_elements) return false;
    tdm_shape a = without_ones(found), b = without_ones(wanted);
    if (a.ndim <= 1 || b.ndim <= 1) return true;
    if (a.ndim != b.ndim) return false;
    for (int i = 0; i < a.ndim; i++) {
        if (a.dim[i] != b.dim[i]) return false;
    }
    return true;
}

static tdm_status set_shape(tdm_dataset *dataset, const tdm_data_spec *spec, const tdm_data_wanted *wanted,
                            const tdm_shape *found, const char *source) {
    char found_text[TDM_DIMS_TEXT], wanted_text[TDM_DIMS_TEXT], names[TDM_INPUTS_TEXT];
    const bool is_of_file = spec->inputs_at.file != NULL; /* else a program, or the command line, gave the path */
    if (wanted->input.ndim == 0) {
        dataset->x_shape = *found;
        return TDM_OK;
    }
    if (!tdm__shape_fits(found, &wanted->input) && wanted->inputs.count > 1)
        TDM_FAIL_AT(&spec->inputs_at, TDM_E_DATA,
                    "%s: the model has %d inputs (%s), and a sample must be one row of their %lld numbers, found %s%s",
                    source, wanted->inputs.count, tdm__data_inputs_print(names, &wanted->inputs),
                    (long long)wanted->input.dim[0], tdm__dims_print(found_text, found),
                    is_of_file ? "; format npy takes a file for each input (`inputs`)" : "");
    if (!tdm__shape_fits(found, &wanted->input))
        TDM_FAIL_AT(&spec->inputs_at, TDM_E_DATA, "%s: the model needs samples of shape %s (model.input), found %s",
                    source, tdm__dims_print(wanted_text, &wanted->input), tdm__dims_print(found_text, found));
    dataset->x_shape = wanted->input;
    return TDM_OK;
}

tdm_status tdm__dataset_take_pictures(tdm_dataset *dataset, const tdm_data_spec *spec, const tdm_data_wanted *wanted,
                                      const tdm_shape *shape, const char *source) {
    tdm_shape result = *shape;
    char text[TDM_DIMS_TEXT];
    if (shape->ndim != 3 || (shape->dim[0] != 1 && shape->dim[0] != 3))
        TDM_FAIL_AT(&spec->inputs_at, TDM_E_DATA,
                    "%s: the steps of data.transform change pictures of 1 or 3 channels, found %s", source,
                    tdm__dims_print(text, shape));
    dataset->steps = wanted->transform;
    dataset->raw_shape = *shape;
    dataset->seed = (uint64_t)wanted->seed;
    dataset->draws = !wanted->evaluates;
    dataset->x_is_bytes = true;
    if (wanted->transform != NULL) {
        const tdm_picture_size size = tdm__transform_size(wanted->transform, dataset->draws);
        if (size.height > 0) result.dim[1] = size.height;
        if (size.width > 0) result.dim[2] = size.width;
    }
    return set_shape(dataset, spec, wanted, &result, source);
}

tdm_status tdm__dataset_take_shape(tdm_dataset *dataset, const tdm_data_spec *spec, const tdm_data_wanted *wanted,
                                   const tdm_shape *found, const char *source) {
    if (tdm__transform_picture_steps(wanted->transform) > 0)
        return tdm__dataset_take_pictures(dataset, spec, wanted, found, source);
    return set_shape(dataset, spec, wanted, found, source);
}

tdm_status tdm__dataset_take_classes(tdm_dataset *dataset, const tdm_data_spec *spec, const tdm_data_wanted *wanted,
                                     int64_t classes, const char *source) {
    if (wanted->classes > 0 && classes > wanted->classes)
        TDM_FAIL_AT(&spec->origin, TDM_E_DATA,
                    "%s: the model has %lld outputs, so labels must be 0 to %lld, found %lld", source,
                    (long long)wanted->classes, (long long)wanted->classes - 1, (long long)classes - 1);
    dataset->target_kind = TDM_TARGET_CLASS;
    dataset->target_width = 0;
    dataset->classes = wanted->classes > 0 ? wanted->classes : classes;
    dataset->has_ignored = wanted->ignore_index >= 0 && wanted->ignore_index < classes;
    return TDM_OK;
}

bool tdm__label_fits(const tdm_data_wanted *wanted, int64_t label) {
    if (label == wanted->ignore_index) return true;
    return label >= 0 && (wanted->classes <= 0 || label < wanted->classes);
}

uint64_t tdm__data_seed(const tdm_data_spec *spec, const tdm_data_wanted *wanted) {
    return (uint64_t)(spec->seed == TDM_INT_NULL ? wanted->seed : spec->seed);
}
