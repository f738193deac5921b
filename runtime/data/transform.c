/* to_float and normalize, with torch's operations: v.float() / 255, then (v - mean) / std. Each operation rounds once.
 */
#include "runtime/data/transform.h"

#include <math.h>
#include <string.h>

#include "runtime/base/status.h"
#include "runtime/base/twin.h"
#include "runtime/data/formats.h"

enum { BYTE_VALUES = 256 };

/* ---- channels ---- */

static tdm_status check_numbers(const tdm_normalize *step) {
    if (step->mean.count == 0 || step->mean.count != step->stdev.count)
        TDM_FAIL(TDM_E_CONFIG, "data.transform: normalize has %d means and %d stds; it needs as many of both",
                 step->mean.count, step->stdev.count);
    for (int i = 0; i < step->mean.count; i++) {
        const float mean = (float)step->mean.item[i], stdev = (float)step->stdev.item[i];
        if (!isfinite(mean) || !isfinite(stdev) || stdev == 0.0f)
            TDM_FAIL(TDM_E_CONFIG,
                     "data.transform: normalize needs finite numbers and a std that is not 0, got mean %g, std %g",
                     step->mean.item[i], step->stdev.item[i]);
    }
    return TDM_OK;
}

/* Adds the channels of numbers of such a shape; step NULL: they are not normalized. */
static tdm_status add_channels(tdm_transform *transform, const tdm_normalize *step, const tdm_shape *shape) {
    const int means = step != NULL ? step->mean.count : 0, channels = means > 1 ? means : 1;
    size_t count;
    if (!tdm__shape_elements(shape, &count)) TDM_FAIL(TDM_E_INTERNAL, "transform: the dataset has no shape");
    if (means > 1 && means != shape->dim[0])
        TDM_FAIL(TDM_E_CONFIG,
                 "data.transform: normalize needs one mean and std, or one for each of %lld channels, got %d",
                 (long long)shape->dim[0], means);
    for (int i = 0; i < channels; i++) {
        tdm_transform_channel *channel = &transform->channel[transform->channels++];
        *channel = (tdm_transform_channel){.count = count / (size_t)channels, .normalizes = means > 0};
        if (means == 0) continue;
        channel->mean = (float)step->mean.item[i];
        channel->stdev = (float)step->stdev.item[i];
        transform->normalizes = true;
    }
    transform->width += count;
    return TDM_OK;
}

/* Does the step have the name, before name `end` of it? */
static bool has_name(const tdm_normalize *step, int end, const char *name) {
    for (int i = 0; i < end; i++)
        if (strcmp(step->inputs.item[i], name) == 0) return true;
    return false;
}

/* The step for an input; NULL: none. Of a single input it is the only one. */
static const tdm_normalize *step_of(const tdm_transform_spec *spec, const tdm_data_inputs *inputs, int index) {
    if (spec == NULL || spec->normalize.count == 0) return NULL;
    if (inputs->count < 2) return &spec->normalize.item[0];
    for (int i = 0; i < spec->normalize.count; i++) {
        const tdm_normalize *step = &spec->normalize.item[i];
        if (has_name(step, step->inputs.count, inputs->item[index].name)) return step;
    }
    return NULL;
}

bool tdm__transform_normalizes(const tdm_transform_spec *spec, const tdm_data_inputs *inputs, size_t number) {
    if (inputs->count < 2) return spec->normalize.count > 0;
    for (int k = 0; k < inputs->count; k++) {
        const tdm_data_input *input = &inputs->item[k];
        if (number >= input->first && number < input->first + input->count) return step_of(spec, inputs, k) != NULL;
    }
    return false;
}

static tdm_status check_names(const tdm_normalizes *all, int index, const tdm_data_inputs *inputs) {
    char names[TDM_INPUTS_TEXT];
    const tdm_normalize *step = &all->item[index];
    if (step->inputs.count == 0 && inputs->count > 1)
        TDM_FAIL(TDM_E_CONFIG,
                 "data.transform: normalize must say in `inputs` which of the model's inputs it is for: %s",
                 tdm__data_inputs_print(names, inputs));
    for (int i = 0; i < step->inputs.count; i++) {
        const char *const name = step->inputs.item[i];
        if (tdm__data_input_find(inputs, name) < 0)
            TDM_FAIL(TDM_E_CONFIG, "data.transform: normalize: the model has no input '%s'%s%s", name,
                     inputs->count > 0 ? "; its inputs are " : "", tdm__data_inputs_print(names, inputs));
        bool is_repeated = has_name(step, i, name);
        for (int k = 0; k < index; k++)
            is_repeated = is_repeated || has_name(&all->item[k], all->item[k].inputs.count, name);
        if (is_repeated) TDM_FAIL(TDM_E_CONFIG, "data.transform: normalize: the input '%s' is listed twice", name);
    }
    if (index > 0 && inputs->count < 2)
        TDM_FAIL(TDM_E_CONFIG, "data.transform: normalize is listed twice, and the model has one input");
    return TDM_OK;
}

/* spec NULL: no transform. */
static tdm_status find_channels(tdm_transform *transform, const tdm_transform_spec *spec, const tdm_shape *shape,
                                const tdm_data_inputs *inputs) {
    const int parts = inputs->count > 1 ? inputs->count : 1;
    size_t most = 0;
    for (int i = 0; spec != NULL && i < spec->normalize.count; i++) {
        TDM_TRY(check_numbers(&spec->normalize.item[i]));
        TDM_TRY(check_names(&spec->normalize, i, inputs));
    }
    for (int k = 0; k < parts; k++) {
        const tdm_normalize *step = step_of(spec, inputs, k);
        most += step != NULL ? (size_t)step->mean.count : 1;
    }
    TDM_TRY(tdm__new(transform->host, &transform->channel, most, sizeof(*transform->channel), "transform"));
    for (int k = 0; k < parts; k++)
        TDM_TRY(add_channels(transform, step_of(spec, inputs, k), inputs->count < 2 ? shape : &inputs->item[k].shape));
    return TDM_OK;
}

