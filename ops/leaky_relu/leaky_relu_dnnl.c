/* leaky_relu: the kernel of the dnnl module. */
#include "ops/leaky_relu/leaky_relu.h"

#include "ops/activation_dnnl.h"

TDM_ACTIVATION_DNNL(leaky_relu, args->y, (float)((const tdm_leaky_relu_attrs *)args->desc->attrs)->negative_slope);
