/* adaptive_maxpool2d: the largest x in window [floor(i*in/out), ceil((i+1)*in/out)) of each axis. */
#ifndef TDM_OPS_ADAPTIVE_MAXPOOL2D_H
#define TDM_OPS_ADAPTIVE_MAXPOOL2D_H

#include "ops/average.h"

/* For every layout; the winners are saved. */
static inline bool tdm__adaptive_maxpool2d_fits(const tdm_kernel_desc *desc, tdm_kernel_fit *fit) {
    const int64_t *y = desc->y.dim;
    fit->x_layout[0] = fit->y_layout = desc->x_layout[0];
    fit->saved_bytes = (size_t)(y[0] * y[1] * y[2] * y[3]) * sizeof(int32_t);
    return true;
}

#endif
