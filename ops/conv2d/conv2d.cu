/* The kernels of conv2d: columns for matrix products, gradients back from columns, and sums of partial results. One
 * thread computes each element of a result and adds its terms in a fixed order. */
#include "ops/conv2d/conv2d_cuda.h"
#include "runtime/backends/cuda/kit/kernel.h"

using namespace tdm_cuda;

namespace {

/* The layout of x. */
struct image {
    int64_t row, channel, line, point; /* strides */
    int height, width;
};

image image_of(const tdm_conv_sizes *s) {
    image out = {tdm__conv_in_count(s), s->height * s->width, s->width, 1, (int)s->height, (int)s->width};
    if (s->nhwc) {
        out.channel = 1;
        out.line = s->width * s->stored;
        out.point = s->stored;
    }
    return out;
}

/* The layout of columns: channels and taps in the weights' order, points contiguous. */
struct order {
    int64_t row, channel, tap; /* strides */
};

order order_of(const tdm_conv_sizes *s) {
    const int64_t points = tdm__conv_points(s), row = s->stored * s->taps * points;
    if (s->nhwc) return {row, points, s->stored * points};
    return {row, s->taps * points, points};
}

struct axis {
    int kernel, stride, padding, dilation, out;
};

axis axis_of(const tdm_window *window, int i, int64_t out) {
    return {(int)window->kernel[i], (int)window->stride[i], (int)window->padding[i], (int)window->dilation[i],
            (int)out};
}

/* Returns the input coordinate that tap `tap` of output `at` reads on the axis. */
__device__ inline int64_t seen_from(const axis &a, int64_t at, int64_t tap) {
    return at * a.stride - a.padding + tap * a.dilation;
}

template <class Number>
__global__ void columns_kernel(const Number *x, Number *columns, image in, order to, axis down, axis across,
                               divider channels, divider height, divider width, divider lines, divider points,
                               int64_t count) {
    for (int64_t i = thread_index(); i < count; i += thread_count()) {
        int64_t rest = i;
        const int64_t q = split(points, &rest), p = split(lines, &rest);
        const int64_t tap_q = split(width, &rest), tap_p = split(height, &rest), channel = split(channels, &rest);
        const int64_t h = seen_from(down, p, tap_p), w = seen_from(across, q, tap_q);
        const bool inside = h >= 0 && h < in.height && w >= 0 && w < in.width;
        columns[rest * to.row + channel * to.channel + (tap_p * across.kernel + tap_q) * to.tap + p * across.out + q] =
            inside ? x[rest * in.row + channel * in.channel + h * in.line + w * in.point] : Number{};
    }
}

/* Returns the output whose tap `tap` reads input `at`; -1: none. */
__device__ inline int64_t seen_by(const axis &a, int64_t at, int tap) {
    const int64_t from = at + a.padding - (int64_t)tap * a.dilation, out = from / a.stride;
    return from >= 0 && out * a.stride == from && out < a.out ? out : -1;
}

template <class Number>
__global__ void gather_kernel(const Number *columns, Number *dx, image in, order at, axis down, axis across,
                              divider channels, divider lines, divider points, int64_t count) {
    for (int64_t i = thread_index(); i < count; i += thread_count()) {
        int64_t row = i;
        const int64_t w = split(points, &row), h = split(lines, &row), channel = split(channels, &row);
        const Number *from = columns + row * at.row + channel * at.channel;
        float sum = 0.0f;
        for (int tap_p = 0; tap_p < down.kernel; tap_p++) {
            const int64_t p = seen_by(down, h, tap_p);
            for (int tap_q = 0; p >= 0 && tap_q < across.kernel; tap_q++) {
                const int64_t q = seen_by(across, w, tap_q);
                if (q >= 0) sum += get(from, ((int64_t)tap_p * across.kernel + tap_q) * at.tap + p * across.out + q);
            }
        }
        put(dx, row * in.row + channel * in.channel + h * in.line + w * in.point, sum);
    }
}

struct parts_item {
    float *sum;
    const float *part;
    int64_t parts, count;
    bool first;
    template <int WIDE> __device__ void run(int64_t i) const {
        pack<float, WIDE> total = {};
        if (!first) total = load<WIDE>(sum, i);
        for (int64_t p = 0; p < parts; p++) {
            const pack<float, WIDE> v = load<WIDE>(part + p * count, i);
            for (int k = 0; k < WIDE; k++) total.at[k] += v.at[k];
        }
        store(sum, i, total);
    }
};

template <class Number>
tdm_status columns_of(tdm_cuda_device *device, const tdm_conv_sizes *s, int64_t rows, const Number *x,
                      Number *columns) {
    const int64_t count = rows * order_of(s).row;
    TDM_LAUNCH(columns_kernel<Number>, blocks_for(count), THREADS, device->stream, x, columns, image_of(s), order_of(s),
               axis_of(&s->window, 0, s->out_height), axis_of(&s->window, 1, s->out_width), divider_of(s->stored),
               divider_of(s->window.kernel[0]), divider_of(s->window.kernel[1]), divider_of(s->out_height),
               divider_of(s->out_width), count);
    return TDM_OK;
}

template <class Number>
tdm_status gather(tdm_cuda_device *device, const tdm_conv_sizes *s, int64_t rows, const Number *columns, Number *dx) {
    const int64_t count = rows * tdm__conv_in_count(s);
    TDM_LAUNCH(gather_kernel<Number>, blocks_for(count), THREADS, device->stream, columns, dx, image_of(s), order_of(s),
               axis_of(&s->window, 0, s->out_height), axis_of(&s->window, 1, s->out_width), divider_of(s->stored),
               divider_of(s->height), divider_of(s->width), count);
    return TDM_OK;
}

} /* namespace */

tdm_status tdm__conv_columns(tdm_cuda_device *device, const tdm_conv_sizes *s, int64_t rows, const void *x,
                             void *columns) {
    if (s->number == TDM_CUDA_BF16) return columns_of(device, s, rows, (const bf16 *)x, (bf16 *)columns);
    return columns_of(device, s, rows, (const float *)x, (float *)columns);
}

tdm_status tdm__conv_gather(tdm_cuda_device *device, const tdm_conv_sizes *s, int64_t rows, const void *columns,
                            void *dx) {
    if (s->number == TDM_CUDA_BF16) return gather(device, s, rows, (const bf16 *)columns, (bf16 *)dx);
    return gather(device, s, rows, (const float *)columns, (float *)dx);
}

tdm_status tdm__conv_add_parts(tdm_cuda_device *device, float *sum, const float *part, int64_t parts, int64_t count,
                               bool first) {
    const parts_item item = {sum, part, parts, count, first};
    return each(device, item, count, count % PACK == 0 && is_aligned(sum, part));
}

tdm_status tdm__conv_widen(tdm_cuda_device *device, float *to, const void *from, int64_t count) {
    return copy_each(device, to, (const bf16 *)from, count);
}
