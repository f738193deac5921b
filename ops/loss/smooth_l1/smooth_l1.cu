/* smooth_l1 on CUDA. */
#include "ops/loss/smooth_l1/smooth_l1.h"

#include "ops/value_loss_cuda.h"

TDM_VALUE_LOSS_CUDA(smooth_l1, tdm__one_setting(args->section->beta));
