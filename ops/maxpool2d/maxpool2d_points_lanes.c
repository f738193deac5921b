/* See maxpool2d_lanes.h. */
#include <math.h>

#include "ops/maxpool2d/maxpool2d_lanes.h"
#include "runtime/backends/dnnl/kit/vectors.h"

#define INLINED static inline __attribute__((always_inline))

/* Compilers take vectors wider than the registers through memory. */
#if defined(__AVX512F__)
enum { MOST_LANES = 16 };
#elif defined(__AVX2__)
enum { MOST_LANES = 8 };
#else
enum { MOST_LANES = 4 };
#endif

/* Part of a row of outputs, and the part of their windows that is inside the image. */
typedef struct {
    int64_t row_step, across; /* from a point of the window to the next below and beside it */
    int64_t rows, columns, stride;
    int32_t first, width; /* the index of the first point in its window; the indices of a row */
} strip;

#if defined(__clang__)
#define SHUFFLED(lanes, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLED(lanes, a, b, ...) __builtin_shuffle(a, b, (ints_##lanes){__VA_ARGS__})
#endif

/* Number k is from[k * stride]. Nothing behind the last of them is read. */
INLINED floats_16 strided_16(const float *from, int64_t stride) {
    if (stride == 1) return load_16(from);
    if (stride == 2)
        return SHUFFLED(16, load_16(from), load_16(from + 15), 0, 2, 4, 6, 8, 10, 12, 14, 17, 19, 21, 23, 25, 27, 29,
                        31);
    floats_16 v;
    for (int k = 0; k < 16; k++) v[k] = from[k * stride];
    return v;
}

INLINED floats_8 strided_8(const float *from, int64_t stride) {
    if (stride == 1) return load_8(from);
    if (stride == 2) return SHUFFLED(8, load_8(from), load_8(from + 7), 0, 2, 4, 6, 9, 11, 13, 15);
    floats_8 v;
    for (int k = 0; k < 8; k++) v[k] = from[k * stride];
    return v;
}

INLINED floats_4 strided_4(const float *from, int64_t stride) {
    if (stride == 1) return load_4(from);
    if (stride == 2) return SHUFFLED(4, load_4(from), load_4(from + 3), 0, 2, 5, 7);
    return (floats_4){from[0], from[stride], from[2 * stride], from[3 * stride]};
}

#define LANES 16
#include "ops/maxpool2d/maxpool2d_points_lanes.inc.c"
#undef LANES
#define LANES 8
#include "ops/maxpool2d/maxpool2d_points_lanes.inc.c"
#undef LANES
#define LANES 4
#include "ops/maxpool2d/maxpool2d_points_lanes.inc.c"
#undef LANES

/* Of one output. */
INLINED void pool_1(const strip *s, const float *x, float *y, uint8_t *winner) {
    float best = -INFINITY;
    int32_t won = s->first;
    for (int64_t i = 0; i < s->rows; i++) {
        for (int64_t j = 0; j < s->columns; j++) {
            const float v = x[i * s->row_step + j * s->across];
            const bool wins = (v > best) | (v != v);
            best = wins ? v : best;
            won = wins ? s->first + (int32_t)i * s->width + (int32_t)j : won;
        }
    }
    *y = best;
    if (winner != NULL) *winner = (uint8_t)won;
}

/* Of `count` outputs, whose windows are whole from left to right. The last vector may lie over the one before: what is
 * written twice is the same. */
INLINED void pool_outputs(const strip *s, const float *x, float *y, uint8_t *winner, int64_t count) {
    const int64_t most = count >= 16 ? 16 : count >= 8 ? 8 : 4, lanes = most < MOST_LANES ? most : MOST_LANES;
    for (int64_t i = 0; count >= 4 && i < count; i += lanes) {
        const int64_t at = i + lanes <= count ? i : count - lanes;
        const float *from = x + at * s->stride;
        uint8_t *won = winner != NULL ? winner + at : NULL;
        if (lanes == 16)
            pool_16(s, from, y + at, won);
        else if (lanes == 8)
            pool_8(s, from, y + at, won);
        else
            pool_4(s, from, y + at, won);
    }
    for (int64_t i = 0; count < 4 && i < count; i++)
        pool_1(s, x + i * s->stride, y + i, winner != NULL ? winner + i : NULL);
}

/* With constants the loops over the usual windows are unrolled. */
static void pool_whole(const strip *s, const float *x, float *y, uint8_t *winner, int64_t count) {
    strip same = *s;
    if (s->stride == 2 && s->across == 1 && s->rows <= 2 && s->columns == 2) {
        same.stride = same.columns = same.width = 2, same.across = 1;
        pool_outputs(&same, x, y, winner, count);
    } else if (s->stride == 2) {
        same.stride = 2;
        pool_outputs(&same, x, y, winner, count);
    } else if (s->stride == 1) {
        same.stride = 1;
        pool_outputs(&same, x, y, winner, count);
    } else {
        pool_outputs(s, x, y, winner, count);
    }
}