static tdm_status fill_table(tdm_transform *transform) {
    TDM_TRY(
        tdm__new(transform->host, &transform->table, transform->channels, BYTE_VALUES * sizeof(float), "transform"));
    for (size_t k = 0; k < transform->channels; k++) {
        const tdm_transform_channel *channel = &transform->channel[k];
        for (int byte = 0; byte < BYTE_VALUES; byte++) {
            float value = (float)byte;
            if (transform->to_float) value = value / 255.0f;
            if (channel->normalizes) {
                value = value - channel->mean;
                value = value / channel->stdev;
            }
            transform->table[k * BYTE_VALUES + (size_t)byte] = value;
        }
    }
    return TDM_OK;
}

tdm_status tdm__transform_init(tdm_transform *transform, const tdm_host *host, const tdm_transform_spec *spec,
                               const tdm_dataset *dataset) {
    if (dataset->x_is_ready) spec = NULL;
    *transform = (tdm_transform){.host = host, .to_float = spec != NULL && spec->to_float};
    tdm_status status = find_channels(transform, spec, &dataset->x_shape, &dataset->inputs);
    if (status == TDM_OK && dataset->x_is_bytes) status = fill_table(transform);
    if (status != TDM_OK) tdm__transform_deinit(transform);
    return status;
}

void tdm__transform_deinit(tdm_transform *transform) {
    tdm__delete(transform->host, transform->channel);
    tdm__delete(transform->host, transform->table);
    transform->channel = NULL;
    transform->table = NULL;
}

TDM_INLINE void look_up(const float *restrict table, const unsigned char *restrict in, float *restrict out,
                        size_t count) {
    for (size_t i = 0; i < count; i++) out[i] = table[in[i]];
}

TDM_FMA_TWIN static void look_up_fast(const float *table, const unsigned char *in, float *out, size_t count) {
    look_up(table, in, out, count);
}

void tdm__transform_bytes(const tdm_transform *transform, const unsigned char *in, float *out) {
    for (size_t k = 0; k < transform->channels; k++) {
        const float *table = transform->table + k * BYTE_VALUES;
        const size_t count = transform->channel[k].count;
        if (tdm__cpu_has_fma())
            look_up_fast(table, in, out, count);
        else
            look_up(table, in, out, count);
        in += count, out += count;
    }
}

static void normalize(const tdm_transform_channel *channel, float *x) {
    const float mean = channel->mean, stdev = channel->stdev;
    for (size_t i = 0; channel->normalizes && i < channel->count; i++) {
        const float centred = x[i] - mean;
        x[i] = centred / stdev;
    }
}

void tdm__transform_floats(const tdm_transform *transform, float *x) {
    if (!transform->normalizes) return;
    for (size_t k = 0; k < transform->channels; x += transform->channel[k++].count)
        normalize(&transform->channel[k], x);
}

/* ---- samples of a program ---- */

tdm_status tdm__transform_init_given(tdm_transform *transform, const tdm_host *host, const tdm_transform_spec *spec,
                                     const tdm_shape *input, const tdm_data_inputs *inputs) {
    const tdm_dataset like = {.x_shape = *input, .inputs = *inputs, .x_is_bytes = true};
    return tdm__transform_init(transform, host, spec, &like);
}

bool tdm__transform_changes(const tdm_transform *transform, int input) {
    return input == TDM_INPUT_BYTES || (input == TDM_INPUT_FLOATS && transform->normalizes);
}

const float *tdm__transform_given(const tdm_transform *transform, int input, const void *x, int64_t rows,
                                  float *ready) {
    const size_t width = tdm__transform_width(transform);
    if (!tdm__transform_changes(transform, input)) return x;
    if (input == TDM_INPUT_FLOATS) memcpy(ready, x, (size_t)rows * width * sizeof(*ready));
    for (int64_t i = 0; i < rows; i++) {
        float *row = ready + (size_t)i * width;
        if (input == TDM_INPUT_BYTES)
            tdm__transform_bytes(transform, (const unsigned char *)x + (size_t)i * width, row);
        else
            tdm__transform_floats(transform, row);
    }
    return ready;
}

void tdm__transform_to_floats(const tdm_input_array *array, bool to_float, size_t first, size_t count, float *out) {
    if (array->input != TDM_INPUT_BYTES) {
        memcpy(out, (const float *)array->x + first, count * sizeof(*out));
        return;
    }
    const unsigned char *bytes = (const unsigned char *)array->x + first;
    for (size_t i = 0; i < count; i++) out[i] = to_float ? (float)bytes[i] / 255.0f : (float)bytes[i];
}

static void one_row(const tdm_transform *transform, const tdm_data_inputs *inputs, const tdm_input_array *arrays,
                    size_t row, float *out) {
    const tdm_transform_channel *channel = transform->channel;
    for (int k = 0; k < inputs->count; k++) {
        const size_t count = inputs->item[k].count;
        tdm__transform_to_floats(&arrays[k], transform->to_float, row * count, count, out);
        for (size_t done = 0; done < count; done += channel++->count)
            if (arrays[k].input != TDM_INPUT_READY) normalize(channel, out + done);
        out += count;
    }
}

void tdm__transform_arrays(const tdm_transform *transform, const tdm_data_inputs *inputs, const tdm_input_array *arrays,
                           int64_t first, int64_t rows, float *ready) {
    for (int64_t i = 0; i < rows; i++)
        one_row(transform, inputs, arrays, (size_t)(first + i), ready + (size_t)i * transform->width);
}
