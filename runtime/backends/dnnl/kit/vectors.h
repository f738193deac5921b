/* Vectors of 16 and of 8 numbers, for code that is written once for both widths: a file <op>_lanes.inc.c, which
 * <op>_lanes.c includes once with LANES defined as 16 and once as 8. FLOATS is then floats_16 or floats_8, and
 * NAME(apply) is apply_16 or apply_8. */
#ifndef TDM_DNNL_VECTORS_H
#define TDM_DNNL_VECTORS_H

#include <stdint.h>
#include <string.h>

#include "runtime/backends/dnnl/kit/lanes.h"

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#define NAME(name) TDM_ISA_JOIN(name, LANES)
#define FLOATS NAME(floats)
#define INTS NAME(ints)
#define BYTES NAME(bytes)
#define DOUBLES NAME(doubles)

#define TDM_VECTORS(lanes)                                                  \
    typedef float floats_##lanes __attribute__((vector_size((lanes)*4)));   \
    typedef int32_t ints_##lanes __attribute__((vector_size((lanes)*4)));   \
    typedef uint8_t bytes_##lanes __attribute__((vector_size(lanes)));      \
    typedef double doubles_##lanes __attribute__((vector_size((lanes)*8))); \
    static inline floats_##lanes load_##lanes(const float *from) {          \
        floats_##lanes v;                                                   \
        memcpy(&v, from, sizeof v);                                         \
        return v;                                                           \
    }
TDM_VECTORS(16)
TDM_VECTORS(8)
TDM_VECTORS(4)

/* See tdm__is_past_cache. */
static inline void store_past_16(float *to, floats_16 v) {
#if defined(__AVX512F__)
    _mm512_stream_ps(to, (__m512)v);
#else
    memcpy(to, &v, sizeof v);
#endif
}

static inline void store_past_8(float *to, floats_8 v) {
    memcpy(to, &v, sizeof v);
}

/* Sixteen numbers in bf16: widened, and rounded as tdm__bf16_of does. */
typedef uint16_t words_16 __attribute__((vector_size(32)));
typedef uint32_t bits_16 __attribute__((vector_size(64)));

static inline floats_16 load_bf16(const uint16_t *from) {
    words_16 v;
    memcpy(&v, from, sizeof v);
    return (floats_16)(__builtin_convertvector(v, bits_16) << 16);
}

static inline void store_bf16(uint16_t *to, floats_16 v) {
    const bits_16 bits = (bits_16)v, nan = (bits_16)(v != v);
    const bits_16 rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    const words_16 out = __builtin_convertvector((nan & 0x7fc0) | (~nan & rounded), words_16);
    memcpy(to, &out, sizeof out);
}

#endif
