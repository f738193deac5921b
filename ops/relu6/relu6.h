/* relu6: y = min(max(0, x), 6). dx = dy where 0 < y < 6, else 0. NaN passes through, as in PyTorch. */
#ifndef TDM_OPS_RELU6_H
#define TDM_OPS_RELU6_H

#include "runtime/base/host_device.h"

TDM_HOST_DEVICE static inline float tdm__relu6(float x, float p) {
    (void)p;
    return x < 0.0f ? 0.0f : x > 6.0f ? 6.0f : x;
}

TDM_HOST_DEVICE static inline float tdm__relu6_gradient(float y, float dy, float p) {
    (void)p;
    return y <= 0.0f || y >= 6.0f ? 0.0f : dy;
}

#endif
