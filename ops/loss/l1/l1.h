/* l1: |y - t|; its slope is 0 where they are equal. */
#ifndef TDM_OPS_L1_H
#define TDM_OPS_L1_H

#include <math.h>

#include "ops/value_loss.h"

TDM_HOST_DEVICE static inline double tdm__l1(float y, float t, float p) {
    (void)p;
    return (double)fabsf(y - t);
}

TDM_HOST_DEVICE static inline float tdm__l1_gradient(float y, float t, float p, float seed) {
    const float d = y - t;
    (void)p;
    return d > 0.0f ? seed : d < 0.0f ? -seed : d * seed; /* 0, or NaN */
}

#endif
