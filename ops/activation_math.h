/* exp, tanh and the normal distribution of floats for activations: the same operations in the same order on every
 * processor, so the same bits. Each is a polynomial, found by minimising the largest error of the result over its
 * interval; every product that is added is one fused multiply-add. Errors, over all floats: exp 1.1 units in the last
 * place, tanh 1.4, the normal distribution 1.4 * 2^-24 (activation_math_test). NaN stays NaN, infinities have their
 * limits.
 *
 * Both sides of a choice are computed, so that compilers make vectors of the loops around. */
#ifndef TDM_OPS_ACTIVATION_MATH_H
#define TDM_OPS_ACTIVATION_MATH_H

#include <math.h>

#include "runtime/base/float_bits.h"

/* |x| with the sign of another */
TDM_HOST_DEVICE static inline float tdm__with_sign(float x, float sign) {
    return tdm__float_of_bits((tdm__bits_of_float(x) & 0x7fffffffu) | (tdm__bits_of_float(sign) & 0x80000000u));
}

/* 2^n for n from -127 to 127; 0 for -127. Of n only the low 9 bits count. */
TDM_HOST_DEVICE static inline float tdm__power_of_2(uint32_t n) {
    return tdm__float_of_bits((n + 127u) << 23);
}

/* x = n log 2 + r: e^x = 2^n (1 + r + r^2 P(r)). Adding 1.5 * 2^23 rounds to an integer, whose bits are then the low
 * ones. 2^n is two factors, because n may be 128 or lie below -126. Of the two bounds only one is a comparison of
 * floats: of two of them compilers make branches. Above the other, 129, the result is infinite. */
TDM_HOST_DEVICE static inline float tdm__expf(float x) {
    const float rounds = 12582912.0f, at = x < -104.0f ? -104.0f : x;
    const int32_t zero = (int32_t)tdm__bits_of_float(rounds), most = zero + 129;
    const int32_t bits = (int32_t)tdm__bits_of_float(fmaf(at, 1.44269502f, rounds)),
                  shifted = bits < most ? bits : most;
    const int32_t whole = shifted - zero, half = whole >> 1;
    const float n = tdm__float_of_bits((uint32_t)shifted) - rounds;
    float r = fmaf(n, -0.693145752f, at);
    r = fmaf(n, -1.42860677e-06f, r);
    float p = 1.3937847e-03f;
    p = fmaf(p, r, 8.368968e-03f);
    p = fmaf(p, r, 4.1666433e-02f);
    p = fmaf(p, r, 1.6666518e-01f);
    p = fmaf(p, r, 0.5f);
    p = fmaf(p * r, r, r) + 1.0f;
    return p * tdm__power_of_2((uint32_t)half) * tdm__power_of_2((uint32_t)(whole - half));
}

/* Below 0.6 x + x^3 P(x^2), above 1 - 2 / (e^(2 |x|) + 1); with the sign of x */
TDM_HOST_DEVICE static inline float tdm__tanhf(float x) {
    const float a = fabsf(x), z = x * x;
    float p = -5.7512126e-03f;
    p = fmaf(p, z, 2.0679034e-02f);
    p = fmaf(p, z, -5.3751495e-02f);
    p = fmaf(p, z, 1.3331577e-01f);
    p = fmaf(p, z, -3.3333287e-01f);
    const float near_0 = fmaf(p * z, x, x);
    const float far = 1.0f - 2.0f / (tdm__expf(a + a) + 1.0f);
    return tdm__with_sign(a < 0.6f ? near_0 : far, x);
}

/* 2^x for x from -127, where it is 0, to 126: 2^n P(x - n) with the nearest integer n */
TDM_HOST_DEVICE static inline float tdm__exp2f(float x) {
    const float shifted = x + 12582912.0f, r = x - (shifted - 12582912.0f);
    float p = 1.5353362e-04f;
    p = fmaf(p, r, 1.3398875e-03f);
    p = fmaf(p, r, 9.6184369e-03f);
    p = fmaf(p, r, 5.5503324e-02f);
    p = fmaf(p, r, 2.4022648e-01f);
    p = fmaf(p, r, 6.9314718e-01f);
    p = fmaf(p, r, 1.0f);
    return p * tdm__power_of_2(tdm__bits_of_float(shifted));
}

/* The normal distribution from -infinity to x, (1 + erf(x / sqrt 2)) / 2. Below 0 it is 2^-S(|x|), where S = 1 at 0 and
 * 127 at the largest |x|; above 0 the rest to 1. S is two polynomials of x^2, which processors compute side by side. */
TDM_HOST_DEVICE static inline float tdm__normalf(float x) {
    float a = fabsf(x);
    a = a > 9.96f ? 9.96f : a;
    const float z = a * a;
    float odd = -2.8349125e-06f, even = 3.937769e-05f;
    odd = fmaf(odd, z, -1.8618023e-04f), even = fmaf(even, z, -1.369364e-04f);
    odd = fmaf(odd, z, 7.06342e-03f), even = fmaf(even, z, -5.249618e-02f);
    odd = fmaf(odd, z, -4.5920819e-01f), even = fmaf(even, z, -1.1511052f);
    const float tail = tdm__exp2f(fmaf(fmaf(odd, a, even), a, -1.0f)), rest = 1.0f - tail;
    return x < 0.0f ? tail : rest;
}

/* Its density, e^(-x^2 / 2) / sqrt(2 pi) */
TDM_HOST_DEVICE static inline float tdm__normal_densityf(float x) {
    float at = -0.72134752f * x * x;
    at = at < -127.0f ? -127.0f : at;
    return 0.39894228f * tdm__exp2f(at);
}

#endif
