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
    tdm_window window; /* its padding may be a word: tdm__conv2d_window */
    int64_t groups;
    bool bias;
    int64_t in;     /* TDM_INT_NULL: taken from the input */
    int init;       /* tdm_conv2d_init */
    bool is_series; /* of conv1d: height is 1, and x and y lie in planes (TDM_LAYOUT_PLAIN) */
} tdm_conv2d_attrs;

/* Words for the padding, in both numbers. SAME: as many zeros as keep height and width, with a stride of 1; an odd one
 * goes below or to the right, as in torch. VALID: none. */
enum { TDM_CONV2D_SAME = -1, TDM_CONV2D_VALID = -2 };

/* The window as kernels use it: its padding is that above and to the left. */
static inline tdm_window tdm__conv2d_window(const tdm_conv2d_attrs *attrs) {
    tdm_window window = attrs->window;
    for (int axis = 0; axis < 2; axis++) {
        if (window.padding[axis] >= 0) continue;
        const bool same = window.padding[axis] == TDM_CONV2D_SAME;
        window.padding[axis] = same ? window.dilation[axis] * (window.kernel[axis] - 1) / 2 : 0;
    }
    return window;
}

/* The zeros below (axis 0) and to the right (axis 1). */
static inline int64_t tdm__conv2d_padding_after(const tdm_conv2d_attrs *attrs, int axis) {
    const tdm_window *window = &attrs->window;
    const int64_t before = tdm__conv2d_window(attrs).padding[axis];
    return window->padding[axis] == TDM_CONV2D_SAME ? window->dilation[axis] * (window->kernel[axis] - 1) - before
                                                    : before;
}

/* Writes the layer, or a conv1d as one of images, into an ONNX file. */
tdm_status tdm__conv2d_onnx(struct tdm_onnx *to, const struct tdm_onnx_layer *layer, const tdm_conv2d_attrs *attrs);
/* Is this Conv one over images, axes 2, or over series, 1? */
bool tdm__conv2d_from_onnx(struct tdm_onnx_reader *from, const struct tdm_onnx_node *node, struct tdm_onnx_found *out,
                           int axes);

#endif
