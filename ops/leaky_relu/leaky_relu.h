/* leaky_relu: y = x where x > 0, else p x, where p is negative_slope. It is 0 or more, so y > 0 exactly where x > 0,
 * and backward needs y alone. PyTorch's negative slopes are refused: with one, y says nothing about the sign of x. */
#ifndef TDM_OPS_LEAKY_RELU_H
#define TDM_OPS_LEAKY_RELU_H

#include "ops/activation_math.h"

typedef struct tdm_leaky_relu_attrs {
    double negative_slope;
} tdm_leaky_relu_attrs;

TDM_HOST_DEVICE static inline float tdm__leaky_relu(float x, float p) {
    const float scaled = x * p;
    return x > 0.0f ? x : scaled;
}

TDM_HOST_DEVICE static inline float tdm__leaky_relu_gradient(float y, float dy, float p) {
    const float scaled = dy * p;
    return y > 0.0f ? dy : scaled;
}

#endif
