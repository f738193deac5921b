/* Values of 4 dimensions on CUDA, as kernels for planes see them (ops/window.h), and how an index into one comes apart.
 * For .cu files. */
#ifndef TDM_OPS_CUDA_PLANES_H
#define TDM_OPS_CUDA_PLANES_H

#include "ops/cuda_module/kernel.h"
#include "ops/window.h"

namespace tdm_cuda {

/* A value taken apart: [count][height][width][inner], `inner` counted in packs. */
struct plane_index {
    divider inner, width, height;
    int64_t total; /* packs of all planes */
};

struct point {
    int64_t plane, row, column, inner;
};

/* Neighbours in memory are neighbouring channels where the layout puts channels last; then they are done in packs. */
static inline bool has_packs(const tdm_planes &planes) {
    return planes.inner % PACK == 0;
}

static inline plane_index plane_index_of(const tdm_planes &planes, int wide) {
    const int64_t inner = planes.inner / wide;
    return {divider_of(inner), divider_of(planes.width), divider_of(planes.height),
            planes.count * planes.height * planes.width * inner};
}

__device__ inline point point_at(const plane_index &index, int64_t i) {
    point p;
    p.inner = index.inner.by == 1 ? 0 : split(index.inner, &i);
    p.column = split(index.width, &i);
    p.row = split(index.height, &i);
    p.plane = i;
    return p;
}

/* The windows that hold a point: those from `first` to below `end`, along one axis. */
struct reach {
    int64_t first, end;
};

/* Of windows that slide: in[axis] and out[axis] points, window by window one stride further. */
struct sliding {
    tdm_window window;
    divider stride[2];
    int64_t in[2], out[2];

    /* Where the window of output `at` begins, counted in the input; before 0 if in the padding. */
    __device__ int64_t corner(int axis, int64_t at) const {
        return at * window.stride[axis] - window.padding[axis];
    }
    __device__ reach windows_of(int axis, int64_t at) const {
        const int64_t place = at + window.padding[axis], past = place - window.kernel[axis];
        const int64_t end = quotient(stride[axis], place) + 1;
        return {past < 0 ? 0 : quotient(stride[axis], past) + 1, end < out[axis] ? end : out[axis]};
    }
};

static inline sliding sliding_of(const tdm_window &window, const tdm_kernel_desc *desc) {
    sliding s = {};
    s.window = window;
    for (int axis = 0; axis < 2; axis++) {
        s.stride[axis] = divider_of(window.stride[axis]);
        s.in[axis] = desc->x[0].dim[2 + axis];
        s.out[axis] = desc->y.dim[2 + axis];
    }
    return s;
}

} /* namespace tdm_cuda */
#endif
