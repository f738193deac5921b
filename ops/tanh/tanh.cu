/* tanh on CUDA. */
#include "ops/tanh/tanh.h"

#include "ops/activation_cuda.h"

TDM_ACTIVATION_CUDA(tanh, args->y, 0.0f);
