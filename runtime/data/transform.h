/* data.transform: from a stored sample to the floats that the model reads. */
#ifndef TDM_DATA_TRANSFORM_H
#define TDM_DATA_TRANSFORM_H

#include <tandem/source.h>

#include "runtime/data/data.h"

/* Numbers of a sample that lie together and are treated alike. */
typedef struct tdm_transform_channel {
    size_t count;
    bool normalizes;
    float mean, stdev;
} tdm_transform_channel;

struct tdm_transform {
    const tdm_host *host;
    /* A sample is its channels, one after another. What a model with several inputs does not normalize is one, too. */
    size_t channels, width; /* numbers of a sample */
    tdm_transform_channel *channel;
    bool to_float, normalizes; /* bytes; some channel */
    float *table;              /* [channels][256]: the result for every byte; NULL for floats */
};

/* TDM_E_CONFIG if `spec` (NULL: no transform, as for samples that are ready) does not fit the dataset's channels. */
tdm_status tdm__transform_init(tdm_transform *transform, const tdm_host *host, const tdm_transform_spec *spec,
                               const tdm_dataset *dataset);
/* Does normalize change this number of a sample? */
bool tdm__transform_normalizes(const tdm_transform_spec *spec, const tdm_data_inputs *inputs, size_t number);
void tdm__transform_deinit(tdm_transform *transform);
void tdm__transform_bytes(const tdm_transform *transform, const unsigned char *in, float *out);
void tdm__transform_floats(const tdm_transform *transform, float *x);
static inline bool tdm__is_input(int input) {
    return input >= TDM_INPUT_FLOATS && input <= TDM_INPUT_READY;
}
/* Bytes of a number of such samples. */
static inline size_t tdm__input_bytes(int input) {
    return input == TDM_INPUT_BYTES ? 1 : sizeof(float);
}
/* For samples of a program, of any tdm_input: makes a transform of `spec` for samples of the shape `input`, or for rows
 * of several `inputs`. */
tdm_status tdm__transform_init_given(tdm_transform *transform, const tdm_host *host, const tdm_transform_spec *spec,
                                     const tdm_shape *input, const tdm_data_inputs *inputs);
/* Does tdm__transform_given need memory for such samples? */
bool tdm__transform_changes(const tdm_transform *transform, int input);
/* `rows` such samples as the model takes them: x itself if nothing is to be done to it, else `ready`, which has room
 * for them. */
const float *tdm__transform_given(const tdm_transform *transform, int input, const void *x, int64_t rows, float *ready);
/* The same for samples first to first + rows - 1 of an array for each input. */
void tdm__transform_arrays(const tdm_transform *transform, const tdm_data_inputs *inputs, const tdm_input_array *arrays,
                           int64_t first, int64_t rows, float *ready);
/* Numbers of one of these arrays as floats, before normalize. */
void tdm__transform_to_floats(const tdm_input_array *array, bool to_float, size_t first, size_t count, float *out);
static inline size_t tdm__transform_width(const tdm_transform *transform) {
    return transform->width;
}

#endif
