/* l1 on CUDA. */
#include "ops/loss/l1/l1.h"

#include "ops/value_loss_cuda.h"

TDM_VALUE_LOSS_CUDA(l1, tdm__one_setting(0));
