/* Uniform to normal, as in ATen's CPU kernels. On machines with AVX2 these use the single-precision Cephes logarithm
 * and sine of avx_mathfun.h, where the compiler has fused multiplications with additions. Each fmaf below is one of
 * those; which operands are fused is part of the result. */
#include "runtime/base/random/rng_normal.h"

#include <math.h>
#include <string.h>

#include "runtime/base/float_bits.h"
#include "runtime/base/twin.h"

enum { LANES = TDM_NORMAL_BLOCK / 2 };

/* Natural logarithm of a normal positive number. */
TDM_INLINE float cephes_log(float x) {
    uint32_t bits = tdm__bits_of_float(x);
    float e = (float)((int32_t)(bits >> 23) - 127) + 1.0f;
    float m = tdm__float_of_bits((bits & 0x007FFFFFu) | 0x3F000000u); /* in [0.5, 1) */
    uint32_t below =
        0u - (uint32_t)(m < 0.707106781186547524f); /* a mask, because a loop with branches is not vectorised */
    e = e - tdm__float_of_bits(tdm__bits_of_float(1.0f) & below);
    m = (m - 1.0f) + tdm__float_of_bits(tdm__bits_of_float(m) & below);
    float z = m * m;
    float y = 7.0376836292e-2f;
    y = __builtin_fmaf(y, m, -1.1514610310e-1f);
    y = __builtin_fmaf(y, m, 1.1676998740e-1f);
    y = __builtin_fmaf(y, m, -1.2420140846e-1f);
    y = __builtin_fmaf(y, m, 1.4249322787e-1f);
    y = __builtin_fmaf(y, m, -1.6668057665e-1f);
    y = __builtin_fmaf(y, m, 2.0000714765e-1f);
    y = __builtin_fmaf(y, m, -2.4999993993e-1f);
    y = __builtin_fmaf(y, m, 3.3333331174e-1f);
    y = y * m;
    y = __builtin_fmaf(y, z, e * -2.12194440e-4f);
    y = __builtin_fmaf(z, -0.5f, y);
    m = m + y;
    return __builtin_fmaf(e, 0.693359375f, m);
}

/* Sine and cosine of x in [0, 8192). */
TDM_INLINE void cephes_sincos(float x, float *sine, float *cosine) {
    uint32_t octant = (uint32_t)((int32_t)(x * 1.27323954473516f) + 1) & ~1u;
    float y = (float)(int32_t)octant;
    x = __builtin_fmaf(y, -0.78515625f, x);
    x = __builtin_fmaf(y, -2.4187564849853515625e-4f, x);
    x = __builtin_fmaf(y, -3.77489497744594108e-8f, x);
    float z = x * x;
    float a = 2.443315711809948e-5f;
    a = __builtin_fmaf(a, z, -1.388731625493765e-3f);
    a = __builtin_fmaf(a, z, 4.166664568298827e-2f);
    a = a * z;
    a = __builtin_fmaf(a, z, -(z * 0.5f));
    a = a + 1.0f;
    float b = -1.9515295891e-4f;
    b = __builtin_fmaf(b, z, 8.3321608736e-3f);
    b = __builtin_fmaf(b, z, -1.6666654611e-1f);
    b = b * z;
    b = __builtin_fmaf(b, x, x);
    uint32_t swap = (tdm__bits_of_float(a) ^ tdm__bits_of_float(b)) & (0u - (octant >> 1 & 1u));
    uint32_t sine_sign = (octant & 4u) << 29, cosine_sign = (~(octant - 2u) & 4u) << 29;
    *sine = tdm__float_of_bits(tdm__bits_of_float(b) ^ swap ^ sine_sign);
    *cosine = tdm__float_of_bits(tdm__bits_of_float(a) ^ swap ^ cosine_sign);
}

TDM_INLINE void cephes_blocks(float *values, size_t blocks, float mean, float std) {
    for (size_t block = 0; block < blocks; block++, values += TDM_NORMAL_BLOCK) {
        float first[LANES], second[LANES];
        for (int i = 0; i < LANES; i++) {
            float radius = sqrtf(-2.0f * cephes_log(1.0f - values[i]));
            float sine, cosine;
            cephes_sincos(6.28318530717958647692f * values[i + LANES], &sine, &cosine);
            first[i] = __builtin_fmaf(radius * cosine, std, mean);
            second[i] = __builtin_fmaf(radius * sine, std, mean);
        }
        memcpy(values, first, sizeof(first));
        memcpy(values + LANES, second, sizeof(second));
    }
}

TDM_FMA_TWIN static void cephes_blocks_fma(float *values, size_t blocks, float mean, float std) {
    cephes_blocks(values, blocks, mean, std);
}

static void cephes_blocks_any(float *values, size_t blocks, float mean, float std) {
    cephes_blocks(values, blocks, mean, std);
}

/* The last multiply-add is fused, as in PyTorch 2.13. PyTorch 1.13 rounds twice there, so its numbers differ unless
 * mean is 0 and std is 1. */
static void libm_blocks(float *values, size_t blocks, float mean, float std) {
    for (size_t block = 0; block < blocks; block++, values += TDM_NORMAL_BLOCK) {
        for (int i = 0; i < LANES; i++) {
            float radius = sqrtf(-2.0f * logf(1.0f - values[i]));
            float angle = (float)(2.0 * M_PI * (double)values[i + LANES]);
            values[i] = fmaf(radius * cosf(angle), std, mean);
            values[i + LANES] = fmaf(radius * sinf(angle), std, mean);
        }
    }
}

void tdm__normal_blocks(float *values, size_t blocks, float mean, float std, tdm_rng_profile profile) {
    if (profile == TDM_RNG_TORCH_GENERIC)
        libm_blocks(values, blocks, mean, std);
    else if (tdm__cpu_has_fma())
        cephes_blocks_fma(values, blocks, mean, std);
    else
        cephes_blocks_any(values, blocks, mean, std);
}
