/* Shapes of samples: their size, and in words. */
#include <stdio.h>

#include "runtime/data/formats.h"

bool tdm__shape_elements(const tdm_shape *shape, size_t *out) {
    size_t elements = 1;
    if (shape->ndim < 1 || shape->ndim > TDM_MAX_DIMS) return false;
    for (int i = 0; i < shape->ndim; i++) {
        if (shape->dim[i] < 1 || !tdm__mul_fits(elements, (size_t)shape->dim[i], &elements)) return false;
    }
    *out = elements;
    return true;
}

const char *tdm__dims_print(char out[TDM_DIMS_TEXT], const tdm_shape *shape) {
    size_t length = 0;
    out[length++] = '[';
    for (int i = 0; i < shape->ndim && i < TDM_MAX_DIMS; i++) {
        int added =
            snprintf(out + length, TDM_DIMS_TEXT - length, i == 0 ? "%lld" : ", %lld", (long long)shape->dim[i]);
        length += (size_t)added;
    }
    snprintf(out + length, TDM_DIMS_TEXT - length, "]");
    return out;
}
