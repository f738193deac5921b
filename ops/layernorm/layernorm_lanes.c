#include "ops/layernorm/layernorm_lanes.h"

#include <stddef.h>

#include "ops/elementwise.h"
#include "runtime/backends/dnnl/kit/runs.h"

/* Sums the distances from the first value: it is close enough to the mean that nothing cancels in double. */
static void moments(const float *x, int64_t count, double *mean, double *variance) {
    run_sums sum = {0}, squares = {0};
    run_moments(&sum, &squares, x, count, x[0]);
    const double shift = run_total(&sum) / (double)count;
    const double v = run_total(&squares) / (double)count - shift * shift;
    *mean = (double)x[0] + shift;
    *variance = v < 0.0 ? 0.0 : v;
}

#define NORMALISED(x) (((x)-center) * scale + rest)

static void apply(float *y, const float *x, int64_t count, const tdm_segment_norm *norm, const float *w,
                  const float *b) {
    const float center = norm->center, scale = norm->scale, rest = norm->rest;
    if (w == NULL) {
        TDM_SAME_OR_APART
        for (int64_t i = 0; i < count; i++) y[i] = NORMALISED(x[i]);
    } else if (b == NULL) {
        TDM_SAME_OR_APART
        for (int64_t i = 0; i < count; i++) y[i] = NORMALISED(x[i]) * w[i];
    } else {
        TDM_SAME_OR_APART
        for (int64_t i = 0; i < count; i++) y[i] = NORMALISED(x[i]) * w[i] + b[i];
    }
}

static void apply_one(float *y, const float *x, int64_t count, const tdm_segment_norm *norm, float w, float b) {
    const float center = norm->center, scale = norm->scale, rest = norm->rest;
    TDM_SAME_OR_APART
    for (int64_t i = 0; i < count; i++) y[i] = NORMALISED(x[i]) * w + b;
}

static inline void add_products(run_sums *sum, run_sums *dot, const float *x, const float *dy, const float *w,
                                float center) {
    for (int k = 0; k < RUN_STEP / RUN_LANES; k++) {
        run_floats g = run_load(dy + RUN_LANES * k);
        if (w != NULL) g *= run_load(w + RUN_LANES * k);
        const run_doubles wide = run_widened(g), distance = run_widened(run_load(x + RUN_LANES * k) - center);
        sum->of[k] = run_plus(sum->of[k], wide);
        dot->of[k] = run_fused(wide, distance, dot->of[k]);
    }
}

static void sums(const float *x, const float *dy, const float *w, int64_t count, float center, double sum[2]) {
    float room[3][RUN_STEP];
    run_sums s = {0}, d = {0};
    for (int64_t i = 0; i < count; i += RUN_STEP) {
        const int64_t left = count - i;
        const float *v = run_next(room[0], x + i, left, center), *g = run_next(room[1], dy + i, left, 0.0f);
        add_products(&s, &d, v, g, w != NULL ? run_next(room[2], w + i, left, 0.0f) : NULL, center);
    }
    sum[0] = run_total(&s);
    sum[1] = run_total(&d);
}

static void gradient_one(float *dx, const float *x, const float *dy, int64_t count, const tdm_segment_norm *norm,
                         float w, float level, float slope) {
    const float center = norm->center, scale = norm->scale;
    TDM_SAME_OR_APART
    for (int64_t i = 0; i < count; i++) dx[i] = (dy[i] * w - level - (x[i] - center) * slope) * scale;
}

static void gradient(float *dx, const float *x, const float *dy, int64_t count, const tdm_segment_norm *norm,
                     const float *w, float level, float slope) {
    const float center = norm->center, scale = norm->scale;
    if (w == NULL) {
        gradient_one(dx, x, dy, count, norm, 1.0f, level, slope);
        return;
    }
    TDM_SAME_OR_APART
    for (int64_t i = 0; i < count; i++) dx[i] = (dy[i] * w[i] - level - (x[i] - center) * slope) * scale;
}

enum { COLUMNS = 2 * RUN_LANES };

/* Neighbouring columns of all segments, whose sums stay in registers. */
static inline void add_columns(double *dw, double *db, const float *x, const float *dy,
                               const tdm_segment_block *block) {
    run_doubles w_low = load_doubles(dw), w_high = load_doubles(dw + RUN_LANES);
    run_doubles b_low = load_doubles(db), b_high = load_doubles(db + RUN_LANES);
    for (int64_t k = 0; k < block->count; k++, x += block->stride, dy += block->stride) {
        const float center = block->norm[k].center, scale = block->norm[k].scale, rest = block->norm[k].rest;
        const run_pair g = load_pair(dy), product = g * NORMALISED(load_pair(x));
        w_low = run_plus(w_low, low_half(product)), w_high = run_plus(w_high, high_half(product));
        b_low = run_plus(b_low, low_half(g)), b_high = run_plus(b_high, high_half(g));
    }
    store_doubles(dw, w_low), store_doubles(dw + RUN_LANES, w_high);
    store_doubles(db, b_low), store_doubles(db + RUN_LANES, b_high);
}

static void columns(double *dw, double *db, const float *x, const float *dy, int64_t count,
                    const tdm_segment_block *block) {
    int64_t i = 0;
    for (; i + COLUMNS <= count; i += COLUMNS) add_columns(dw + i, db + i, x + i, dy + i, block);
    for (; i < count; i++) {
        for (int64_t k = 0; k < block->count; k++) {
            const float center = block->norm[k].center, scale = block->norm[k].scale, rest = block->norm[k].rest;
            const int64_t at = i + k * block->stride;
            dw[i] += (double)(dy[at] * NORMALISED(x[at]));
            db[i] += (double)dy[at];
        }
    }
}

const tdm_segment_lanes TDM_ISA_NAME(tdm__segment_lanes) = {moments,  apply,        apply_one, sums,
                                                            gradient, gradient_one, columns};
