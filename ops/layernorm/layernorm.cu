/* layernorm on CUDA. */
#include "ops/layernorm/layernorm.h"
#include "ops/layernorm/layernorm_segments_cuda.h"

TDM_CUDA_SEGMENTS(layernorm);
