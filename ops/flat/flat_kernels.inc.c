/* The body of every flat variant: passes over the arenas of parameters, gradients and optimizer state.
 *
 * Included by flat_ref.c, flat_avx2.c and flat_avx512.c, which are compiled for different instruction sets and define
 * FLAT_TABLE and FLAT_VARIANT. All give the same bits: every fused multiply-add is written as fmaf, at the places where
 * ATen's CPU kernels fuse, and sums run over a fixed number of lanes. The loops are plain so that the compiler
 * vectorises them; nothing below may be written so that a wider register changes the order of additions. */
#include <math.h>
#include <string.h>

#include "ops/flat/flat.h"

enum { SUM_BLOCK = 64, LANES = 32 };

/* self + alpha * other as ATen's add(alpha) does it. */
static inline float add_scaled(float self, float other, float alpha) {
    return fmaf(other, alpha, self);
}

static void sgd_plain(const tdm_sgd_args *args, float *restrict p, const float *restrict g, size_t count) {
    const float step = -args->lr, decay = args->weight_decay;
    if (decay != 0.0f) {
        for (size_t i = 0; i < count; i++) p[i] = add_scaled(p[i], add_scaled(g[i], p[i], decay), step);
    } else {
        for (size_t i = 0; i < count; i++) p[i] = add_scaled(p[i], g[i], step);
    }
}

/* Constant flags make this one loop per combination; the compiler drops the rest. */
static inline __attribute__((always_inline)) void sgd_momentum(const tdm_sgd_args *args, float *restrict p,
                                                               const float *restrict g, float *restrict buffer,
                                                               size_t count, const bool nesterov, const bool first,
                                                               const bool decays) {
    const float step = -args->lr, momentum = args->momentum, keep = args->one_minus_dampening;
    const float decay = args->weight_decay;
    for (size_t i = 0; i < count; i++) {
        const float d = decays ? add_scaled(g[i], p[i], decay) : g[i];
        const float b = first ? d : add_scaled(buffer[i] * momentum, d, keep);
        buffer[i] = b;
        p[i] = add_scaled(p[i], nesterov ? add_scaled(d, b, momentum) : b, step);
    }
}

static void sgd(const tdm_sgd_args *args, float *p, const float *g, float *momentum, size_t count) {
    const bool decays = args->weight_decay != 0.0f;
    if (args->momentum == 0.0f) {
        sgd_plain(args, p, g, count);
        return;
    }
    switch ((args->nesterov ? 4 : 0) + (args->first_step ? 2 : 0) + (decays ? 1 : 0)) {
    case 0:
        sgd_momentum(args, p, g, momentum, count, false, false, false);
        break;
    case 1:
        sgd_momentum(args, p, g, momentum, count, false, false, true);
        break;
    case 2:
        sgd_momentum(args, p, g, momentum, count, false, true, false);
        break;
    case 3:
        sgd_momentum(args, p, g, momentum, count, false, true, true);
        break;
    case 4:
        sgd_momentum(args, p, g, momentum, count, true, false, false);
        break;
    case 5:
        sgd_momentum(args, p, g, momentum, count, true, false, true);
        break;
    case 6:
        sgd_momentum(args, p, g, momentum, count, true, true, false);
        break;
    default:
        sgd_momentum(args, p, g, momentum, count, true, true, true);
        break;
    }
}

/* How the first moment moves towards the gradient. Tensor.lerp_ counts from the nearer end. */
typedef enum { MOMENT_MULTIPLY_ADD, MOMENT_LERP_FROM_OLD, MOMENT_LERP_FROM_NEW } moment_form;

