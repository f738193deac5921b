/* layernorm: y = (x - mean) / sqrt(var + eps) * w + b over the last dimensions of each row. */
#ifndef TDM_OPS_LAYERNORM_H
#define TDM_OPS_LAYERNORM_H

#include "ops/layernorm/layernorm_segments.h"

typedef struct tdm_layernorm_attrs {
    tdm_ints normalized_shape; /* none: the last dimension */
    double eps;
    bool elementwise_affine, bias;
} tdm_layernorm_attrs;

static inline tdm_segments tdm__layernorm_segments(const tdm_kernel_desc *desc, int64_t rows) {
    const tdm_layernorm_attrs *attrs = (const tdm_layernorm_attrs *)desc->attrs;
    const int last = attrs->normalized_shape.count > 0 ? attrs->normalized_shape.count : 1;
    tdm_segments of = {.count = rows, .groups = 1, .channels = 1, .points = 1};
    for (int i = 1; i < desc->y.ndim; i++) {
        if (i < desc->y.ndim - last)
            of.count *= desc->y.dim[i];
        else
            of.channels *= desc->y.dim[i];
    }
    return of;
}

#endif
