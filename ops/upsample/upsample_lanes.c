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

INLINED void widen_of(const tdm_upsample_row *row, int64_t inner, const float *restrict x, float *restrict wide) {
    for (int64_t q = 0; q < row->wide; q++, wide += inner) {
        const tdm_upsample_taps *taps = &row->taps[q];
        const float *a = x + taps->first * inner, *b = x + taps->second * inner;
        for (int64_t j = 0; j < inner; j++) wide[j] = a[j] * taps->near + b[j] * taps->far;
    }
}

INLINED void repeat_of(const tdm_upsample_row *row, int64_t inner, const float *restrict x, float *restrict wide) {
    for (int64_t q = 0; q < row->wide; q++, wide += inner)
        for (int64_t j = 0; j < inner; j++) wide[j] = x[row->taps[q].first * inner + j];
}

/* Between two points of x lie two of y. */
static void widen_twice(int64_t count, const float *restrict x, float *restrict wide) {
    wide[0] = x[0];
    for (int64_t c = 0; c < count - 1; c++) {
        wide[2 * c + 1] = x[c] * 0.75f + x[c + 1] * 0.25f;
        wide[2 * c + 2] = x[c] * 0.25f + x[c + 1] * 0.75f;
    }
    wide[2 * count - 1] = x[count - 1];
}

static void repeat_twice(int64_t count, const float *restrict x, float *restrict wide) {
    for (int64_t c = 0; c < count; c++) wide[2 * c] = wide[2 * c + 1] = x[c];
}

static void widen(const tdm_upsample_row *row, const float *x, float *wide) {
#define WIDEN(inner) widen_of(row, inner, x, wide)
#define REPEAT(inner) repeat_of(row, inner, x, wide)
    if (row->is_twice && row->bilinear)
        widen_twice(row->narrow, x, wide);
    else if (row->is_twice)
        repeat_twice(row->narrow, x, wide);
    else if (row->bilinear)
        FOR_INNER(WIDEN, row->inner);
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
INLINED void narrow_of(const tdm_upsample_row *row, int64_t inner, int64_t begin, int64_t end,
                       const float *restrict wide, float *restrict dx) {
    for (int64_t c = begin; c < end; c++) {
        const tdm_upsample_span span = row->spans[c];
        const float *from = wide + span.first * inner;
        float *to = dx + c * inner;
        for (int64_t j = 0; j < inner; j++) to[j] = 0.0f;
        for (int64_t q = 0; q < span.count; q++, from += inner)
            for (int64_t j = 0; j < inner; j++) to[j] += from[j] * span.weight[q];
    }
}

static void narrow_twice(const tdm_upsample_row *row, const float *restrict wide, float *restrict dx) {
    const int64_t last = row->narrow - 1;
    narrow_of(row, 1, 0, 1, wide, dx);
    for (int64_t c = 1; c < last; c++)
        dx[c] = wide[2 * c - 1] * 0.25f + wide[2 * c] * 0.75f + wide[2 * c + 1] * 0.75f + wide[2 * c + 2] * 0.25f;
    if (last > 0) narrow_of(row, 1, last, last + 1, wide, dx);
}

static void add_twice(int64_t count, const float *restrict wide, float *restrict dx) {
    for (int64_t c = 0; c < count; c++) dx[c] = wide[2 * c] + wide[2 * c + 1];
}

static void narrow(const tdm_upsample_row *row, const float *wide, float *dx) {
#define NARROW(inner) narrow_of(row, inner, 0, row->narrow, wide, dx)
    if (row->is_twice && row->bilinear)
        narrow_twice(row, wide, dx);
    else if (row->is_twice)
        add_twice(row->narrow, wide, dx);
    else
        FOR_INNER(NARROW, row->inner);
}

const tdm_upsample_lanes TDM_ISA_NAME(tdm__upsample_lanes) = {widen, blend, gather, narrow};
