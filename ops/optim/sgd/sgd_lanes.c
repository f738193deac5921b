/* sgd on the CPU, compiled for each instruction set (base/isa.h). All give the same bits: every fused multiply-add is
 * written as fmaf, where ATen's CPU kernels fuse. The loops are plain so that the compiler vectorises
 * them. */
#include "ops/optim/sgd/sgd.h"

#include "runtime/base/isa.h"

/* What a call multiplies by. The ratio of sgd is 1, which changes no bit. */
typedef struct factors {
    float step, momentum, keep, decay, ratio;
} factors;

static factors factors_of(const tdm_sgd_values *values, const tdm_optim_args *args) {
    return (factors){.step = -values->lr,
                     .momentum = values->momentum,
                     .keep = values->one_minus_dampening,
                     .decay = tdm__sgd_decay(values, args->p_norm),
                     .ratio = tdm__sgd_ratio(values, args->p_norm, args->g_norm)};
}

static void sgd_plain(factors f, float *restrict p, const float *restrict g, size_t count) {
    if (f.decay != 0.0f) {
        for (size_t i = 0; i < count; i++)
            p[i] = tdm__add_scaled(p[i], tdm__add_scaled(g[i], p[i], f.decay) * f.ratio, f.step);
    } else {
        for (size_t i = 0; i < count; i++) p[i] = tdm__add_scaled(p[i], g[i] * f.ratio, f.step);
    }
}

/* Constant flags make this one loop per combination; the compiler drops the rest. */
static inline __attribute__((always_inline)) void sgd_momentum(factors f, float *restrict p, const float *restrict g,
                                                               float *restrict buffer, size_t count,
                                                               const bool nesterov, const bool first,
                                                               const bool decays) {
    for (size_t i = 0; i < count; i++) {
        const float d = (decays ? tdm__add_scaled(g[i], p[i], f.decay) : g[i]) * f.ratio;
        const float b = first ? d : tdm__add_scaled(buffer[i] * f.momentum, d, f.keep);
        buffer[i] = b;
        p[i] = tdm__add_scaled(p[i], nesterov ? tdm__add_scaled(d, b, f.momentum) : b, f.step);
    }
}

static inline __attribute__((always_inline)) void sgd_form(factors f, const tdm_optim_args *args, const bool nesterov,
                                                           const bool first) {
    if (f.decay != 0.0f) {
        sgd_momentum(f, args->p, args->g, args->state[0], args->count, nesterov, first, true);
    } else {
        sgd_momentum(f, args->p, args->g, args->state[0], args->count, nesterov, first, false);
    }
}

tdm_status TDM_ISA_NAME(tdm__sgd)(const tdm_optim_args *args) {
    const tdm_sgd_values *values = (const void *)args->values->optim;
    const factors f = factors_of(values, args);
    if (values->momentum == 0.0f) {
        sgd_plain(f, args->p, args->g, args->count);
    } else if (values->nesterov && values->first_step) {
        sgd_form(f, args, true, true);
    } else if (values->nesterov) {
        sgd_form(f, args, true, false);
    } else if (values->first_step) {
        sgd_form(f, args, false, true);
    } else {
        sgd_form(f, args, false, false);
    }
    return TDM_OK;
}
