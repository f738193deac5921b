/* relu6: the kernel of the dnnl module. It runs the loops of relu6_lanes.c, nothing of oneDNN's. */
#include "ops/relu6/relu6.h"

#include "ops/activation_dnnl.h"

TDM_ACTIVATION_DNNL(relu6, args->y, 0.0f);
