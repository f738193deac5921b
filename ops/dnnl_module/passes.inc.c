/* The body of passes_plain.c, passes_avx2.c and passes_avx512.c, which define PASSES_TABLE and PASSES_VARIANT.
 *
 * Vectors are the compiler's own type of 16 or 8 floats, cut into what the processor has. */
#include <math.h>
#include <string.h>

#include "ops/dnnl_module/passes.h"

static void relu(float *y, int64_t count) {
    for (int64_t i = 0; i < count; i++) y[i] = y[i] < 0.0f ? 0.0f : y[i];
}

static void mask(float *restrict out, const float *restrict dy, const float *restrict y, int64_t count) {
    for (int64_t i = 0; i < count; i++) out[i] = y[i] <= 0.0f ? 0.0f : dy[i];
}

static void add(float *restrict sum, const float *restrict x, int64_t count) {
    for (int64_t i = 0; i < count; i++) sum[i] += x[i];
}

/* ---- max pooling ---- */

/* The part of an output's window that lies in the image. */
typedef struct {
    int64_t begin[2], rows, columns;
    int32_t first; /* place in the window of the first point */
    bool is_2x2;   /* all of a window of 2 x 2, the usual one */
} clip;

static inline clip clip_of(const tdm_dnnl_pool *pool, int64_t p, int64_t q) {
    const int64_t corner[2] = {p * pool->stride[0] - pool->padding[0], q * pool->stride[1] - pool->padding[1]};
    int64_t begin[2], count[2];
    for (int axis = 0; axis < 2; axis++) {
        const int64_t end = corner[axis] + pool->kernel[axis];
        begin[axis] = corner[axis] > 0 ? corner[axis] : 0;
        count[axis] = (end < pool->in[axis] ? end : pool->in[axis]) - begin[axis];
    }
    const int64_t first = (begin[0] - corner[0]) * pool->kernel[1] + (begin[1] - corner[1]);
    const bool is_2x2 = pool->kernel[0] == 2 && pool->kernel[1] == 2 && count[0] == 2 && count[1] == 2;
    return (clip){{begin[0], begin[1]}, count[0], count[1], (int32_t)first, is_2x2};
}

/* Do two windows share a point? */
static bool overlaps(const tdm_dnnl_pool *pool) {
    return pool->stride[0] < pool->kernel[0] || pool->stride[1] < pool->kernel[1];
}

/* Does every point of the image lie in a window? */
static bool covers(const tdm_dnnl_pool *pool) {
    for (int axis = 0; axis < 2; axis++) {
        const int64_t reach = (pool->out[axis] - 1) * pool->stride[axis] - pool->padding[axis] + pool->kernel[axis];
        if (reach < pool->in[axis] || pool->stride[axis] > pool->kernel[axis]) return false;
    }
    return true;
}

enum { AHEAD_ROWS = 4 }; /* fetched ahead: two rows at a time are too much for the processor's own prefetcher */

#define LANES 16
#include "ops/dnnl_module/maxpool_lanes.inc.c"
#undef LANES
#define LANES 8
#include "ops/dnnl_module/maxpool_lanes.inc.c"
#undef LANES

static void maxpool_forward(const tdm_dnnl_pool *pool, const float *x, float *y, uint8_t *winner, int64_t begin,
                            int64_t end) {
    if (pool->inner % 16 == 0) {
        maxpool_forward_16(pool, x, y, winner, begin, end);
    } else {
        maxpool_forward_8(pool, x, y, winner, begin, end);
    }
}

static void maxpool_backward(const tdm_dnnl_pool *pool, const float *dy, const uint8_t *winner, float *dx,
                             int64_t begin, int64_t end) {
    const int64_t plane = pool->in[0] * pool->in[1] * pool->inner;
    if (overlaps(pool) || !covers(pool)) memset(dx + begin * plane, 0, (size_t)((end - begin) * plane) * sizeof *dx);
    if (pool->inner % 16 == 0) {
        maxpool_backward_16(pool, dy, winner, dx, begin, end);
    } else {
        maxpool_backward_8(pool, dy, winner, dx, begin, end);
    }
}

/* ---- batch norm ---- */

/* Where the channel's values of one row begin; they lie `inner` apart. */
static inline int64_t norm_start(const tdm_dnnl_norm *norm, int64_t row, int64_t channel) {
    const int64_t plane = row * (norm->channels / norm->inner) + channel / norm->inner;
    return plane * norm->points * norm->inner + channel % norm->inner;
}

#define LANES 16
#include "ops/dnnl_module/norm_lanes.inc.c"
#undef LANES
#define LANES 8
#include "ops/dnnl_module/norm_lanes.inc.c"
#undef LANES

static void norm_moments(const tdm_dnnl_norm *norm, int64_t channel, const float *x, double *mean, double *variance) {
    (tdm__dnnl_norm_lanes(norm) == 16 ? norm_moments_16 : norm_moments_8)(norm, channel, x, mean, variance);
}

static void norm_apply(const tdm_dnnl_norm *norm, int64_t channel, const float *x, float *y, const float *mean,
                       const float *scale, const float *shift) {
    (tdm__dnnl_norm_lanes(norm) == 16 ? norm_apply_16 : norm_apply_8)(norm, channel, x, y, mean, scale, shift);
}

static void norm_sums(const tdm_dnnl_norm *norm, int64_t channel, const float *x, const float *dy, const float *y,
                      const double *mean, double *sum, double *dot) {
    (tdm__dnnl_norm_lanes(norm) == 16 ? norm_sums_16 : norm_sums_8)(norm, channel, x, dy, y, mean, sum, dot);
}

static void norm_gradient(const tdm_dnnl_norm *norm, int64_t channel, const float *x, const float *dy, const float *y,
                          float *dx, const float *mean, const float *level, const float *slope, const float *scale) {
    (tdm__dnnl_norm_lanes(norm) == 16 ? norm_gradient_16 : norm_gradient_8)(norm, channel, x, dy, y, dx, mean, level,
                                                                            slope, scale);
}

const tdm_dnnl_passes PASSES_TABLE = {
    .variant = PASSES_VARIANT,
    .relu = relu,
    .mask = mask,
    .add = add,
    .maxpool_forward = maxpool_forward,
    .maxpool_backward = maxpool_backward,
    .norm_moments = norm_moments,
    .norm_apply = norm_apply,
    .norm_sums = norm_sums,
    .norm_gradient = norm_gradient,
};
