/* x86-64 with AVX2 and FMA; CMakeLists.txt has the flags. */
#define PASSES_TABLE tdm__dnnl_passes_avx2
#define PASSES_VARIANT "AVX2"
#include "ops/dnnl_module/passes.inc.c"
