/* Hot loops are compiled twice, for any x86-64 and for CPUs with AVX2 and fused multiply-add, and selected at run time.
 * Both versions give the same bits: fmaf is correctly rounded in software, too, and the compiler neither contracts nor
 * reorders. */
#ifndef TDM_BASE_TWIN_H
#define TDM_BASE_TWIN_H

#include <stdbool.h>

#define TDM_INLINE static inline __attribute__((always_inline))

#if defined(__x86_64__) && !defined(TDM_NO_TWINS) /* tests define it, to run the other twin */
#define TDM_FMA_TWIN __attribute__((target("avx2,fma")))
static inline bool tdm__cpu_has_fma(void) {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
#else
#define TDM_FMA_TWIN
static inline bool tdm__cpu_has_fma(void) {
    return false;
}
#endif

#endif
