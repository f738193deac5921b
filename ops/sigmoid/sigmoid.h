/* sigmoid: y = 1 / (1 + exp(-x)); dx = dy (1 - y) y. */
#ifndef TDM_OPS_SIGMOID_H
#define TDM_OPS_SIGMOID_H

#include "ops/activation_math.h"

TDM_HOST_DEVICE static inline float tdm__sigmoid(float x, float p) {
    (void)p;
    return 1.0f / (1.0f + tdm__expf(-x));
}

TDM_HOST_DEVICE static inline float tdm__sigmoid_gradient(float y, float dy, float p) {
    (void)p;
    return dy * ((1.0f - y) * y);
}

#endif
