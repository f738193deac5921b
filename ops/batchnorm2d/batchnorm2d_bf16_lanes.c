/* See batchnorm2d_bf16_lanes.h. Sums are in double, over all points of up to TILE channels at a time, whose sums stay
 * in registers. */
#include "ops/batchnorm2d/batchnorm2d_bf16_lanes.h"

#define LANES 16
#include "runtime/backends/dnnl/kit/vectors.h"

enum { TILE = 4 }; /* vectors of 16 channels: two cache lines of bf16, which are fetched together */

/* dy where the relu passed, else 0 */
static inline FLOATS masked(const tdm_batchnorm2d_row *row, int64_t at) {
    const FLOATS v = load_bf16(row->dy + at);
    if (row->relu_y == NULL) return v;
    return (FLOATS)((INTS)v & ~(INTS)(load_bf16(row->relu_y + at) <= 0.0f));
}

/* Fetches the `tile` vectors at `at` of a point that comes soon. */
static inline __attribute__((always_inline)) void prefetch_tile(const tdm_batchnorm2d_row *row, const uint16_t *from,
                                                                const int tile) {
    enum { POINTS = 16, LINE = 32 };
    for (int k = 0; k < tile * LANES; k += LINE)
        tdm__prefetch(from + k, POINTS * row->channels * (int64_t)sizeof(*from));
}

static inline DOUBLES widened(FLOATS v) {
    return __builtin_convertvector(v, DOUBLES);
}

static inline void store(double *to, DOUBLES v) {
    memcpy(to, &v, sizeof v);
}

static inline __attribute__((always_inline)) void moments_of(const tdm_batchnorm2d_row *row, int64_t channel,
                                                             const int tile, const float *origin, double *sum,
                                                             double *squares) {
    DOUBLES s[TILE] = {{0}}, q[TILE] = {{0}};
    const uint16_t *x = row->x + channel;
    for (int64_t i = 0; i < row->points; i++, x += row->channels) {
        prefetch_tile(row, x, tile);
        for (int k = 0; k < tile; k++) {
            const DOUBLES d = widened(load_bf16(x + k * LANES) - load_16(origin + channel + k * LANES));
            s[k] += d;
            q[k] += d * d;
        }
    }
    for (int k = 0; k < tile; k++) {
        store(sum + channel + k * LANES, s[k]);
        store(squares + channel + k * LANES, q[k]);
    }
}

static void moments(const tdm_batchnorm2d_row *row, const float *origin, double *sum, double *squares) {
    int64_t c = 0;
    for (; c + TILE * LANES <= row->channels; c += TILE * LANES) moments_of(row, c, TILE, origin, sum, squares);
    for (; c < row->channels; c += LANES) moments_of(row, c, 1, origin, sum, squares);
}

/* As the value would be if it were stored and read again by the next layer. */
static inline FLOATS rounded(FLOATS v) {
    uint16_t kept[LANES];
    store_bf16(kept, v);
    return load_bf16(kept);
}

static void apply(const tdm_batchnorm2d_row *row, uint16_t *y, const float *center, const float *scale,
                  const float *shift) {
    for (int64_t i = 0, at = 0; i < row->points; i++) {
        for (int64_t c = 0; c < row->channels; c += LANES, at += LANES) {
            FLOATS v = (load_bf16(row->x + at) - load_16(center + c)) * load_16(scale + c) + load_16(shift + c);
            if (row->other != NULL) v = rounded(v) + load_bf16(row->other + at);
            if (row->relu) v = (FLOATS)((INTS)v & ~(INTS)(v < 0.0f));
            store_bf16(y + at, v);
        }
    }
}

static inline __attribute__((always_inline)) void
sums_of(const tdm_batchnorm2d_row *row, int64_t channel, const int tile, const double *mean, double *sum, double *dot) {
    DOUBLES s[TILE] = {{0}}, d[TILE] = {{0}}, m[TILE];
    for (int k = 0; k < tile; k++) memcpy(&m[k], mean + channel + k * LANES, sizeof m[k]);
    int64_t at = channel;
    for (int64_t i = 0; i < row->points; i++, at += row->channels) {
        prefetch_tile(row, row->x + at, tile);
        prefetch_tile(row, row->dy + at, tile);
        if (row->relu_y != NULL) prefetch_tile(row, row->relu_y + at, tile);
        for (int k = 0; k < tile; k++) {
            const FLOATS dy = masked(row, at + k * LANES);
            if (row->dother != NULL) store_bf16(row->dother + at + k * LANES, dy);
            s[k] += widened(dy);
            d[k] += widened(dy) * (widened(load_bf16(row->x + at + k * LANES)) - m[k]);
        }
    }
    for (int k = 0; k < tile; k++) {
        store(sum + channel + k * LANES, s[k]);
        store(dot + channel + k * LANES, d[k]);
    }
}

static void sums(const tdm_batchnorm2d_row *row, const double *mean, double *sum, double *dot) {
    int64_t c = 0;
    for (; c + TILE * LANES <= row->channels; c += TILE * LANES) sums_of(row, c, TILE, mean, sum, dot);
    for (; c < row->channels; c += LANES) sums_of(row, c, 1, mean, sum, dot);
}

static void gradient(const tdm_batchnorm2d_row *row, uint16_t *dx, const float *mean, const float *level,
                     const float *slope, const float *scale) {
    for (int64_t i = 0, at = 0; i < row->points; i++) {
        for (int64_t c = 0; c < row->channels; c += LANES, at += LANES) {
            const FLOATS centered = load_bf16(row->x + at) - load_16(mean + c);
            store_bf16(dx + at,
                       (masked(row, at) - load_16(level + c) - centered * load_16(slope + c)) * load_16(scale + c));
        }
    }
}

const tdm_batchnorm2d_bf16_lanes TDM_ISA_NAME(tdm__batchnorm2d_bf16_lanes) = {
    .moments = moments,
    .apply = apply,
    .sums = sums,
    .gradient = gradient,
};
