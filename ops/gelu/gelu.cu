/* gelu on CUDA. */
#include "ops/gelu/gelu.h"

#include "ops/activation_cuda.h"

TDM_ACTIVATION_CUDA(gelu, args->x[0], (float)((const tdm_gelu_attrs *)args->desc->attrs)->approximate);
