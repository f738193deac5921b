/* adaptive_avgpool1d on CUDA: adaptive_avgpool2d's. */
#include "ops/adaptive_avgpool1d/adaptive_avgpool1d.h"

TDM_SERIES_CUDA(adaptive_avgpool1d, adaptive_avgpool2d);
