/* See maxpool2d_lanes.h. */
#include "ops/maxpool2d/maxpool2d_lanes.h"

#include <math.h>

#include "runtime/backends/dnnl/kit/vectors.h"

/* The part of an output's window that is inside the image. */
typedef struct {
    int64_t begin[2], rows, columns;
    int32_t first; /* index of its first point within the window */
    bool is_2x2;   /* it is a whole window of 2 x 2, the usual one */
} clip;

static inline tdm_window_part part_down(const tdm_maxpool2d_planes *pool, int64_t p) {
    return tdm__window_part(&pool->window, 0, p, pool->in[0]);
}

static inline clip clip_of(const tdm_maxpool2d_planes *pool, tdm_window_part down, int64_t q) {
    const tdm_window *window = &pool->window;
    const tdm_window_part across = tdm__window_part(window, 1, q, pool->in[1]);
    const int64_t rows = tdm__maxpool2d_points(window, 0, down), columns = tdm__maxpool2d_points(window, 1, across);
    const int64_t first = (down.begin - down.corner) / window->dilation[0] * window->kernel[1] +
                          (across.begin - across.corner) / window->dilation[1];
    const bool is_2x2 = window->kernel[0] == 2 && window->kernel[1] == 2 && rows == 2 && columns == 2 &&
                        window->dilation[0] == 1 && window->dilation[1] == 1;
    return (clip){{down.begin, across.begin}, rows, columns, (int32_t)first, is_2x2};
}

/* Whether any two windows share a point. */
static bool overlaps(const tdm_maxpool2d_planes *pool) {
    return pool->window.stride[0] < tdm__window_reach(&pool->window, 0) ||
           pool->window.stride[1] < tdm__window_reach(&pool->window, 1);
}

/* Whether every point of the image is in a window. */
static bool covers(const tdm_maxpool2d_planes *pool) {
    for (int axis = 0; axis < 2; axis++) {
        const int64_t reach =
            (pool->out[axis] - 1) * pool->window.stride[axis] - pool->window.padding[axis] + pool->window.kernel[axis];
        if (reach < pool->in[axis] || pool->window.stride[axis] > pool->window.kernel[axis]) return false;
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
#define LANES 4
#include "ops/maxpool2d/maxpool2d_lanes.inc.c"
#undef LANES
