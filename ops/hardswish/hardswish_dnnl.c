/* hardswish: the kernel of the dnnl module. */
#include "ops/activation_dnnl.h"

TDM_ACTIVATION_DNNL(hardswish, args->x[0], 0.0f);
