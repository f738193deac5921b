/* The passes over flat arenas on CUDA: the same operations in the same order as in ops/flat, except
 * that norms are summed in another order. Scalars are read in device memory: the same launch serves every step. */
#include <tandem/sys/field.h>

#include "runtime/backends/cuda/cuda_passes.h"
#include "runtime/backends/cuda/kit/kernel.h"
#include "runtime/base/f16.h"

using namespace tdm_cuda;

namespace {

/* ---- sum ---- */

/* The canonical tree (base/tree.h) of sources `first` on, SIZE of them or as many as there are. Each node is a call
 * that the compiler inlines, so partial sums stay in registers. */
struct sum_item {
    const float *source[TDM_LIST_MAX];
    float *out;
    int count;
    template <int WIDE, int SIZE> __device__ pack<float, WIDE> tree(int first, int64_t i) const {
        if constexpr (SIZE == 1) {
            return load<WIDE>(source[first], i);
        } else {
            pack<float, WIDE> left = tree<WIDE, SIZE / 2>(first, i);
            if (first + SIZE / 2 >= count) return left;
            const pack<float, WIDE> right = tree<WIDE, SIZE / 2>(first + SIZE / 2, i);
            for (int k = 0; k < WIDE; k++) left.at[k] += right.at[k];
            return left;
        }
    }
    template <int WIDE> __device__ void run(int64_t i) const {
        store(out, i, count <= 4 ? tree<WIDE, 4>(0, i) : tree<WIDE, TDM_LIST_MAX>(0, i));
    }
};

/* ---- numbers of 16 bits ---- */

struct add_bf16_item {
    bf16 *out;
    const bf16 *what;
    template <int WIDE> __device__ void run(int64_t i) const {
        pack<float, WIDE> sum = load<WIDE>(out, i);
        const pack<float, WIDE> v = load<WIDE>(what, i);
        for (int k = 0; k < WIDE; k++) sum.at[k] += v.at[k];
        store(out, i, sum);
    }
};

/* ---- gradients on their way between ranks ---- */

/* Number: bf16 or half, whose conversions give the host's bits. */
struct half;
template <class Number> __device__ inline uint16_t bits_of(float value);
template <> __device__ inline uint16_t bits_of<bf16>(float value) {
    return tdm__bf16_of(value);
}
template <> __device__ inline uint16_t bits_of<half>(float value) {
    return tdm__f16_of(value);
}
template <class Number> __device__ inline float float_of(uint16_t bits);
template <> __device__ inline float float_of<bf16>(uint16_t bits) {
    return tdm__bf16_float(bits);
}
template <> __device__ inline float float_of<half>(uint16_t bits) {
    return tdm__f16_float(bits);
}

template <class Number> struct narrow_item {
    uint16_t *out;
    const float *x;
    template <int WIDE> __device__ void run(int64_t i) const {
        const pack<float, WIDE> v = load<WIDE>(x, i);
        pack<uint16_t, WIDE> bits;
        for (int k = 0; k < WIDE; k++) bits.at[k] = bits_of<Number>(v.at[k]);
        store(out, i, bits);
    }
};

template <class Number> struct widen_item {
    float *out;
    const uint16_t *x;
    template <int WIDE> __device__ void run(int64_t i) const {
        const pack<uint16_t, WIDE> bits = load<WIDE>(x, i);
        pack<float, WIDE> v;
        for (int k = 0; k < WIDE; k++) v.at[k] = float_of<Number>(bits.at[k]);
        store(out, i, v);
    }
};

template <class Number> struct round_item {
    float *x;
    template <int WIDE> __device__ void run(int64_t i) const {
        pack<float, WIDE> v = load<WIDE>(x, i);
        for (int k = 0; k < WIDE; k++) v.at[k] = float_of<Number>(bits_of<Number>(v.at[k]));
        store(x, i, v);
    }
};

/* ---- clip ----
 *
 * The ranges are cut into units of `unit` numbers, range after range; the last unit of a range is shorter. A block of
 * the first kernel sums the squares of one unit, and of every gridDim-th one after it; the second kernel, one block,
 * adds each range's units and the squares of the ranges' norms. Sums are in double, norms are rounded to float, as
 * PyTorch's are. */

static constexpr int RANGES = THREADS; /* looked at together by a block */
static constexpr int64_t UNITS = 1024, LEAST_UNIT = 8192;
static constexpr int FINISH_THREADS = 1024;

struct clip_plan {
    const tdm_flat_range *ranges;
    int range_count;
    int64_t unit;
    double *sum; /* of each unit */
};

/* end[k]: units of the ranges first .. first + k. By all threads of the block; `end` has `SIZE` items. */
template <int SIZE> __device__ inline void count_units(int64_t *end, const clip_plan &plan, int first) {
    const int k = (int)threadIdx.x;
    if (k < SIZE)
        end[k] = first + k < plan.range_count ? ((int64_t)plan.ranges[first + k].count + plan.unit - 1) / plan.unit : 0;
    __syncthreads();
    for (int reach = 1; reach < SIZE; reach *= 2) {
        const int64_t before = k >= reach && k < SIZE ? end[k - reach] : 0;
        __syncthreads();
        if (k < SIZE) end[k] += before;
        __syncthreads();
    }
}

template <int WIDE> __device__ inline double square_sum(const float *x, int64_t count) {
    double sum = 0;
    const int64_t packs = count / WIDE;
    for (int64_t i = threadIdx.x; i < packs; i += THREADS) {
        const pack<float, WIDE> v = load<WIDE>(x, i);
        for (int k = 0; k < WIDE; k++) sum += (double)v.at[k] * (double)v.at[k];
    }
    for (int64_t i = packs * WIDE + threadIdx.x; i < count; i += THREADS) sum += (double)x[i] * (double)x[i];
    return sum;
}

/* The squares of unit `at` of a range. */
__device__ inline double unit_sum(const clip_plan &plan, const float *g, const tdm_flat_range &range, int64_t at,
                                  double *room) {
    const int64_t begin = at * plan.unit, rest = (int64_t)range.count - begin;
    const int64_t count = rest < plan.unit ? rest : plan.unit;
    const float *x = g + range.offset + begin;
    const bool aligned = (uintptr_t)x % ACCESS == 0;
    return block_sum<THREADS>(aligned ? square_sum<PACK>(x, count) : square_sum<1>(x, count), room);
}

__global__ void unit_squares(clip_plan plan, const float *g) {
    __shared__ int64_t end[RANGES];
    __shared__ double room[THREADS / WARP];
    int64_t unit = blockIdx.x, before = 0; /* before: units of the ranges that have been looked at */
    for (int first = 0; first < plan.range_count; first += RANGES) {
        count_units<RANGES>(end, plan, first);
        for (; unit < before + end[RANGES - 1]; unit += gridDim.x) {
            int low = 0, high = RANGES - 1; /* the first k with end[k] > unit - before */
            while (low < high) {
                const int middle = (low + high) / 2;
                if (end[middle] > unit - before)
                    high = middle;
                else
                    low = middle + 1;
            }
            const int64_t at = unit - before - (low > 0 ? end[low - 1] : 0);
            const double sum = unit_sum(plan, g, plan.ranges[first + low], at, room);
            if (threadIdx.x == 0) plan.sum[unit] = sum;
        }
        before += end[RANGES - 1];
        __syncthreads();
    }
}

/* The norm of range `k` of those that `end` counts, by a warp; `before`: units of the ranges in front of them. */
__device__ inline float range_norm(const clip_plan &plan, const int64_t *end, int64_t before, int k) {
    double sum = 0;
    for (int64_t u = (k > 0 ? end[k - 1] : 0) + (int)threadIdx.x % WARP; u < end[k]; u += WARP)
        sum += plan.sum[before + u];
    return (float)sqrt(warp_sum(sum));
}

/* A warp per range. */
__global__ void __launch_bounds__(FINISH_THREADS) norms_of_ranges(clip_plan plan, float *norm) {
    __shared__ int64_t end[RANGES];
    int64_t before = 0;
    for (int first = 0; first < plan.range_count; first += RANGES) {
        count_units<RANGES>(end, plan, first);
        const int count = plan.range_count - first < RANGES ? plan.range_count - first : RANGES;
        for (int k = (int)threadIdx.x / WARP; k < count; k += FINISH_THREADS / WARP) {
            const float part = range_norm(plan, end, before, k);
            if ((int)threadIdx.x % WARP == 0) norm[first + k] = part;
        }
        before += end[RANGES - 1];
        __syncthreads();
    }
}

/* A warp per range, then one thread over the ranges, in their order. */
__global__ void __launch_bounds__(FINISH_THREADS) norm_of_norms(clip_plan plan, double *norm) {
    __shared__ int64_t end[RANGES];
    __shared__ double square[RANGES];
    const int lane = (int)threadIdx.x % WARP;
    int64_t before = 0;
    double squares = 0;
    for (int first = 0; first < plan.range_count; first += RANGES) {
        count_units<RANGES>(end, plan, first);
        const int count = plan.range_count - first < RANGES ? plan.range_count - first : RANGES;
        for (int k = (int)threadIdx.x / WARP; k < count; k += FINISH_THREADS / WARP) {
            const float part = range_norm(plan, end, before, k);
            if (lane == 0) square[k] = (double)part * (double)part;
        }
        __syncthreads();
        if (threadIdx.x == 0)
            for (int k = 0; k < count; k++) squares += square[k];
        before += end[RANGES - 1];
        __syncthreads();
    }
    if (threadIdx.x == 0) *norm = (double)(float)sqrt(squares);
}

/* The factor is worked out by every thread: from two numbers that all read. */
struct clip_item {
    const tdm_step_values *values;
    const double *norm;
    float *g;
    template <int WIDE> __device__ void run(int64_t i) const {
        const float factor = values->clip_norm / ((float)*norm + 1e-6f);
        if (!(factor < 1.0f)) return;
        pack<float, WIDE> v = load<WIDE>(g, i);
        for (int k = 0; k < WIDE; k++) v.at[k] *= factor;
        store(g, i, v);
    }
};

struct clamp_item {
    const tdm_step_values *values;
    float *g;
    template <int WIDE> __device__ void run(int64_t i) const {
        const float most = values->clip_value;
        pack<float, WIDE> v = load<WIDE>(g, i);
        for (int k = 0; k < WIDE; k++) v.at[k] = v.at[k] < -most ? -most : v.at[k] > most ? most : v.at[k];
        store(g, i, v);
    }
};

struct scale_item {
    float *g;
    float factor;
    template <int WIDE> __device__ void run(int64_t i) const {
        pack<float, WIDE> v = load<WIDE>(g, i);
        for (int k = 0; k < WIDE; k++) v.at[k] *= factor;
        store(g, i, v);
    }
};

/* ---- average ---- */

/* The weight is read in device memory, so that a captured step serves every weight. */
struct average_item {
    const tdm_step_values *values;
    float *average;
    const float *p;
    template <int WIDE> __device__ void run(int64_t i) const {
        const float weight = values->average_weight;
        if (!(weight > 0.0f)) return;
        pack<float, WIDE> v = load<WIDE>(average, i);
        const pack<float, WIDE> end = load<WIDE>(p, i);
        for (int k = 0; k < WIDE; k++)
            v.at[k] = weight < 0.5f ? fmaf(weight, end.at[k] - v.at[k], v.at[k])
                                    : fmaf(weight - 1.0f, end.at[k] - v.at[k], end.at[k]);
        store(average, i, v);
    }
};

} /* namespace */

