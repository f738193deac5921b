/* Batch norm of one channel whose points are neighbours: series. See batchnorm2d_lanes.h. Sums are in double, over
 * every sixteenth point, and then over these sums. */
#include "ops/batchnorm2d/batchnorm2d_lanes.h"

#include <math.h>

#include "ops/elementwise.h"
#include "runtime/backends/dnnl/kit/runs.h"

/* Returns where the channel's points of one row begin. */
static inline int64_t points_start(const tdm_batchnorm2d_planes *norm, int64_t row, int64_t channel) {
    return (row * norm->channels + channel) * norm->points;
}

/* Distances from the first value, as in batchnorm2d_lanes.inc.c. */
static void moments(const tdm_batchnorm2d_planes *norm, int64_t channel, const float *x, double *mean,
                    double *variance) {
    const float origin = x[points_start(norm, 0, channel)], first = isfinite(origin) ? origin : 0.0f;
    const double count = (double)(norm->rows * norm->points);
    run_sums sum = {0}, squares = {0};
    for (int64_t n = 0; n < norm->rows; n++)
        run_moments(&sum, &squares, x + points_start(norm, n, channel), norm->points, first);
    const double shift = run_total(&sum) / count, v = run_total(&squares) / count - shift * shift;
    *mean = (double)first + shift;
    *variance = v < 0.0 ? 0.0 : v;
}

/* other: NULL if nothing is added */
static inline __attribute__((always_inline)) void apply_run(float *y, const float *x, const float *other, int64_t count,
                                                            bool relu, double mean, double scale, double shift) {
    TDM_SAME_OR_APART
    for (int64_t i = 0; i < count; i++) {
        float v = (float)(((double)x[i] - mean) * scale + shift);
        if (other != NULL) v += other[i];
        y[i] = relu && v < 0.0f ? 0.0f : v;
    }
}

static void apply(const tdm_batchnorm2d_planes *norm, int64_t channel, const float *x, float *y, const double *mean,
                  const double *scale, const double *shift) {
    const int64_t count = norm->points;
    for (int64_t n = 0; n < norm->rows; n++) {
        const int64_t at = points_start(norm, n, channel);
        const float *other = norm->other != NULL ? norm->other + at : NULL;
        if (other != NULL && norm->relu)
            apply_run(y + at, x + at, other, count, true, *mean, *scale, *shift);
        else if (other != NULL)
            apply_run(y + at, x + at, other, count, false, *mean, *scale, *shift);
        else if (norm->relu)
            apply_run(y + at, x + at, NULL, count, true, *mean, *scale, *shift);
        else
            apply_run(y + at, x + at, NULL, count, false, *mean, *scale, *shift);
    }
}

/* y: NULL if there is no relu */
static inline void add_products(run_sums *sum, run_sums *dot, const float *x, const float *dy, const float *y,
                                double mean) {
    for (int k = 0; k < RUN_STEP / RUN_LANES; k++) {
        run_floats g = run_load(dy + RUN_LANES * k);
        if (y != NULL) g = (run_floats)((run_ints)g & ~(run_ints)(run_load(y + RUN_LANES * k) <= 0.0f));
        sum->of[k] += run_widened(g);
        dot->of[k] += run_widened(g) * (run_widened(run_load(x + RUN_LANES * k)) - mean);
    }
}

/* The gradient of `other`, which may lie on dy: dy where the relu passed, else 0 */
static void give_other(float *dother, const float *dy, const float *y, int64_t count) {
    TDM_SAME_OR_APART
    for (int64_t i = 0; i < count; i++) dother[i] = y != NULL && y[i] <= 0.0f ? 0.0f : dy[i];
}

/* sum of dy and of dy (x - mean); also writes the gradient of `other` */
static void sums(const tdm_batchnorm2d_planes *norm, int64_t channel, const float *x, const float *dy, const float *y,
                 const double *mean, double *sum, double *dot) {
    float room[3][RUN_STEP];
    run_sums s = {0}, d = {0};
    for (int64_t n = 0; n < norm->rows; n++) {
        const int64_t start = points_start(norm, n, channel);
        for (int64_t i = 0; i < norm->points; i += RUN_STEP) {
            const int64_t at = start + i, left = norm->points - i;
            const float *v = run_next(room[0], x + at, left, 0.0f), *g = run_next(room[1], dy + at, left, 0.0f);
            add_products(&s, &d, v, g, y != NULL ? run_next(room[2], y + at, left, 0.0f) : NULL, *mean);
        }
        if (norm->dother != NULL)
            give_other(norm->dother + start, dy + start, y != NULL ? y + start : NULL, norm->points);
    }
    *sum = run_total(&s);
    *dot = run_total(&d);
}

static inline __attribute__((always_inline)) void gradient_run(float *dx, const float *x, const float *dy,
                                                               const float *y, int64_t count, double mean, double level,
                                                               double slope, double scale) {
    TDM_SAME_OR_APART
    for (int64_t i = 0; i < count; i++) {
        const double g = y != NULL && y[i] <= 0.0f ? 0.0 : (double)dy[i];
        dx[i] = (float)((g - level - ((double)x[i] - mean) * slope) * scale);
    }
}

/* dx = (dy - level - (x - mean) slope) scale */
static void gradient(const tdm_batchnorm2d_planes *norm, int64_t channel, const float *x, const float *dy,
                     const float *y, float *dx, const double *mean, const double *level, const double *slope,
                     const double *scale) {
    const int64_t count = norm->points;
    for (int64_t n = 0; n < norm->rows; n++) {
        const int64_t at = points_start(norm, n, channel);
        if (y != NULL)
            gradient_run(dx + at, x + at, dy + at, y + at, count, *mean, *level, *slope, *scale);
        else
            gradient_run(dx + at, x + at, dy + at, NULL, count, *mean, *level, *slope, *scale);
    }
}

const tdm_batchnorm2d_lanes TDM_ISA_NAME(tdm__batchnorm2d_lanes_1) = {
    .lanes = 1,
    .moments = moments,
    .apply = apply,
    .sums = sums,
    .gradient = gradient,
};
