/* Shapes of sliding windows. */
#include "ops/window.h"

#include "ops/ops.h"

tdm_status tdm__infer_check_image(const tdm_infer *infer) {
    if (infer->input[0].ndim != 3)
        TDM_INFER_FAIL(infer, "%s needs an input of channels x height x width, got %s", infer->layer,
                       tdm__shape_text(&infer->input[0]).text);
    return TDM_OK;
}

tdm_status tdm__window_infer(const tdm_infer *infer, const tdm_window *window, int64_t out[2]) {
    int64_t padded[2], reach[2];
    for (int axis = 0; axis < 2; axis++) {
        padded[axis] = infer->input[0].dim[1 + axis] + 2 * window->padding[axis];
        reach[axis] = tdm__window_reach(window, axis);
    }
    if (reach[0] > padded[0] || reach[1] > padded[1]) {
        bool dilated = window->dilation[0] != 1 || window->dilation[1] != 1;
        TDM_INFER_FAIL(infer, "%s: kernel %lldx%lld%s is larger than the %sinput %lldx%lld", infer->layer,
                       (long long)reach[0], (long long)reach[1], dilated ? " (spread by its dilation)" : "",
                       window->padding[0] + window->padding[1] > 0 ? "padded " : "", (long long)padded[0],
                       (long long)padded[1]);
    }
    for (int axis = 0; axis < 2; axis++) out[axis] = (padded[axis] - reach[axis]) / window->stride[axis] + 1;
    return TDM_OK;
}

/* torch's pooling_output_shape with ceil_mode: the last window may reach beyond the padding, but begins before it. */
static tdm_status infer_ceil(const tdm_infer *infer, const tdm_window *window, int64_t out[2]) {
    for (int axis = 0; axis < 2; axis++) {
        const int64_t in = infer->input[0].dim[1 + axis], stride = window->stride[axis];
        const int64_t room = in + 2 * window->padding[axis] - tdm__window_reach(window, axis) + stride - 1;
        if (room < 0)
            TDM_INFER_FAIL(infer, "%s: no window %lldx%lld fits into the input %lldx%lld", infer->layer,
                           (long long)tdm__window_reach(window, 0), (long long)tdm__window_reach(window, 1),
                           (long long)infer->input[0].dim[1], (long long)infer->input[0].dim[2]);
        out[axis] = room / stride + 1;
        if ((out[axis] - 1) * stride >= in + window->padding[axis]) out[axis]--;
    }
    return TDM_OK;
}

/* The points of a dilated window may all lie beside a small image, where PyTorch's maximum is -inf. */
static tdm_status check_not_empty(const tdm_infer *infer, const tdm_window *window, const int64_t out[2]) {
    for (int axis = 0; axis < 2; axis++) {
        const int64_t in = infer->input[0].dim[1 + axis];
        for (int64_t at = 0; at < out[axis] && window->dilation[axis] > 1; at++) {
            const tdm_window_part part = tdm__window_part(window, axis, at, in);
            if (part.begin >= part.end)
                TDM_INFER_FAIL(infer, "%s: with dilation %lldx%lld some window has no point of the input %lldx%lld",
                               infer->layer, (long long)window->dilation[0], (long long)window->dilation[1],
                               (long long)infer->input[0].dim[1], (long long)infer->input[0].dim[2]);
        }
    }
    return TDM_OK;
}

tdm_status tdm__pool_infer(tdm_infer *infer, const tdm_pool_attrs *pool) {
    const tdm_window window = tdm__pool_window(pool);
    TDM_TRY(tdm__infer_check_image(infer));
    for (int axis = 0; axis < 2; axis++)
        if (window.padding[axis] > window.kernel[axis] / 2)
            TDM_INFER_FAIL(infer, "%s: padding may be at most half the kernel %lldx%lld, got %lldx%lld", infer->layer,
                           (long long)window.kernel[0], (long long)window.kernel[1], (long long)window.padding[0],
                           (long long)window.padding[1]);
    int64_t out[2];
    TDM_TRY(pool->ceil_mode ? infer_ceil(infer, &window, out) : tdm__window_infer(infer, &window, out));
    TDM_TRY(check_not_empty(infer, &window, out));
    infer->output = (tdm_shape){3, {infer->input[0].dim[0], out[0], out[1]}};
    infer->flops =
        (double)(window.kernel[0] * window.kernel[1]) * (double)infer->output.dim[0] * (double)out[0] * (double)out[1];
    return TDM_OK;
}

tdm_status tdm__adaptive_infer(tdm_infer *infer) {
    const tdm_adaptive_attrs *attrs = infer->attrs;
    TDM_TRY(tdm__infer_check_image(infer));
    const int64_t *in = infer->input[0].dim;
    infer->output = (tdm_shape){3, {in[0], attrs->out[0], attrs->out[1]}};
    infer->flops = (double)in[0];
    for (int axis = 0; axis < 2; axis++)
        infer->flops *= (double)(in[1 + axis] > attrs->out[axis] ? in[1 + axis] : attrs->out[axis]);
    return TDM_OK;
}
