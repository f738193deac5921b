/* x86-64 with AVX2 and FMA; CMakeLists.txt has the compiler's flags. */
#define FLAT_TABLE tdm__flat_avx2
#define FLAT_VARIANT "avx2"
#include "ops/flat/flat_kernels.inc.c"
