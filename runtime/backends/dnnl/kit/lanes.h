/* Tables of functions that are compiled for each instruction set (base/isa.h): for what oneDNN does slower, or not as
 * PyTorch does. TDM_LANES(name) is the table for this processor. Vectors are the compiler's own type of 16 or 8 floats,
 * which it splits into what the processor has. */
#ifndef TDM_DNNL_LANES_H
#define TDM_DNNL_LANES_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/isa.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#define TDM_LANES_TABLES(type, name) extern const type name##_ref, name##_avx2, name##_avx512
#if defined(__x86_64__)
#define TDM_LANES(name) \
    (tdm__isa() == TDM_ISA_AVX512 ? &name##_avx512 : tdm__isa() == TDM_ISA_AVX2 ? &name##_avx2 : &name##_ref)
#else
#define TDM_LANES(name) (&name##_ref)
#endif

/* Fetches what a pass will read `bytes` after `from`. A processor does so by itself, but badly where a pass reads several
 * arrays, or goes from row to row. */
enum { TDM_PREFETCH_BYTES = 2048 }; /* of a pass that goes straight on */
static inline void tdm__prefetch(const void *from, int64_t bytes) {
    __builtin_prefetch((const void *)((uintptr_t)from + (uintptr_t)bytes));
}

/* An ordinary store brings each line into the cache before it writes it. Where a tensor leaves the second-level cache
 * before the next layer reads it, vectors are stored past the cache (store_past_16 of vectors.h). They lie on lines of
 * 64 bytes. */
enum { TDM_SECOND_CACHE_BYTES = 2 * 1024 * 1024 };

/* Whether `count` floats at `to` are written so. NULL: nothing is written there. */
static inline bool tdm__is_past_cache(const float *to, int64_t count) {
    return (uintptr_t)to % 64 == 0 && count * (int64_t)sizeof(float) > TDM_SECOND_CACHE_BYTES;
}

/* Comes before another thread reads what was stored. */
static inline void tdm__stores_past_done(void) {
#if defined(__x86_64__)
    _mm_sfence();
#endif
}

#endif
