/* silu on CUDA. */
#include "ops/silu/silu.h"

#include "ops/activation_cuda.h"

TDM_ACTIVATION_CUDA(silu, args->x[0], 0.0f);
