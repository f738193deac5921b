/* gelu: reference kernel. */
#include "ops/gelu/gelu.h"

#include "ops/activation.h"

TDM_ACTIVATION_REF(gelu, args->x[0], (float)((const tdm_gelu_attrs *)args->desc->attrs)->approximate);
