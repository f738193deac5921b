/* avgpool2d: y[n,c,p,q] = the mean of x in the window of (p,q). */
#ifndef TDM_OPS_AVGPOOL2D_H
#define TDM_OPS_AVGPOOL2D_H

#include <stdbool.h>
#include <stdint.h>

typedef struct tdm_avgpool2d_attrs {
    int64_t kernel[2];
    int64_t stride[2]; /* null: the kernel size; see tdm__pool_window */
    int64_t padding[2];
    bool count_include_pad;
} tdm_avgpool2d_attrs;

#endif
