/* silu: the kernel of the dnnl module. */
#include "ops/activation_dnnl.h"

TDM_ACTIVATION_DNNL(silu, args->x[0], 0.0f);
