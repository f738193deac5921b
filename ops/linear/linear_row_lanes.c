/* See linear_row_lanes.h. Several outputs are summed at once, because each addition waits for the one before it. */
#include "ops/linear/linear_row_lanes.h"

#if defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>

#define UNROLL _Pragma("GCC unroll 8")
#define INLINE static inline __attribute__((always_inline))

enum { LANES = 8, STEP = 2 * LANES, GROUP = 8 /* outputs */ };

INLINE float sum_of(__m256 v) {
    v = _mm256_hadd_ps(v, v);
    v = _mm256_add_ps(v, _mm256_permute2f128_ps(v, v, 1));
    return _mm256_cvtss_f32(_mm256_hadd_ps(v, v));
}

/* What remains of x after whole steps: `count` numbers, 8, 4, 2 or 1. The other lanes are 0. */
INLINE void add_rest(float *y, const float *x, const float *w, int64_t in, int64_t outputs, int64_t count) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i mask = _mm256_cmpgt_epi32(_mm256_set1_epi32((int)count), lane);
    const __m256 a = _mm256_maskload_ps(x, mask);
    for (int64_t o = 0; o < outputs; o++)
        y[o] += sum_of(_mm256_fmadd_ps(a, _mm256_maskload_ps(w + o * in, mask), _mm256_setzero_ps()));
}

/* `outputs` neighbours; a constant, so that the sums stay in registers. */
INLINE void find(float *y, const float *x, const float *w, int64_t in, int64_t outputs) {
    int64_t i = 0;
    __m256 sum[GROUP];
    UNROLL for (int64_t o = 0; o < outputs; o++) sum[o] = _mm256_setzero_ps();
    for (; i + STEP <= in; i += STEP) {
        const __m256 a = _mm256_loadu_ps(x + i), b = _mm256_loadu_ps(x + i + LANES);
        UNROLL for (int64_t o = 0; o < outputs; o++) {
            sum[o] = _mm256_fmadd_ps(a, _mm256_loadu_ps(w + o * in + i), sum[o]);
            sum[o] = _mm256_fmadd_ps(b, _mm256_loadu_ps(w + o * in + i + LANES), sum[o]);
        }
    }
    UNROLL for (int64_t o = 0; o < outputs; o++) y[o] = 0.0f + sum_of(sum[o]); /* -0 becomes 0 */
    for (int64_t count = LANES; count > 0; count /= 2) {
        if (((in - i) & count) == 0) continue;
        add_rest(y, x + i, w + i, in, outputs, count);
        i += count;
    }
}

static void row(float *y, const float *x, const float *w, int64_t in, int64_t begin, int64_t end) {
    int64_t o = begin;
    for (; o + GROUP <= end; o += GROUP) find(y + o, x, w + o * in, in, GROUP);
    for (; o < end; o++) find(y + o, x, w + o * in, in, 1);
}

const tdm_linear_row_lanes TDM_ISA_NAME(tdm__linear_row_lanes) = {row};
#else
const tdm_linear_row_lanes TDM_ISA_NAME(tdm__linear_row_lanes) = {NULL};
#endif
