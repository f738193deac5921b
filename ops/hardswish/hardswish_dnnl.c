/* hardswish: the kernel of the dnnl module. It runs the loops of hardswish_lanes.c, nothing of oneDNN's. */
#include "ops/activation_dnnl.h"

TDM_ACTIVATION_DNNL(hardswish, args->x[0], 0.0f);
