/* leaky_relu: reference kernel. */
#include "ops/leaky_relu/leaky_relu.h"

#include "ops/activation.h"

TDM_ACTIVATION_REF(leaky_relu, args->y, (float)((const tdm_leaky_relu_attrs *)args->desc->attrs)->negative_slope);
