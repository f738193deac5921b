/* IEEE half precision: one sign bit, five of the exponent, ten of the fraction. */
#ifndef TDM_BASE_F16_H
#define TDM_BASE_F16_H

#include <stdint.h>
#include <string.h>

/* Exact: every half is a float. NaN stays NaN. */
static inline float tdm__f16_float(uint16_t value) {
    const uint32_t sign = (uint32_t)(value & 0x8000u) << 16, exponent = value >> 10 & 0x1fu, fraction = value & 0x3ffu;
    uint32_t bits = sign | (exponent + 112) << 23 | fraction << 13;
    float out;
    if (exponent == 0) { /* zero, or fraction * 2^-24 */
        out = (float)fraction * 0x1p-24f;
        return sign != 0 ? -out : out;
    }
    if (exponent == 0x1f) bits = sign | 0x7f800000u | fraction << 13;
    memcpy(&out, &bits, sizeof(out));
    return out;
}

#endif
