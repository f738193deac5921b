/* groupnorm: y = (x - mean) / sqrt(var + eps) * w[c] + b[c], each group of channels normalised by itself. */
#ifndef TDM_OPS_GROUPNORM_H
#define TDM_OPS_GROUPNORM_H

#include "ops/layernorm/layernorm_segments.h"

typedef struct tdm_groupnorm_attrs {
    int64_t groups;
    double eps;
    bool affine;
    int64_t in; /* TDM_INT_NULL: taken from the input */
} tdm_groupnorm_attrs;

static inline tdm_segments tdm__groupnorm_segments(const tdm_kernel_desc *desc, int64_t rows) {
    const int64_t groups = ((const tdm_groupnorm_attrs *)desc->attrs)->groups;
    tdm_segments of = {.count = rows * groups, .groups = groups, .channels = desc->y.dim[1] / groups, .points = 1};
    for (int i = 2; i < desc->y.ndim; i++) of.points *= desc->y.dim[i];
    return of;
}

#endif
