/* relu: the kernel of the dnnl module. It runs the loops of relu_lanes.c, nothing of oneDNN's. */
#include "ops/relu/relu.h"

#include "ops/activation_dnnl.h"

TDM_ACTIVATION_DNNL(relu, args->y, 0.0f);
