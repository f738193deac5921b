/* maxpool2d on CUDA. The rules, and what is saved, are those of maxpool2d_ref.c. Backward asks each point of the input
 * which windows it has won, in the order of the outputs: no atomics, and every number is written once. */
#include "ops/cuda_module/planes.h"
#include "ops/maxpool2d/maxpool2d.h"

using namespace tdm_cuda;

namespace {

struct pool {
    tdm_planes x, y;
    sliding windows;
    plane_index index; /* of y in forward, of x in backward */
};

bool has_small_window(const tdm_maxpool2d_attrs *attrs) {
    return attrs->kernel[0] * attrs->kernel[1] <= 255;
}

/* ---- forward: a thread has a point of the output, WIDE channels ---- */

template <int WIDE, class Place> __global__ void pool_forward(pool g, const float *x, float *y, Place *saved) {
    const int64_t inner = g.x.inner / WIDE;
    for (int64_t i = thread_index(); i < g.index.total; i += thread_count()) {
        const point at = point_at(g.index, i);
        const int64_t *kernel = g.windows.window.kernel;
        const int64_t top = g.windows.corner(0, at.row), left = g.windows.corner(1, at.column);
        const int64_t end_row = top + kernel[0] < g.x.height ? top + kernel[0] : g.x.height;
        const int64_t end_column = left + kernel[1] < g.x.width ? left + kernel[1] : g.x.width;
        const int64_t first_row = top > 0 ? top : 0, first_column = left > 0 ? left : 0;
        pack<float, WIDE> best = {};
        pack<Place, WIDE> winner = {};
        bool is_first = true;
        for (int64_t row = first_row; row < end_row; row++) {
            const int64_t from = ((at.plane * g.x.height + row) * g.x.width) * inner + at.inner;
            for (int64_t column = first_column; column < end_column; column++) {
                const pack<float, WIDE> v = load<WIDE>(x, from + column * inner);
                const Place place = (Place)((row - top) * kernel[1] + (column - left));
                for (int k = 0; k < WIDE; k++) {
                    if (!is_first && !(v.at[k] > best.at[k] || v.at[k] != v.at[k])) continue;
                    best.at[k] = v.at[k];
                    winner.at[k] = place;
                }
                is_first = false;
            }
        }
        store(y, i, best);
        if (saved != NULL) store(saved, i, winner);
    }
}

/* ---- backward: a thread has a point of the input ---- */

/* dx = the sum of dy of the windows won */
template <int WIDE, class Place> __global__ void pool_backward(pool g, const float *dy, const Place *saved, float *dx) {
    const int64_t inner = g.y.inner / WIDE;
    for (int64_t i = thread_index(); i < g.index.total; i += thread_count()) {
        const point at = point_at(g.index, i);
        const reach rows = g.windows.windows_of(0, at.row), columns = g.windows.windows_of(1, at.column);
        pack<float, WIDE> sum = {};
        for (int64_t p = rows.first; p < rows.end; p++) {
            const int64_t row = at.row - g.windows.corner(0, p);
            for (int64_t q = columns.first; q < columns.end; q++) {
                const int64_t column = at.column - g.windows.corner(1, q);
                const int64_t from = ((at.plane * g.y.height + p) * g.y.width + q) * inner + at.inner;
                const pack<Place, WIDE> winner = load<WIDE>(saved, from);
                const pack<float, WIDE> d = load<WIDE>(dy, from);
                const Place place = (Place)(row * g.windows.window.kernel[1] + column);
                for (int k = 0; k < WIDE; k++)
                    if (winner.at[k] == place) sum.at[k] += d.at[k];
            }
        }
        store(dx, i, sum);
    }
}

/* ---- host ---- */

bool fits(const tdm_kernel_desc *desc, tdm_kernel_fit *fit) {
    const int64_t *y = desc->y.dim;
    const bool small = has_small_window((const tdm_maxpool2d_attrs *)desc->attrs);
    keep_layout(desc, fit);
    fit->saved_bytes = (size_t)(y[0] * y[1] * y[2] * y[3]) * (small ? sizeof(uint8_t) : sizeof(int32_t));
    return true;
}

pool pool_of(const tdm_kernel_args *args) {
    const tdm_kernel_desc *desc = args->desc;
    const tdm_maxpool2d_attrs *attrs = (const tdm_maxpool2d_attrs *)desc->attrs;
    pool g = {};
    g.x = tdm__planes_of(&desc->x[0], args->rows, desc->x_layout[0]);
    g.y = tdm__planes_of(&desc->y, args->rows, desc->y_layout);
    g.windows = sliding_of(tdm__pool_window(attrs->kernel, attrs->stride, attrs->padding), desc);
    return g;
}

template <int WIDE, class Place> tdm_status launch_forward(const tdm_kernel_args *args, pool g) {
    auto kernel = pool_forward<WIDE, Place>;
    Place *saved = args->training ? (Place *)args->saved : NULL;
    g.index = plane_index_of(g.y, WIDE);
    TDM_LAUNCH(kernel, blocks_for(g.index.total), THREADS, tdm__cuda_device(args->device)->stream, g, args->x[0],
               args->y, saved);
    return TDM_OK;
}

template <int WIDE, class Place> tdm_status launch_backward(const tdm_kernel_args *args, pool g) {
    auto kernel = pool_backward<WIDE, Place>;
    const Place *saved = (const Place *)args->saved;
    g.index = plane_index_of(g.x, WIDE);
    TDM_LAUNCH(kernel, blocks_for(g.index.total), THREADS, tdm__cuda_device(args->device)->stream, g, args->dy, saved,
               args->dx[0]);
    return TDM_OK;
}

tdm_status forward(const tdm_kernel_args *args) {
    const pool g = pool_of(args);
    if (!has_small_window((const tdm_maxpool2d_attrs *)args->desc->attrs)) return launch_forward<1, int32_t>(args, g);
    const bool packs = has_packs(g.x) && is_aligned(args->x[0]) && is_aligned(args->y) && is_aligned(args->saved);
    return packs ? launch_forward<PACK, uint8_t>(args, g) : launch_forward<1, uint8_t>(args, g);
}

tdm_status backward(const tdm_kernel_args *args) {
    const pool g = pool_of(args);
    if (!has_small_window((const tdm_maxpool2d_attrs *)args->desc->attrs)) return launch_backward<1, int32_t>(args, g);
    const bool packs = has_packs(g.x) && is_aligned(args->dx[0]) && is_aligned(args->dy) && is_aligned(args->saved);
    return packs ? launch_backward<PACK, uint8_t>(args, g) : launch_backward<1, uint8_t>(args, g);
}

} /* namespace */

const tdm_kernel tdm__maxpool2d_cuda = {
    .op = "maxpool2d",
    .variant = "cuda",
    .fits = fits,
    .open = NULL,
    .close = NULL,
    .forward = forward,
    .backward = backward,
};
