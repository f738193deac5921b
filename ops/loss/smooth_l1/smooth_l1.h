/* smooth_l1: d^2 / (2 beta) where |d| < beta, else |d| - beta / 2, of d = y - t. p is beta; beta 0 is l1. */
#ifndef TDM_OPS_SMOOTH_L1_H
#define TDM_OPS_SMOOTH_L1_H

#include <math.h>

#include "ops/value_loss.h"

TDM_HOST_DEVICE static inline double tdm__smooth_l1(float y, float t, float p) {
    const float a = fabsf(y - t);
    return a < p ? (double)(0.5f * a * a / p) : (double)(a - 0.5f * p);
}

TDM_HOST_DEVICE static inline float tdm__smooth_l1_gradient(float y, float t, float p, float seed) {
    const float d = y - t;
    if (fabsf(d) < p) return seed * d / p;
    return d > 0.0f ? seed : d < 0.0f ? -seed : d * seed; /* 0, or NaN */
}

#endif
