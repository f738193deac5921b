/* data.transform: from a stored sample to the floats that the model reads. */
#ifndef TDM_DATA_TRANSFORM_H
#define TDM_DATA_TRANSFORM_H

#include "runtime/data/data.h"

struct tdm_transform {
    const tdm_host *host;
    size_t channels, plane; /* a sample is `channels` runs of `plane` numbers; a run has one mean and std */
    bool normalize;
    float mean[TDM_LIST_MAX], stdev[TDM_LIST_MAX]; /* per channel */
    float *table;                                  /* [channels][256]: the result for every byte; NULL for floats */
};

/* TDM_E_CONFIG if `spec` (NULL: no transform) does not fit the dataset's channels. */
tdm_status tdm__transform_init(tdm_transform *transform, const tdm_host *host, const tdm_transform_spec *spec,
                               const tdm_dataset *dataset);
void tdm__transform_deinit(tdm_transform *transform);
void tdm__transform_bytes(const tdm_transform *transform, const unsigned char *in, float *out);
void tdm__transform_floats(const tdm_transform *transform, float *x);

#endif
