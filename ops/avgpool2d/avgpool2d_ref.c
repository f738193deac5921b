/* avgpool2d: reference kernel, for every layout. */
#include "ops/average.h"
#include "ops/avgpool2d/avgpool2d.h"
#include "ops/ops.h"
#include "ops/window.h"

static tdm_span span(const void *attrs_pointer, int axis, int64_t at, int64_t in, int64_t out) {
    (void)out;
    const tdm_avgpool2d_attrs *attrs = attrs_pointer;
    tdm_window window = tdm__pool_window(attrs->kernel, attrs->stride, attrs->padding);
    int64_t begin = at * window.stride[axis] - window.padding[axis], end = begin + window.kernel[axis];
    if (begin < 0) begin = 0;
    if (end > in) end = in;
    return (tdm_span){begin, end, attrs->count_include_pad ? window.kernel[axis] : end - begin};
}

static tdm_status forward(const tdm_kernel_args *args) {
    tdm__average_forward(args, span);
    return TDM_OK;
}

static tdm_status backward(const tdm_kernel_args *args) {
    tdm__average_backward(args, span);
    return TDM_OK;
}

const tdm_kernel tdm__avgpool2d_ref = {
    .op = "avgpool2d",
    .variant = "ref",
    .fits = tdm__average_fits,
    .forward = forward,
    .backward = backward,
};
