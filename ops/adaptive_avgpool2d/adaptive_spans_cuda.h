/* The windows of adaptive pooling on CUDA, for adaptive_avgpool2d and adaptive_maxpool2d. For .cu files. */
#ifndef TDM_OPS_ADAPTIVE_SPANS_CUDA_H
#define TDM_OPS_ADAPTIVE_SPANS_CUDA_H

#include "ops/average.h"
#include "runtime/backends/cuda/kit/planes.h"

namespace tdm_cuda {

struct adaptive_spans {
    divider in[2], out[2];
    /* [floor(at * in / out), ceil((at + 1) * in / out)) */
    __device__ tdm_average_range of(int axis, int64_t at) const {
        const int64_t begin = quotient(out[axis], at * in[axis].by);
        const int64_t end = quotient(out[axis], (at + 1) * in[axis].by + out[axis].by - 1);
        return {begin, end, end - begin};
    }
    /* Window p contains `at` if p * in < (at + 1) * out and at * out < (p + 1) * in. */
    __device__ reach<int64_t> windows_of(int axis, int64_t at) const {
        return {quotient(in[axis], at * out[axis].by), quotient(in[axis], (at + 1) * out[axis].by - 1) + 1};
    }
    int64_t most_points() const {
        return ceil_div(in[0].by, out[0].by) * ceil_div(in[1].by, out[1].by);
    }
};

static inline adaptive_spans adaptive_spans_of(const tdm_kernel_args *args) {
    adaptive_spans spans = {};
    for (int axis = 0; axis < 2; axis++) {
        spans.in[axis] = divider_of(args->desc->x[0].dim[2 + axis]);
        spans.out[axis] = divider_of(args->desc->y.dim[2 + axis]);
    }
    return spans;
}

} /* namespace tdm_cuda */
#endif