/* A window that is cut at the left or the right. */
static void pool_cut(const tdm_maxpool2d_planes *pool, const strip *s, const float *row, int64_t q, float *y,
                     uint8_t *winner) {
    const tdm_window_part part = tdm__window_part(&pool->window, 1, q, pool->in[1]);
    strip cut = *s;
    cut.columns = tdm__maxpool2d_points(&pool->window, 1, part);
    cut.first += (int32_t)((part.begin - part.corner) / s->across);
    pool_1(&cut, row + part.begin, y + q, winner != NULL ? winner + q : NULL);
}

/* The outputs [begin, end) have windows that are whole from left to right. */
static void whole_range(const tdm_maxpool2d_planes *pool, int64_t *begin, int64_t *end) {
    const int64_t stride = pool->window.stride[1], padding = pool->window.padding[1];
    const int64_t room = pool->in[1] + padding - tdm__window_reach(&pool->window, 1);
    *begin = (padding + stride - 1) / stride;
    *end = room < 0 ? 0 : room / stride + 1;
    if (*end > pool->out[1]) *end = pool->out[1];
    if (*begin > *end) *begin = *end;
}

static void forward(const tdm_maxpool2d_planes *pool, const float *x, float *y, uint8_t *winner, int64_t begin,
                    int64_t end) {
    const tdm_window *window = &pool->window;
    const int64_t width = pool->in[1], across = window->dilation[1];
    strip s = {.row_step = window->dilation[0] * width, .across = across, .width = (int32_t)window->kernel[1]};
    int64_t from, to;
    whole_range(pool, &from, &to);
    s.stride = window->stride[1];
    s.columns = window->kernel[1];
    for (int64_t k = begin * pool->out[0]; k < end * pool->out[0]; k++) {
        const int64_t plane = k / pool->out[0], p = k % pool->out[0];
        const tdm_window_part down = tdm__window_part(window, 0, p, pool->in[0]);
        const float *row = x + (plane * pool->in[0] + down.begin) * width;
        float *out = y + k * pool->out[1];
        uint8_t *won = winner != NULL ? winner + k * pool->out[1] : NULL;
        s.rows = tdm__maxpool2d_points(window, 0, down);
        s.first = (int32_t)((down.begin - down.corner) / window->dilation[0]) * s.width;
        for (int64_t q = 0; q < from; q++) pool_cut(pool, &s, row, q, out, won);
        if (from < to)
            pool_whole(&s, row + from * s.stride - window->padding[1], out + from, won != NULL ? won + from : NULL,
                       to - from);
        for (int64_t q = to; q < pool->out[1]; q++) pool_cut(pool, &s, row, q, out, won);
    }
}

/* dx[winner] += dy, in the order of the outputs. `apart`: from a window's corner to each of its points. */
INLINED void spread_plane(const tdm_maxpool2d_planes *pool, const int64_t *apart, const float *dy,
                          const uint8_t *winner, float *dx, const int64_t inner) {
    const tdm_window *window = &pool->window;
    for (int64_t p = 0; p < pool->out[0]; p++) {
        int64_t corner = (p * window->stride[0] - window->padding[0]) * pool->in[1] - window->padding[1];
        for (int64_t q = 0; q < pool->out[1]; q++, corner += window->stride[1], dy += inner, winner += inner)
            for (int64_t j = 0; j < inner; j++) dx[(corner + apart[winner[j]]) * inner + j] += dy[j];
    }
}

static void backward(const tdm_maxpool2d_planes *pool, const float *dy, const uint8_t *winner, float *dx, int64_t begin,
                     int64_t end) {
    const tdm_window *window = &pool->window;
    const int64_t numbers = pool->in[0] * pool->in[1] * pool->inner, outputs = pool->out[0] * pool->out[1];
    int64_t apart[256];
    for (int64_t k = 0; k < window->kernel[0] * window->kernel[1]; k++)
        apart[k] =
            k / window->kernel[1] * window->dilation[0] * pool->in[1] + k % window->kernel[1] * window->dilation[1];
    for (int64_t k = begin; k < end; k++) {
        const int64_t at = k * outputs * pool->inner;
        memset(dx + k * numbers, 0, (size_t)numbers * sizeof *dx);
        if (pool->inner == 1)
            spread_plane(pool, apart, dy + at, winner + at, dx + k * numbers, 1);
        else
            spread_plane(pool, apart, dy + at, winner + at, dx + k * numbers, pool->inner);
    }
}

const tdm_maxpool2d_lanes TDM_ISA_NAME(tdm__maxpool2d_lanes_1) = {forward, backward};
