/* adam and adamw: torch.optim.Adam and AdamW (torch/optim/adam.py, adamw.py, _single_tensor_adam), for each number
 *
 *     p = p (1 - lr weight_decay)                                           adamw
 *     g = g + weight_decay p                                                adam, where weight_decay is not 0
 *     m = m + (g - m)(1 - beta1), or beta1 m + (1 - beta1) g                form: lerp, or muladd
 *     v = beta2 v + (1 - beta2) g g
 *     w = max(w, v) with amsgrad, else v
 *     p = p - lr / (1 - beta1^t) m / (sqrt(w) / sqrt(1 - beta2^t) + eps)
 *
 * The two differ in their decay alone, so they share scalars and kernels: adam sets decay_factor to 1, adamw
 * weight_decay to 0. lerp is Tensor.lerp_, which torch has from 2.1 on. */
#ifndef TDM_ADAM_H
#define TDM_ADAM_H

#include "ops/optim/optim.h"

typedef struct tdm_adam_values {
    float beta1, one_minus_beta1, beta2, one_minus_beta2;
    float step_size;       /* -lr / (1 - beta1^t) */
    float sqrt_correction; /* sqrt(1 - beta2^t) */
    float eps;
    float weight_decay; /* added to the gradient (adam) */
    float decay_factor; /* 1 - lr * weight_decay, multiplied first (adamw) */
    bool lerp, amsgrad;
} tdm_adam_values;

#ifdef __cplusplus
extern "C" tdm_optim_run tdm__adam_on_cuda; /* adam.cu */
#else
/* What both keep: the third array with amsgrad only. */
unsigned tdm__adam_states(const tdm_optimizer_section *section, bool cycles);
/* Without any decay. */
void tdm__adam_prepare(const tdm_optim_settings *settings, tdm_adam_values *values);
tdm_optim_run tdm__adam_ref, tdm__adam_avx2, tdm__adam_avx512;
#endif

#endif
