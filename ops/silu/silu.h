/* silu: y = x s, where s = 1 / (1 + exp(-x)); dx = dy s (1 + x (1 - s)). */
#ifndef TDM_OPS_SILU_H
#define TDM_OPS_SILU_H

#include "ops/activation_math.h"

TDM_HOST_DEVICE static inline float tdm__silu(float x, float p) {
    (void)p; /* silu has no attribute */
    return x / (1.0f + tdm__expf(-x));
}

TDM_HOST_DEVICE static inline float tdm__silu_gradient(float x, float dy, float p) {
    const float s = 1.0f / (1.0f + tdm__expf(-x));
    (void)p;
    return dy * (s * fmaf(x, 1.0f - s, 1.0f));
}

#endif
