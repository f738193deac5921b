/* gelu: the kernel of the dnnl module. */
#include "ops/activation_dnnl.h"
#include "ops/gelu/gelu.h"

TDM_ACTIVATION_DNNL(gelu, args->x[0], (float)((const tdm_gelu_attrs *)args->desc->attrs)->approximate);
