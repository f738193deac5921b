/* x86-64 with AVX-512 F, VL and DQ; CMakeLists.txt has the compiler's flags. */
#define FLAT_TABLE tdm__flat_avx512
#define FLAT_VARIANT "avx512"
#include "ops/flat/flat_kernels.inc.c"
