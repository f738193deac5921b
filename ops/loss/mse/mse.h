/* mse: (y - t)^2. */
#ifndef TDM_OPS_MSE_H
#define TDM_OPS_MSE_H

#include "ops/value_loss.h"

TDM_HOST_DEVICE static inline double tdm__mse(float y, float t, float p) {
    const float d = y - t;
    (void)p;
    return (double)d * (double)d;
}

TDM_HOST_DEVICE static inline float tdm__mse_gradient(float y, float t, float p, float seed) {
    (void)p;
    return (2.0f * seed) * (y - t);
}

#endif
