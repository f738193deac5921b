/* What optimizers and their kernels share. */
#ifndef TDM_OPS_OPTIM_H
#define TDM_OPS_OPTIM_H

#include <math.h>

#include <tandem/sys/optim.h>

#include "runtime/base/host_device.h"

/* self + alpha * other as ATen's add(alpha) does it: with one rounding. */
TDM_HOST_DEVICE static inline float tdm__add_scaled(float self, float other, float alpha) {
    return fmaf(other, alpha, self);
}

/* Tensor.lerp_, which counts from the nearer end: from `other` if `from_other`. */
TDM_HOST_DEVICE static inline bool tdm__lerps_from_other(float weight) {
    return !(fabsf(weight) < 0.5f);
}
TDM_HOST_DEVICE static inline float tdm__lerp(float self, float other, float weight, bool from_other) {
    return from_other ? fmaf(weight - 1.0f, other - self, other) : fmaf(weight, other - self, self);
}

#endif
