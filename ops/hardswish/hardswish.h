/* hardswish: y = x min(max(0, x + 3), 6) / 6. dx = dy (x / 3 + 1/2) between -3 and 3, 0 below and dy above. */
#ifndef TDM_OPS_HARDSWISH_H
#define TDM_OPS_HARDSWISH_H

#include "ops/activation_math.h"

TDM_HOST_DEVICE static inline float tdm__hardswish(float x, float p) {
    float part = x + 3.0f;
    (void)p;
    part = part < 0.0f ? 0.0f : part;
    part = part > 6.0f ? 6.0f : part;
    return x * part / 6.0f;
}

TDM_HOST_DEVICE static inline float tdm__hardswish_gradient(float x, float dy, float p) {
    const float between = dy * (x / 3.0f + 0.5f), below = x <= -3.0f ? 0.0f : between;
    (void)p;
    return x >= 3.0f ? dy : below;
}

#endif
