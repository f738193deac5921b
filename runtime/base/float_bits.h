/* A float and its bits, on the host and in CUDA kernels. */
#ifndef TDM_BASE_FLOAT_BITS_H
#define TDM_BASE_FLOAT_BITS_H

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

#endif
