/* The sums of batchnorm2d on CUDA: the statistics of a batch and the sums of its gradients, channel by channel, and the
 * coefficients that follow from them. For .cu files.
 *
 * Sums are taken in double, in a fixed order: a block sums a slice of one channel (PLAIN) or of several neighbouring
 * channels (NHWC), and a warp adds the slices of a channel.
 *
 * Variances are sums of squared distances from the channel's first element: x is read once, and the squares of large
 * means do not cancel. */
#ifndef TDM_OPS_BATCHNORM2D_SUMS_CUDA_H
#define TDM_OPS_BATCHNORM2D_SUMS_CUDA_H

#include "ops/batchnorm2d/batchnorm2d.h"
#include "runtime/backends/cuda/kit/kernel.h"

namespace tdm_cuda {

struct sums {
    double a, b;
};

/* The operands. Indices count packs of the kernel's WIDE elements. */
template <class Number> struct norm_operands {
    const Number *x, *dy, *y; /* y: NULL if there is no relu */
    const Number *other;      /* added to the result, before the relu; NULL: nothing */
    Number *dother;           /* its gradient; NULL: not needed */
    int64_t channels, count;  /* count: elements of one channel */
    divider inner;            /* packs of a channel in a row (PLAIN), or of all channels of a point (NHWC) */
    divider channel;
};

/* ---- the terms of the sums ---- */

template <int WIDE, class Number>
__device__ inline pack<float, WIDE> masked_dy(const norm_operands<Number> &g, int64_t i) {
    pack<float, WIDE> d = load<WIDE>(g.dy, i);
    if (g.y == NULL) return d;
    keep_where_positive(&d, load<WIDE>(g.y, i));
    return d;
}

/* The values that are read for one pack. */
template <int WIDE> struct terms { pack<float, WIDE> x, dy; };

template <bool GRADIENT, int WIDE, class Number>
__device__ inline terms<WIDE> terms_at(const norm_operands<Number> &g, int64_t i) {
    const pack<float, WIDE> x = load<WIDE>(g.x, i);
    return {x, GRADIENT ? masked_dy<WIDE>(g, i) : x};
}

template <bool GRADIENT, int WIDE>
__device__ inline void add_terms(sums *sum, int apart, const terms<WIDE> &of, const double *center) {
    for (int k = 0; k < WIDE; k++) {
        const double distance = (double)of.x.at[k] - center[k * apart];
        const double a = GRADIENT ? (double)of.dy.at[k] : distance;
        sum[k * apart].a += a;
        sum[k * apart].b += a * distance;
    }
}

/* Adds the terms of a thread's packs: `walk.next()` for each of `first`, `first + step`, ... below `end`. Issues
 * several loads before it uses the first. */
template <bool GRADIENT, int WIDE, class Number, class Walk>
__device__ inline void add_up(sums *sum, int apart, const norm_operands<Number> &g, const double *center, Walk walk,
                              int64_t first, int64_t end, int step) {
    static constexpr int AT_ONCE = GRADIENT ? 2 : 4;
    for (int64_t i = first; i < end; i += AT_ONCE * step) {
        terms<WIDE> seen[AT_ONCE];
        for (int u = 0; u < AT_ONCE; u++)
            if (i + u * step < end) seen[u] = terms_at<GRADIENT, WIDE>(g, walk.next());
        for (int u = 0; u < AT_ONCE; u++)
            if (i + u * step < end) add_terms<GRADIENT, WIDE>(sum, apart, seen[u], center);
    }
}

/* ---- from sums to coefficients, channel by channel ----
 *
 * y = (x - center) * scale + shift and dx = (dy - level - (x - center) * slope) * scale in float. shift and level
 * compensate for rounding the mean to the center. */

struct coefficients {
    float *center, *scale, *shift, *slope; /* shift: `level` in backward */
};

template <class Number> struct forward_finish {
    static constexpr bool GRADIENT = false;
    tdm_batchnorm2d_attrs attrs;
    const Number *x;
    int64_t channel_step; /* from a channel's first element to the next channel's */
    double count;         /* of a channel on this replica */
    bool of_batch, training;
    const float *weight, *bias;
    float *running_mean, *running_variance;
    const int64_t *counter;
    double *mean, *invstd, *saved_count; /* kept for backward */
    tdm_batchnorm2d_blocks blocks;
    coefficients out;

    /* 0 in place of an infinity, which less itself is NaN */
    __device__ double center(int64_t c) const {
        const double first = (double)get(x, c * channel_step);
        return first - first == 0.0 ? first : 0.0;
    }

    /* squares: the sum of squared distances from the mean */
    __device__ tdm_batchnorm2d_moments own_moments(int64_t c, const sums &sum) const {
        const double offset = sum.a / count, squares = sum.b - sum.a * offset;
        return {count, center(c) + offset, squares < 0.0 ? 0.0 : squares};
    }

    __device__ void finish(int64_t c, const sums &sum) const {
        tdm_batchnorm2d_moments m = {1.0, 0.0, 0.0};
        if (!of_batch) {
            m.mean = (double)running_mean[c];
            m.squares = (double)running_variance[c];
        } else {
            m = blocks.replicas > 1 ? tdm__batchnorm2d_join(&blocks, c) : own_moments(c, sum);
        }
        const double variance = m.squares / m.count, inverse = 1.0 / sqrt(variance + attrs.eps);
        if (training) {
            mean[c] = m.mean;
            invstd[c] = inverse;
            if (c == 0) *saved_count = m.count;
            if (attrs.track_running_stats)
                tdm__batchnorm2d_run(&running_mean[c], &running_variance[c],
                                     tdm__batchnorm2d_momentum(&attrs, *counter + 1), m.mean, variance, m.count);
        }
        write_coefficients(c, m.mean, inverse);
    }

    __device__ void write_coefficients(int64_t c, double m, double inverse) const {
        const double scale = attrs.affine ? inverse * (double)weight[c] : inverse;
        const float rounded = (float)m;
        out.center[c] = rounded;
        out.scale[c] = (float)scale;
        out.shift[c] = (float)((attrs.affine ? (double)bias[c] : 0.0) + ((double)rounded - m) * scale);
    }
};

/* Forward's coefficients once more, from what forward saved. */
template <class Number> struct forward_again {
    static constexpr bool GRADIENT = false;
    forward_finish<Number> forward;

    __device__ double center(int64_t) const {
        return 0.0;
    }

    __device__ void finish(int64_t c, const sums &) const {
        if (forward.training)
            forward.write_coefficients(c, forward.mean[c], forward.invstd[c]);
        else
            forward.write_coefficients(c, (double)forward.running_mean[c],
                                       1.0 / sqrt((double)forward.running_variance[c] + forward.attrs.eps));
    }
};

/* Into this replica's block, for the others. */
template <class Number> struct forward_block {
    static constexpr bool GRADIENT = false;
    forward_finish<Number> forward;
    double *block;

    __device__ double center(int64_t c) const {
        return forward.center(c);
    }

    __device__ void finish(int64_t c, const sums &sum) const {
        const tdm_batchnorm2d_moments m = forward.own_moments(c, sum);
        double *pair = tdm__batchnorm2d_pair(block, c);
        if (c == 0) block[0] = m.count;
        pair[0] = m.mean;
        pair[1] = m.squares;
    }
};

/* By evaluation rules the statistics are constants: dx = w invstd dy, without sums. */
struct running_finish {
    static constexpr bool GRADIENT = true;
    bool affine;
    double eps;
    const float *weight, *running_variance;
    coefficients out;