static inline __attribute__((always_inline)) void adam_loop(const tdm_adam_args *args, float *restrict p,
                                                            const float *restrict g, float *restrict m,
                                                            float *restrict v, size_t count, const moment_form form,
                                                            const bool decays_gradient, const bool decays_parameter) {
    const float beta1 = args->beta1, weight = args->one_minus_beta1, weight_back = args->one_minus_beta1 - 1.0f;
    const float beta2 = args->beta2, rest2 = args->one_minus_beta2;
    const float step = args->step_size, correction = args->sqrt_correction, eps = args->eps;
    const float decay = args->weight_decay, factor = args->decay_factor;
    for (size_t i = 0; i < count; i++) {
        const float p0 = decays_parameter ? p[i] * factor : p[i];
        const float d = decays_gradient ? add_scaled(g[i], p0, decay) : g[i];
        const float m1 = form == MOMENT_MULTIPLY_ADD    ? add_scaled(m[i] * beta1, d, weight)
                         : form == MOMENT_LERP_FROM_OLD ? fmaf(weight, d - m[i], m[i])
                                                        : fmaf(weight_back, d - m[i], d);
        const float v1 = fmaf(rest2 * d, d, v[i] * beta2);
        m[i] = m1;
        v[i] = v1;
        p[i] = p0 + step * m1 / (sqrtf(v1) / correction + eps);
    }
}

static inline __attribute__((always_inline)) void adam_form(const tdm_adam_args *args, float *p, const float *g,
                                                            float *m, float *v, size_t count, const moment_form form) {
    const bool decays_gradient = args->weight_decay != 0.0f, decays_parameter = args->decay_factor != 1.0f;
    if (decays_gradient && decays_parameter) {
        adam_loop(args, p, g, m, v, count, form, true, true);
    } else if (decays_gradient) {
        adam_loop(args, p, g, m, v, count, form, true, false);
    } else if (decays_parameter) {
        adam_loop(args, p, g, m, v, count, form, false, true);
    } else {
        adam_loop(args, p, g, m, v, count, form, false, false);
    }
}

static void adam(const tdm_adam_args *args, float *p, const float *g, float *m, float *v, size_t count) {
    if (!args->lerp) {
        adam_form(args, p, g, m, v, count, MOMENT_MULTIPLY_ADD);
    } else if (fabsf(args->one_minus_beta1) < 0.5f) {
        adam_form(args, p, g, m, v, count, MOMENT_LERP_FROM_OLD);
    } else {
        adam_form(args, p, g, m, v, count, MOMENT_LERP_FROM_NEW);
    }
}

/* A block at a time on the stack, so that `out` may be any of the sources. */
static void sum(float *out, const float *const *source, int source_count, size_t count) {
    float block[SUM_BLOCK];
    size_t at = 0;
    for (; at + SUM_BLOCK <= count; at += SUM_BLOCK) {
        memcpy(block, source[0] + at, sizeof block);
        for (int s = 1; s < source_count; s++) {
            const float *x = source[s] + at;
            for (int i = 0; i < SUM_BLOCK; i++) block[i] += x[i];
        }
        memcpy(out + at, block, sizeof block);
    }
    for (; at < count; at++) {
        float total = source[0][at];
        for (int s = 1; s < source_count; s++) total += source[s][at];
        out[at] = total;
    }
}

static void scale(float *x, float factor, size_t count) {
    for (size_t i = 0; i < count; i++) x[i] *= factor;
}

/* Number i goes to lane i mod LANES; the lanes are added as a binary tree. A float's square is exact in double. */
static double sum_squares(const float *x, size_t count) {
    double lane[LANES] = {0};
    size_t at = 0;
    for (; at + LANES <= count; at += LANES) {
        for (int i = 0; i < LANES; i++) lane[i] += (double)x[at + i] * (double)x[at + i];
    }
    for (int i = 0; at + (size_t)i < count; i++) lane[i] += (double)x[at + i] * (double)x[at + i];
    for (int width = LANES / 2; width > 0; width /= 2) {
        for (int i = 0; i < width; i++) lane[i] += lane[i + width];
    }
    return lane[0];
}

const tdm_flat_kernels FLAT_TABLE = {
    .variant = FLAT_VARIANT,
    .sgd = sgd,
    .adam = adam,
    .sum = sum,
    .scale = scale,
    .sum_squares = sum_squares,
};
