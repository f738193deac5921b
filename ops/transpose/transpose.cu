/* transpose on CUDA. */
#include "runtime/backends/cuda/kit/kernel.h"

using namespace tdm_cuda;

namespace {

/* to[n,column,row] = from[n,row,column] */
template <class Number> struct swap_item {
    const Number *from;
    Number *to;
    divider rows, columns;
    template <int WIDE> __device__ void run(int64_t i) const {
        int64_t n = i;
        const int64_t row = split(rows, &n), column = split(columns, &n);
        to[i] = from[(n * rows.by + row) * columns.by + column];
    }
};

template <class Number>
tdm_status swap(const tdm_kernel_args *args, const float *from, float *to, const tdm_shape *shape) {
    const int64_t rows = shape->dim[1], columns = shape->dim[2];
    const swap_item<Number> item = {as<Number>(from), as<Number>(to), divider_of(rows), divider_of(columns)};
    return each<1>(tdm__cuda_device(args->device), item, args->rows * rows * columns, true);
}

template <class Number> tdm_status forward(const tdm_kernel_args *args) {
    return swap<Number>(args, args->x[0], args->y, &args->desc->x[0]);
}

template <class Number> tdm_status backward(const tdm_kernel_args *args) {
    return swap<Number>(args, args->dy, args->dx[0], &args->desc->y);
}

} /* namespace */

TDM_CUDA_KERNEL(transpose, NULL);
