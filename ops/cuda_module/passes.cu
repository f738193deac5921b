/* See passes.h. Sums are cut into parts by the sizes alone; a part is a block's, and the block that comes last adds the
 * parts in their order: one launch, and the same bits every time. */
#include "ops/cuda_module/passes.h"

#include "ops/cuda_module/kernel.h"

using namespace tdm_cuda;

namespace {

/* ---- bias and relu ---- */

template <class Number> struct bias_item {
    Number *y;
    const Number *bias;
    divider inner, channels;
    bool relu;
    template <int WIDE> __device__ void run(int64_t i) const {
        pack<float, WIDE> v = load<WIDE>((const Number *)y, i);
        for (int k = 0; k < WIDE; k++) {
            if (bias != NULL) {
                int64_t plane = i * WIDE + k;
                split(inner, &plane);
                v.at[k] += get(bias, split(channels, &plane));
            }
            if (relu) v.at[k] = v.at[k] < 0.0f ? 0.0f : v.at[k];
        }
        store(y, i, v);
    }
};

template <class Number>
tdm_status add_bias(tdm_cuda_device *device, Number *y, const Number *bias, int64_t outer, int64_t channels,
                    int64_t inner, bool relu) {
    const bias_item<Number> item = {y, bias, divider_of(inner), divider_of(channels), relu};
    return each<PACK_OF<Number>>(device, item, outer * channels * inner, is_aligned(y));
}

/* ---- mask ---- */

/* dy, and what the relu lets through of it, which is written down. Loads and the rest are apart, so that several loads
 * are on their way at a time. */
template <class Number> struct gradient {
    Number *masked;
    const Number *dy, *y; /* y NULL: no relu, and nothing is written */

    template <int WIDE> struct seen { pack<float, WIDE> dy, y; };
    template <int WIDE> __device__ seen<WIDE> fetch(int64_t i) const {
        seen<WIDE> s = {load<WIDE>(dy, i), {}};
        if (y != NULL) s.y = load<WIDE>(y, i);
        return s;
    }
    template <int WIDE> __device__ pack<float, WIDE> keep(int64_t i, seen<WIDE> s) const {
        if (y == NULL) return s.dy;
        for (int k = 0; k < WIDE; k++) s.dy.at[k] = s.y.at[k] <= 0.0f ? 0.0f : s.dy.at[k];
        store(masked, i, s.dy);
        return s.dy;
    }
    template <int WIDE> __device__ void run(int64_t i) const {
        keep<WIDE>(i, fetch<WIDE>(i));
    }
    bool aligned() const {
        return is_aligned(masked) && is_aligned(dy) && is_aligned(y);
    }
};

/* ---- mask and sums ---- */

constexpr int AT_ONCE = 4; /* loads of a thread that are on their way */

/* The sum of what lies at place(first), place(first + step), ... before `end`. */
template <int WIDE, class Number, class Place>
__device__ pack<float, WIDE> add_up(const gradient<Number> &g, const Place &place, int64_t first, int64_t end,
                                    int64_t step) {
    pack<float, WIDE> sum = {};
    for (int64_t i = first; i < end; i += AT_ONCE * step) {
        typename gradient<Number>::template seen<WIDE> seen[AT_ONCE] = {};
        for (int u = 0; u < AT_ONCE; u++)
            if (i + u * step < end) seen[u] = g.template fetch<WIDE>(place(i + u * step));
        for (int u = 0; u < AT_ONCE; u++) {
            if (i + u * step >= end) break;
            const pack<float, WIDE> d = g.template keep<WIDE>(place(i + u * step), seen[u]);
            for (int k = 0; k < WIDE; k++) sum.at[k] += d.at[k];
        }
    }
    return sum;
}

/* Whether all `parts` blocks that share `turn` have written their part, this one last. What they wrote is seen then,
 * and the turn is ready for the next launch. */
__device__ inline bool is_last(unsigned *turn, unsigned parts) {
    __shared__ bool last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        last = atomicAdd(turn, 1u) == parts - 1;
        if (last) *turn = 0;
    }
    __syncthreads();
    __threadfence();
    return last;
}

/* Where sums go: those of a part into `part`, and all of them into `sums`. */
struct outcome {
    float *sums, *part;
    unsigned *turn;
    int64_t channels, rows; /* of the outer ones, a part's */
};

/* -- channels are neighbours -- */

