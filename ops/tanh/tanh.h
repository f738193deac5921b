/* tanh: y = tanh(x); dx = dy (1 - y^2). */
#ifndef TDM_OPS_TANH_H
#define TDM_OPS_TANH_H

#include "ops/activation_math.h"

TDM_HOST_DEVICE static inline float tdm__tanh(float x, float p) {
    (void)p;
    return tdm__tanhf(x);
}

TDM_HOST_DEVICE static inline float tdm__tanh_gradient(float y, float dy, float p) {
    (void)p;
    return dy * (1.0f - y * y);
}

#endif
