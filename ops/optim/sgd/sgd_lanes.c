/* sgd on the CPU, compiled for each instruction set (base/isa.h). All give the same bits: every fused multiply-add is
 * written as fmaf, at the places where ATen's CPU kernels fuse. The loops are plain so that the compiler vectorises
 * them. */
#include "ops/optim/sgd/sgd.h"

#include "runtime/base/isa.h"

static void sgd_plain(const tdm_sgd_values *values, float *restrict p, const float *restrict g, size_t count) {
    const float step = -values->lr, decay = values->weight_decay;
    if (decay != 0.0f) {
        for (size_t i = 0; i < count; i++) p[i] = tdm__add_scaled(p[i], tdm__add_scaled(g[i], p[i], decay), step);
    } else {
        for (size_t i = 0; i < count; i++) p[i] = tdm__add_scaled(p[i], g[i], step);
    }
}

/* Constant flags make this one loop per combination; the compiler drops the rest. */
static inline __attribute__((always_inline)) void sgd_momentum(const tdm_sgd_values *values, float *restrict p,
                                                               const float *restrict g, float *restrict buffer,
                                                               size_t count, const bool nesterov, const bool first,
                                                               const bool decays) {
    const float step = -values->lr, momentum = values->momentum, keep = values->one_minus_dampening;
    const float decay = values->weight_decay;
    for (size_t i = 0; i < count; i++) {
        const float d = decays ? tdm__add_scaled(g[i], p[i], decay) : g[i];
        const float b = first ? d : tdm__add_scaled(buffer[i] * momentum, d, keep);
        buffer[i] = b;
        p[i] = tdm__add_scaled(p[i], nesterov ? tdm__add_scaled(d, b, momentum) : b, step);
    }
}

static inline __attribute__((always_inline)) void sgd_form(const tdm_sgd_values *values, const tdm_optim_args *args,
                                                           const bool nesterov, const bool first) {
    if (values->weight_decay != 0.0f) {
        sgd_momentum(values, args->p, args->g, args->state[0], args->count, nesterov, first, true);
    } else {
        sgd_momentum(values, args->p, args->g, args->state[0], args->count, nesterov, first, false);
    }
}

tdm_status TDM_ISA_NAME(tdm__sgd)(const tdm_optim_args *args) {
    const tdm_sgd_values *values = (const void *)args->values->optim;
    if (values->momentum == 0.0f) {
        sgd_plain(values, args->p, args->g, args->count);
    } else if (values->nesterov && values->first_step) {
        sgd_form(values, args, true, true);
    } else if (values->nesterov) {
        sgd_form(values, args, true, false);
    } else if (values->first_step) {
        sgd_form(values, args, false, true);
    } else {
        sgd_form(values, args, false, false);
    }
    return TDM_OK;
}
