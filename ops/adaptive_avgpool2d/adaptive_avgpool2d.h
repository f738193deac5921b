/* adaptive_avgpool2d: the mean over window [floor(i*in/out), ceil((i+1)*in/out)) of each axis. */
#ifndef TDM_OPS_ADAPTIVE_AVGPOOL2D_H
#define TDM_OPS_ADAPTIVE_AVGPOOL2D_H

#include "ops/window.h"

typedef tdm_adaptive_attrs tdm_adaptive_avgpool2d_attrs;

#endif