/* A block's threads: `across` packs of channels, a power of two, by as many lanes as there are then. */
struct crew {
    int shift; /* log2(across) */
    __host__ __device__ int across() const {
        return 1 << shift;
    }
    __host__ __device__ int lanes() const {
        return THREADS >> shift;
    }
};

struct column_place {
    int64_t step, at;
    __device__ int64_t operator()(int64_t row) const {
        return row * step + at;
    }
};

/* The sum of all lanes, in lane 0. */
template <int WIDE> __device__ pack<float, WIDE> add_lanes(pack<float, WIDE> sum, const crew &c) {
    __shared__ float room[WIDE][THREADS];
    const int self = threadIdx.x;
    for (int k = 0; k < WIDE; k++) room[k][self] = sum.at[k];
    for (int half = THREADS / 2; half >= c.across(); half /= 2) {
        __syncthreads();
        if (self < half)
            for (int k = 0; k < WIDE; k++) room[k][self] += room[k][self + half];
    }
    for (int k = 0; k < WIDE; k++) sum.at[k] = room[k][self];
    __syncthreads();
    return sum;
}

template <int WIDE, class Number>
__global__ void __launch_bounds__(THREADS) columns_kernel(gradient<Number> g, outcome out, crew c, int64_t outer) {
    const int lane = threadIdx.x >> c.shift;
    const int64_t packs = out.channels / WIDE, column = (int64_t)blockIdx.x * c.across() + threadIdx.x % c.across();
    const int64_t first = (int64_t)blockIdx.y * out.rows, end = first + out.rows < outer ? first + out.rows : outer;
    const bool writes = lane == 0 && column < packs;
    pack<float, WIDE> sum = {};
    if (column < packs) sum = add_up<WIDE>(g, column_place{packs, column}, first + lane, end, c.lanes());
    sum = add_lanes(sum, c);
    if (gridDim.y == 1) {
        if (writes) store(out.sums, column, sum);
        return;
    }
    if (writes) store(out.part, blockIdx.y * packs + column, sum);
    if (!is_last(&out.turn[blockIdx.x], gridDim.y)) return;
    const gradient<float> parts = {NULL, out.part, NULL};
    sum = {};
    if (column < packs) sum = add_up<WIDE>(parts, column_place{packs, column}, lane, gridDim.y, c.lanes());
    sum = add_lanes(sum, c);
    if (writes) store(out.sums, column, sum);
}

/* -- planes -- */

struct plane_place {
    divider inner; /* packs of a plane */
    int64_t first, channels, channel;
    __device__ int64_t operator()(int64_t i) const {
        int64_t row = i;
        const int64_t point = split(inner, &row);
        return ((first + row) * channels + channel) * inner.by + point;
    }
};

template <int WIDE> __device__ float add_block(pack<float, WIDE> sum) {
    __shared__ float room[THREADS / WARP];
    for (int k = 1; k < WIDE; k++) sum.at[0] += sum.at[k];
    return block_sum<THREADS>(sum.at[0], room);
}

/* A block has one channel, of a part of the outer ones. */
template <int WIDE, class Number>
__global__ void __launch_bounds__(THREADS)
    planes_kernel(gradient<Number> g, outcome out, divider inner, int64_t outer) {
    const int64_t channel = blockIdx.x, first = (int64_t)blockIdx.y * out.rows;
    const int64_t end = first + out.rows < outer ? first + out.rows : outer;
    const plane_place place = {inner, first, out.channels, channel};
    float sum = add_block(add_up<WIDE>(g, place, threadIdx.x, (end - first) * inner.by, THREADS));
    if (gridDim.y == 1) {
        if (threadIdx.x == 0) out.sums[channel] = sum;
        return;
    }
    if (threadIdx.x == 0) out.part[blockIdx.y * out.channels + channel] = sum;
    if (!is_last(&out.turn[channel], gridDim.y)) return;
    const gradient<float> parts = {NULL, out.part, NULL};
    sum = add_block(add_up<1>(parts, column_place{out.channels, channel}, threadIdx.x, gridDim.y, THREADS));
    if (threadIdx.x == 0) out.sums[channel] = sum;
}

/* ---- how many parts ---- */

/* Blocks enough to keep memory busy; parts few enough that one block adds them quickly. */
constexpr int64_t MOST_PARTS = 256, ENOUGH_BLOCKS = 2048, ROWS_OF_LANE = 16, POINTS_OF_PART = 4096;

