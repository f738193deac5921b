/* Means over windows, shared by avgpool2d and adaptive_avgpool2d. For every layout. */
#ifndef TDM_OPS_AVERAGE_H
#define TDM_OPS_AVERAGE_H

#include <tandem/sys/op.h>

/* The window of one output coordinate along one axis: input [begin, end), and its share of the divisor. */
typedef struct tdm_average_range {
    int64_t begin, end, divisor;
} tdm_average_range;

/* The window of output `at` in adaptive pooling: [floor(at * in / out), ceil((at + 1) * in / out)). */
static inline tdm_average_range tdm__adaptive_range(int64_t at, int64_t in, int64_t out) {
    const int64_t begin = at * in / out, end = ((at + 1) * in + out - 1) / out;
    const tdm_average_range range = {begin, end, end - begin};
    return range;
}

/* Returns the window of output `at`. axis 0: height, 1: width; `in` and `out` are the sizes along the axis. */
typedef tdm_average_range (*tdm_span_fn)(const void *attrs, int axis, int64_t at, int64_t in, int64_t out);

/* That of adaptive pooling. */
static inline tdm_average_range tdm__adaptive_span(const void *attrs, int axis, int64_t at, int64_t in, int64_t out) {
    (void)attrs, (void)axis;
    return tdm__adaptive_range(at, in, out);
}

bool tdm__average_fits(const tdm_kernel_desc *desc, tdm_kernel_fit *fit);
tdm_status tdm__average_forward(const tdm_kernel_args *args, tdm_span_fn span);
tdm_status tdm__average_backward(const tdm_kernel_args *args, tdm_span_fn span);

#endif
