/* The loops of every reduction. The order of operations is part of the result: every element is reduced from the first
 * source to the last. So the bits do not depend on how the elements are cut into segments, chunks or blocks. */
#include "runtime/comm/reduce.h"

#include <string.h>

#include "runtime/base/bf16.h"
#include "runtime/base/f16.h"

/* If either side is NaN the result is NaN, so that a minimum over ranks does not hide a NaN. */
#define SUM(a, b) ((a) + (b))
#define PRODUCT(a, b) ((a) * (b))
#define MIN_FLOAT(a, b) ((((b) < (a)) | ((b) != (b))) ? (b) : (a))
#define MAX_FLOAT(a, b) ((((b) > (a)) | ((b) != (b))) ? (b) : (a))
#define MIN(a, b) ((b) < (a) ? (b) : (a))
#define MAX(a, b) ((b) > (a) ? (b) : (a))

/* The first pass reduces up to four sources; each further source takes one more pass over the result. `through` is the
 * type that is computed in: unsigned for sums and products of integers, so that overflow wraps. */
#define REDUCTION(name, type, through, op)                                                       \
    static void name(void *restrict to_, const void *const *source, int sources, size_t count) { \
        type *restrict to = to_;                                                                 \
        const type *a = source[0], *b = source[1];                                               \
        int done = 2;                                                                            \
        if (sources >= 4) {                                                                      \
            const type *c = source[2], *d = source[3];                                           \
            for (size_t i = 0; i < count; i++) {                                                 \
                through x = (through)a[i], y = (through)b[i];                                    \
                through z = (through)op(x, y);                                                   \
                y = (through)c[i];                                                               \
                z = (through)op(z, y);                                                           \
                y = (through)d[i];                                                               \
                to[i] = (type)op(z, y);                                                          \
            }                                                                                    \
            done = 4;                                                                            \
        } else {                                                                                 \
            for (size_t i = 0; i < count; i++) {                                                 \
                through x = (through)a[i], y = (through)b[i];                                    \
                to[i] = (type)op(x, y);                                                          \
            }                                                                                    \
        }                                                                                        \
        for (; done < sources; done++) {                                                         \
            const type *next = source[done];                                                     \
            for (size_t i = 0; i < count; i++) {                                                 \
                through x = (through)to[i], y = (through)next[i];                                \
                to[i] = (type)op(x, y);                                                          \
            }                                                                                    \
        }                                                                                        \
    }

#define AND(a, b) ((a) & (b))
#define OR(a, b) ((a) | (b))
#define XOR(a, b) ((a) ^ (b))

REDUCTION(sum_f32, float, float, SUM)
REDUCTION(product_f32, float, float, PRODUCT)
REDUCTION(min_f32, float, float, MIN_FLOAT)
REDUCTION(max_f32, float, float, MAX_FLOAT)
REDUCTION(sum_f64, double, double, SUM)
REDUCTION(product_f64, double, double, PRODUCT)
REDUCTION(min_f64, double, double, MIN_FLOAT)
REDUCTION(max_f64, double, double, MAX_FLOAT)
REDUCTION(sum_i32, int32_t, uint32_t, SUM)
REDUCTION(product_i32, int32_t, uint32_t, PRODUCT)
REDUCTION(min_i32, int32_t, int32_t, MIN)
REDUCTION(max_i32, int32_t, int32_t, MAX)
REDUCTION(sum_i64, int64_t, uint64_t, SUM)
REDUCTION(product_i64, int64_t, uint64_t, PRODUCT)
REDUCTION(min_i64, int64_t, int64_t, MIN)
REDUCTION(max_i64, int64_t, int64_t, MAX)
REDUCTION(sum_u8, uint8_t, uint32_t, SUM)
REDUCTION(product_u8, uint8_t, uint32_t, PRODUCT)
REDUCTION(min_u8, uint8_t, uint8_t, MIN)
REDUCTION(max_u8, uint8_t, uint8_t, MAX)

REDUCTION(band_32, uint32_t, uint32_t, AND)
REDUCTION(bor_32, uint32_t, uint32_t, OR)
REDUCTION(bxor_32, uint32_t, uint32_t, XOR)
REDUCTION(band_64, uint64_t, uint64_t, AND)
REDUCTION(bor_64, uint64_t, uint64_t, OR)
REDUCTION(bxor_64, uint64_t, uint64_t, XOR)
REDUCTION(band_8, uint8_t, uint8_t, AND)
REDUCTION(bor_8, uint8_t, uint8_t, OR)
REDUCTION(bxor_8, uint8_t, uint8_t, XOR)

