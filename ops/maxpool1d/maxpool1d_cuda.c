/* maxpool1d on CUDA: maxpool2d's. */
#include "ops/maxpool1d/maxpool1d.h"

TDM_SERIES_CUDA(maxpool1d, maxpool2d);
