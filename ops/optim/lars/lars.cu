/* lars on CUDA: sgd's kernel, whose values say that there are ratios. */
#include "ops/optim/sgd/sgd.h"
#include "runtime/backends/cuda/kit/kernel.h"

TDM_CUDA_OPTIM(lars, tdm__sgd_on_cuda);
