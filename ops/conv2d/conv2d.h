/* conv2d: y[n,o,p,q] = b[o] + sum_{c,i,j} w[o,c,i,j] x[n,g(o)+c, p*stride - padding + i*dilation, q*... + j*...] */
#ifndef TDM_OPS_CONV2D_H
#define TDM_OPS_CONV2D_H

#include <stdbool.h>
#include <stdint.h>

#include "ops/window.h"

typedef struct tdm_conv2d_attrs {
    int64_t out;
    tdm_window window;
    int64_t groups;
    bool bias;
    int64_t in; /* TDM_INT_NULL: taken from the input */
} tdm_conv2d_attrs;

#endif
