/* conv2d: y[n,o,p,q] = b[o] + sum_{c,i,j} w[o,c,i,j] x[n,g(o)+c, p*stride - padding + i*dilation, q*... + j*...] */
#ifndef TDM_OPS_CONV2D_H
#define TDM_OPS_CONV2D_H

#include <stdbool.h>
#include <stdint.h>

#include "ops/window.h"

/* The module's own; or kaiming_normal_(mode="fan_out", nonlinearity="relu") with bias 0, as torchvision's networks. */
typedef enum tdm_conv2d_init { TDM_CONV2D_INIT_DEFAULT, TDM_CONV2D_INIT_KAIMING } tdm_conv2d_init;

typedef struct tdm_conv2d_attrs {
    int64_t out;
    tdm_window window;
    int64_t groups;
    bool bias;
    int64_t in; /* TDM_INT_NULL: taken from the input */
    int init;   /* tdm_conv2d_init */
} tdm_conv2d_attrs;

#endif
