/* groupnorm on CUDA. */
#include "ops/groupnorm/groupnorm.h"
#include "ops/layernorm/layernorm_segments_cuda.h"

TDM_CUDA_SEGMENTS(groupnorm);