int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

crew crew_of(int64_t channels, int wide) {
    crew c = {0};
    while (c.across() < WARP && c.across() < channels / wide) c.shift++;
    return c;
}

/* Blocks side by side, each with turns of its own. */
int64_t blocks_across(int64_t channels, int64_t inner) {
    return inner == 1 ? ceil_div(channels, WARP) : channels;
}

/* Grows with outer. */
int64_t most_parts(int64_t outer, int64_t channels, int64_t inner) {
    const int64_t across = blocks_across(channels, inner);
    const int64_t most = least(MOST_PARTS, ceil_div(ENOUGH_BLOCKS, across));
    if (across > TDM_CUDA_TURNS) return 1;
    if (inner == 1)
        return least(most, ceil_div(outer, ROWS_OF_LANE * crew_of(channels, channels % PACK == 0 ? PACK : 1).lanes()));
    return least(least(most, outer), ceil_div(outer * inner, POINTS_OF_PART));
}

template <int WIDE, class Number>
tdm_status sum_columns(tdm_cuda_device *device, const gradient<Number> &g, const outcome &out, int64_t outer) {
    const crew c = crew_of(out.channels, WIDE);
    const dim3 blocks((unsigned)ceil_div(out.channels / WIDE, c.across()), (unsigned)ceil_div(outer, out.rows));
    auto kernel = columns_kernel<WIDE, Number>;
    TDM_LAUNCH(kernel, blocks, THREADS, device->stream, g, out, c, outer);
    return TDM_OK;
}

template <int WIDE, class Number>
tdm_status sum_planes(tdm_cuda_device *device, const gradient<Number> &g, const outcome &out, int64_t outer,
                      int64_t inner) {
    const dim3 blocks((unsigned)out.channels, (unsigned)ceil_div(outer, out.rows));
    auto kernel = planes_kernel<WIDE, Number>;
    TDM_LAUNCH(kernel, blocks, THREADS, device->stream, g, out, divider_of(inner / WIDE), outer);
    return TDM_OK;
}

template <class Number>
tdm_status mask(tdm_cuda_device *device, const gradient<Number> &g, float *sums, void *room, int64_t outer,
                int64_t channels, int64_t inner) {
    constexpr int WIDE = PACK_OF<Number>;
    if (sums == NULL) return g.y == NULL ? TDM_OK : each<WIDE>(device, g, outer * channels * inner, g.aligned());
    const int64_t rows = ceil_div(outer, most_parts(outer, channels, inner));
    const outcome out = {sums, (float *)room, device->turns, channels, rows};
    if (inner == 1) {
        const bool packs = channels % WIDE == 0 && g.aligned() && is_aligned(sums);
        return packs ? sum_columns<WIDE>(device, g, out, outer) : sum_columns<1>(device, g, out, outer);
    }
    const bool packs = inner % WIDE == 0 && g.aligned();
    return packs ? sum_planes<WIDE>(device, g, out, outer, inner) : sum_planes<1>(device, g, out, outer, inner);
}

} /* namespace */

tdm_status tdm__cuda_bias(tdm_cuda_device *device, tdm_cuda_number number, void *y, const void *bias, int64_t outer,
                          int64_t channels, int64_t inner, bool relu) {
    if (number == TDM_CUDA_BF16) return add_bias(device, (bf16 *)y, (const bf16 *)bias, outer, channels, inner, relu);
    return add_bias(device, (float *)y, (const float *)bias, outer, channels, inner, relu);
}

size_t tdm__cuda_mask_room(int64_t outer, int64_t channels, int64_t inner) {
    return (size_t)(most_parts(outer, channels, inner) * channels) * sizeof(float);
}

tdm_status tdm__cuda_mask(tdm_cuda_device *device, tdm_cuda_number number, void *masked, const void *dy, const void *y,
                          float *sums, void *room, int64_t outer, int64_t channels, int64_t inner) {
    if (number == TDM_CUDA_BF16) {
        const gradient<bf16> g = {(bf16 *)masked, (const bf16 *)dy, (const bf16 *)y};
        return mask(device, g, sums, room, outer, channels, inner);
    }
    const gradient<float> g = {(float *)masked, (const float *)dy, (const float *)y};
    return mask(device, g, sums, room, outer, channels, inner);
}
