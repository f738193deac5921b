/* sgd and lars: torch.optim.SGD (torch/optim/sgd.py, _single_tensor_sgd), for each number
 *
 *     d = g + weight_decay p                                    (where weight_decay is not 0)
 *     d = ratio d                                               lars
 *     b = d in the first step, else momentum b + (1 - dampening) d
 *     d = d + momentum b with nesterov, else b                  (both where momentum is not 0)
 *     p = p - lr d
 *
 * Each sum of a number and a product is one fused multiply-add; momentum b is rounded before.
 *
 * lars (You, Gitman, Ginsburg 2017, arXiv 1708.03888, with the eps of apex and timm) has a ratio for each parameter,
 *
 *     ratio = trust_coefficient |p| / (|g| + weight_decay |p| + eps)        where both norms are above 0, else 1
 *
 * and sgd has none. A parameter without norms (exclude_1d) has neither a ratio nor a decay in lars. */
#ifndef TDM_SGD_H
#define TDM_SGD_H

#include "ops/optim/optim.h"

typedef struct tdm_sgd_values {
    float lr, momentum, one_minus_dampening, weight_decay;
    float trust_coefficient, eps; /* lars */
    bool nesterov, first_step;
    bool layerwise; /* lars */
} tdm_sgd_values;

/* norms: may be NULL */
TDM_HOST_DEVICE static inline float tdm__sgd_decay(const tdm_sgd_values *values, const float *p_norm) {
    return values->layerwise && p_norm == NULL ? 0.0f : values->weight_decay;
}

TDM_HOST_DEVICE static inline float tdm__sgd_ratio(const tdm_sgd_values *values, const float *p_norm,
                                                   const float *g_norm) {
    if (p_norm == NULL || !(*p_norm > 0.0f) || !(*g_norm > 0.0f)) return 1.0f;
    const float decay = values->weight_decay * *p_norm;
    return values->trust_coefficient * *p_norm / (*g_norm + decay + values->eps);
}

#ifdef __cplusplus
extern "C" tdm_optim_run tdm__sgd_on_cuda; /* sgd.cu */
#else
/* What both keep. */
unsigned tdm__sgd_states(const tdm_optimizer_section *section, bool cycles);
void tdm__sgd_prepare(const tdm_optim_settings *settings, void *values);
bool tdm__sgd_lacks_momentum(const tdm_optimizer_section *section);
bool tdm__sgd_is_dampened(const tdm_optimizer_section *section);
#define TDM_SGD_CONFLICTS                                                                                         \
    {"optimizer.nesterov", "optimizer.momentum", "optimizer.nesterov needs a momentum above 0, got 0",            \
     tdm__sgd_lacks_momentum},                                                                                    \
    {                                                                                                             \
        "optimizer.nesterov", "optimizer.dampening", "optimizer.nesterov needs dampening 0", tdm__sgd_is_dampened \
    }
tdm_optim_run tdm__sgd_ref, tdm__sgd_avx2, tdm__sgd_avx512;
#endif

#endif
