/* log_softmax on CUDA: a warp computes a row, in float for both precisions. It reads all of the row before it writes
 * any of it, so y may lie on x, and dx on dy. */
#include "runtime/backends/cuda/kit/kernel.h"

using namespace tdm_cuda;

namespace {

static constexpr int ROWS = THREADS / WARP; /* of a block */

/* The largest of the warp's values, in every thread; NaN is passed over, as the sum of exp then has it. */
__device__ inline float warp_largest(float value) {
    for (int offset = WARP / 2; offset > 0; offset /= 2)
        value = fmaxf(value, __shfl_xor_sync(ALL_LANES, value, offset));
    return value;
}

/* y = (x - max) - log(sum exp(x - max)) */
template <class Number> struct log_softmax_row {
    const Number *x;
    Number *y;
    int64_t classes;
    __device__ void run(int64_t n, int lane) const {
        const Number *in = x + n * classes;
        float max = -INFINITY, sum = 0;
        for (int64_t c = lane; c < classes; c += WARP) max = fmaxf(max, get(in, c));
        max = warp_largest(max);
        for (int64_t c = lane; c < classes; c += WARP) sum += expf(get(in, c) - max);
        const float log_sum = logf(warp_sum(sum));
        for (int64_t c = lane; c < classes; c += WARP) put(y + n * classes, c, get(in, c) - max - log_sum);
    }
};

/* dx = dy - softmax(x) sum dy, where softmax(x) = exp(y) */
template <class Number> struct log_softmax_gradient_row {
    const Number *y, *dy;
    Number *dx;
    int64_t classes;
    __device__ void run(int64_t n, int lane) const {
        const Number *out = y + n * classes, *d = dy + n * classes;
        float sum = 0;
        for (int64_t c = lane; c < classes; c += WARP) sum += get(d, c);
        sum = warp_sum(sum);
        for (int64_t c = lane; c < classes; c += WARP) put(dx + n * classes, c, get(d, c) - expf(get(out, c)) * sum);
    }
};

template <class Row> __global__ void __launch_bounds__(THREADS) each_row(Row row, int64_t rows) {
    for (int64_t n = (int64_t)blockIdx.x * ROWS + threadIdx.x / WARP; n < rows; n += (int64_t)gridDim.x * ROWS)
        row.run(n, (int)(threadIdx.x % WARP));
}

template <class Row> tdm_status run(const tdm_kernel_args *args, const Row &row) {
    TDM_LAUNCH(each_row<Row>, blocks_for(args->rows, ROWS), THREADS, tdm__cuda_device(args->device)->stream, row,
               args->rows);
    return TDM_OK;
}

template <class Number> tdm_status forward(const tdm_kernel_args *args) {
    return run(args, log_softmax_row<Number>{as<Number>(args->x[0]), as<Number>(args->y), args->desc->y.dim[1]});
}

template <class Number> tdm_status backward(const tdm_kernel_args *args) {
    return run(args, log_softmax_gradient_row<Number>{as<Number>(args->y), as<Number>(args->dy),
                                                      as<Number>(args->dx[0]), args->desc->y.dim[1]});
}

} /* namespace */

TDM_CUDA_KERNEL(log_softmax, NULL); /* fits: 2 dimensions have one layout */
