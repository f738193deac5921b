/* Layernorm and groupnorm on CUDA, in segments (layernorm_segments.h). For .cu files.
 *
 * A team, a warp or a whole block, has one segment: it sums in double, in an order that the length alone decides, and
 * applies the result in float. Gradients of the parameters are sums over segments, column by column where a channel has
 * one point, else a block has a channel. */
#ifndef TDM_OPS_LAYERNORM_SEGMENTS_CUDA_H
#define TDM_OPS_LAYERNORM_SEGMENTS_CUDA_H

#include "ops/layernorm/layernorm_segments.h"
#include "runtime/backends/cuda/kit/sums.h"

namespace tdm_cuda {

template <class Number> struct segment_operands {
    const Number *x, *dy;
    const float *weight, *bias; /* NULL: there is none */
    double *saved;              /* mean and 1 / sqrt(var + eps) of each segment; NULL outside training */
    int64_t count, length, channels;
    divider groups, points;

    __device__ int64_t channel_of(int64_t segment, int64_t i) const {
        return split(groups, &segment) * channels + quotient(points, i);
    }
};

/* The sum over a team of TEAM threads, in each of them. */
template <int TEAM> __device__ inline double team_sum(double value) {
    __shared__ double room[THREADS / WARP];
    return block_sum<TEAM>(value, room);
}

/* The distances from the segment's first element: the squares of large means do not cancel. */
template <int TEAM, class Number>
__global__ void __launch_bounds__(THREADS) segments_forward(segment_operands<Number> g, double eps, Number *y) {
    const int64_t lane = threadIdx.x % TEAM, teams = thread_count() / TEAM;
    for (int64_t s = thread_index() / TEAM; s < g.count; s += teams) {
        const int64_t first = s * g.length;
        const double origin = (double)get(g.x, first);
        double sum = 0, squares = 0;
        for (int64_t i = lane; i < g.length; i += TEAM) {
            const double d = (double)get(g.x, first + i) - origin;
            sum += d;
            squares += d * d;
        }
        sum = team_sum<TEAM>(sum);
        squares = team_sum<TEAM>(squares);
        const double shift = sum / (double)g.length, variance = squares / (double)g.length - shift * shift;
        const double mean = origin + shift, invstd = 1.0 / sqrt((variance < 0.0 ? 0.0 : variance) + eps);
        if (g.saved != NULL && lane == 0) g.saved[2 * s] = mean, g.saved[2 * s + 1] = invstd;
        const float center = (float)mean, scale = (float)invstd, rest = (float)(((double)center - mean) * invstd);
        for (int64_t i = lane; i < g.length; i += TEAM) {
            const int64_t c = g.weight != NULL ? g.channel_of(s, i) : 0;
            float v = (get(g.x, first + i) - center) * scale + rest;
            if (g.weight != NULL) v *= g.weight[c];
            if (g.bias != NULL) v += g.bias[c];
            put(y, first + i, v);
        }
    }
}

template <class Number> __device__ inline float weighed_dy(const segment_operands<Number> &g, int64_t s, int64_t i) {
    const float d = get(g.dy, s * g.length + i);
    return g.weight != NULL ? d * g.weight[g.channel_of(s, i)] : d;
}

/* With g = dy w: dx = invstd * (g - sum g / L - (x - mean) * invstd^2 * sum g (x - mean) / L) */
template <int TEAM, class Number>
__global__ void __launch_bounds__(THREADS) segments_backward(segment_operands<Number> g, Number *dx) {
    const int64_t lane = threadIdx.x % TEAM, teams = thread_count() / TEAM;
    for (int64_t s = thread_index() / TEAM; s < g.count; s += teams) {
        const int64_t first = s * g.length;
        const double mean = g.saved[2 * s], invstd = g.saved[2 * s + 1];
        double sum = 0, dot = 0;
        for (int64_t i = lane; i < g.length; i += TEAM) {
            const double d = (double)weighed_dy(g, s, i);
            sum += d;
            dot += d * ((double)get(g.x, first + i) - mean);
        }
        sum = team_sum<TEAM>(sum);
        dot = team_sum<TEAM>(dot);
        const double steep = dot * invstd * invstd / (double)g.length;
        const float center = (float)mean, scale = (float)invstd, slope = (float)steep;
        const float level = (float)(sum / (double)g.length + ((double)center - mean) * steep);
        for (int64_t i = lane; i < g.length; i += TEAM)
            put(dx, first + i, (weighed_dy(g, s, i) - level - (get(g.x, first + i) - center) * slope) * scale);
    }
}

/* ---- gradients of the parameters ---- */

/* Channels of one point, [segments / groups][groups * channels]: a source of sums (sums.h), of dy, and for the weight
 * of dy (x - mean) invstd. */
template <class Number> struct segment_columns {
    segment_operands<Number> g;
    bool of_weight;

    template <int WIDE> struct seen { pack<float, WIDE> x, dy; };

    template <int WIDE> __device__ seen<WIDE> fetch(int64_t i) const {
        const pack<float, WIDE> d = load<WIDE>(g.dy, i);
        return {of_weight ? load<WIDE>(g.x, i) : d, d};
    }
    template <int WIDE> __device__ pack<float, WIDE> terms(int64_t i, seen<WIDE> s) const {
        if (!of_weight) return s.dy;
        for (int k = 0; k < WIDE; k++) {
            const int64_t segment = (i * WIDE + k) / g.length;
            const double distance = (double)s.x.at[k] - g.saved[2 * segment];
            s.dy.at[k] *= (float)(distance * g.saved[2 * segment + 1]);
        }
        return s.dy;
    }
};

/* Channels of several points: each block sums one. */
template <class Number>
__global__ void __launch_bounds__(THREADS) segment_channels(segment_operands<Number> g, float *dweight, float *dbias) {
    const int64_t rows = g.count / g.groups.by * g.points.by;
    for (int64_t c = blockIdx.x; c < g.groups.by * g.channels; c += gridDim.x) {
        const int64_t group = c / g.channels, start = c % g.channels * g.points.by;
        double dw = 0, db = 0;
        for (int64_t i = threadIdx.x; i < rows; i += THREADS) {
            int64_t row = i;
            const int64_t point = split(g.points, &row), s = row * g.groups.by + group;
            const int64_t at = s * g.length + start + point;
            const double d = (double)get(g.dy, at);
            dw += d * (((double)get(g.x, at) - g.saved[2 * s]) * g.saved[2 * s + 1]);
            db += d;
        }
        dw = team_sum<THREADS>(dw);
        db = team_sum<THREADS>(db);
        if (threadIdx.x != 0) continue;
        dweight[c] = (float)dw;
        if (dbias != NULL) dbias[c] = (float)db;
    }
}

/* ---- host ---- */

static constexpr int64_t LONG_SEGMENT = 1024; /* elements: from here on a block has a segment, below a warp */

static inline bool segments_fit(const tdm_kernel_desc *desc, tdm_kernel_fit *fit, const tdm_segments &of) {
    (void)desc;
    fit->x_layout[0] = fit->y_layout = TDM_LAYOUT_PLAIN;
    fit->saved_bytes = tdm__segments_saved(&of);
    if (of.points == 1)
        fit->scratch_bytes = room_of_columns(of.count / of.groups, of.groups * of.channels, ROWS_OF_LANE);
    return true;
}

template <class Number> segment_operands<Number> operands_of(const tdm_kernel_args *args, const tdm_segments &of) {
    segment_operands<Number> g = {};
    g.x = as<Number>(args->x[0]);
    g.dy = as<Number>(args->dy);
    g.weight = args->desc->param_count > 0 ? args->param[0] : NULL;
    g.bias = args->desc->param_count > 1 ? args->param[1] : NULL;
    g.saved = args->training ? (double *)args->saved : NULL;
    g.count = of.count;
    g.length = tdm__segment_length(&of);
    g.channels = of.channels;
    g.groups = divider_of(of.groups);
    g.points = divider_of(of.points);
    return g;
}

template <class Number>
tdm_status run_segments_forward(const tdm_kernel_args *args, const tdm_segments &of, double eps) {
    const segment_operands<Number> g = operands_of<Number>(args, of);
    const bool wide = g.length >= LONG_SEGMENT;
    auto kernel = wide ? segments_forward<THREADS, Number> : segments_forward<WARP, Number>;
    TDM_LAUNCH(kernel, blocks_for(g.count, wide ? 1 : THREADS / WARP), THREADS, tdm__cuda_device(args->device)->stream,
               g, eps, as<Number>(args->y));
    return TDM_OK;
}

template <int WIDE, class Number>
tdm_status sum_segment_columns(const tdm_kernel_args *args, const segment_operands<Number> &g) {
    tdm_cuda_device *device = tdm__cuda_device(args->device);
    const int64_t columns = g.groups.by * g.channels, rows = g.count / g.groups.by;
    for (int i = 0; i < 2; i++) {
        const segment_columns<Number> source = {g, i == 0};
        if (args->dparam[i] == NULL) continue;
        TDM_MODULE_TRY(
            (sum_columns<WIDE>(device, source, args->dparam[i], args->scratch, rows, columns, ROWS_OF_LANE)));
    }
    return TDM_OK;
}

template <class Number>
tdm_status sum_segment_parameters(const tdm_kernel_args *args, const segment_operands<Number> &g) {
    const int64_t columns = g.groups.by * g.channels;
    if (g.points.by > 1) {
        TDM_LAUNCH(segment_channels<Number>, blocks_for(columns, 1), THREADS, tdm__cuda_device(args->device)->stream, g,
                   args->dparam[0], args->dparam[1]);
        return TDM_OK;
    }
    const bool packs =
        columns % PACK == 0 && is_aligned(g.x, g.dy, args->dparam[0], args->dparam[1], (float *)args->scratch);
    return packs ? sum_segment_columns<PACK>(args, g) : sum_segment_columns<1>(args, g);
}

template <class Number> tdm_status run_segments_backward(const tdm_kernel_args *args, const tdm_segments &of) {
    const segment_operands<Number> g = operands_of<Number>(args, of);
    const bool wide = g.length >= LONG_SEGMENT;
    if (args->dparam[0] != NULL) TDM_MODULE_TRY(sum_segment_parameters(args, g));
    if (args->dx[0] == NULL) return TDM_OK;
    auto kernel = wide ? segments_backward<THREADS, Number> : segments_backward<WARP, Number>;
    TDM_LAUNCH(kernel, blocks_for(g.count, wide ? 1 : THREADS / WARP), THREADS, tdm__cuda_device(args->device)->stream,
               g, as<Number>(args->dx[0]));
    return TDM_OK;
}

} /* namespace tdm_cuda */

/* The kernel of op `name`, whose segments tdm__<name>_segments gives. */
#define TDM_CUDA_SEGMENTS(name)                                                                         \
    namespace {                                                                                         \
    using namespace tdm_cuda;                                                                           \
    bool fits(const tdm_kernel_desc *desc, tdm_kernel_fit *fit) {                                       \
        return segments_fit(desc, fit, tdm__##name##_segments(desc, desc->y.dim[0]));                   \
    }                                                                                                   \
    template <class Number> tdm_status forward(const tdm_kernel_args *args) {                           \
        const double eps = ((const tdm_##name##_attrs *)args->desc->attrs)->eps;                        \
        return run_segments_forward<Number>(args, tdm__##name##_segments(args->desc, args->rows), eps); \
    }                                                                                                   \
    template <class Number> tdm_status backward(const tdm_kernel_args *args) {                          \
        return run_segments_backward<Number>(args, tdm__##name##_segments(args->desc, args->rows));     \
    }                                                                                                   \
    }                                                                                                   \
    TDM_CUDA_KERNEL(name, fits)

#endif