tdm_status tdm__cuda_sum(tdm_device *device, float *out, const float *const *source, int source_count, size_t count) {
    TDM_CUDA_ENTER(device);
    if (source_count < 1 || source_count > TDM_LIST_MAX)
        TDM_MODULE_FAIL(TDM_E_INTERNAL, "sum needs 1 to %d sources, got %d", (int)TDM_LIST_MAX, source_count);
    sum_item item = {{NULL}, out, source_count};
    bool aligned = is_aligned(out);
    for (int s = 0; s < source_count; s++) {
        item.source[s] = source[s];
        aligned = aligned && is_aligned(source[s]);
    }
    return each(tdm__cuda_device(device), item, (int64_t)count, aligned);
}

tdm_status tdm__cuda_to_bf16(tdm_device *device, void *out, const float *p, size_t count) {
    TDM_CUDA_ENTER(device);
    return copy_each(tdm__cuda_device(device), (bf16 *)out, p, (int64_t)count);
}

tdm_status tdm__cuda_add_bf16(tdm_device *device, void *out, const void *what, size_t count) {
    TDM_CUDA_ENTER(device);
    const add_bf16_item item = {(bf16 *)out, (const bf16 *)what};
    return each<PACK_OF<bf16>>(tdm__cuda_device(device), item, (int64_t)count, is_aligned(item.out, item.what));
}

