/* maxpool2d: y[n,c,p,q] = the largest x in the window of (p,q); padding never wins. */
#ifndef TDM_OPS_MAXPOOL2D_H
#define TDM_OPS_MAXPOOL2D_H

#include <stdint.h>

typedef struct tdm_maxpool2d_attrs {
    int64_t kernel[2];
    int64_t stride[2]; /* null: the kernel size; see tdm__pool_window */
    int64_t padding[2];
} tdm_maxpool2d_attrs;

#endif