/* The sum in rank order, divided once. */
#define AVERAGE(name, type, sum)                                                                 \
    static void name(void *restrict to_, const void *const *source, int sources, size_t count) { \
        type *restrict to = to_;                                                                 \
        sum(to, source, sources, count);                                                         \
        for (size_t i = 0; i < count; i++) to[i] /= (type)sources;                               \
    }
AVERAGE(avg_f32, float, sum_f32)
AVERAGE(avg_f64, double, sum_f64)

/* Of 16 bits: a block is widened, reduced as floats over all sources, divided and rounded once. */
enum { NARROW_BLOCK = 64 };
#define NARROW_REDUCTION(name, widen, narrow, op, divisor)                                           \
    static void name(void *restrict to_, const void *const *source, int sources, size_t count) {     \
        uint16_t *restrict to = to_;                                                                 \
        for (size_t first = 0; first < count; first += NARROW_BLOCK) {                               \
            const size_t n = count - first < NARROW_BLOCK ? count - first : NARROW_BLOCK;            \
            float sum[NARROW_BLOCK];                                                                 \
            for (size_t i = 0; i < n; i++) sum[i] = widen(((const uint16_t *)source[0])[first + i]); \
            for (int s = 1; s < sources; s++) {                                                      \
                const uint16_t *next = (const uint16_t *)source[s] + first;                          \
                for (size_t i = 0; i < n; i++) {                                                     \
                    const float x = sum[i], y = widen(next[i]);                                      \
                    sum[i] = op(x, y);                                                               \
                }                                                                                    \
            }                                                                                        \
            for (size_t i = 0; i < n; i++) to[first + i] = narrow(sum[i] / (divisor));               \
        }                                                                                            \
    }

NARROW_REDUCTION(sum_bf16, tdm__bf16_float, tdm__bf16_of, SUM, 1.0F)
NARROW_REDUCTION(product_bf16, tdm__bf16_float, tdm__bf16_of, PRODUCT, 1.0F)
NARROW_REDUCTION(min_bf16, tdm__bf16_float, tdm__bf16_of, MIN_FLOAT, 1.0F)
NARROW_REDUCTION(max_bf16, tdm__bf16_float, tdm__bf16_of, MAX_FLOAT, 1.0F)
NARROW_REDUCTION(sum_f16, tdm__f16_float, tdm__f16_of, SUM, 1.0F)
NARROW_REDUCTION(product_f16, tdm__f16_float, tdm__f16_of, PRODUCT, 1.0F)
NARROW_REDUCTION(min_f16, tdm__f16_float, tdm__f16_of, MIN_FLOAT, 1.0F)
NARROW_REDUCTION(max_f16, tdm__f16_float, tdm__f16_of, MAX_FLOAT, 1.0F)

NARROW_REDUCTION(avg_bf16, tdm__bf16_float, tdm__bf16_of, SUM, (float)sources)
NARROW_REDUCTION(avg_f16, tdm__f16_float, tdm__f16_of, SUM, (float)sources)

typedef void reduction(void *restrict to, const void *const *source, int sources, size_t count);

/* In the order of tdm_reduce_op. Averages of integers and bits of floats are refused before they come here. */
static reduction *const reductions[TDM_DTYPE_COUNT][TDM_REDUCE_OPS] = {
    [TDM_DTYPE_F32] = {sum_f32, product_f32, min_f32, max_f32, avg_f32},
    [TDM_DTYPE_F64] = {sum_f64, product_f64, min_f64, max_f64, avg_f64},
    [TDM_DTYPE_I32] = {sum_i32, product_i32, min_i32, max_i32, NULL, band_32, bor_32, bxor_32},
    [TDM_DTYPE_I64] = {sum_i64, product_i64, min_i64, max_i64, NULL, band_64, bor_64, bxor_64},
    [TDM_DTYPE_U8] = {sum_u8, product_u8, min_u8, max_u8, NULL, band_8, bor_8, bxor_8},
    [TDM_DTYPE_BF16] = {sum_bf16, product_bf16, min_bf16, max_bf16, avg_bf16},
    [TDM_DTYPE_F16] = {sum_f16, product_f16, min_f16, max_f16, avg_f16},
};

void tdm__reduce_sources(void *to, const void *const *source, int sources, size_t count, tdm_dtype dtype,
                         tdm_reduce_op op) {
    if (count == 0) return;
    if (sources == 1)
        memcpy(to, source[0], count * tdm_dtype_bytes(dtype));
    else
        reductions[dtype][op](to, source, sources, count);
}
