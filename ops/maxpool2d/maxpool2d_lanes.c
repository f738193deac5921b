/* See maxpool2d_lanes.h. */
#include "ops/maxpool2d/maxpool2d_lanes.h"

#include <math.h>
#include <string.h>

/* The part of an output's window that is inside the image. */
typedef struct {
    int64_t begin[2], rows, columns;
    int32_t first; /* index of its first point within the window */
    bool is_2x2;   /* it is a whole window of 2 x 2, the usual one */
} clip;

static inline clip clip_of(const tdm_maxpool2d_planes *pool, int64_t p, int64_t q) {
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

/* Whether any two windows share a point. */
static bool overlaps(const tdm_maxpool2d_planes *pool) {
    return pool->stride[0] < pool->kernel[0] || pool->stride[1] < pool->kernel[1];
}

/* Whether every point of the image is in a window. */
static bool covers(const tdm_maxpool2d_planes *pool) {
    for (int axis = 0; axis < 2; axis++) {
        const int64_t reach = (pool->out[axis] - 1) * pool->stride[axis] - pool->padding[axis] + pool->kernel[axis];
        if (reach < pool->in[axis] || pool->stride[axis] > pool->kernel[axis]) return false;
    }
    return true;
}

enum { AHEAD_ROWS = 4 }; /* rows to prefetch: the processor's own prefetcher does not follow two rows at a time */

#define LANES 16
#include "ops/maxpool2d/maxpool2d_lanes.inc.c"
#undef LANES
#define LANES 8
#include "ops/maxpool2d/maxpool2d_lanes.inc.c"
#undef LANES

static void maxpool_forward(const tdm_maxpool2d_planes *pool, const float *x, float *y, uint8_t *winner, int64_t begin,
                            int64_t end) {
    if (pool->inner % 16 == 0) {
        maxpool_forward_16(pool, x, y, winner, begin, end);
    } else {
        maxpool_forward_8(pool, x, y, winner, begin, end);
    }
}

static void maxpool_backward(const tdm_maxpool2d_planes *pool, const float *dy, const uint8_t *winner, float *dx,
                             int64_t begin, int64_t end) {
    const int64_t plane = pool->in[0] * pool->in[1] * pool->inner;
    if (overlaps(pool) || !covers(pool)) memset(dx + begin * plane, 0, (size_t)((end - begin) * plane) * sizeof *dx);
    if (pool->inner % 16 == 0) {
        maxpool_backward_16(pool, dy, winner, dx, begin, end);
    } else {
        maxpool_backward_8(pool, dy, winner, dx, begin, end);
    }
}

const tdm_maxpool2d_lanes TDM_LANES_TABLE(tdm__maxpool2d_lanes) = {
    .forward = maxpool_forward,
    .backward = maxpool_backward,
};