    __device__ double center(int64_t) const {
        return 0.0;
    }

    __device__ void finish(int64_t c, const sums &) const {
        const double invstd = 1.0 / sqrt((double)running_variance[c] + eps);
        out.center[c] = out.shift[c] = out.slope[c] = 0.0f;
        out.scale[c] = (float)(affine ? invstd * (double)weight[c] : invstd);
    }
};

/* dw = invstd * sum dy (x - mean);  db = sum dy: this replica's own sums. */
struct backward_finish {
    static constexpr bool GRADIENT = true;
    bool affine;
    const float *weight;
    const double *mean, *invstd, *saved_count;
    float *dweight, *dbias;
    tdm_batchnorm2d_blocks blocks;
    coefficients out;

    __device__ double center(int64_t c) const {
        return mean[c];
    }

    __device__ void finish(int64_t c, const sums &sum) const {
        const bool joins = blocks.replicas > 1;
        tdm_batchnorm2d_sums own = {sum.a, sum.b};
        if (joins) own = tdm__batchnorm2d_own(&blocks, c);
        const tdm_batchnorm2d_sums all = joins ? tdm__batchnorm2d_add(&blocks, c) : own;
        const double inverse = invstd[c], count = *saved_count, slope = all.product * inverse * inverse / count;
        if (dweight != NULL) {
            dweight[c] = (float)(own.product * inverse);
            dbias[c] = (float)own.dy;
        }
        const float rounded = (float)mean[c];
        out.center[c] = rounded;
        out.scale[c] = (float)(affine ? inverse * (double)weight[c] : inverse);
        out.shift[c] = (float)(all.dy / count + ((double)rounded - mean[c]) * slope);
        out.slope[c] = (float)slope;
    }
};

/* Into this replica's block, for the others. */
struct backward_block {
    static constexpr bool GRADIENT = true;
    const double *mean;
    double *block;

    __device__ double center(int64_t c) const {
        return mean[c];
    }

