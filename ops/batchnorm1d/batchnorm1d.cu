/* batchnorm1d on CUDA. */
#include "ops/batchnorm2d/batchnorm2d_cuda.h"

TDM_BATCHNORM2D_CUDA(batchnorm1d);
