/* data.transform: from a stored sample to the floats that the model reads. */
#ifndef TDM_DATA_TRANSFORM_H
#define TDM_DATA_TRANSFORM_H

#include <tandem/source.h>

#include "runtime/data/data.h"

struct tdm_transform {
    const tdm_host *host;
    size_t channels, plane; /* a sample is `channels` runs of `plane` numbers; a run has one mean and std */
    bool normalize;
    float mean[TDM_LIST_MAX], stdev[TDM_LIST_MAX]; /* per channel */
    float *table;                                  /* [channels][256]: the result for every byte; NULL for floats */
};

/* TDM_E_CONFIG if `spec` (NULL: no transform, as for samples that are ready) does not fit the dataset's channels. */
tdm_status tdm__transform_init(tdm_transform *transform, const tdm_host *host, const tdm_transform_spec *spec,
                               const tdm_dataset *dataset);
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
/* For samples of a program, of any tdm_input: makes a transform of `spec` for samples of the shape `input`. */
tdm_status tdm__transform_init_given(tdm_transform *transform, const tdm_host *host, const tdm_transform_spec *spec,
                                     const tdm_shape *input);
/* Does tdm__transform_given need memory for such samples? */
bool tdm__transform_changes(const tdm_transform *transform, int input);
/* `rows` such samples as the model takes them: x itself if nothing is to be done to it, else `ready`, which has room for
 * them. */
const float *tdm__transform_given(const tdm_transform *transform, int input, const void *x, int64_t rows, float *ready);
static inline size_t tdm__transform_width(const tdm_transform *transform) {
    return transform->channels * transform->plane;
}

#endif
