/* avgpool2d: reference kernel, for every layout. */
#include "ops/average.h"
#include "ops/avgpool2d/avgpool2d.h"
#include "ops/ops.h"

static tdm_average_range span(const void *attrs_pointer, int axis, int64_t at, int64_t in, int64_t out) {
    (void)out;
    const tdm_avgpool2d_attrs *attrs = attrs_pointer;
    tdm_window window = tdm__pool_window(&attrs->pool);
    tdm_window_part part = tdm__window_part(&window, axis, at, in);
    const int64_t padded = tdm__window_padded(&window, axis, part.corner, in);
    return (tdm_average_range){part.begin, part.end, attrs->count_include_pad ? padded : part.end - part.begin};
}

static tdm_status forward(const tdm_kernel_args *args) {
    return tdm__average_forward(args, span);
}

static tdm_status backward(const tdm_kernel_args *args) {
    return tdm__average_backward(args, span);
}

TDM_REF_KERNEL(avgpool2d, tdm__average_fits);
