/* maxpool2d: y[n,c,p,q] = the largest x in the window of (p,q); padding never wins. */
#ifndef TDM_OPS_MAXPOOL2D_H
#define TDM_OPS_MAXPOOL2D_H

#include "ops/window.h"

typedef struct tdm_maxpool2d_attrs {
    tdm_pool_attrs pool;
} tdm_maxpool2d_attrs;

/* Whether the index of a point of the window fits in a byte. 255 itself says that no point won. */
static inline bool tdm__maxpool2d_fits_byte(const tdm_maxpool2d_attrs *attrs) {
    return attrs->pool.kernel[0] * attrs->pool.kernel[1] <= 255;
}

#endif
