/* leaky_relu: the kernel of the dnnl module. It runs the loops of leaky_relu_lanes.c, nothing of oneDNN's. */
#include "ops/leaky_relu/leaky_relu.h"

#include "ops/activation_dnnl.h"

TDM_ACTIVATION_DNNL(leaky_relu, args->y, (float)((const tdm_leaky_relu_attrs *)args->desc->attrs)->negative_slope);
