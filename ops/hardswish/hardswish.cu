/* hardswish on CUDA. */
#include "ops/hardswish/hardswish.h"

#include "ops/activation_cuda.h"

TDM_ACTIVATION_CUDA(hardswish, args->x[0], 0.0f);
