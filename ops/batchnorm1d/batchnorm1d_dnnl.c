/* batchnorm1d for the CPU. */
#include "ops/batchnorm2d/batchnorm2d_dnnl.h"

TDM_BATCHNORM2D_DNNL(batchnorm1d);
