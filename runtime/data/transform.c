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

static tdm_status check_normalize(const tdm_transform_spec *spec) {
    if (spec->mean.count != spec->stdev.count)
        TDM_FAIL(TDM_E_CONFIG, "data.transform: normalize has %d means and %d stds; the numbers must be equal",
                 spec->mean.count, spec->stdev.count);
    for (int i = 0; i < spec->mean.count; i++) {
        const float mean = (float)spec->mean.item[i], stdev = (float)spec->stdev.item[i];
        if (!isfinite(mean) || !isfinite(stdev) || stdev == 0.0f)
            TDM_FAIL(TDM_E_CONFIG,
                     "data.transform: normalize needs finite numbers and a std that is not 0, got mean %g, std %g",
                     spec->mean.item[i], spec->stdev.item[i]);
    }
    return TDM_OK;
}

/* Adds the channels of numbers of such a shape; spec NULL: they are not normalized. */
static tdm_status add_channels(tdm_transform *transform, const tdm_transform_spec *spec, const tdm_shape *shape) {
    const int means = spec != NULL ? spec->mean.count : 0, channels = means > 1 ? means : 1;
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
        channel->mean = (float)spec->mean.item[i];
        channel->stdev = (float)spec->stdev.item[i];
        transform->normalizes = true;
    }
    transform->width += count;
    return TDM_OK;
}

/* Is normalize for the input? With a single one it is, if it names none. */
static bool is_for(const tdm_transform_spec *spec, const tdm_data_inputs *inputs, int index) {
    for (int i = 0; i < spec->inputs.count; i++)
        if (strcmp(spec->inputs.item[i], inputs->item[index].name) == 0) return true;
    return inputs->count == 1 && spec->inputs.count == 0;
}

bool tdm__transform_normalizes(const tdm_transform_spec *spec, const tdm_data_inputs *inputs, size_t number) {
    if (spec->mean.count == 0 || inputs->count < 2) return spec->mean.count > 0;
    for (int k = 0; k < inputs->count; k++) {
        const tdm_data_input *input = &inputs->item[k];
        if (number >= input->first && number < input->first + input->count) return is_for(spec, inputs, k);
    }
    return false;
}

static tdm_status check_names(const tdm_transform_spec *spec, const tdm_data_inputs *inputs) {
    char all[TDM_INPUTS_TEXT];
    if (spec->mean.count > 0 && spec->inputs.count == 0 && inputs->count > 1)
        TDM_FAIL(TDM_E_CONFIG,
                 "data.transform: normalize must say in `inputs` which of the model's inputs it is for: %s",
                 tdm__data_inputs_print(all, inputs));
    for (int i = 0; i < spec->inputs.count; i++) {
        if (tdm__data_input_find(inputs, spec->inputs.item[i]) < 0)
            TDM_FAIL(TDM_E_CONFIG, "data.transform: normalize: the model has no input '%s'%s%s", spec->inputs.item[i],
                     inputs->count > 0 ? "; its inputs are " : "", tdm__data_inputs_print(all, inputs));
        for (int k = 0; k < i; k++)
            if (strcmp(spec->inputs.item[k], spec->inputs.item[i]) == 0)
                TDM_FAIL(TDM_E_CONFIG, "data.transform: normalize: the input '%s' is listed twice",
                         spec->inputs.item[i]);
    }
    return TDM_OK;
}

/* spec NULL: no transform. */
static tdm_status find_channels(tdm_transform *transform, const tdm_transform_spec *spec, const tdm_shape *shape,
                                const tdm_data_inputs *inputs) {
    const int most = inputs->count > 1 ? inputs->count : 1;
    const int each = spec != NULL && spec->mean.count > 1 ? spec->mean.count : 1;
    if (spec != NULL) TDM_TRY(check_normalize(spec));
    if (spec != NULL) TDM_TRY(check_names(spec, inputs));
    TDM_TRY(tdm__new(transform->host, &transform->channel, (size_t)(most * each), sizeof(*transform->channel),
                     "transform"));
    if (inputs->count < 2) return add_channels(transform, spec, shape);
    for (int k = 0; k < inputs->count; k++)
        TDM_TRY(add_channels(transform, spec != NULL && is_for(spec, inputs, k) ? spec : NULL, &inputs->item[k].shape));
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
