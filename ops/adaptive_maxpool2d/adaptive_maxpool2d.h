/* adaptive_maxpool2d: the largest x in window [floor(i*in/out), ceil((i+1)*in/out)) of each axis. */
#ifndef TDM_OPS_ADAPTIVE_MAXPOOL2D_H
#define TDM_OPS_ADAPTIVE_MAXPOOL2D_H

#include <stdint.h>

typedef struct tdm_adaptive_maxpool2d_attrs {
    int64_t out[2];
} tdm_adaptive_maxpool2d_attrs;

#endif