    __device__ void finish(int64_t c, const sums &sum) const {
        double *pair = tdm__batchnorm2d_pair(block, c);
        pair[0] = sum.a;
        pair[1] = sum.b;
    }
};

/* ---- sums of slices: into partial[channel][slice], or straight to the result if there is one slice ---- */

template <class Finish>
__device__ inline void hand_on(const Finish &finish, int64_t channel, const sums &sum, sums *partial) {
    if (gridDim.y == 1)
        finish.finish(channel, sum);
    else
        partial[channel * gridDim.y + blockIdx.y] = sum;
}

/* Walks over the packs of a channel in steps of THREADS, PLAIN. Divides once, at the start. */
struct plane_walk {
    int64_t inner, row_step; /* packs of the channel in a row; from there to the next row's */
    int64_t index, at;       /* the pack, and its index within its row */
    int64_t index_step, at_step;

    template <class Number> __device__ plane_walk(const norm_operands<Number> &g, int64_t channel, int64_t first) {
        int64_t row = first, rows = THREADS;
        inner = g.inner.by;
        row_step = g.channels * inner;
        at = split(g.inner, &row);
        index = row * row_step + channel * inner + at;
        at_step = split(g.inner, &rows);
        index_step = rows * row_step + at_step;
    }
    __device__ int64_t next() {
        const int64_t here = index;
        index += index_step;
        at += at_step;
        if (at >= inner) {
            index += row_step - inner;
            at -= inner;
        }
        return here;
    }
};

/* PLAIN: a block sums `length` packs of channel blockIdx.x. */
template <int WIDE, class Number, class Finish>
__global__ void sum_planes(norm_operands<Number> g, Finish finish, int64_t length, sums *partial) {
    __shared__ double room[THREADS / WARP];
    const int64_t channel = blockIdx.x, begin = blockIdx.y * length, packs = g.count / WIDE;
    const int64_t end = begin + length < packs ? begin + length : packs, first = begin + threadIdx.x;
    const double center[1] = {finish.center(channel)};
    sums sum = {0, 0};
    add_up<Finish::GRADIENT, WIDE>(&sum, 0, g, center, plane_walk(g, channel, first), first, end, THREADS);
    sum.a = block_sum<THREADS>(sum.a, room);
    sum.b = block_sum<THREADS>(sum.b, room);
    if (threadIdx.x == 0) hand_on(finish, channel, sum, partial);
}

struct point_walk {
    int64_t index, step;
    __device__ int64_t next() {
        const int64_t here = index;
        index += step;
        return here;
    }
};

/* NHWC: a block sums `length` points of `lanes` packs of channels; lanes is a power of two. */
template <int WIDE, class Number, class Finish>
__global__ void sum_points(norm_operands<Number> g, Finish finish, int64_t length, int lanes, sums *partial) {
    __shared__ sums room[WIDE][THREADS];
    const int thread = (int)threadIdx.x, x = thread % lanes, y = thread / lanes, rows = THREADS / lanes;
    const int64_t at = (int64_t)blockIdx.x * lanes + x, begin = blockIdx.y * length, first = begin + y;
    const int64_t end = begin + length < g.count ? begin + length : g.count;
    double center[WIDE] = {};
    sums sum[WIDE] = {};
    if (at < g.inner.by) {
        const point_walk walk = {first * g.inner.by + at, rows * g.inner.by};
        for (int k = 0; k < WIDE; k++) center[k] = finish.center(at * WIDE + k);
        add_up<Finish::GRADIENT, WIDE>(sum, 1, g, center, walk, first, end, rows);
    }
    for (int k = 0; k < WIDE; k++) room[k][thread] = sum[k];
    for (int half = rows / 2; half > 0; half /= 2) {
        __syncthreads();
        if (y >= half) continue;
        for (int k = 0; k < WIDE; k++) {
            room[k][thread].a += room[k][thread + half * lanes].a;
            room[k][thread].b += room[k][thread + half * lanes].b;
        }
    }
    if (y != 0 || at >= g.inner.by) return;
    for (int k = 0; k < WIDE; k++) hand_on(finish, at * WIDE + k, room[k][thread], partial);
}

/* Each warp finishes one channel. */
template <class Finish>
__global__ void finish_channels(Finish finish, const sums *partial, int64_t channels, int64_t slices) {
    const int64_t lane = threadIdx.x % WARP, step = thread_count() / WARP;
    for (int64_t c = thread_index() / WARP; c < channels; c += step) {
        sums sum = {0, 0};
        for (int64_t s = lane; s < slices; s += WARP) {
            sum.a += partial[c * slices + s].a;
            sum.b += partial[c * slices + s].b;
        }
        sum.a = warp_sum(sum.a);
        sum.b = warp_sum(sum.b);
        if (lane == 0) finish.finish(c, sum);
    }
}

} /* namespace tdm_cuda */
#endif
