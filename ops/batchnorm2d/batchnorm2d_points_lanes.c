/* Batch norm of one channel whose points are neighbours: series. See batchnorm2d_lanes.h. Sums are in double, over every
 * sixteenth point, and then over these sums. */
#include "ops/batchnorm2d/batchnorm2d_lanes.h"

#define LANES 16
#include "runtime/backends/dnnl/kit/vectors.h"

/* Returns where the channel's points of one row begin. */
static inline int64_t points_start(const tdm_batchnorm2d_planes *norm, int64_t row, int64_t channel) {
    return (row * norm->channels + channel) * norm->points;
}

/* The next numbers, of which `left` are left; `filler` behind the last. */
static inline FLOATS load_some(const float *from, int64_t left, float filler) {
    if (left >= LANES) return load_16(from);
    FLOATS v = (FLOATS){0} + filler;
    memcpy(&v, from, (size_t)left * sizeof *from);
    return v;
}

static inline void store_some(float *to, FLOATS v, int64_t left) {
    if (left >= LANES)
        memcpy(to, &v, sizeof v);
    else
        memcpy(to, &v, (size_t)left * sizeof *to);
}

/* dy where the relu passed, else 0 */
static inline FLOATS masked(const float *dy, const float *y, int64_t at, int64_t left) {
    const FLOATS v = load_some(dy + at, left, 0.0f);
    if (y == NULL) return v;
    return (FLOATS)((INTS)v & ~(INTS)(load_some(y + at, left, 0.0f) <= 0.0f));
}

static inline DOUBLES widened(FLOATS v) {
    return __builtin_convertvector(v, DOUBLES);
}

static double total_of(DOUBLES sums) {
    double lane[LANES];
    memcpy(lane, &sums, sizeof lane);
    for (int width = LANES / 2; width > 0; width /= 2)
        for (int i = 0; i < width; i++) lane[i] += lane[i + width];
    return lane[0];
}

/* Distances from the first value, as in batchnorm2d_lanes.inc.c. */
static void moments(const tdm_batchnorm2d_planes *norm, int64_t channel, const float *x, double *mean,
                    double *variance) {
    const float first = x[points_start(norm, 0, channel)];
    const double count = (double)(norm->rows * norm->points);
    DOUBLES sum = {0}, squares = {0};
    for (int64_t n = 0; n < norm->rows; n++) {
        const float *from = x + points_start(norm, n, channel);
        for (int64_t i = 0; i < norm->points; i += LANES) {
            const DOUBLES d = widened(load_some(from + i, norm->points - i, first)) - (double)first;
            sum += d;
            squares += d * d;
        }
    }
    const double shift = total_of(sum) / count, v = total_of(squares) / count - shift * shift;
    *mean = (double)first + shift;
    *variance = v < 0.0 ? 0.0 : v;
}

static void apply(const tdm_batchnorm2d_planes *norm, int64_t channel, const float *x, float *y, const float *mean,
                  const float *scale, const float *shift) {
    for (int64_t n = 0; n < norm->rows; n++) {
        const int64_t start = points_start(norm, n, channel);
        for (int64_t i = 0; i < norm->points; i += LANES) {
            const int64_t at = start + i, left = norm->points - i;
            FLOATS v = (load_some(x + at, left, 0.0f) - *mean) * *scale + *shift;
            if (norm->other != NULL) v += load_some(norm->other + at, left, 0.0f);
            if (norm->relu) v = (FLOATS)((INTS)v & ~(INTS)(v < 0.0f));
            store_some(y + at, v, left);
        }
    }
}

/* sum of dy and of dy (x - mean); also writes the gradient of `other` */
static void sums(const tdm_batchnorm2d_planes *norm, int64_t channel, const float *x, const float *dy, const float *y,
                 const double *mean, double *sum, double *dot) {
    DOUBLES s = {0}, d = {0};
    for (int64_t n = 0; n < norm->rows; n++) {
        const int64_t start = points_start(norm, n, channel);
        for (int64_t i = 0; i < norm->points; i += LANES) {
            const int64_t at = start + i, left = norm->points - i;
            const FLOATS g = masked(dy, y, at, left);
            if (norm->dother != NULL) store_some(norm->dother + at, g, left);
            s += widened(g);
            d += widened(g) * (widened(load_some(x + at, left, 0.0f)) - *mean);
        }
    }
    *sum = total_of(s);
    *dot = total_of(d);
}

/* dx = (dy - level - (x - mean) slope) scale */
static void gradient(const tdm_batchnorm2d_planes *norm, int64_t channel, const float *x, const float *dy,
                     const float *y, float *dx, const float *mean, const float *level, const float *slope,
                     const float *scale) {
    for (int64_t n = 0; n < norm->rows; n++) {
        const int64_t start = points_start(norm, n, channel);
        for (int64_t i = 0; i < norm->points; i += LANES) {
            const int64_t at = start + i, left = norm->points - i;
            const FLOATS centered = load_some(x + at, left, 0.0f) - *mean;
            store_some(dx + at, (masked(dy, y, at, left) - *level - centered * *slope) * *scale, left);
        }
    }
}

const tdm_batchnorm2d_lanes TDM_ISA_NAME(tdm__batchnorm2d_lanes_1) = {
    .lanes = 1,
    .moments = moments,
    .apply = apply,
    .sums = sums,
    .gradient = gradient,
};
