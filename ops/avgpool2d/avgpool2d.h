/* avgpool2d: y[n,c,p,q] = the mean of x in the window of (p,q). */
#ifndef TDM_OPS_AVGPOOL2D_H
#define TDM_OPS_AVGPOOL2D_H

#include "ops/window.h"

typedef struct tdm_avgpool2d_attrs {
    tdm_pool_attrs pool;
    bool count_include_pad;
} tdm_avgpool2d_attrs;

#endif
