/* The variants of the flat loops; which of them exist depends on the processor's family. */
#ifndef TDM_OPS_FLAT_FLAT_H
#define TDM_OPS_FLAT_FLAT_H

#include <tandem/sys/op.h>

extern const tdm_flat_kernels tdm__flat_ref;
extern const tdm_flat_kernels tdm__flat_avx2;   /* x86-64 only; needs AVX2 and FMA */
extern const tdm_flat_kernels tdm__flat_avx512; /* x86-64 only; needs AVX-512 F, VL, DQ and FMA */

#endif
