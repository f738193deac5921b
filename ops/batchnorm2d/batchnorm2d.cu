/* batchnorm2d on CUDA, including the addition and the relu that end a residual block.
 *
 * Statistics and sums of gradients are taken in double, in a fixed order: a block sums a slice of one channel (PLAIN)
 * or of several neighbouring channels (NHWC), a warp adds the slices of a channel, and a pass over all elements applies
 * the result in float. If one block sums a whole channel it also does the warp's part, so small images take two
 * launches in each direction.
 *
 * Variances are sums of squared distances from the channel's first element: x is read once, and the squares of large
 * means do not cancel. */
#include "ops/batchnorm2d/batchnorm2d.h"
#include "runtime/backends/cuda/kit/planes.h"

using namespace tdm_cuda;

namespace {

struct sums {
    double a, b;
};

/* The operands. Indices count packs of the kernel's WIDE elements. */
template <class Number> struct norm {
    const Number *x, *dy, *y; /* y: NULL if there is no relu */
    const Number *other;      /* added to the result, before the relu; NULL: nothing */
    Number *dother;           /* its gradient; NULL: not needed */
    int64_t channels, count;  /* count: elements of one channel */
    divider inner;            /* packs of a channel in a row (PLAIN), or of all channels of a point (NHWC) */
    divider channel;
};

/* ---- the terms of the sums ---- */

template <int WIDE, class Number> __device__ inline pack<float, WIDE> masked_dy(const norm<Number> &g, int64_t i) {
    pack<float, WIDE> d = load<WIDE>(g.dy, i);
    if (g.y == NULL) return d;
    const pack<float, WIDE> y = load<WIDE>(g.y, i);
    for (int k = 0; k < WIDE; k++) d.at[k] = y.at[k] <= 0.0f ? 0.0f : d.at[k];
    return d;
}

/* The values that are read for one pack. */
template <int WIDE> struct terms { pack<float, WIDE> x, dy; };

template <bool GRADIENT, int WIDE, class Number>
__device__ inline terms<WIDE> terms_at(const norm<Number> &g, int64_t i) {
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
__device__ inline void add_up(sums *sum, int apart, const norm<Number> &g, const double *center, Walk walk,
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
    double count;
    bool of_batch, training;
    const float *weight, *bias;
    float *running_mean, *running_variance;
    const int64_t *counter;
    double *mean, *invstd; /* kept for backward */
    coefficients out;

    __device__ double center(int64_t c) const {
        return (double)get(x, c * channel_step);
    }

    /* running = (1 - momentum) * running + momentum * batch, with the unbiased variance */
    __device__ void update_running(int64_t c, double batch_mean, double variance) const {
        const double momentum = attrs.momentum != attrs.momentum ? 1.0 / (double)(*counter + 1) : attrs.momentum;
        const double rest = 1.0 - momentum, unbiased = variance * count / (count - 1.0);
        running_mean[c] = (float)(momentum * batch_mean + rest * (double)running_mean[c]);
        running_variance[c] = (float)(momentum * unbiased + rest * (double)running_variance[c]);
    }

    __device__ void finish(int64_t c, const sums &sum) const {
        double m, variance;
        if (of_batch) {
            const double offset = sum.a / count;
            m = center(c) + offset;
            variance = (sum.b - sum.a * offset) / count;
            if (variance < 0.0) variance = 0.0;
        } else {
            m = (double)running_mean[c];
            variance = (double)running_variance[c];
        }
        const double inverse = 1.0 / sqrt(variance + attrs.eps);
        if (training) {
            mean[c] = m;
            invstd[c] = inverse;
            if (attrs.track_running_stats) update_running(c, m, variance);
        }
        const double scale = attrs.affine ? inverse * (double)weight[c] : inverse;
        const float rounded = (float)m;
        out.center[c] = rounded;
        out.scale[c] = (float)scale;
        out.shift[c] = (float)((attrs.affine ? (double)bias[c] : 0.0) + ((double)rounded - m) * scale);
    }
};

/* dw = invstd * sum dy (x - mean);  db = sum dy */
struct backward_finish {
    static constexpr bool GRADIENT = true;
    bool affine;
    double count;
    const float *weight;
    const double *mean, *invstd;
    float *dweight, *dbias;
    coefficients out;

    __device__ double center(int64_t c) const {
        return mean[c];
    }

    __device__ void finish(int64_t c, const sums &sum) const {
        const double inverse = invstd[c], slope = sum.b * inverse * inverse / count;
        if (affine) {
            dweight[c] = (float)(sum.b * inverse);
            dbias[c] = (float)sum.a;
        }
        const float rounded = (float)mean[c];
        out.center[c] = rounded;
        out.scale[c] = (float)(affine ? inverse * (double)weight[c] : inverse);
        out.shift[c] = (float)(sum.a / count + ((double)rounded - mean[c]) * slope);
        out.slope[c] = (float)slope;
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

    template <class Number> __device__ plane_walk(const norm<Number> &g, int64_t channel, int64_t first) {
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
__global__ void sum_planes(norm<Number> g, Finish finish, int64_t length, sums *partial) {
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
__global__ void sum_points(norm<Number> g, Finish finish, int64_t length, int lanes, sums *partial) {
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

/* ---- the pass over all elements ---- */

/* The coefficients of the elements of pack i: of neighbouring channels in NHWC, of one channel in PLAIN. */
template <int WIDE, bool NHWC> __device__ inline pack<float, WIDE> coefficient(const float *of, int64_t at) {
    if constexpr (NHWC) {
        return load<WIDE>(of, at);
    } else {
        pack<float, WIDE> out;
        for (int k = 0; k < WIDE; k++) out.at[k] = of[at];
        return out;
    }
}

template <bool NHWC, class Number> __device__ inline int64_t channel_of(const norm<Number> &g, int64_t i) {
    if constexpr (NHWC) {
        return split(g.inner, &i);
    } else {
        i = quotient(g.inner, i);
        return split(g.channel, &i);
    }
}

/* The value as it would be after being stored and read again by the next layer. */
template <class Number> __device__ inline float kept(float value) {
    if constexpr (sizeof(Number) == sizeof(float))
        return value;
    else
        return widened(narrowed(value));
}

/* counter: NULL if the batch is not counted. It is incremented here, because the kernels before this one must all see
 * the same value. */
template <int WIDE, bool NHWC, class Number>
__global__ void apply_forward(norm<Number> g, coefficients of, Number *y, bool relu, int64_t *counter) {
    const int64_t packs = g.channels * g.count / WIDE;
    if (counter != NULL && thread_index() == 0) ++*counter;
    for (int64_t i = thread_index(); i < packs; i += thread_count()) {
        const int64_t c = channel_of<NHWC>(g, i);
        const pack<float, WIDE> center = coefficient<WIDE, NHWC>(of.center, c);
        const pack<float, WIDE> scale = coefficient<WIDE, NHWC>(of.scale, c);
        const pack<float, WIDE> shift = coefficient<WIDE, NHWC>(of.shift, c);
        pack<float, WIDE> v = load<WIDE>(g.x, i);
        for (int k = 0; k < WIDE; k++) {
            v.at[k] = fmaf(v.at[k] - center.at[k], scale.at[k], shift.at[k]);
        }
        if (g.other != NULL) {
            const pack<float, WIDE> added = load<WIDE>(g.other, i);
            for (int k = 0; k < WIDE; k++) v.at[k] = kept<Number>(v.at[k]) + added.at[k];
        }
        for (int k = 0; k < WIDE; k++) v.at[k] = relu && v.at[k] < 0.0f ? 0.0f : v.at[k];
        store(y, i, v);
    }
}

template <int WIDE, bool NHWC, class Number>
__global__ void apply_backward(norm<Number> g, coefficients of, Number *dx) {
    const int64_t packs = g.channels * g.count / WIDE;
    for (int64_t i = thread_index(); i < packs; i += thread_count()) {
        const int64_t c = channel_of<NHWC>(g, i);
        const pack<float, WIDE> center = coefficient<WIDE, NHWC>(of.center, c);
        const pack<float, WIDE> scale = coefficient<WIDE, NHWC>(of.scale, c);
        const pack<float, WIDE> level = coefficient<WIDE, NHWC>(of.shift, c);
        const pack<float, WIDE> slope = coefficient<WIDE, NHWC>(of.slope, c);
        const pack<float, WIDE> x = load<WIDE>(g.x, i);
        pack<float, WIDE> d = masked_dy<WIDE>(g, i);
        if (g.dother != NULL) store(g.dother, i, d);
        if (dx == NULL) continue;
        for (int k = 0; k < WIDE; k++)
            d.at[k] = fmaf(center.at[k] - x.at[k], slope.at[k], d.at[k] - level.at[k]) * scale.at[k];
        store(dx, i, d);
    }
}

/* ---- host ---- */

static constexpr int64_t BLOCKS = 1024, MOST_SLICES = 512;
static constexpr int64_t BLOCK_CHANNELS = WARP * PACK;          /* per block, NHWC */
static constexpr int64_t PLANE_SLICE = 4096, POINT_SLICE = 256; /* the fewest elements of a channel in a slice */

/* The number of slices never falls when rows are added: scratch is booked for the most rows. */
int64_t slices_of(int64_t channels, int64_t count, bool nhwc) {
    const int64_t blocks = nhwc ? ceil_div(channels, BLOCK_CHANNELS) : channels;
    const int64_t most = ceil_div(count, nhwc ? POINT_SLICE : PLANE_SLICE);
    int64_t slices = ceil_div(BLOCKS, blocks);
    if (slices > most) slices = most;
    return slices < MOST_SLICES ? slices : MOST_SLICES;
}

int64_t count_of(const tdm_kernel_desc *desc, int64_t rows) {
    return rows * desc->x[0].dim[2] * desc->x[0].dim[3];
}

bool fits(const tdm_kernel_desc *desc, tdm_kernel_fit *fit) {
    const size_t channels = (size_t)desc->x[0].dim[1];
    keep_layout(desc, fit);
    fit->epilogue = TDM_EPILOGUE_ADD | TDM_EPILOGUE_RELU;
    fit->saved_bytes = channels * 2 * sizeof(double);
    const int64_t slices =
        slices_of(desc->x[0].dim[1], count_of(desc, desc->x[0].dim[0]), fit->x_layout[0] == TDM_LAYOUT_NHWC);
    fit->scratch_bytes = (channels + PACK) * 4 * sizeof(float) + channels * (size_t)slices * sizeof(sums);
    return true;
}

template <class Number> struct job {
    const tdm_kernel_args *args;
    cudaStream_t stream;
    const tdm_batchnorm2d_attrs *attrs;
    norm<Number> g; /* all but `inner` */
    bool nhwc, aligned;
    int64_t run; /* contiguous elements: of a channel in a row (PLAIN), of all channels of a point (NHWC) */
    int64_t slices;
    double *mean, *invstd;
    coefficients of;
    sums *partial;

    norm<Number> in_packs(int wide) const {
        norm<Number> out = g;
        out.inner = divider_of(run / wide);
        return out;
    }
    bool has_packs(int wide) const {
        return aligned && run % wide == 0;
    }
};

template <class Number> job<Number> job_of(const tdm_kernel_args *args) {
    const tdm_kernel_desc *desc = args->desc;
    const int64_t channels = desc->x[0].dim[1], plane = desc->x[0].dim[2] * desc->x[0].dim[3];
    job<Number> j = {};
    j.args = args;
    j.stream = tdm__cuda_device(args->device)->stream;
    j.attrs = (const tdm_batchnorm2d_attrs *)desc->attrs;
    j.nhwc = desc->x_layout[0] == TDM_LAYOUT_NHWC;
    j.run = j.nhwc ? channels : plane;
    j.aligned = is_aligned(args->x[0]) && is_aligned(args->y) && is_aligned(args->dy) && is_aligned(args->dx[0]);
    j.g.x = as<Number>(args->x[0]);
    if (tdm_has_epilogue(desc, TDM_EPILOGUE_ADD)) {
        j.g.other = as<Number>(args->x[1]);
        j.g.dother = as<Number>(args->dx[1]);
        j.aligned = j.aligned && is_aligned(j.g.other) && is_aligned(j.g.dother);
    }
    j.g.channels = channels;
    j.g.count = args->rows * plane;
    j.g.channel = divider_of(channels);
    j.slices = slices_of(channels, j.g.count, j.nhwc);
    j.mean = (double *)args->saved;
    j.invstd = j.mean != NULL ? j.mean + channels : NULL;
    /* Each array of coefficients begins on a pack boundary; the partial sums follow. */
    const int64_t room = ceil_div(channels, PACK) * PACK;
    float *scratch = (float *)args->scratch;
    j.of = {scratch, scratch + room, scratch + 2 * room, scratch + 3 * room};
    j.partial = (sums *)(scratch + 4 * room);
    return j;
}

int lanes_for(int64_t packs) {
    int lanes = 1;
    while (lanes < WARP && lanes < packs) lanes *= 2;
    return lanes;
}

template <int WIDE, class Number, class Finish> tdm_status launch_sums(const job<Number> &j, const Finish &finish) {
    const unsigned slices = (unsigned)j.slices;
    const norm<Number> g = j.in_packs(WIDE);
    if (j.nhwc) {
        const int lanes = lanes_for(g.inner.by);
        const dim3 grid((unsigned)ceil_div(g.inner.by, lanes), slices);
        auto kernel = sum_points<WIDE, Number, Finish>;
        TDM_LAUNCH(kernel, grid, THREADS, j.stream, g, finish, ceil_div(g.count, j.slices), lanes, j.partial);
    } else {
        auto kernel = sum_planes<WIDE, Number, Finish>;
        TDM_LAUNCH(kernel, dim3((unsigned)g.channels, slices), THREADS, j.stream, g, finish,
                   ceil_div(g.count / WIDE, j.slices), j.partial);
    }
    return TDM_OK;
}

template <class Number, class Finish>
tdm_status launch_finish(const job<Number> &j, const Finish &finish, int64_t slices) {
    const sums *partial = j.partial;
    TDM_LAUNCH(finish_channels<Finish>, blocks_for(j.g.channels, THREADS / WARP), THREADS, j.stream, finish, partial,
               j.g.channels, slices);
    return TDM_OK;
}

/* A pack has the same number of elements for float and bf16: sums in double need many registers, and so the order is
 * the same for both. */
template <class Number, class Finish> tdm_status sum_channels(const job<Number> &j, const Finish &finish) {
    if (j.has_packs(PACK))
        TDM_CUDA_TRY((launch_sums<PACK, Number, Finish>(j, finish)));
    else
        TDM_CUDA_TRY((launch_sums<1, Number, Finish>(j, finish)));
    return j.slices > 1 ? launch_finish(j, finish, j.slices) : TDM_OK;
}

template <class Number> forward_finish<Number> forward_finish_of(const job<Number> &j, bool of_batch) {
    const tdm_kernel_args *args = j.args;
    forward_finish<Number> f = {};
    f.attrs = *j.attrs;
    f.x = j.g.x;
    f.channel_step = j.nhwc ? 1 : j.run;
    f.count = (double)j.g.count;
    f.of_batch = of_batch;
    f.training = args->training;
    f.weight = args->param[0];
    f.bias = args->param[1];
    f.running_mean = args->buffer[0];
    f.running_variance = args->buffer[1];
    f.counter = args->counter;
    f.mean = j.mean;
    f.invstd = j.invstd;
    f.out = j.of;
    return f;
}

template <int WIDE, class Number> tdm_status launch_forward(const job<Number> &j) {
    const tdm_kernel_args *args = j.args;
    int64_t *counter = args->training && j.attrs->track_running_stats ? args->counter : NULL;
    auto kernel = j.nhwc ? apply_forward<WIDE, true, Number> : apply_forward<WIDE, false, Number>;
    TDM_LAUNCH(kernel, blocks_for(j.g.channels * j.g.count / WIDE), THREADS, j.stream, j.in_packs(WIDE), j.of,
               as<Number>(args->y), tdm_has_epilogue(args->desc, TDM_EPILOGUE_RELU), counter);
    return TDM_OK;
}

template <int WIDE, class Number> tdm_status launch_backward(const job<Number> &j) {
    auto kernel = j.nhwc ? apply_backward<WIDE, true, Number> : apply_backward<WIDE, false, Number>;
    TDM_LAUNCH(kernel, blocks_for(j.g.channels * j.g.count / WIDE), THREADS, j.stream, j.in_packs(WIDE), j.of,
               as<Number>(j.args->dx[0]));
    return TDM_OK;
}

template <class Number> tdm_status forward(const tdm_kernel_args *args) {
    const job<Number> j = job_of<Number>(args);
    const bool of_batch = args->training || !j.attrs->track_running_stats;
    if (of_batch && j.g.count == 1)
        TDM_CUDA_FAIL(TDM_E_CONFIG,
                      "batchnorm2d needs more than 1 value per channel for the statistics of a batch, got 1 row of "
                      "%lldx1x1; use a larger batch or drop_last",
                      (long long)j.g.channels);
    const forward_finish<Number> finish = forward_finish_of(j, of_batch);
    TDM_CUDA_TRY(of_batch ? sum_channels(j, finish) : launch_finish(j, finish, 0));
    if (j.has_packs(PACK_OF<Number>)) return launch_forward<PACK_OF<Number>>(j);
    return j.has_packs(PACK) ? launch_forward<PACK>(j) : launch_forward<1>(j);
}

template <class Number> tdm_status backward(const tdm_kernel_args *args) {
    job<Number> j = job_of<Number>(args);
    j.g.dy = as<Number>(args->dy);
    j.g.y = tdm_has_epilogue(args->desc, TDM_EPILOGUE_RELU) ? as<Number>(args->y) : NULL;
    backward_finish finish = {};
    finish.affine = j.attrs->affine;
    finish.count = (double)j.g.count;
    finish.weight = args->param[0];
    finish.mean = j.mean;
    finish.invstd = j.invstd;
    finish.dweight = args->dparam[0];
    finish.dbias = args->dparam[1];
    finish.out = j.of;
    const bool writes = args->dx[0] != NULL || j.g.dother != NULL;
    if (!writes && !finish.affine) return TDM_OK;
    TDM_CUDA_TRY(sum_channels(j, finish));
    if (!writes) return TDM_OK;
    if (j.has_packs(PACK_OF<Number>)) return launch_backward<PACK_OF<Number>>(j);
    return j.has_packs(PACK) ? launch_backward<PACK>(j) : launch_backward<1>(j);
}

} /* namespace */

TDM_CUDA_KERNEL(batchnorm2d) = {
    .op = "batchnorm2d",
    .variant = "cuda",
    .fits = fits,
    .open = NULL,
    .close = NULL,
    .forward = by_precision<forward<float>, forward<bf16>>,
    .backward = by_precision<backward<float>, backward<bf16>>,
    .algorithms = NULL,
};
