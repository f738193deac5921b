/* silu: the kernel of the dnnl module. It runs the loops of silu_lanes.c, nothing of oneDNN's. */
#include "ops/activation_dnnl.h"

TDM_ACTIVATION_DNNL(silu, args->x[0], 0.0f);
