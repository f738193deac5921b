/* relu: y = max(0, x). dx = 0 where y <= 0, else dy. NaN passes through, as in PyTorch. */
#ifndef TDM_OPS_RELU_H
#define TDM_OPS_RELU_H

#include "runtime/base/host_device.h"

TDM_HOST_DEVICE static inline float tdm__relu(float x, float p) {
    (void)p;
    return x < 0.0f ? 0.0f : x;
}

TDM_HOST_DEVICE static inline float tdm__relu_gradient(float y, float dy, float p) {
    (void)p;
    return y <= 0.0f ? 0.0f : dy;
}

#endif
