/* IEEE half precision: one sign bit, five of the exponent, ten of the fraction. */
#ifndef TDM_BASE_F16_H
#define TDM_BASE_F16_H

#include "runtime/base/float_bits.h"

/* Rounds to nearest, ties to even; what is too large becomes infinite. NaN stays NaN. As c10::Half. */
TDM_HOST_DEVICE static inline uint16_t tdm__f16_of(float value) {
    const uint32_t bits = tdm__bits_of_float(value);
    const uint32_t sign = bits >> 16 & 0x8000u, size = bits & 0x7fffffffu;
    if (size > 0x7f800000u) return 0x7e00;
    if (size >= 0x477ff000u) return (uint16_t)(sign | 0x7c00u); /* 65520 and more */
    if (size >= 0x38800000u) { /* 2^-14 and more: a rounded fraction of ten bits, and another bias */
        return (uint16_t)(sign | ((size - 0x38000000u + 0xfffu + (size >> 13 & 1u)) >> 13));
    }
    /* Adding 0.5 leaves the number of 2^-24 in the last bits of the fraction, rounded. */
    return (uint16_t)(sign | (tdm__bits_of_float(tdm__float_of_bits(size) + 0.5f) - 0x3f000000u));
}

/* Exact: every half is a float. NaN stays NaN. */
TDM_HOST_DEVICE static inline float tdm__f16_float(uint16_t value) {
    const uint32_t sign = (uint32_t)(value & 0x8000u) << 16, exponent = value >> 10 & 0x1fu, fraction = value & 0x3ffu;
    uint32_t bits = sign | (exponent + 112) << 23 | fraction << 13;
    if (exponent == 0) { /* zero, or fraction * 2^-24 */
        const float out = (float)fraction * 0x1p-24f;
        return sign != 0 ? -out : out;
    }
    if (exponent == 0x1f) bits = sign | 0x7f800000u | fraction << 13;
    return tdm__float_of_bits(bits);
}

#endif
