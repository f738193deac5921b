/* C code that is compiled for three instruction sets, with the same results: for what oneDNN does slower, or not as
 * PyTorch does. A file <op>_lanes.c defines one table of functions, TDM_LANES_TABLE(name). CMake compiles the file
 * three times; TDM_LANES(name) is the table for this processor. Vectors are the compiler's own type of 16 or 8 floats,
 * which it splits into what the processor has. */
#ifndef TDM_DNNL_LANES_H
#define TDM_DNNL_LANES_H

typedef enum tdm_dnnl_isa { TDM_DNNL_PLAIN, TDM_DNNL_AVX2, TDM_DNNL_AVX512 } tdm_dnnl_isa;
/* Returns the widest instruction set that this processor has. */
tdm_dnnl_isa tdm__dnnl_isa(void);
const char *tdm__dnnl_isa_name(void); /* "plain", "AVX2", "AVX-512" */

#define TDM_LANES_JOIN_(name, isa) name##_##isa
#define TDM_LANES_JOIN(name, isa) TDM_LANES_JOIN_(name, isa)
#define TDM_LANES_TABLE(name) TDM_LANES_JOIN(name, TDM_LANES_ISA) /* TDM_LANES_ISA: plain, avx2 or avx512 */
#define TDM_LANES_TABLES(type, name) extern const type name##_plain, name##_avx2, name##_avx512
#if defined(__x86_64__)
#define TDM_LANES(name)                                  \
    (tdm__dnnl_isa() == TDM_DNNL_AVX512 ? &name##_avx512 \
     : tdm__dnnl_isa() == TDM_DNNL_AVX2 ? &name##_avx2   \
                                        : &name##_plain)
#else
#define TDM_LANES(name) (&name##_plain)
#endif

#endif
