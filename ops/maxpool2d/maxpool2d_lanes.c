/* See maxpool2d_lanes.h. */
#include "ops/maxpool2d/maxpool2d_lanes.h"

#include <math.h>

#include "runtime/backends/dnnl/kit/vectors.h"

/* The part of an output's window that is inside the image. */
typedef struct {
    int64_t begin[2], rows, columns;
    int32_t first;  /* index of its first point within the window */
    int32_t square; /* 2 or 3: it is a whole window of 2 x 2 or 3 x 3, the usual ones; else 0 */
} clip;

/* The size of the windows, if they are squares without gaps, as the usual ones. */
static inline int32_t square_of(const tdm_window *window) {
    const bool is_square =
        window->kernel[0] == window->kernel[1] && window->dilation[0] == 1 && window->dilation[1] == 1;
    return is_square && (window->kernel[0] == 2 || window->kernel[0] == 3) ? (int32_t)window->kernel[0] : 0;
}

/* Of row p of the outputs: all but what depends on the column. */
static inline clip clip_down(const tdm_maxpool2d_planes *pool, int64_t p) {
    const tdm_window *window = &pool->window;
    const tdm_window_part down = tdm__window_part(window, 0, p, pool->in[0]);
    const int64_t rows = tdm__maxpool2d_points(window, 0, down);
    const int64_t first = (down.begin - down.corner) / window->dilation[0] * window->kernel[1];
    return (clip){.begin = {down.begin},
                  .rows = rows,
                  .first = (int32_t)first,
                  .square = rows == window->kernel[0] ? square_of(window) : 0};
}

static inline clip clip_across(const tdm_maxpool2d_planes *pool, clip row, int64_t q) {
    const tdm_window *window = &pool->window;
    row.begin[1] = q * window->stride[1] - window->padding[1];
    row.columns = window->kernel[1];
    if (row.begin[1] >= 0 && row.begin[1] + tdm__window_reach(window, 1) <= pool->in[1]) return row;
    const tdm_window_part across = tdm__window_part(window, 1, q, pool->in[1]);
    row.first += (int32_t)((across.begin - across.corner) / window->dilation[1]);
    row.begin[1] = across.begin;
    row.columns = tdm__maxpool2d_points(window, 1, across);
    row.square = 0;
    return row;
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

enum { AHEAD_ROWS = 4 };

/* Two points of two rows: the processor's own prefetcher does not follow two rows at a time. */
static inline void prefetch_ahead(const float *from, int64_t row_step, int64_t inner) {
    __builtin_prefetch(from + AHEAD_ROWS * row_step);
    __builtin_prefetch(from + AHEAD_ROWS * row_step + inner);
    __builtin_prefetch(from + (AHEAD_ROWS + 1) * row_step);
    __builtin_prefetch(from + (AHEAD_ROWS + 1) * row_step + inner);
}

/* Zeroes the rows of dx, from `cleared` on, that the windows of row p need; behind the last windows all. */
static int64_t clear_rows(const tdm_maxpool2d_planes *pool, float *plane, int64_t cleared, int64_t p) {
    const int64_t end = tdm__window_part(&pool->window, 0, p, pool->in[0]).end;
    const int64_t to = p == pool->out[0] - 1 ? pool->in[0] : end;
    const int64_t row = pool->in[1] * pool->inner;
    if (to > cleared) memset(plane + cleared * row, 0, (size_t)((to - cleared) * row) * sizeof *plane);
    return to > cleared ? to : cleared;
}

#define LANES 16
#include "ops/maxpool2d/maxpool2d_lanes.inc.c"
#undef LANES
#define LANES 8
#include "ops/maxpool2d/maxpool2d_lanes.inc.c"
#undef LANES
#define LANES 4
#include "ops/maxpool2d/maxpool2d_lanes.inc.c"
#undef LANES
