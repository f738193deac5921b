#include "ops/upsample/upsample_lanes.h"

#define INLINED static inline __attribute__((always_inline))

/* The usual numbers of neighbouring channels are constants, so that their loops become a few vectors. */
#define FOR_INNER(call, inner) \
    do {                       \
        if (inner == 1)        \
            call(1);           \
        else if (inner == 8)   \
            call(8);           \
        else if (inner == 16)  \
            call(16);          \
        else                   \
            call(inner);       \
    } while (0)

INLINED void widen_of(const tdm_upsample_taps *taps, int64_t width, int64_t inner, const float *restrict x,
                      float *restrict wide) {
    for (int64_t q = 0; q < width; q++, wide += inner) {
        const float *a = x + taps[q].first * inner, *b = x + taps[q].second * inner;
        const float near = taps[q].near, far = taps[q].far;
        for (int64_t j = 0; j < inner; j++) wide[j] = a[j] * near + b[j] * far;
    }
}

static void widen(const tdm_upsample_taps *taps, int64_t width, int64_t inner, const float *x, float *wide) {
#define WIDEN(inner) widen_of(taps, width, inner, x, wide)
    FOR_INNER(WIDEN, inner);
}

INLINED void repeat_of(const tdm_upsample_taps *taps, int64_t width, int64_t inner, const float *restrict x,
                       float *restrict wide) {
    for (int64_t q = 0; q < width; q++, wide += inner)
        for (int64_t j = 0; j < inner; j++) wide[j] = x[taps[q].first * inner + j];
}

static void repeat(const tdm_upsample_taps *taps, int64_t width, int64_t inner, const float *x, float *wide) {
#define REPEAT(inner) repeat_of(taps, width, inner, x, wide)
    FOR_INNER(REPEAT, inner);
}

static void blend(float *restrict y, const float *restrict a, float near, const float *restrict b, float far,
                  int64_t count) {
    for (int64_t i = 0; i < count; i++) y[i] = a[i] * near + b[i] * far;
}

static void gather(float *restrict sum, bool adds, const float *restrict dy, float weight, int64_t count) {
    if (adds)
        for (int64_t i = 0; i < count; i++) sum[i] += dy[i] * weight;
    else
        for (int64_t i = 0; i < count; i++) sum[i] = dy[i] * weight;
}

INLINED void narrow_of(const tdm_upsample_span *spans, int64_t width, int64_t inner, const float *restrict wide,
                       float *restrict dx) {
    for (int64_t c = 0; c < width; c++, dx += inner) {
        const tdm_upsample_span span = spans[c];
        const float *from = wide + span.first * inner;
        for (int64_t j = 0; j < inner; j++) dx[j] = 0.0f;
        for (int64_t q = 0; q < span.count; q++, from += inner)
            for (int64_t j = 0; j < inner; j++) dx[j] += from[j] * span.weight[q];
    }
}

static void narrow(const tdm_upsample_span *spans, int64_t width, int64_t inner, const float *wide, float *dx) {
#define NARROW(inner) narrow_of(spans, width, inner, wide, dx)
    FOR_INNER(NARROW, inner);
}

const tdm_upsample_lanes TDM_ISA_NAME(tdm__upsample_lanes) = {widen, repeat, blend, gather, narrow};
