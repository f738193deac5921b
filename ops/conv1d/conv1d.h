/* conv1d: y[n,o,q] = b[o] + sum_{c,j} w[o,c,j] x[n,g(o)+c, q*stride - padding + j*dilation]: conv2d with a height of 1,
 * whose kernels compute it. */
#ifndef TDM_OPS_CONV1D_H
#define TDM_OPS_CONV1D_H

#include "ops/conv2d/conv2d.h"
#include "ops/series/series.h"

typedef struct tdm_conv1d_attrs {
    int64_t out, kernel, stride;
    int64_t padding; /* may be TDM_CONV2D_SAME or TDM_CONV2D_VALID */
    int64_t dilation, groups;
    bool bias;
    int64_t in; /* TDM_INT_NULL: taken from the input */
} tdm_conv1d_attrs;

/* Those of conv2d. */
static inline tdm_conv2d_attrs tdm__conv1d_image(const void *of_series) {
    const tdm_conv1d_attrs *attrs = of_series;
    tdm_conv2d_attrs image = {0};
    image.out = attrs->out;
    image.window.kernel[0] = image.window.stride[0] = image.window.dilation[0] = 1;
    image.window.kernel[1] = attrs->kernel;
    image.window.stride[1] = attrs->stride;
    image.window.padding[1] = attrs->padding;
    image.window.dilation[1] = attrs->dilation;
    image.groups = attrs->groups;
    image.bias = attrs->bias;
    image.in = attrs->in;
    image.is_series = true;
    return image;
}

#endif
