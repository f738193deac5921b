/* Tables of functions that are compiled for each instruction set (base/isa.h): for what oneDNN does slower, or not as
 * PyTorch does. TDM_LANES(name) is the table for this processor. Vectors are the compiler's own type of 16 or 8 floats,
 * which it splits into what the processor has. */
#ifndef TDM_DNNL_LANES_H
#define TDM_DNNL_LANES_H

#include "runtime/base/isa.h"

#define TDM_LANES_TABLES(type, name) extern const type name##_ref, name##_avx2, name##_avx512
#if defined(__x86_64__)
#define TDM_LANES(name) \
    (tdm__isa() == TDM_ISA_AVX512 ? &name##_avx512 : tdm__isa() == TDM_ISA_AVX2 ? &name##_avx2 : &name##_ref)
#else
#define TDM_LANES(name) (&name##_ref)
#endif

#endif
