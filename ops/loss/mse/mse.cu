/* mse on CUDA. */
#include "ops/loss/mse/mse.h"

#include "ops/value_loss_cuda.h"

TDM_VALUE_LOSS_CUDA(mse, tdm__one_setting(0));
