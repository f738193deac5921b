/* sigmoid: the kernel of the dnnl module. It runs the loops of sigmoid_lanes.c, nothing of oneDNN's. */
#include "ops/activation_dnnl.h"

TDM_ACTIVATION_DNNL(sigmoid, args->y, 0.0f);
