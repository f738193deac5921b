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

INLINED void enlarge_of(const tdm_upsample_row *row, int64_t inner, const float *restrict x, float *restrict large) {
    for (int64_t q = 0; q < row->large; q++, large += inner) {
        const tdm_upsample_taps *taps = &row->taps[q];
        const float *a = x + taps->first * inner, *b = x + taps->second * inner;
        for (int64_t j = 0; j < inner; j++) large[j] = a[j] * taps->near + b[j] * taps->far;
    }
}

INLINED void repeat_of(const tdm_upsample_row *row, int64_t inner, const float *restrict x, float *restrict large) {
    for (int64_t q = 0; q < row->large; q++, large += inner)
        for (int64_t j = 0; j < inner; j++) large[j] = x[row->taps[q].first * inner + j];
}

/* Between two points of x lie two of y. */
static void enlarge_twice(int64_t count, const float *restrict x, float *restrict large) {
    large[0] = x[0];
    for (int64_t c = 0; c < count - 1; c++) {
        large[2 * c + 1] = x[c] * 0.75f + x[c + 1] * 0.25f;
        large[2 * c + 2] = x[c] * 0.25f + x[c + 1] * 0.75f;
    }
    large[2 * count - 1] = x[count - 1];
}

static void repeat_twice(int64_t count, const float *restrict x, float *restrict large) {
    for (int64_t c = 0; c < count; c++) large[2 * c] = large[2 * c + 1] = x[c];
}

static void enlarge(const tdm_upsample_row *row, const float *x, float *large) {
#define ENLARGE(inner) enlarge_of(row, inner, x, large)
#define REPEAT(inner) repeat_of(row, inner, x, large)
    if (row->is_twice && row->bilinear)
        enlarge_twice(row->small, x, large);
    else if (row->is_twice)
        repeat_twice(row->small, x, large);
    else if (row->bilinear)
        FOR_INNER(ENLARGE, row->inner);
    else
        FOR_INNER(REPEAT, row->inner);
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

/* The points [begin, end) of dx. */
INLINED void shrink_of(const tdm_upsample_row *row, int64_t inner, int64_t begin, int64_t end,
                       const float *restrict large, float *restrict dx) {
    for (int64_t c = begin; c < end; c++) {
        const tdm_upsample_span span = row->spans[c];
        const float *from = large + span.first * inner;
        float *to = dx + c * inner;
        for (int64_t j = 0; j < inner; j++) to[j] = 0.0f;
        for (int64_t q = 0; q < span.count; q++, from += inner)
            for (int64_t j = 0; j < inner; j++) to[j] += from[j] * span.weight[q];
    }
}

static void shrink_twice(const tdm_upsample_row *row, const float *restrict large, float *restrict dx) {
    const int64_t last = row->small - 1;
    shrink_of(row, 1, 0, 1, large, dx);
    for (int64_t c = 1; c < last; c++)
        dx[c] = large[2 * c - 1] * 0.25f + large[2 * c] * 0.75f + large[2 * c + 1] * 0.75f + large[2 * c + 2] * 0.25f;
    if (last > 0) shrink_of(row, 1, last, last + 1, large, dx);
}

static void add_twice(int64_t count, const float *restrict large, float *restrict dx) {
    for (int64_t c = 0; c < count; c++) dx[c] = large[2 * c] + large[2 * c + 1];
}

static void shrink(const tdm_upsample_row *row, const float *large, float *dx) {
#define SHRINK(inner) shrink_of(row, inner, 0, row->small, large, dx)
    if (row->is_twice && row->bilinear)
        shrink_twice(row, large, dx);
    else if (row->is_twice)
        add_twice(row->small, large, dx);
    else
        FOR_INNER(SHRINK, row->inner);
}

const tdm_upsample_lanes TDM_ISA_NAME(tdm__upsample_lanes) = {enlarge, blend, gather, shrink};
