/* to_float and normalize, with torch's operations: v.float() / 255, then (v - mean) / std. Each operation rounds once.
 */
#include "runtime/data/transform.h"

#include <math.h>
#include <string.h>

#include "runtime/base/status.h"
#include "runtime/base/twin.h"
#include "runtime/data/formats.h"

enum { BYTE_VALUES = 256 };

static tdm_status take_normalize(tdm_transform *transform, const tdm_transform_spec *spec, const tdm_shape *shape) {
    int count = spec->mean.count;
    if (count != spec->stdev.count)
        TDM_FAIL(TDM_E_CONFIG, "data.transform: normalize has %d means and %d stds; the numbers must be equal", count,
                 spec->stdev.count);
    if (count > 1 && count != shape->dim[0])
        TDM_FAIL(TDM_E_CONFIG,
                 "data.transform: normalize needs one mean and std, or one for each of %lld channels, got %d",
                 (long long)shape->dim[0], count);
    transform->normalize = count > 0;
    for (int i = 0; i < count; i++) {
        transform->mean[i] = (float)spec->mean.item[i];
        transform->stdev[i] = (float)spec->stdev.item[i];
        if (!isfinite(transform->mean[i]) || !isfinite(transform->stdev[i]) || transform->stdev[i] == 0.0f)
            TDM_FAIL(TDM_E_CONFIG,
                     "data.transform: normalize needs finite numbers and a std that is not 0, got mean %g, std %g",
                     spec->mean.item[i], spec->stdev.item[i]);
    }
    if (count > 1) {
        transform->channels = (size_t)count;
        transform->plane /= (size_t)count;
    }
    return TDM_OK;
}

static tdm_status fill_table(tdm_transform *transform, bool to_float) {
    TDM_TRY(
        tdm__new(transform->host, &transform->table, transform->channels, BYTE_VALUES * sizeof(float), "transform"));
    for (size_t channel = 0; channel < transform->channels; channel++) {
        for (int byte = 0; byte < BYTE_VALUES; byte++) {
            float value = (float)byte;
            if (to_float) value = value / 255.0f;
            if (transform->normalize) {
                value = value - transform->mean[channel];
                value = value / transform->stdev[channel];
            }
            transform->table[channel * BYTE_VALUES + (size_t)byte] = value;
        }
    }
    return TDM_OK;
}

tdm_status tdm__transform_init(tdm_transform *transform, const tdm_host *host, const tdm_transform_spec *spec,
                               const tdm_dataset *dataset) {
    if (dataset->x_is_ready) spec = NULL;
    bool to_float = spec != NULL && spec->to_float;
    *transform = (tdm_transform){.host = host, .channels = 1};
    if (!tdm__shape_elements(&dataset->x_shape, &transform->plane))
        TDM_FAIL(TDM_E_INTERNAL, "transform: the dataset has no shape");
    if (spec != NULL) TDM_TRY(take_normalize(transform, spec, &dataset->x_shape));
    if (!dataset->x_is_bytes) return TDM_OK;
    TDM_TRY(fill_table(transform, to_float));
    return TDM_OK;
}

void tdm__transform_deinit(tdm_transform *transform) {
    tdm__delete(transform->host, transform->table);
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
    for (size_t channel = 0; channel < transform->channels; channel++) {
        const float *table = transform->table + channel * BYTE_VALUES;
        if (tdm__cpu_has_fma())
            look_up_fast(table, in, out, transform->plane);
        else
            look_up(table, in, out, transform->plane);
        in += transform->plane, out += transform->plane;
    }
}

void tdm__transform_floats(const tdm_transform *transform, float *x) {
    if (!transform->normalize) return;
    for (size_t channel = 0; channel < transform->channels; channel++) {
        float mean = transform->mean[channel], stdev = transform->stdev[channel];
        for (size_t i = 0; i < transform->plane; i++, x++) {
            float centred = *x - mean;
            *x = centred / stdev;
        }
    }
}

/* ---- samples of a program ---- */

tdm_status tdm__transform_init_given(tdm_transform *transform, const tdm_host *host, const tdm_transform_spec *spec,
                                     const tdm_shape *input) {
    const tdm_dataset like = {.x_shape = *input, .x_is_bytes = true};
    return tdm__transform_init(transform, host, spec, &like);
}

bool tdm__transform_changes(const tdm_transform *transform, int input) {
    return input == TDM_INPUT_BYTES || (input == TDM_INPUT_FLOATS && transform->normalize);
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
