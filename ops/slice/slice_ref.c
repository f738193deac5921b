/* slice: reference kernel, also the one that runs on the CPU. */
#include <string.h>

#include "ops/ops.h"
#include "ops/elementwise.h"
#include "ops/slice/slice.h"

/* Numbers of a row of x, of a row of y, and in front of those of y. */
typedef struct spans {
    int64_t x, y, before;
} spans;

/* The shape of y may be another one of as many numbers: that of an input, which the planner takes out of a sample. */
static spans spans_of(const tdm_kernel_desc *desc) {
    const tdm_slice_attrs *attrs = desc->attrs;
    spans s = {1, 1, 0};
    for (int i = 1; i < desc->x[0].ndim; i++) s.x *= desc->x[0].dim[i];
    for (int i = 1; i < desc->y.ndim; i++) s.y *= desc->y.dim[i];
    s.before = attrs->start * (s.x / desc->x[0].dim[1]);
    return s;
}

static tdm_status forward(const tdm_kernel_args *args) {
    const spans s = spans_of(args->desc);
    for (int64_t n = 0; n < args->rows; n++)
        memcpy(args->y + n * s.y, args->x[0] + n * s.x + s.before, (size_t)s.y * sizeof(float));
    return TDM_OK;
}

/* dx = dy, and 0 around it */
static tdm_status backward(const tdm_kernel_args *args) {
    const spans s = spans_of(args->desc);
    for (int64_t n = 0; n < args->rows; n++) {
        float *dx = args->dx[0] + n * s.x;
        memset(dx, 0, (size_t)s.before * sizeof(float));
        memcpy(dx + s.before, args->dy + n * s.y, (size_t)s.y * sizeof(float));
        memset(dx + s.before + s.y, 0, (size_t)(s.x - s.before - s.y) * sizeof(float));
    }
    return TDM_OK;
}

TDM_REF_KERNEL(slice, tdm__plain_fits); /* in another the items of a row do not lie together */