tdm_status tdm__cuda_narrow(tdm_device *device, tdm_dtype type, void *out, const float *x, size_t count) {
    TDM_CUDA_ENTER(device);
    tdm_cuda_device *cuda = tdm__cuda_device(device);
    uint16_t *to = (uint16_t *)out;
    const bool aligned = is_aligned(to, x);
    return type == TDM_DTYPE_BF16 ? each(cuda, narrow_item<bf16>{to, x}, (int64_t)count, aligned)
                                  : each(cuda, narrow_item<half>{to, x}, (int64_t)count, aligned);
}

tdm_status tdm__cuda_widen(tdm_device *device, tdm_dtype type, float *out, const void *x, size_t count) {
    TDM_CUDA_ENTER(device);
    tdm_cuda_device *cuda = tdm__cuda_device(device);
    const uint16_t *from = (const uint16_t *)x;
    const bool aligned = is_aligned(out, from);
    return type == TDM_DTYPE_BF16 ? each(cuda, widen_item<bf16>{out, from}, (int64_t)count, aligned)
                                  : each(cuda, widen_item<half>{out, from}, (int64_t)count, aligned);
}

tdm_status tdm__cuda_round(tdm_device *device, tdm_dtype type, float *x, size_t count) {
    TDM_CUDA_ENTER(device);
    tdm_cuda_device *cuda = tdm__cuda_device(device);
    return type == TDM_DTYPE_BF16 ? each(cuda, round_item<bf16>{x}, (int64_t)count, is_aligned(x))
                                  : each(cuda, round_item<half>{x}, (int64_t)count, is_aligned(x));
}

