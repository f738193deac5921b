/* rmsprop: torch.optim.RMSprop (torch/optim/rmsprop.py, _single_tensor_rmsprop), for each number
 *
 *     d = g + weight_decay p                          (where weight_decay is not 0)
 *     v = alpha v + (1 - alpha) d d
 *     a = a + (d - a)(1 - alpha)                      centered: Tensor.lerp_, from the nearer end
 *     w = v - a a with centered, else v
 *     d = d / (sqrt(w) + eps)
 *     b = momentum b + d;  p = p - lr b               where momentum is not 0
 *     p = p - lr d                                    where it is
 *
 * Each sum of a number and a product is one fused multiply-add; alpha v and momentum b are rounded before, and a step
 * without momentum is the quotient of -lr d. */
#ifndef TDM_RMSPROP_H
#define TDM_RMSPROP_H

#include "ops/optim/optim.h"

typedef struct tdm_rmsprop_values {
    float lr, momentum, alpha, one_minus_alpha, eps, weight_decay;
    bool centered;
} tdm_rmsprop_values;

#ifndef __cplusplus
tdm_optim_run tdm__rmsprop_ref, tdm__rmsprop_avx2, tdm__rmsprop_avx512;
#endif

#endif
