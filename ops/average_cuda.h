/* Means over windows on CUDA, shared by avgpool2d and adaptive_avgpool2d. For .cu files.
 *
 * A `Spans` is a struct that knows the windows, as tdm_span_fn does on the CPU, and the reverse mapping:
 *     __device__ tdm_average_range of(int axis, int64_t at) const       the window of output `at`
 *     __device__ reach<int64_t> windows_of(int axis, int64_t at) const  the outputs whose windows contain input `at`
 *     int64_t most_points() const                                       of a window */
#ifndef TDM_OPS_CUDA_AVERAGE_H
#define TDM_OPS_CUDA_AVERAGE_H

#include "ops/average.h"
#include "runtime/backends/cuda/kit/planes.h"

namespace tdm_cuda {

template <class Spans> struct average {
    Spans spans;
    tdm_planes x, y;
    plane_index index; /* of y in forward, of x in backward */
};

/* ---- y = sum over the window of x / divisor, in double ---- */

/* Each thread computes WIDE channels of one output point. */
template <int WIDE, class Number, class Spans>
__global__ void average_forward(average<Spans> g, const Number *x, Number *y) {
    const int64_t inner = g.x.inner / WIDE;
    for (int64_t i = thread_index(); i < g.index.total; i += thread_count()) {
        const point<int64_t> at = point_at(g.index, i);
        const tdm_average_range rows = g.spans.of(0, at.row), columns = g.spans.of(1, at.column);
        double sum[WIDE] = {};
        for (int64_t row = rows.begin; row < rows.end; row++) {
            const int64_t from = ((at.plane * g.x.height + row) * g.x.width) * inner + at.inner;
            for (int64_t column = columns.begin; column < columns.end; column++) {
                const pack<float, WIDE> v = load<WIDE>(x, from + column * inner);
                for (int k = 0; k < WIDE; k++) sum[k] += (double)v.at[k];
            }
        }
        const double divisor = (double)(rows.divisor * columns.divisor);
        pack<float, WIDE> mean;
        for (int k = 0; k < WIDE; k++) mean.at[k] = (float)(sum[k] / divisor);
        store(y, i, mean);
    }
}

/* Each warp computes one output point: for large windows in planes, whose rows are contiguous in memory. */
template <class Number, class Spans>
__global__ void average_forward_by_warp(average<Spans> g, const Number *x, Number *y) {
    const int64_t lane = threadIdx.x % WARP, step = thread_count() / WARP;
    for (int64_t i = thread_index() / WARP; i < g.index.total; i += step) {
        const point<int64_t> at = point_at(g.index, i);
        const tdm_average_range rows = g.spans.of(0, at.row), columns = g.spans.of(1, at.column);
        const int64_t width = columns.end - columns.begin, count = (rows.end - rows.begin) * width;
        const Number *from = x + (at.plane * g.x.height + rows.begin) * g.x.width + columns.begin;
        int64_t row = lane / width, column = lane % width;
        double sum = 0;
        for (int64_t k = lane; k < count; k += WARP) {
            sum += (double)get(from, row * g.x.width + column);
            for (column += WARP; column >= width; column -= width) row++;
        }
        sum = warp_sum(sum);
        if (lane == 0) put(y, i, (float)(sum / (double)(rows.divisor * columns.divisor)));
    }
}

/* ---- dx = the sum of dy / divisor over the windows that contain the point, in the order of the outputs ---- */

template <int WIDE, class Number, class Spans>
__global__ void average_backward(average<Spans> g, const Number *dy, Number *dx) {
    const int64_t inner = g.y.inner / WIDE;
    for (int64_t i = thread_index(); i < g.index.total; i += thread_count()) {
        const point<int64_t> at = point_at(g.index, i);
        const reach<int64_t> rows = g.spans.windows_of(0, at.row), columns = g.spans.windows_of(1, at.column);
        pack<float, WIDE> sum = {};
        for (int64_t p = rows.first; p < rows.end; p++) {
            const int64_t height = g.spans.of(0, p).divisor;
            for (int64_t q = columns.first; q < columns.end; q++) {
                const float divisor = (float)(height * g.spans.of(1, q).divisor);
                const int64_t from = ((at.plane * g.y.height + p) * g.y.width + q) * inner + at.inner;
                const pack<float, WIDE> d = load<WIDE>(dy, from);
                for (int k = 0; k < WIDE; k++) sum.at[k] += d.at[k] / divisor;
            }
        }
        store(dx, i, sum);
    }
}

/* ---- host ---- */

template <class Spans> average<Spans> average_of(const tdm_kernel_args *args, const Spans &spans) {
    const tdm_kernel_desc *desc = args->desc;
    average<Spans> g = {};
    g.spans = spans;
    g.x = tdm__planes_of(&desc->x[0], args->rows, desc->x_layout[0]);
    g.y = tdm__planes_of(&desc->y, args->rows, desc->y_layout);
    return g;
}

static constexpr int64_t WARP_WINDOW = 4 * WARP; /* a window with at least as many points is computed by a warp */

template <class Number, class Spans> tdm_status run_forward(const tdm_kernel_args *args, const Spans &spans) {
    average<Spans> g = average_of(args, spans);
    const Number *x = as<Number>(args->x[0]);
    Number *y = as<Number>(args->y);
    if (g.x.inner > 1 || spans.most_points() < WARP_WINDOW)
        return each_point<Number>(args->device, g.y, average_forward<PACK_OF<Number>, Number, Spans>,
                                  average_forward<1, Number, Spans>, g, x, y);
    auto by_warp = average_forward_by_warp<Number, Spans>;
    g.index = plane_index_of(g.y, 1);
    TDM_LAUNCH(by_warp, blocks_for(g.index.total, THREADS / WARP), THREADS, tdm__cuda_device(args->device)->stream, g,
               x, y);
    return TDM_OK;
}

template <class Number, class Spans> tdm_status run_backward(const tdm_kernel_args *args, const Spans &spans) {
    const average<Spans> g = average_of(args, spans);
    return each_point<Number>(args->device, g.x, average_backward<PACK_OF<Number>, Number, Spans>,
                              average_backward<1, Number, Spans>, g, as<Number>(args->dy), as<Number>(args->dx[0]));
}

} /* namespace tdm_cuda */

/* The kernel of an op whose windows are spans_of(args). */
#define TDM_CUDA_AVERAGE(op, spans_of)                                         \
    namespace {                                                                \
    template <class Number> tdm_status forward(const tdm_kernel_args *args) {  \
        return run_forward<Number>(args, spans_of(args));                      \
    }                                                                          \
    template <class Number> tdm_status backward(const tdm_kernel_args *args) { \
        return run_backward<Number>(args, spans_of(args));                     \
    }                                                                          \
    }                                                                          \
    TDM_CUDA_KERNEL(op, keep_layout)

#endif
