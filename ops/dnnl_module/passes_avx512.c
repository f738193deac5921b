/* x86-64 with AVX-512; CMakeLists.txt has the flags. */
#define PASSES_TABLE tdm__dnnl_passes_avx512
#define PASSES_VARIANT "AVX-512"
#include "ops/dnnl_module/passes.inc.c"
