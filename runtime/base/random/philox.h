/* Philox4x32-10 (Salmon et al. 2011), for the host and for CUDA kernels. A pure function. */
#ifndef TDM_BASE_PHILOX_H
#define TDM_BASE_PHILOX_H

#include <stdint.h>

#include "runtime/base/host_device.h"

/* Four words from a 64-bit key and a 128-bit counter. */
TDM_HOST_DEVICE static inline void tdm__philox_words(uint32_t out[4], uint64_t key, const uint32_t counter[4]) {
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int round = 0; round < 10; round++) {
        uint64_t left = UINT64_C(0xD2511F53) * c0, right = UINT64_C(0xCD9E8D57) * c2;
        c0 = (uint32_t)(right >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)right;
        c2 = (uint32_t)(left >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)left;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

#endif
