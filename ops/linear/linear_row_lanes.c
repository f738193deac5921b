/* See linear_row_lanes.h. Several outputs are summed at once, because each addition waits for the one before it. */
#include "ops/linear/linear_row_lanes.h"

#include "runtime/base/float_bits.h"

#if defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>

#define UNROLL _Pragma("GCC unroll 8")
#define INLINE static inline __attribute__((always_inline))

enum { LANES = 8, STEP = 2 * LANES, GROUP = 8 /* outputs */, AHEAD = 16 /* steps */ };

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

/* Adds what one step of x gives to the sums of neighbours; `outputs` is a constant, so that these stay in registers. */
INLINE void add_step(__m256 *sum, const float *x, const float *w, int64_t in, int64_t outputs) {
    const __m256 a = _mm256_loadu_ps(x), b = _mm256_loadu_ps(x + LANES);
    UNROLL for (int64_t o = 0; o < outputs; o++) {
        sum[o] = _mm256_fmadd_ps(a, _mm256_loadu_ps(w + o * in), sum[o]);
        sum[o] = _mm256_fmadd_ps(b, _mm256_loadu_ps(w + o * in + LANES), sum[o]);
    }
}

/* Puts the sums of whole steps into y and adds what remains of x. */
INLINE void finish(float *y, const __m256 *sum, const float *x, const float *w, int64_t in, int64_t outputs) {
    int64_t i = in - in % STEP;
    UNROLL for (int64_t o = 0; o < outputs; o++) y[o] = 0.0f + sum_of(sum[o]); /* -0 becomes 0 */
    for (int64_t count = LANES; count > 0; count /= 2) {
        if (((in - i) & count) == 0) continue;
        add_rest(y, x + i, w + i, in, outputs, count);
        i += count;
    }
}

INLINE void find(float *y, const float *x, const float *w, int64_t in, int64_t outputs) {
    __m256 sum[GROUP];
    UNROLL for (int64_t o = 0; o < outputs; o++) sum[o] = _mm256_setzero_ps();
    for (int64_t i = 0; i + STEP <= in; i += STEP) add_step(sum, x + i, w + i, in, outputs);
    finish(y, sum, x, w, in, outputs);
}

static void row(float *y, const float *x, const float *w, int64_t in, int64_t begin, int64_t end) {
    int64_t o = begin;
    for (; o + GROUP <= end; o += GROUP) find(y + o, x, w + o * in, in, GROUP);
    for (; o < end; o++) find(y + o, x, w + o * in, in, 1);
}

/* The processor foresees which weights come next only where they are neighbours. behind: the weights after these. */
INLINE void fetch(const float *w, const float *behind, int64_t in, int64_t outputs, const tdm_linear_steps *steps,
                  int64_t k) {
    if (steps->count < AHEAD) return;
    const float *from =
        k < steps->count ? w + STEP * (int64_t)steps->at[k] : behind + STEP * (int64_t)steps->at[k - steps->count];
    UNROLL for (int64_t o = 0; o < outputs; o++) tdm__prefetch(from, o * in * (int64_t)sizeof *from);
}

/* A sum keeps its bits without steps of zeros: it is never -0 but where a product was rounded to it, and then y, to
 * which 0 is added, is the same. */
INLINE void find_by_steps(float *y, const float *x, const float *w, const float *behind, int64_t in, int64_t outputs,
                          const tdm_linear_steps *steps) {
    __m256 sum[GROUP];
    UNROLL for (int64_t o = 0; o < outputs; o++) sum[o] = _mm256_setzero_ps();
    for (int64_t k = 0; k < steps->count; k++) {
        const int64_t i = STEP * (int64_t)steps->at[k];
        fetch(w, behind, in, outputs, steps, k + AHEAD);
        add_step(sum, x + i, w + i, in, outputs);
    }
    finish(y, sum, x, w, in, outputs);
}

static void row_of_steps(float *y, const float *x, const float *w, int64_t in, int64_t begin, int64_t end,
                         const tdm_linear_steps *steps) {
    int64_t o = begin;
    for (; o + GROUP <= end; o += GROUP) {
        const int64_t next = o + 2 * GROUP <= end ? o + GROUP : begin;
        find_by_steps(y + o, x, w + o * in, w + next * in, in, GROUP, steps);
    }
    for (; o < end; o++) find_by_steps(y + o, x, w + o * in, w + o * in, in, 1, steps);
}

static int64_t list_steps(int32_t *at, const float *x, int64_t in) {
    int64_t count = 0;
    for (int64_t i = 0; i + STEP <= in; i += STEP) {
        const __m256 both = _mm256_or_ps(_mm256_loadu_ps(x + i), _mm256_loadu_ps(x + i + LANES));
        const __m256i sizes = _mm256_slli_epi32(_mm256_castps_si256(both), 1); /* without the signs */
        at[count] = (int32_t)(i / STEP);
        count += !_mm256_testz_si256(sizes, sizes);
    }
    return count;
}

static bool are_finite(const float *w, int64_t count) {
    int is_odd = 0;
    for (int64_t i = 0; i < count; i++) is_odd |= (tdm__bits_of_float(w[i]) & 0x7f800000) == 0x7f800000;
    return !is_odd;
}

const tdm_linear_row_lanes TDM_ISA_NAME(tdm__linear_row_lanes) = {row, row_of_steps, list_steps, are_finite};
#else
const tdm_linear_row_lanes TDM_ISA_NAME(tdm__linear_row_lanes) = {NULL, NULL, NULL, NULL};
#endif
