/* sgd: torch.optim.SGD (torch/optim/sgd.py, _single_tensor_sgd), for each number
 *
 *     d = g + weight_decay p                                    (where weight_decay is not 0)
 *     b = d in the first step, else momentum b + (1 - dampening) d
 *     d = d + momentum b with nesterov, else b                  (both where momentum is not 0)
 *     p = p - lr d
 *
 * Each sum of a number and a product is one fused multiply-add; momentum b is rounded before. */
#ifndef TDM_SGD_H
#define TDM_SGD_H

#include "ops/optim/optim.h"

typedef struct tdm_sgd_values {
    float lr, momentum, one_minus_dampening, weight_decay;
    bool nesterov, first_step;
} tdm_sgd_values;

#ifndef __cplusplus
tdm_optim_run tdm__sgd_ref, tdm__sgd_avx2, tdm__sgd_avx512;
#endif

#endif
