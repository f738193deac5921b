/* rmsprop on the CPU, compiled for each instruction set (base/isa.h). All give the same bits: every fused multiply-add
 * is written as fmaf, where ATen's CPU kernels fuse. The loops are plain so that the compiler vectorises
 * them. */
#include "ops/optim/rmsprop/rmsprop.h"

#include "runtime/base/isa.h"

typedef enum { PLAIN, CENTERED_FROM_OLD, CENTERED_FROM_NEW } average_form;

/* Constant flags make this one loop per combination; the compiler drops the rest. */
static inline __attribute__((always_inline)) void rmsprop_loop(const tdm_rmsprop_values *values, float *restrict p,
                                                               const float *restrict g, float *restrict v,
                                                               float *restrict buffer, float *restrict average,
                                                               size_t count, const average_form form, const bool moves,
                                                               const bool decays) {
    const float step = -values->lr, momentum = values->momentum, eps = values->eps, decay = values->weight_decay;
    const float alpha = values->alpha, weight = values->one_minus_alpha;
    for (size_t i = 0; i < count; i++) {
        const float d = decays ? tdm__add_scaled(g[i], p[i], decay) : g[i];
        const float v1 = fmaf(weight * d, d, v[i] * alpha);
        float square = v1;
        v[i] = v1;
        if (form != PLAIN) {
            const float a = tdm__lerp(average[i], d, weight, form == CENTERED_FROM_NEW);
            average[i] = a;
            square = fmaf(-a, a, v1);
        }
        const float root = sqrtf(square) + eps;
        if (moves) {
            const float b = buffer[i] * momentum + d / root;
            buffer[i] = b;
            p[i] = tdm__add_scaled(p[i], b, step);
        } else {
            p[i] = p[i] + step * d / root;
        }
    }
}

static inline __attribute__((always_inline)) void
rmsprop_moves(const tdm_rmsprop_values *values, const tdm_optim_args *args, const average_form form, const bool moves) {
    float *v = args->state[0], *buffer = args->state[1], *average = args->state[2];
    if (values->weight_decay != 0.0f) {
        rmsprop_loop(values, args->p, args->g, v, buffer, average, args->count, form, moves, true);
    } else {
        rmsprop_loop(values, args->p, args->g, v, buffer, average, args->count, form, moves, false);
    }
}

static inline __attribute__((always_inline)) void rmsprop_form(const tdm_rmsprop_values *values,
                                                               const tdm_optim_args *args, const average_form form) {
    if (values->momentum != 0.0f) {
        rmsprop_moves(values, args, form, true);
    } else {
        rmsprop_moves(values, args, form, false);
    }
}

tdm_status TDM_ISA_NAME(tdm__rmsprop)(const tdm_optim_args *args) {
    const tdm_rmsprop_values *values = (const void *)args->values->optim;
    if (!values->centered) {
        rmsprop_form(values, args, PLAIN);
    } else if (tdm__lerps_from_other(values->one_minus_alpha)) {
        rmsprop_form(values, args, CENTERED_FROM_NEW);
    } else {
        rmsprop_form(values, args, CENTERED_FROM_OLD);
    }
    return TDM_OK;
}
