/* adamw on CUDA: adam's kernel, whose values say which decay it is. */
#include "ops/optim/adam/adam.h"
#include "runtime/backends/cuda/kit/kernel.h"

TDM_CUDA_OPTIM(adamw, tdm__adam_on_cuda);
