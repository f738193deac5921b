/* adam and adamw on the CPU, compiled for each instruction set (base/isa.h). All give the same bits: every fused
 * multiply-add is written as fmaf, where ATen's CPU kernels fuse. The loops are plain so that the
 * compiler vectorises them. */
#include "ops/optim/adam/adam.h"

#include "runtime/base/isa.h"

/* How the first moment moves towards the gradient. */
typedef enum { MOMENT_MULTIPLY_ADD, MOMENT_LERP_FROM_OLD, MOMENT_LERP_FROM_NEW } moment_form;

static inline __attribute__((always_inline)) void adam_loop(const tdm_adam_values *values, float *restrict p,
                                                            const float *restrict g, float *restrict m,
                                                            float *restrict v, float *restrict most, size_t count,
                                                            const moment_form form, const bool decays_gradient,
                                                            const bool decays_parameter, const bool amsgrad) {
    const float beta1 = values->beta1, weight = values->one_minus_beta1;
    const float beta2 = values->beta2, rest2 = values->one_minus_beta2;
    const float step = values->step_size, correction = values->sqrt_correction, eps = values->eps;
    const float decay = values->weight_decay, factor = values->decay_factor;
    for (size_t i = 0; i < count; i++) {
        const float p0 = decays_parameter ? p[i] * factor : p[i];
        const float d = decays_gradient ? tdm__add_scaled(g[i], p0, decay) : g[i];
        const float m1 = form == MOMENT_MULTIPLY_ADD ? tdm__add_scaled(m[i] * beta1, d, weight)
                                                     : tdm__lerp(m[i], d, weight, form == MOMENT_LERP_FROM_NEW);
        const float v1 = fmaf(rest2 * d, d, v[i] * beta2);
        m[i] = m1;
        v[i] = v1;
        const float largest = amsgrad && most[i] > v1 ? most[i] : v1;
        if (amsgrad) most[i] = largest;
        p[i] = p0 + step * m1 / (sqrtf(largest) / correction + eps);
    }
}

/* One kind of decay at most: see adam.c and adamw.c. */
static inline __attribute__((always_inline)) void adam_decay(const tdm_adam_values *values, const tdm_optim_args *args,
                                                             const moment_form form, const bool amsgrad) {
    float *p = args->p, *m = args->state[0], *v = args->state[1], *most = args->state[2];
    if (values->weight_decay != 0.0f) {
        adam_loop(values, p, args->g, m, v, most, args->count, form, true, false, amsgrad);
    } else if (values->decay_factor != 1.0f) {
        adam_loop(values, p, args->g, m, v, most, args->count, form, false, true, amsgrad);
    } else {
        adam_loop(values, p, args->g, m, v, most, args->count, form, false, false, amsgrad);
    }
}

static inline __attribute__((always_inline)) void adam_form(const tdm_adam_values *values, const tdm_optim_args *args,
                                                            const moment_form form) {
    if (values->amsgrad) {
        adam_decay(values, args, form, true);
    } else {
        adam_decay(values, args, form, false);
    }
}

tdm_status TDM_ISA_NAME(tdm__adam)(const tdm_optim_args *args) {
    const tdm_adam_values *values = (const void *)args->values->optim;
    if (!values->lerp) {
        adam_form(values, args, MOMENT_MULTIPLY_ADD);
    } else if (tdm__lerps_from_other(values->one_minus_beta1)) {
        adam_form(values, args, MOMENT_LERP_FROM_NEW);
    } else {
        adam_form(values, args, MOMENT_LERP_FROM_OLD);
    }
    return TDM_OK;
}
