/* upsample on CUDA: forward a thread has one output point, backward one point of the input, and adds the outputs that
 * it is in, in their order. */
#include "ops/upsample/upsample.h"
#include "runtime/backends/cuda/kit/planes.h"

using namespace tdm_cuda;

namespace {

struct grid {
    tdm_planes x, y;
    tdm_upsample_axis axis[2];
    plane_index index; /* of y in forward, of x in backward */
};

template <int WIDE, class Number> __global__ void upsample_forward(grid g, const Number *x, Number *y) {
    const int64_t packs = g.x.inner / WIDE;
    for (int64_t i = thread_index(); i < g.index.total; i += thread_count()) {
        const point<int64_t> at = point_at(g.index, i);
        const tdm_upsample_taps down = tdm__upsample_taps_of(&g.axis[0], at.row);
        const tdm_upsample_taps across = tdm__upsample_taps_of(&g.axis[1], at.column);
        pack<float, WIDE> a = load<WIDE>(x, pack_at(g.x, packs, at.plane, down.first, across.first, at.inner));
        if (g.axis[0].bilinear) {
            const pack<float, WIDE> b =
                load<WIDE>(x, pack_at(g.x, packs, at.plane, down.first, across.second, at.inner));
            const pack<float, WIDE> c =
                load<WIDE>(x, pack_at(g.x, packs, at.plane, down.second, across.first, at.inner));
            const pack<float, WIDE> d =
                load<WIDE>(x, pack_at(g.x, packs, at.plane, down.second, across.second, at.inner));
            for (int k = 0; k < WIDE; k++)
                a.at[k] = (a.at[k] * across.near + b.at[k] * across.far) * down.near +
                          (c.at[k] * across.near + d.at[k] * across.far) * down.far;
        }
        store(y, i, a);
    }
}

/* The outputs that a point is in, along one axis. Taps never fall, so both ends are found by halving. */
__device__ reach<int64_t> outputs_of(const tdm_upsample_axis &of, int64_t at) {
    reach<int64_t> found = {0, of.out};
    for (int64_t past = of.out; found.first < past;) {
        const int64_t middle = (found.first + past) / 2;
        if (tdm__upsample_taps_of(&of, middle).second < at)
            found.first = middle + 1;
        else
            past = middle;
    }
    for (int64_t least = found.first; least < found.end;) {
        const int64_t middle = (least + found.end) / 2;
        if (tdm__upsample_taps_of(&of, middle).first <= at)
            least = middle + 1;
        else
            found.end = middle;
    }
    return found;
}

template <int WIDE, class Number> __global__ void upsample_backward(grid g, const Number *dy, Number *dx) {
    const int64_t packs = g.y.inner / WIDE;
    for (int64_t i = thread_index(); i < g.index.total; i += thread_count()) {
        const point<int64_t> at = point_at(g.index, i);
        const reach<int64_t> rows = outputs_of(g.axis[0], at.row), columns = outputs_of(g.axis[1], at.column);
        pack<float, WIDE> sum = {};
        for (int64_t p = rows.first; p < rows.end; p++) {
            const tdm_upsample_taps down = tdm__upsample_taps_of(&g.axis[0], p);
            for (int64_t q = columns.first; q < columns.end; q++) {
                const tdm_upsample_taps across = tdm__upsample_taps_of(&g.axis[1], q);
                const float weight = tdm__upsample_weight(&down, at.row) * tdm__upsample_weight(&across, at.column);
                const pack<float, WIDE> d = load<WIDE>(dy, pack_at(g.y, packs, at.plane, p, q, at.inner));
                for (int k = 0; k < WIDE; k++) sum.at[k] += d.at[k] * weight;
            }
        }
        store(dx, i, sum);
    }
}

grid grid_of(const tdm_kernel_args *args) {
    const tdm_kernel_desc *desc = args->desc;
    return {tdm__planes_of(&desc->x[0], args->rows, desc->x_layout[0]),
            tdm__planes_of(&desc->y, args->rows, desc->y_layout),
            {tdm__upsample_axis_of(desc, 0), tdm__upsample_axis_of(desc, 1)},
            {}};
}

template <class Number> tdm_status forward(const tdm_kernel_args *args) {
    const grid g = grid_of(args);
    return each_point<Number>(args->device, g.y, upsample_forward<PACK_OF<Number>, Number>, upsample_forward<1, Number>,
                              g, as<Number>(args->x[0]), as<Number>(args->y));
}

template <class Number> tdm_status backward(const tdm_kernel_args *args) {
    const grid g = grid_of(args);
    return each_point<Number>(args->device, g.x, upsample_backward<PACK_OF<Number>, Number>,
                              upsample_backward<1, Number>, g, as<Number>(args->dy), as<Number>(args->dx[0]));
}

} /* namespace */

TDM_CUDA_KERNEL(upsample, keep_layout);
