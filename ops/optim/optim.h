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

#endif
