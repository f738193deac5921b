/* Windows that slide, as attributes of ONNX nodes. */
#include "ops/onnx/window_onnx.h"

static const int64_t *axes_of(const int64_t pair[2], int axes) {
    return pair + 2 - axes;
}

void tdm__onnx_window(tdm_onnx *to, const tdm_window *window, const int64_t after[2], int axes) {
    int64_t pads[4];
    for (int i = 0; i < axes; i++) {
        pads[i] = axes_of(window->padding, axes)[i];
        pads[axes + i] = axes_of(after, axes)[i];
    }
    to->calls->integers(to, "kernel_shape", axes, axes_of(window->kernel, axes));
    to->calls->integers(to, "strides", axes, axes_of(window->stride, axes));
    to->calls->integers(to, "pads", 2 * axes, pads);
}

tdm_status tdm__onnx_pool(tdm_onnx *to, const tdm_onnx_layer *layer, const char *op, const tdm_pool_attrs *attrs,
                          int axes, bool *reaches) {
    const tdm_window window = tdm__pool_window(attrs);
    int64_t after[2] = {0, 0};
    bool ceil = false, drops = false;
    *reaches = false;
    for (int i = 0; i < axes; i++) {
        const int axis = 2 - axes + i;
        const int64_t in = layer->input[0].dim[1 + i], out = layer->output.dim[1 + i];
        const int64_t end = (out - 1) * window.stride[axis] - window.padding[axis] + tdm__window_reach(&window, axis);
        after[axis] = end > in ? end - in : 0;
        *reaches = *reaches || after[axis] > window.padding[axis];
        ceil = ceil || after[axis] >= window.kernel[axis];
        drops = drops || end < in + window.padding[axis]; /* a last window that begins behind the input */
    }
    if (ceil && drops)
        TDM_FAIL(TDM_E_UNSUPPORTED,
                 "%s: ONNX does not have ceil_mode with this dilation, stride and size: along one side the last window "
                 "reaches a kernel or more beyond the input, along the other it begins behind it",
                 layer->layer);
    TDM_ONNX_NODE(to, op, layer->y, layer->x[0]);
    tdm__onnx_window(to, &window, ceil ? window.padding : after, axes);
    if (ceil) to->calls->integer(to, "ceil_mode", 1);
    return TDM_OK;
}

tdm_status tdm__onnx_even_windows(tdm_onnx *to, const tdm_onnx_layer *layer, const char *op, int axes) {
    int64_t kernel[2];
    for (int i = 0; i < axes; i++) {
        const int64_t in = layer->input[0].dim[1 + i], out = layer->output.dim[1 + i];
        if (in % out != 0)
            TDM_FAIL(TDM_E_UNSUPPORTED, "%s: ONNX has it only where the windows are equal: %lld points into %lld",
                     layer->layer, (long long)in, (long long)out);
        kernel[i] = in / out;
    }
    TDM_ONNX_NODE(to, op, layer->y, layer->x[0]);
    to->calls->integers(to, "kernel_shape", axes, kernel);
    to->calls->integers(to, "strides", axes, kernel);
    return TDM_OK;
}
