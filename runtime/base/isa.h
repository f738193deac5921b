/* C code that is compiled for several instruction sets, all with the same bits: a file <name>_lanes.c defines
 * TDM_ISA_NAME(tdm__adam), and CMake compiles it once with TDM_ISA=ref, once with avx2 and once with avx512.
 * TDM_ISA_KERNELS(tdm__adam) is the row of those that this build has, in the order of tdm_isa. */
#ifndef TDM_BASE_ISA_H
#define TDM_BASE_ISA_H

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <tandem/sys/op.h>

#include "extras.h"

#define TDM_ISA_JOIN_(name, isa) name##_##isa
#define TDM_ISA_JOIN(name, isa) TDM_ISA_JOIN_(name, isa)
#define TDM_ISA_NAME(name) TDM_ISA_JOIN(name, TDM_ISA)
#define TDM_ISA_QUOTE_(isa) #isa
#define TDM_ISA_QUOTE(isa) TDM_ISA_QUOTE_(isa)
#define TDM_ISA_TEXT TDM_ISA_QUOTE(TDM_ISA) /* "avx2" */
#if defined(__x86_64__) && TDM_WITH_LANES
#define TDM_ISA_KERNELS(name) \
    { name##_ref, name##_avx2, name##_avx512 }
#else
#define TDM_ISA_KERNELS(name) \
    { name##_ref }
#endif

/* Returns the widest instruction set of this processor; of those that this build has loops for. */
static inline tdm_isa tdm__isa(void) {
#if defined(__x86_64__) && TDM_WITH_LANES
    if (__builtin_cpu_supports("fma")) {
        if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
            __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw"))
            return TDM_ISA_AVX512;
        if (__builtin_cpu_supports("avx2")) return TDM_ISA_AVX2;
    }
#endif
    return TDM_ISA_REF;
}

/* Why bf16 is refused, behind what asks for it. */
#define TDM_NO_FAST_BF16                                                                                    \
    "bf16 on a CPU needs AMX-BF16, or AVX512-BF16 of AMD; this processor has neither, and would be slower " \
    "than in f32"

/* Does this processor multiply bf16 faster than floats? With AMX-TILE and AMX-BF16, or, of AMD, with AVX512-BF16, whose
 * instruction takes the time of a fused multiply-add there and does twice the products. Of Intel it takes twice the
 * time, and what surrounds it makes bf16 slower than floats (runtime/docs/measurements). */
static inline bool tdm__has_fast_bf16(void) {
#if defined(__x86_64__)
    enum { AMX_BF16 = 1 << 22, AMX_TILE = 1 << 24 };
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & AMX_BF16) != 0 && (d & AMX_TILE) != 0) return true;
    return __builtin_cpu_supports("avx512bf16") && __builtin_cpu_is("amd");
#else
    return false;
#endif
}

#endif
