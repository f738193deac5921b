/* lstm on CUDA. */
#include "ops/recurrent/recurrent_cuda.h"

TDM_RECURRENT_CUDA(lstm, false);
