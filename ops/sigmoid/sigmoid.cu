/* sigmoid on CUDA. */
#include "ops/sigmoid/sigmoid.h"

#include "ops/activation_cuda.h"

TDM_ACTIVATION_CUDA(sigmoid, args->y, 0.0f);
