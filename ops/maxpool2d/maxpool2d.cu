/* maxpool2d on CUDA, including a relu that follows and the bias of the layer before. The rules, and what is saved, are
 * those of maxpool2d_ref.c. Where the relu lets nothing through no point is recorded as the winner, so backward does
 * not need y.
 *
 * Backward has no atomic additions and writes every element once. If windows are side by side, a thread writes the
 * points of one window. Otherwise a thread has one point of the input and adds the windows that contain it, in the
 * order of the outputs. Windows side by side with channels last are also rows of a sum: if the plan asks for it,
 * backward sums what goes to each channel in the same pass. */
#include "runtime/backends/cuda/kit/planes.h"
#include "runtime/backends/cuda/kit/sums.h"
#include "ops/maxpool2d/maxpool2d.h"

using namespace tdm_cuda;

namespace {

struct pool {
    tdm_planes x, y;
    sliding windows;
    plane_index index; /* what the threads' indices count */
    bool relu;
    const float *bias; /* one per channel, added to the maximum; NULL: none */
    divider channel;   /* the channels */
};

/* ---- forward: each thread computes WIDE channels of one output point ---- */

/* Says that no point of the window has won. No window has this index: a byte is used for windows of at most 255 points.
 */
template <class Offset> static constexpr Offset NOBODY = (Offset)-1;

template <int WIDE, class Offset> struct winners {
    pack<float, WIDE> best;
    pack<Offset, WIDE> offset;
    bool any;

    __device__ void meet(const pack<float, WIDE> &v, Offset at) {
        for (int k = 0; k < WIDE; k++) {
            if (any && !(v.at[k] > best.at[k] || v.at[k] != v.at[k])) continue;
            best.at[k] = v.at[k];
            offset.at[k] = at;
        }
        any = true;
    }
    /* `bias` is that of the pack's first channel. */
    __device__ void add(const float *bias) {
        for (int k = 0; k < WIDE; k++) best.at[k] += bias[k];
    }
    /* As relu_ref.c: NaN passes, in both directions. */
    __device__ void pass_relu() {
        for (int k = 0; k < WIDE; k++) {
            if (best.at[k] <= 0.0f) offset.at[k] = NOBODY<Offset>;
            if (best.at[k] < 0.0f) best.at[k] = 0.0f;
        }
    }
};

/* Reads the window at (top, left), of any size. */
template <int WIDE, class Offset, class Index, class Number>
__device__ inline void meet_window(winners<WIDE, Offset> *w, const pool &g, const Number *x, const point<Index> &at,
                                   Index top, Index left) {
    const Index packs = (Index)(g.x.inner / WIDE);
    const Index kernel[2] = {(Index)g.windows.window.kernel[0], (Index)g.windows.window.kernel[1]};
    const Index step[2] = {(Index)g.windows.window.dilation[0], (Index)g.windows.window.dilation[1]};
    for (Index r = 0; r < kernel[0]; r++) {
        const Index row = top + r * step[0];
        if (row < 0) continue;
        if (row >= (Index)g.x.height) break;
        for (Index c = 0; c < kernel[1]; c++) {
            const Index column = left + c * step[1];
            if (column < 0) continue;
            if (column >= (Index)g.x.width) break;
            const Index from = pack_at(g.x, packs, at.plane, row, column, at.inner);
            w->meet(load<WIDE>(x, from), (Offset)(r * kernel[1] + c));
        }
    }
}

/* The same for KERNEL x KERNEL neighbouring points. Issues all loads before it uses the first. */
template <int KERNEL, int WIDE, class Offset, class Index, class Number>
__device__ inline void meet_square(winners<WIDE, Offset> *w, const pool &g, const Number *x, const point<Index> &at,
                                   Index top, Index left) {
    const Index packs = (Index)(g.x.inner / WIDE), height = (Index)g.x.height, width = (Index)g.x.width;
    pack<float, WIDE> v[KERNEL * KERNEL];
    bool inside[KERNEL * KERNEL];
    for (int k = 0; k < KERNEL * KERNEL; k++) {
        const Index row = top + k / KERNEL, column = left + k % KERNEL;
        inside[k] = row >= 0 && row < height && column >= 0 && column < width;
        if (inside[k]) v[k] = load<WIDE>(x, pack_at(g.x, packs, at.plane, row, column, at.inner));
    }
    for (int k = 0; k < KERNEL * KERNEL; k++)
        if (inside[k]) w->meet(v[k], (Offset)k);
}

template <int WIDE, class Index> __device__ inline Index first_channel(const pool &g, const point<Index> &at) {
    Index plane = at.plane;
    return g.y.inner > 1 ? at.inner * WIDE : split(g.channel, &plane);
}

/* KERNEL 0: windows of any size. */
template <int WIDE, class Number, class Offset, class Index, int KERNEL>
__global__ void pool_forward(pool g, const Number *x, Number *y, Offset *saved) {
    const Index total = (Index)g.index.total, step = (Index)thread_count();
    for (Index i = (Index)thread_index(); i < total; i += step) {
        const point<Index> at = point_at(g.index, i);
        const Index top = g.windows.corner(0, at.row), left = g.windows.corner(1, at.column);
        winners<WIDE, Offset> w = {};
        if constexpr (KERNEL == 0)
            meet_window(&w, g, x, at, top, left);
        else
            meet_square<KERNEL>(&w, g, x, at, top, left);
        if (g.bias != NULL) w.add(g.bias + first_channel<WIDE>(g, at));
        if (g.relu) w.pass_relu();
        store(y, i, w.best);
        if (saved != NULL) store(saved, i, w.offset);
    }
}

/* ---- backward, windows side by side: a thread has one window, or one position beyond the last window where the input
 * is longer ---- */

/* Also a source of sums (sums.h): of dy where a point has won, which equals the sum of dx. */
template <class Number, class Offset, class Index> struct apart {
    pool g; /* its index counts windows */
    const Number *dy;
    const Offset *saved;
    Number *dx;

    template <int WIDE> struct seen {
        point<Index> at;
        pack<float, WIDE> d;
        pack<Offset, WIDE> winner;
    };

    template <int WIDE> __device__ seen<WIDE> fetch(int64_t i) const {
        seen<WIDE> s = {point_at(g.index, (Index)i), {}, {}};
        const bool is_window = s.at.row < (Index)g.y.height && s.at.column < (Index)g.y.width;
        if (is_window) {
            const Index from = pack_at(g.y, (Index)(g.y.inner / WIDE), s.at.plane, s.at.row, s.at.column, s.at.inner);
            s.d = load<WIDE>(dy, from);
            s.winner = load<WIDE>(saved, from);
        }
        return s;
    }
    template <int WIDE> __device__ void scatter(const seen<WIDE> &s) const {
        const Index kernel[2] = {(Index)g.windows.window.kernel[0], (Index)g.windows.window.kernel[1]};
        const Index packs = (Index)(g.x.inner / WIDE);
        Offset offset = 0;
        for (Index r = 0; r < kernel[0]; r++) {
            for (Index c = 0; c < kernel[1]; c++, offset++) {
                const Index row = s.at.row * kernel[0] + r, column = s.at.column * kernel[1] + c;
                if (row >= (Index)g.x.height || column >= (Index)g.x.width) continue;
                pack<float, WIDE> out;
                /* The addition starts at 0, as it does for overlapping windows: -0 is written as 0. */
                for (int k = 0; k < WIDE; k++) out.at[k] = 0.0f + (s.winner.at[k] == offset ? s.d.at[k] : 0.0f);
                store(dx, pack_at(g.x, packs, s.at.plane, row, column, s.at.inner), out);
            }
        }
    }
    template <int WIDE> __device__ pack<float, WIDE> terms(int64_t, seen<WIDE> s) const {
        scatter(s);
        for (int k = 0; k < WIDE; k++)
            if (s.winner.at[k] == NOBODY<Offset>) s.d.at[k] = 0.0f;
        return s.d;
    }
};

template <int WIDE, class Number, class Offset, class Index>
__global__ void pool_backward_apart(apart<Number, Offset, Index> windows) {
    const Index total = (Index)windows.g.index.total, step = (Index)thread_count();
    for (Index i = (Index)thread_index(); i < total; i += step) windows.scatter(windows.template fetch<WIDE>(i));
}

/* ---- backward, windows that overlap or leave points out: a thread has one point of the input ---- */

/* Whether the window has a point at this distance from its corner; if so, *distance becomes the index of the point. */
template <class Index> __device__ inline bool is_tap(Index *distance, Index dilation) {
    if (dilation == 1) return true;
    const Index whole = *distance / dilation, rest = *distance - whole * dilation;
    *distance = whole;
    return rest == 0;
}

/* dx = the sum of dy over the windows that this point has won */
template <int WIDE, class Number, class Offset, class Index>
__global__ void pool_backward(pool g, const Number *dy, const Offset *saved, Number *dx) {
    const Index total = (Index)g.index.total, step = (Index)thread_count(), packs = (Index)(g.y.inner / WIDE);
    const Index width = (Index)g.windows.window.kernel[1];
    const Index dilation[2] = {(Index)g.windows.window.dilation[0], (Index)g.windows.window.dilation[1]};
    for (Index i = (Index)thread_index(); i < total; i += step) {
        const point<Index> at = point_at(g.index, i);
        const reach<Index> rows = g.windows.windows_of(0, at.row), columns = g.windows.windows_of(1, at.column);
        pack<float, WIDE> sum = {};
        for (Index p = rows.first; p < rows.end; p++) {
            Index row = at.row - g.windows.corner(0, p);
            if (!is_tap(&row, dilation[0])) continue;
            for (Index q = columns.first; q < columns.end; q++) {
                Index column = at.column - g.windows.corner(1, q);
                if (!is_tap(&column, dilation[1])) continue;
                const Index from = pack_at(g.y, packs, at.plane, p, q, at.inner);
                const pack<Offset, WIDE> winner = load<WIDE>(saved, from);
                const pack<float, WIDE> d = load<WIDE>(dy, from);
                const Offset offset = (Offset)(row * width + column);
                for (int k = 0; k < WIDE; k++)
                    if (winner.at[k] == offset) sum.at[k] += d.at[k];
            }
        }
        store(dx, i, sum);
    }
}

/* ---- host ---- */

tdm_window window_of(const tdm_kernel_desc *desc) {
    const tdm_maxpool2d_attrs *attrs = (const tdm_maxpool2d_attrs *)desc->attrs;
    return tdm__pool_window(&attrs->pool);
}

bool is_dilated(const tdm_window &window) {
    return window.dilation[0] != 1 || window.dilation[1] != 1;
}

bool lie_apart(const tdm_window &window) {
    for (int axis = 0; axis < 2; axis++)
        if (window.stride[axis] != window.kernel[axis] || window.padding[axis] != 0) return false;
    return !is_dilated(window);
}

/* The planes of windows side by side that cover all of x, each with the channels of x. */
tdm_planes tiles_of(tdm_planes x, const tdm_window &window) {
    x.height = ceil_div(x.height, window.kernel[0]);
    x.width = ceil_div(x.width, window.kernel[1]);
    return x;
}

/* Rows of the sums, with channels last. */
int64_t rows_of_sums(const tdm_planes &x, const tdm_window &window) {
    const tdm_planes tiles = tiles_of(x, window);
    return tiles.count * tiles.height * tiles.width;
}

/* Windows per lane: each is written point by point. */
int64_t windows_of_lane(const tdm_window &window) {
    return ceil_div(ROWS_OF_LANE, window.kernel[0] * window.kernel[1]);
}

size_t room_of_sums(const tdm_kernel_desc *desc) {
    const tdm_window window = window_of(desc);
    const tdm_planes x = tdm__planes_of(&desc->x[0], desc->x[0].dim[0], TDM_LAYOUT_NHWC);
    return room_of_columns(rows_of_sums(x, window), x.inner, windows_of_lane(window));
}

bool fits(const tdm_kernel_desc *desc, tdm_kernel_fit *fit) {
    const int64_t *y = desc->y.dim;
    const bool small = tdm__maxpool2d_fits_byte((const tdm_maxpool2d_attrs *)desc->attrs);
    keep_layout(desc, fit);
    fit->epilogue = TDM_EPILOGUE_RELU;
    if (desc->precision != TDM_BF16) fit->epilogue |= TDM_EPILOGUE_BIAS;
    fit->saved_bytes = (size_t)(y[0] * y[1] * y[2] * y[3]) * (small ? sizeof(uint8_t) : sizeof(int32_t));
    if (fit->y_layout == TDM_LAYOUT_NHWC && lie_apart(window_of(desc))) {
        fit->epilogue |= TDM_EPILOGUE_SUM_DX;
        fit->scratch_bytes = room_of_sums(desc);
    }
    return true;
}

pool pool_of(const tdm_kernel_args *args) {
    const tdm_kernel_desc *desc = args->desc;
    pool g = {};
    g.x = tdm__planes_of(&desc->x[0], args->rows, desc->x_layout[0]);
    g.y = tdm__planes_of(&desc->y, args->rows, desc->y_layout);
    g.windows = sliding_of(window_of(desc), desc);
    g.bias = tdm_has_epilogue(desc, TDM_EPILOGUE_BIAS) ? args->param[0] : NULL;
    g.channel = divider_of(desc->y.dim[1]);
    g.relu = tdm_has_epilogue(desc, TDM_EPILOGUE_RELU);
    return g;
}

template <int WIDE, class Number, class Offset, class Index>
tdm_status launch_forward(const tdm_kernel_args *args, pool g) {
    const int64_t *kernel = g.windows.window.kernel;
    auto start = pool_forward<WIDE, Number, Offset, Index, 0>;
    const bool near = !is_dilated(g.windows.window);
    if (near && kernel[0] == 2 && kernel[1] == 2) start = pool_forward<WIDE, Number, Offset, Index, 2>;
    if (near && kernel[0] == 3 && kernel[1] == 3) start = pool_forward<WIDE, Number, Offset, Index, 3>;
    Offset *saved = args->training ? (Offset *)args->saved : NULL;
    g.index = plane_index_of(g.y, WIDE);
    TDM_LAUNCH(start, blocks_for(g.index.total), THREADS, tdm__cuda_device(args->device)->stream, g,
               as<Number>(args->x[0]), as<Number>(args->y), saved);
    return TDM_OK;
}

template <int WIDE, class Number, class Offset, class Index>
tdm_status launch_backward_apart(const tdm_kernel_args *args, pool g) {
    tdm_cuda_device *device = tdm__cuda_device(args->device);
    const tdm_window &window = g.windows.window;
    g.index = plane_index_of(tiles_of(g.x, window), WIDE);
    const apart<Number, Offset, Index> windows = {g, as<Number>(args->dy), (const Offset *)args->saved,
                                                 as<Number>(args->dx[0])};
    if (tdm_has_epilogue(args->desc, TDM_EPILOGUE_SUM_DX))
        return sum_columns<WIDE>(device, windows, args->channel_sums, args->scratch, rows_of_sums(g.x, window),
                                 g.x.inner, windows_of_lane(window));
    auto start = pool_backward_apart<WIDE, Number, Offset, Index>;
    TDM_LAUNCH(start, blocks_for(g.index.total), THREADS, device->stream, windows);
    return TDM_OK;
}

template <int WIDE, class Number, class Offset, class Index>
tdm_status launch_backward(const tdm_kernel_args *args, pool g) {
    if (lie_apart(g.windows.window)) return launch_backward_apart<WIDE, Number, Offset, Index>(args, g);
    auto start = pool_backward<WIDE, Number, Offset, Index>;
    g.index = plane_index_of(g.x, WIDE);
    TDM_LAUNCH(start, blocks_for(g.index.total), THREADS, tdm__cuda_device(args->device)->stream, g,
               as<Number>(args->dy), (const Offset *)args->saved, as<Number>(args->dx[0]));
    return TDM_OK;
}

template <class Number> tdm_status forward(const tdm_kernel_args *args) {
    static constexpr int WIDE = PACK_OF<Number>;
    const pool g = pool_of(args);
    const bool packs =
        has_packs<Number>(g.x) && is_aligned(args->x[0], args->y, args->saved);
    if (!tdm__maxpool2d_fits_byte((const tdm_maxpool2d_attrs *)args->desc->attrs))
        return launch_forward<1, Number, int32_t, int64_t>(args, g);
    if (!is_small(g.x) || !is_small(g.y)) return launch_forward<1, Number, uint8_t, int64_t>(args, g);
    return packs ? launch_forward<WIDE, Number, uint8_t, int32_t>(args, g)
                 : launch_forward<1, Number, uint8_t, int32_t>(args, g);
}

template <class Number> tdm_status backward(const tdm_kernel_args *args) {
    static constexpr int WIDE = PACK_OF<Number>;
    const pool g = pool_of(args);
    const bool packs = has_packs<Number>(g.x) && is_aligned(args->dx[0], args->dy, args->saved, args->channel_sums);
    if (!tdm__maxpool2d_fits_byte((const tdm_maxpool2d_attrs *)args->desc->attrs))
        return launch_backward<1, Number, int32_t, int64_t>(args, g);
    if (!is_small(g.x) || !is_small(g.y)) return launch_backward<1, Number, uint8_t, int64_t>(args, g);
    return packs ? launch_backward<WIDE, Number, uint8_t, int32_t>(args, g)
                 : launch_backward<1, Number, uint8_t, int32_t>(args, g);
}

} /* namespace */

TDM_CUDA_KERNEL(maxpool2d, fits);
