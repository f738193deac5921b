/* Values of 4 dimensions on CUDA, as kernels for planes see them (base/planes.h), and how an index into one comes
 * apart. For .cu files.
 *
 * Kernels come for two types of `Index`: int32_t where both values are small enough, since arithmetic in 64 bits takes
 * a GPU several times as long, and int64_t. */
#ifndef TDM_CUDA_KIT_PLANES_H
#define TDM_CUDA_KIT_PLANES_H

#include "runtime/backends/cuda/kit/kernel.h"
#include "runtime/base/planes.h"

namespace tdm_cuda {

/* A value taken apart: [count][height][width][inner], `inner` counted in packs. */
struct plane_index {
    divider inner, width, height;
    int64_t total; /* packs of all planes */
};

template <class Index> struct point { Index plane, row, column, inner; };

/* Neighbours in memory are neighbouring channels where the layout puts channels last; then they are done in packs. */
template <class Number> static inline bool has_packs(const tdm_planes &planes) {
    return planes.inner % PACK_OF<Number> == 0;
}

static inline plane_index plane_index_of(const tdm_planes &planes, int wide) {
    const int64_t inner = planes.inner / wide;
    return {divider_of(inner), divider_of(planes.width), divider_of(planes.height),
            planes.count * planes.height * planes.width * inner};
}

/* Half of what int32_t holds: the rest is for what is added on the way, a step of the loop and padding. */
static inline bool is_small(const tdm_planes &planes) {
    const int64_t most = (int64_t)1 << 30;
    return planes.count * planes.height * planes.width * planes.inner < most;
}

template <class Index> __device__ inline point<Index> point_at(const plane_index &index, Index i) {
    point<Index> p;
    p.inner = index.inner.by == 1 ? 0 : split(index.inner, &i);
    p.column = split(index.width, &i);
    p.row = split(index.height, &i);
    p.plane = i;
    return p;
}

/* The pack of a value at (plane, row, column) and `inner`; `packs`: of its points. */
template <class Index>
__device__ inline Index pack_at(const tdm_planes &planes, Index packs, Index plane, Index row, Index column,
                                Index inner) {
    return ((plane * (Index)planes.height + row) * (Index)planes.width + column) * packs + inner;
}

/* The windows that hold a point: those from `first` to below `end`, along one axis. */
template <class Index> struct reach { Index first, end; };

/* Of windows that slide: in[axis] and out[axis] points, window by window one stride further. */
struct sliding {
    tdm_window window;
    divider stride[2];
    int64_t in[2], out[2];

    /* Where the window of output `at` begins, counted in the input; before 0 if in the padding. */
    template <class Index> __device__ Index corner(int axis, Index at) const {
        return at * (Index)window.stride[axis] - (Index)window.padding[axis];
    }
    template <class Index> __device__ reach<Index> windows_of(int axis, Index at) const {
        const Index place = at + (Index)window.padding[axis], past = place - (Index)window.kernel[axis];
        const Index end = quotient(stride[axis], place) + 1, most = (Index)out[axis];
        return {past < 0 ? (Index)0 : quotient(stride[axis], past) + 1, end < most ? end : most};
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
