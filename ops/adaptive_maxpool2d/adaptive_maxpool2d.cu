/* adaptive_maxpool2d on CUDA: forward a thread has one output point, backward one point of the input, and adds the
 * windows that it has won in the order of the outputs. */
#include "ops/adaptive_avgpool2d/adaptive_spans_cuda.h"

using namespace tdm_cuda;

namespace {

struct pool {
    adaptive_spans spans;
    tdm_planes x, y;
    plane_index index; /* of y in forward, of x in backward */
};

template <int WIDE, class Number>
__global__ void pool_forward(pool g, const Number *x, Number *y, int32_t *winners) {
    const int64_t packs = g.x.inner / WIDE;
    for (int64_t i = thread_index(); i < g.index.total; i += thread_count()) {
        const point<int64_t> at = point_at(g.index, i);
        const tdm_average_range rows = g.spans.of(0, at.row), columns = g.spans.of(1, at.column);
        pack<float, WIDE> best = load<WIDE>(x, pack_at(g.x, packs, at.plane, rows.begin, columns.begin, at.inner));
        pack<int32_t, WIDE> winner;
        for (int k = 0; k < WIDE; k++) winner.at[k] = (int32_t)(rows.begin * g.x.width + columns.begin);
        for (int64_t row = rows.begin; row < rows.end; row++) {
            for (int64_t column = columns.begin; column < columns.end; column++) {
                const pack<float, WIDE> v = load<WIDE>(x, pack_at(g.x, packs, at.plane, row, column, at.inner));
                for (int k = 0; k < WIDE; k++) {
                    if (!(v.at[k] > best.at[k] || v.at[k] != v.at[k])) continue;
                    best.at[k] = v.at[k];
                    winner.at[k] = (int32_t)(row * g.x.width + column);
                }
            }
        }
        store(y, i, best);
        if (winners != NULL) store(winners, i, winner);
    }
}

template <int WIDE, class Number>
__global__ void pool_backward(pool g, const Number *dy, const int32_t *winners, Number *dx) {
    const int64_t packs = g.y.inner / WIDE;
    for (int64_t i = thread_index(); i < g.index.total; i += thread_count()) {
        const point<int64_t> at = point_at(g.index, i);
        const reach<int64_t> rows = g.spans.windows_of(0, at.row), columns = g.spans.windows_of(1, at.column);
        const int32_t self = (int32_t)(at.row * g.x.width + at.column);
        pack<float, WIDE> sum = {};
        for (int64_t p = rows.first; p < rows.end; p++) {
            for (int64_t q = columns.first; q < columns.end; q++) {
                const int64_t from = pack_at(g.y, packs, at.plane, p, q, at.inner);
                const pack<int32_t, WIDE> winner = load<WIDE>(winners, from);
                const pack<float, WIDE> d = load<WIDE>(dy, from);
                for (int k = 0; k < WIDE; k++)
                    if (winner.at[k] == self) sum.at[k] += d.at[k];
            }
        }
        store(dx, i, sum);
    }
}

bool fits(const tdm_kernel_desc *desc, tdm_kernel_fit *fit) {
    const int64_t *y = desc->y.dim;
    keep_layout(desc, fit);
    fit->saved_bytes = (size_t)(y[0] * y[1] * y[2] * y[3]) * sizeof(int32_t);
    return true;
}

pool pool_of(const tdm_kernel_args *args) {
    const tdm_kernel_desc *desc = args->desc;
    return {adaptive_spans_of(args), tdm__planes_of(&desc->x[0], args->rows, desc->x_layout[0]),
            tdm__planes_of(&desc->y, args->rows, desc->y_layout), {}};
}

template <class Number> tdm_status forward(const tdm_kernel_args *args) {
    const pool g = pool_of(args);
    return each_point<Number>(args->device, g.y, pool_forward<PACK_OF<Number>, Number>, pool_forward<1, Number>, g,
                              as<Number>(args->x[0]), as<Number>(args->y),
                              args->training ? (int32_t *)args->saved : NULL);
}

template <class Number> tdm_status backward(const tdm_kernel_args *args) {
    const pool g = pool_of(args);
    return each_point<Number>(args->device, g.x, pool_backward<PACK_OF<Number>, Number>, pool_backward<1, Number>, g,
                              as<Number>(args->dy), (const int32_t *)args->saved, as<Number>(args->dx[0]));
}

} /* namespace */

TDM_CUDA_KERNEL(adaptive_maxpool2d, fits);
