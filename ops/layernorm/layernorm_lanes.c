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
    for (int k = 0; k < RUN_STEP / 4; k++) {
        floats_4 g = load_4(dy + 4 * k);
        if (w != NULL) g *= load_4(w + 4 * k);
        sum->of[k] += widened_4(g);
        dot->of[k] += widened_4(g) * widened_4(load_4(x + 4 * k) - center);
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

/* Eight columns of all segments, whose sums stay in registers. */
static inline void add_eight(double *dw, double *db, const float *x, const float *dy, const tdm_segment_block *block) {
    doubles_4 w[2] = {load_doubles(dw), load_doubles(dw + 4)}, b[2] = {load_doubles(db), load_doubles(db + 4)};
    for (int64_t k = 0; k < block->count; k++, x += block->stride, dy += block->stride) {
        const float center = block->norm[k].center, scale = block->norm[k].scale, rest = block->norm[k].rest;
        const floats_8 g = load_8(dy), product = g * NORMALISED(load_8(x));
        w[0] += low_half(product), w[1] += high_half(product);
        b[0] += low_half(g), b[1] += high_half(g);
    }
    memcpy(dw, &w[0], sizeof w[0]), memcpy(dw + 4, &w[1], sizeof w[1]);
    memcpy(db, &b[0], sizeof b[0]), memcpy(db + 4, &b[1], sizeof b[1]);
}

static void columns(double *dw, double *db, const float *x, const float *dy, int64_t count,
                    const tdm_segment_block *block) {
    int64_t i = 0;
    for (; i + 8 <= count; i += 8) add_eight(dw + i, db + i, x + i, dy + i, block);
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
