#include "ops/layernorm/layernorm_lanes.h"

#include <stddef.h>

#include "ops/elementwise.h"
#include "runtime/backends/dnnl/kit/vectors.h"

enum { WIDE = 8 };

static inline doubles_8 widened(floats_8 v) {
    return __builtin_convertvector(v, doubles_8);
}

/* The last values of a run, and `rest` where there are none. */
static inline floats_8 load_some(const float *from, int64_t count, float rest) {
    floats_8 v = (floats_8){0} + rest;
    memcpy(&v, from, (size_t)count * sizeof *from);
    return v;
}

static inline double total(doubles_8 v) {
    return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
}

/* Sums the distances from the first value: it is close enough to the mean that nothing cancels in double. */
static void moments(const float *x, int64_t count, double *mean, double *variance) {
    const floats_8 first = (floats_8){0} + x[0];
    const doubles_8 origin = widened(first);
    doubles_8 sum[2] = {{0}, {0}}, squares[2] = {{0}, {0}};
    for (int64_t i = 0; i < count; i += WIDE) {
        const floats_8 v = i + WIDE <= count ? load_8(x + i) : load_some(x + i, count - i, x[0]);
        const doubles_8 d = widened(v) - origin;
        sum[i / WIDE & 1] += d;
        squares[i / WIDE & 1] += d * d;
    }
    const double shift = total(sum[0] + sum[1]) / (double)count;
    const double v = total(squares[0] + squares[1]) / (double)count - shift * shift;
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

static void sums(const float *x, const float *dy, const float *w, int64_t count, float center, double sum[2]) {
    const floats_8 c = (floats_8){0} + center;
    doubles_8 s[2] = {{0}, {0}}, d[2] = {{0}, {0}};
    for (int64_t i = 0; i < count; i += WIDE) {
        const int64_t left = count - i;
        floats_8 g = left >= WIDE ? load_8(dy + i) : load_some(dy + i, left, 0.0f);
        const floats_8 v = left >= WIDE ? load_8(x + i) : load_some(x + i, left, center);
        if (w != NULL) g *= left >= WIDE ? load_8(w + i) : load_some(w + i, left, 0.0f);
        s[i / WIDE & 1] += widened(g);
        d[i / WIDE & 1] += widened(g) * widened(v - c);
    }
    sum[0] = total(s[0] + s[1]);
    sum[1] = total(d[0] + d[1]);
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

static void columns(double *restrict dw, double *restrict db, const float *restrict x, const float *restrict dy,
                    int64_t count, const tdm_segment_norm *norm) {
    const float center = norm->center, scale = norm->scale, rest = norm->rest;
    for (int64_t i = 0; i < count; i++) {
        dw[i] += (double)(dy[i] * NORMALISED(x[i]));
        db[i] += (double)dy[i];
    }
}

const tdm_segment_lanes TDM_ISA_NAME(tdm__segment_lanes) = {moments,  apply,        apply_one, sums,
                                                            gradient, gradient_one, columns};
