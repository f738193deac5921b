/* Any processor: the oracle of the other variants. */
#define FLAT_TABLE tdm__flat_ref
#define FLAT_VARIANT "ref"
#include "ops/flat/flat_kernels.inc.c"
