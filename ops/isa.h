/* Kernels for the CPU that are compiled for each instruction set: <name>_lanes.c defines TDM_ISA_NAME(tdm__adam), and
 * ops/CMakeLists.txt compiles it with TDM_ISA=ref, avx2, avx512. TDM_ISA_KERNELS(tdm__adam) is the row of those that
 * this build has, in the order of tdm_isa. */
#ifndef TDM_OPS_ISA_H
#define TDM_OPS_ISA_H

#define TDM_ISA_JOIN_(name, isa) name##_##isa
#define TDM_ISA_JOIN(name, isa) TDM_ISA_JOIN_(name, isa)
#define TDM_ISA_NAME(name) TDM_ISA_JOIN(name, TDM_ISA)
#define TDM_ISA_QUOTE_(isa) #isa
#define TDM_ISA_QUOTE(isa) TDM_ISA_QUOTE_(isa)
#define TDM_ISA_TEXT TDM_ISA_QUOTE(TDM_ISA) /* "avx2" */
#if defined(__x86_64__)
#define TDM_ISA_KERNELS(name) \
    { name##_ref, name##_avx2, name##_avx512 }
#else
#define TDM_ISA_KERNELS(name) \
    { name##_ref }
#endif

#endif
