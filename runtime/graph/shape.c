/* Shapes: counting, comparing, printing. */
#include <stdio.h>

#include "runtime/graph/graph.h"

int64_t tdm__shape_count(const tdm_shape *shape) {
    int64_t count = 1;
    for (int i = 0; i < shape->ndim; i++) count *= shape->dim[i];
    return count;
}

bool tdm__shape_is_sane(const tdm_shape *shape) {
    int64_t count = 1;
    for (int i = 0; i < shape->ndim; i++) {
        if (shape->dim[i] < 1 || shape->dim[i] > TDM_GRAPH_COUNT_MAX / count) return false;
        count *= shape->dim[i];
    }
    return true;
}

bool tdm__shape_equal(const tdm_shape *a, const tdm_shape *b) {
    if (a->ndim != b->ndim) return false;
    for (int i = 0; i < a->ndim; i++) {
        if (a->dim[i] != b->dim[i]) return false;
    }
    return true;
}

void tdm__shape_print(char *out, size_t bytes, const tdm_shape *shape) {
    size_t at = 0;
    out[0] = '\0';
    for (int i = 0; i < shape->ndim && at < bytes; i++) {
        int n = snprintf(out + at, bytes - at, "%s%lld", i ? "x" : "", (long long)shape->dim[i]);
        at += n > 0 ? (size_t)n : 0;
    }
}

tdm_shape_text tdm__shape_text(const tdm_shape *shape) {
    tdm_shape_text out;
    tdm__shape_print(out.text, sizeof(out.text), shape);
    return out;
}
