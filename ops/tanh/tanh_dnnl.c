/* tanh: the kernel of the dnnl module. It runs the loops of tanh_lanes.c, nothing of oneDNN's. */
#include "ops/activation_dnnl.h"

TDM_ACTIVATION_DNNL(tanh, args->y, 0.0f);
