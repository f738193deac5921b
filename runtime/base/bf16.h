/* bfloat16: the upper half of a float. The same on the host and in CUDA kernels. */
#ifndef TDM_BASE_BF16_H
#define TDM_BASE_BF16_H

#include <stdbool.h>

#include "runtime/base/float_bits.h"

/* Rounds to nearest, ties to even; NaN stays NaN. The same as c10::detail::round_to_nearest_even of PyTorch. */
TDM_HOST_DEVICE static inline uint16_t tdm__bf16_of(float value) {
    const uint32_t bits = tdm__bits_of_float(value);
    const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u; /* of integers, so that compilers vectorise it */
    return is_nan ? 0x7fc0 : (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

TDM_HOST_DEVICE static inline float tdm__bf16_float(uint16_t value) {
    return tdm__float_of_bits((uint32_t)value << 16);
}

#endif
