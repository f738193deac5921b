/* exp, tanh and erf of floats for activations: the same operations in the same order on every processor, so the same
 * bits. Each is a polynomial, found by minimising the largest relative error over its interval; every product that is
 * added is one fused multiply-add. Errors, over all floats: exp 1.1 units in the last place, tanh and
 * erf 1.4 (activation_math_test). NaN stays NaN, infinities have their limits.
 *
 * Both sides of a choice are computed, so that compilers make vectors of the loops around. */
#ifndef TDM_OPS_ACTIVATION_MATH_H
#define TDM_OPS_ACTIVATION_MATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "runtime/base/host_device.h"

TDM_HOST_DEVICE static inline float tdm__float_of_bits(uint32_t bits) {
    float out;
    memcpy(&out, &bits, sizeof(out));
    return out;
}

TDM_HOST_DEVICE static inline uint32_t tdm__bits_of_float(float value) {
    uint32_t out;
    memcpy(&out, &value, sizeof(out));
    return out;
}

/* |x| with the sign of another */
TDM_HOST_DEVICE static inline float tdm__with_sign(float x, float sign) {
    return tdm__float_of_bits((tdm__bits_of_float(x) & 0x7fffffffu) | (tdm__bits_of_float(sign) & 0x80000000u));
}

/* 2^n for n from -127 to 127; 0 for -127 */
TDM_HOST_DEVICE static inline float tdm__power_of_2(uint32_t n) {
    return tdm__float_of_bits((n + 127u) << 23);
}

/* x = n log 2 + r: e^x = 2^n (1 + r + r^2 P(r)). Adding 1.5 * 2^23 rounds to an integer, whose bits are then the low
 * ones. 2^n is two factors, because n may be 128 or lie below -126. */
TDM_HOST_DEVICE static inline float tdm__expf(float x) {
    const float rounds = 12582912.0f;
    float at = x < -104.0f ? -104.0f : x;
    at = at > 89.0f ? 89.0f : at;
    const float shifted = fmaf(at, 1.44269502f, rounds), n = shifted - rounds;
    float r = fmaf(n, -0.693145752f, at);
    r = fmaf(n, -1.42860677e-06f, r);
    float p = 1.3937847e-03f;
    p = fmaf(p, r, 8.368968e-03f);
    p = fmaf(p, r, 4.1666433e-02f);
    p = fmaf(p, r, 1.6666518e-01f);
    p = fmaf(p, r, 0.5f);
    p = fmaf(p * r, r, r) + 1.0f;
    const uint32_t whole = tdm__bits_of_float(shifted) - tdm__bits_of_float(rounds);
    const uint32_t half = (uint32_t)((int32_t)whole >> 1);
    return p * tdm__power_of_2(half) * tdm__power_of_2(whole - half);
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

/* Below 0.92 x + x P(x^2), above 1 - e^(-a Q(a)), where a is |x|, at most 4; with the sign of x */
TDM_HOST_DEVICE static inline float tdm__erff(float x) {
    const float z = x * x;
    float a = fabsf(x);
    a = a > 4.0f ? 4.0f : a;
    float p = 8.2639504e-05f;
    p = fmaf(p, z, -8.116994e-04f);
    p = fmaf(p, z, 5.1986827e-03f);
    p = fmaf(p, z, -2.685839e-02f);
    p = fmaf(p, z, 1.1283675e-01f);
    p = fmaf(p, z, -3.7612632e-01f);
    p = fmaf(p, z, 1.2837917e-01f);
    float q = 5.1517536e-06f;
    q = fmaf(q, a, -4.8207872e-05f);
    q = fmaf(q, a, -3.6057783e-05f);
    q = fmaf(q, a, 2.8923322e-03f);
    q = fmaf(q, a, -2.2612128e-02f);
    q = fmaf(q, a, 1.0520308e-01f);
    q = fmaf(q, a, 6.356564e-01f);
    q = fmaf(q, a, 1.2854486e-01f);
    const float far = 1.0f - tdm__expf(-fmaf(q, a, a));
    return tdm__with_sign(fabsf(x) < 0.92f ? fmaf(p, x, x) : far, x);
}

#endif
