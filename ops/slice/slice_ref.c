/* slice: reference kernel, also the one that runs on the CPU. */
#include <string.h>

#include "ops/ops.h"
#include "ops/elementwise.h"
#include "ops/slice/slice.h"

/* Numbers of a row of x, of a row of y, and in front of those of y. */
typedef struct spans {
    int64_t x, y, before;
} spans;

static spans spans_of(const tdm_kernel_desc *desc) {
    const tdm_slice_attrs *attrs = desc->attrs;
    spans s = {desc->x[0].dim[1], desc->y.dim[1], attrs->start};
    for (int i = 2; i < desc->y.ndim; i++) {
        s.x *= desc->y.dim[i];
        s.y *= desc->y.dim[i];
        s.before *= desc->y.dim[i];
    }
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
