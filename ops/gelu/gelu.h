/* gelu: y = x (1 + erf(x / sqrt 2)) / 2; approximate: tanh replaces erf(x / sqrt 2) by tanh(sqrt(2 / pi) (x + 0.044715
 * x^3)). p is the form: 0 erf, 1 tanh (activation.h says how p gets here). */
#ifndef TDM_OPS_GELU_H
#define TDM_OPS_GELU_H

#include "ops/activation_math.h"

typedef enum tdm_gelu_form { TDM_GELU_NONE, TDM_GELU_TANH } tdm_gelu_form;

typedef struct tdm_gelu_attrs {
    int approximate; /* tdm_gelu_form */
} tdm_gelu_attrs;

TDM_HOST_DEVICE static inline float tdm__gelu(float x, float p) {
    if (p != 0.0f) return 0.5f * x * (1.0f + tdm__tanhf(0.797884561f * fmaf(0.044715f * x * x, x, x)));
    return x * tdm__normalf(x);
}

/* y = x F(x) with F = (1 + erf or tanh, as above) / 2: dy/dx = F + x F'. */
TDM_HOST_DEVICE static inline float tdm__gelu_gradient(float x, float dy, float p) {
    const float z = x * x;
    if (p != 0.0f) {
        const float t = tdm__tanhf(0.797884561f * fmaf(0.044715f * z, x, x));
        const float slope = 0.797884561f * fmaf(0.134145f, z, 1.0f) * (1.0f - t * t);
        return dy * (0.5f * fmaf(x, slope, 1.0f + t));
    }
    return dy * fmaf(x, tdm__normal_densityf(x), tdm__normalf(x));
}

#endif
