/* leaky_relu on CUDA. */
#include "ops/leaky_relu/leaky_relu.h"

#include "ops/activation_cuda.h"

TDM_ACTIVATION_CUDA(leaky_relu, args->y, (float)((const tdm_leaky_relu_attrs *)args->desc->attrs)->negative_slope);