tdm_status tdm__cuda_average(tdm_device *device, const tdm_step_values *values, float *average, const float *p,
                             size_t count) {
    TDM_CUDA_ENTER(device);
    const average_item item = {values, average, p};
    return each(tdm__cuda_device(device), item, (int64_t)count, is_aligned(average) && is_aligned(p));
}

tdm_status tdm__cuda_clamp(tdm_device *device, const tdm_step_values *values, float *g, size_t count) {
    TDM_CUDA_ENTER(device);
    return each(tdm__cuda_device(device), clamp_item{values, g}, (int64_t)count, is_aligned(g));
}

/* The sums of squares of the units of `ranges`, which are part of `count` numbers, in the device's workspace. */
static tdm_status sum_units(tdm_cuda_device *cuda, const float *g, size_t count, const tdm_flat_range *ranges,
                            int range_count, clip_plan *out) {
    int64_t unit = ceil_div(ceil_div((int64_t)count, UNITS), PACK) * PACK;
    if (unit < LEAST_UNIT) unit = LEAST_UNIT;
    const int64_t units = ceil_div((int64_t)count, unit) + range_count; /* no fewer than there are */
    *out = {ranges, range_count, unit, (double *)cuda->workspace};
    TDM_MODULE_TRY(workspace_holds(cuda, (size_t)units * sizeof(double)));
    if (units > 0) TDM_LAUNCH(unit_squares, blocks_for(units, 1), THREADS, cuda->stream, *out, g);
    return TDM_OK;
}

tdm_status tdm__cuda_clip(tdm_device *device, const tdm_step_values *values, float *g, size_t count,
                          const tdm_flat_range *ranges, int range_count, double *norm) {
    tdm_cuda_device *cuda = tdm__cuda_device(device);
    clip_plan plan;
    TDM_CUDA_ENTER(device);
    TDM_MODULE_TRY(sum_units(cuda, g, count, ranges, range_count, &plan));
    TDM_LAUNCH(norm_of_norms, 1, FINISH_THREADS, cuda->stream, plan, norm);
    const clip_item item = {values, norm, g};
    return each(cuda, item, (int64_t)count, is_aligned(g));
}

tdm_status tdm__cuda_norms(tdm_device *device, const float *g, size_t count, const tdm_flat_range *ranges,
                           int range_count, float *norm) {
    tdm_cuda_device *cuda = tdm__cuda_device(device);
    clip_plan plan;
    TDM_CUDA_ENTER(device);
    if (range_count == 0) return TDM_OK;
    TDM_MODULE_TRY(sum_units(cuda, g, count, ranges, range_count, &plan));
    TDM_LAUNCH(norms_of_ranges, 1, FINISH_THREADS, cuda->stream, plan, norm);
    return TDM_OK;
}

tdm_status tdm__cuda_scale(tdm_device *device, float *g, size_t count, float factor) {
    TDM_CUDA_ENTER(device);
    const scale_item item = {g, factor};
    return each(tdm__cuda_device(device), item, (int64_t)count, is_aligned(g));
}
