/* gelu: the kernel of the dnnl module. It runs the loops of gelu_lanes.c, nothing of oneDNN's. */
#include "ops/activation_dnnl.h"
#include "ops/gelu/gelu.h"

TDM_ACTIVATION_DNNL(gelu, args->x[0], (float)((const tdm_gelu_attrs *)args->desc->attrs)->approximate);
