/* relu6 on CUDA. */
#include "ops/relu6/relu6.h"

#include "ops/activation_cuda.h"

TDM_ACTIVATION_CUDA(relu6, args->y, 0.0f);
