/* adaptive_avgpool2d on CUDA. */
#include "ops/adaptive_avgpool2d/adaptive_spans_cuda.h"
#include "ops/average_cuda.h"

using namespace tdm_cuda;

TDM_CUDA_AVERAGE(adaptive_avgpool2d, adaptive_spans_of);
