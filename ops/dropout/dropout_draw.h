/* The formula of dropout.h, element by element, for the kernels of every device. */
#ifndef TDM_OPS_DROPOUT_DRAW_H
#define TDM_OPS_DROPOUT_DRAW_H

#include <math.h>

#include "runtime/base/random/philox.h"

/* splitmix64: Steele, Lea, Flood 2014; constants of the reference implementation. */
static inline uint64_t tdm__dropout_key(uint64_t seed) {
    uint64_t z = seed + 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Returns the threshold: elements whose word is below it are dropped. */
static inline uint64_t tdm__dropout_threshold(double p) {
    return (uint64_t)nearbyint(p * 4294967296.0);
}

/* Returns the factor of kept elements: 1 / (1 - p), rounded as ATen does; 0 for p = 1. */
static inline float tdm__dropout_scale(double p) {
    return p < 1.0 ? 1.0f / (float)(1.0 - p) : 0.0f;
}

/* Computes the words of the elements 4 * group to 4 * group + 3 of a row. */
TDM_HOST_DEVICE static inline void tdm__dropout_words(uint32_t word[4], uint64_t key, int64_t group, int64_t position,
                                                      uint64_t step, uint32_t stream) {
    const uint32_t counter[4] = {(uint32_t)group, (uint32_t)position, (uint32_t)step, stream};
    tdm__philox_words(word, key, counter);
}

#endif
