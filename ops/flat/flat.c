/* Chooses the widest flat variant that this processor runs. */
#include "ops/flat/flat.h"

#include "runtime/graph/graph.h"

const tdm_flat_kernels *tdm_builtin_flat_ref(void) {
    return &tdm__flat_ref;
}

const tdm_flat_kernels *tdm_builtin_flat(void) {
#if defined(__x86_64__)
    if (tdm_builtin_isa() == TDM_ISA_AVX512) return &tdm__flat_avx512;
    if (tdm_builtin_isa() == TDM_ISA_AVX2) return &tdm__flat_avx2;
#endif
    return &tdm__flat_ref;
}
