/* bce_with_logits on CUDA. */
#include "ops/loss/bce_with_logits/bce_with_logits.h"

#include "ops/value_loss_cuda.h"

TDM_VALUE_LOSS_CUDA(bce_with_logits, tdm__pos_weights(args));
