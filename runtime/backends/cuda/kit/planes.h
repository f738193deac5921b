/* Values of 4 dimensions on CUDA as kernels for planes see them (base/planes.h), and how to split an index into one.
 * For .cu files.
 *
 * Kernels come with two types of `Index`: int32_t if both values are small enough, because 64-bit arithmetic takes a
 * GPU several times as long; else int64_t. */
#ifndef TDM_CUDA_KIT_PLANES_H
#define TDM_CUDA_KIT_PLANES_H

#include "runtime/backends/cuda/kit/kernel.h"
#include "runtime/base/planes.h"

namespace tdm_cuda {

/* The dimensions of a value: [count][height][width][inner], where `inner` counts packs. */
struct plane_index {
    divider inner, width, height;
    int64_t total; /* packs in all planes */
};

template <class Index> struct point { Index plane, row, column, inner; };

/* With channels last, neighbours in memory are neighbouring channels, which can be processed in packs. */
template <class Number> static inline bool has_packs(const tdm_planes &planes) {
    return planes.inner % PACK_OF<Number> == 0;
}

static inline plane_index plane_index_of(const tdm_planes &planes, int wide) {
    const int64_t inner = planes.inner / wide;
    return {divider_of(inner), divider_of(planes.width), divider_of(planes.height),
            planes.count * planes.height * planes.width * inner};
}

/* Whether 32-bit indices suffice. The limit is half of what int32_t holds: the rest is for what is added on the way, a
 * step of the loop and padding. */
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

/* Returns the index of the pack at (plane, row, column) and `inner`; `packs` is the number of packs per point. */
template <class Index>
__device__ inline Index pack_at(const tdm_planes &planes, Index packs, Index plane, Index row, Index column,
                                Index inner) {
    return ((plane * (Index)planes.height + row) * (Index)planes.width + column) * packs + inner;
}

/* Launches a kernel on all points of `planes`: `packed`, which moves packs, if all pointers and the planes allow it,
 * else `plain`. It gets `grid`, whose index this sets, and the pointers. */
template <class Number, class Grid, class... Pointers>
tdm_status each_point(tdm_device *device, const tdm_planes &planes, void (*packed)(Grid, Pointers...),
                      void (*plain)(Grid, Pointers...), Grid grid, Pointers... pointers) {
    const bool packs = has_packs<Number>(planes) && is_aligned(pointers...);
    auto kernel = packs ? packed : plain;
    grid.index = plane_index_of(planes, packs ? PACK_OF<Number> : 1);
    TDM_LAUNCH(kernel, blocks_for(grid.index.total), THREADS, tdm__cuda_device(device)->stream, grid, pointers...);
    return TDM_OK;
}

/* The windows that contain a point, along one axis: from `first` up to `end`. */
template <class Index> struct reach { Index first, end; };

/* Sliding windows: in[axis] and out[axis] points; each window begins one stride further. */
struct sliding {
    tdm_window window;
    divider stride[2];
    int64_t in[2], out[2];

    /* Returns where the window of output `at` begins in the input; negative if in the padding. */
    template <class Index> __device__ Index corner(int axis, Index at) const {
        return at * (Index)window.stride[axis] - (Index)window.padding[axis];
    }
    /* The windows whose points begin at or before `at` and end at or behind it. */
    template <class Index> __device__ reach<Index> windows_of(int axis, Index at) const {
        const Index length = (Index)(window.dilation[axis] * (window.kernel[axis] - 1) + 1);
        const Index padded = at + (Index)window.padding[axis], past = padded - length;
        const Index end = quotient(stride[axis], padded) + 1, most = (Index)out[axis];
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
