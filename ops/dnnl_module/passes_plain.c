/* Any processor. */
#define PASSES_TABLE tdm__dnnl_passes_plain
#define PASSES_VARIANT "plain"
#include "ops/dnnl_module/passes.inc.c"
