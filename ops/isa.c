/* What this processor runs. */
#include "runtime/graph/graph.h"

tdm_isa tdm_builtin_isa(void) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("fma")) {
        if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
            __builtin_cpu_supports("avx512dq")) {
            return TDM_ISA_AVX512;
        }
        if (__builtin_cpu_supports("avx2")) return TDM_ISA_AVX2;
    }
#endif
    return TDM_ISA_REF;
}
