/* Sums over many rows on CUDA, computed within a pass that does something else with the same values. For .cu files.
 *
 * Sums are cut into parts by the sizes alone. Each block computes one part, and the last block to finish adds the parts
 * in their order: one launch, and the same bits every time.
 *
 * The values come from a Source, a struct of pointers and constants. It separates loading from the rest, so that
 * several loads are in flight at a time:
 *     template <int WIDE> struct seen;
 *     template <int WIDE> __device__ seen<WIDE> fetch(int64_t i) const                       loads what pack i needs
 *     template <int WIDE> __device__ pack<float, WIDE> terms(int64_t i, seen<WIDE> s) const  the terms of the sum */
#ifndef TDM_CUDA_KIT_SUMS_H
#define TDM_CUDA_KIT_SUMS_H

#include "runtime/backends/cuda/kit/kernel.h"

namespace tdm_cuda {

static constexpr int AT_ONCE = 4; /* loads of a thread that are in flight */

/* Returns the sum of the packs at index_of(first), index_of(first + step), ... before `end`. */
template <int WIDE, class Source, class IndexOf>
__device__ pack<float, WIDE> add_up(const Source &source, const IndexOf &index_of, int64_t first, int64_t end,
                                    int64_t step) {
    pack<float, WIDE> sum = {};
    for (int64_t i = first; i < end; i += AT_ONCE * step) {
        typename Source::template seen<WIDE> seen[AT_ONCE] = {};
        for (int u = 0; u < AT_ONCE; u++)
            if (i + u * step < end) seen[u] = source.template fetch<WIDE>(index_of(i + u * step));
        for (int u = 0; u < AT_ONCE; u++) {
            if (i + u * step >= end) break;
            const pack<float, WIDE> d = source.template terms<WIDE>(index_of(i + u * step), seen[u]);
            for (int k = 0; k < WIDE; k++) sum.at[k] += d.at[k];
        }
    }
    return sum;
}

/* Returns whether this block is the last of the `parts` blocks that share `turn` to write its part. If so, it sees what
 * the others wrote, and the turn is ready for the next launch. */
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

/* Where sums are written: those of a part into `part`, the totals into `sums`. */
struct outcome {
    float *sums, *part;
    unsigned *turn;
    int64_t channels, rows; /* rows: of the outer dimension, in one part */
};

/* The parts as a Source, for the final sum. */
struct sums_of_parts {
    const float *part;

    template <int WIDE> using seen = pack<float, WIDE>;
    template <int WIDE> __device__ pack<float, WIDE> fetch(int64_t i) const {
        return load<WIDE>(part, i);
    }
    template <int WIDE> __device__ pack<float, WIDE> terms(int64_t, pack<float, WIDE> sum) const {
        return sum;
    }
};

/* ---- channels are contiguous: [outer][channels]; a column is a pack of channels ---- */

/* The arrangement of a block's threads: `across` packs of channels, a power of two, times the lanes that remain. */
struct crew {
    int shift; /* log2(across) */
    __host__ __device__ int across() const {
        return 1 << shift;
    }
    __host__ __device__ int lanes() const {
        return THREADS >> shift;
    }
};

struct column_index {
    int64_t step, at;
    __device__ int64_t operator()(int64_t row) const {
        return row * step + at;
    }
};

/* Returns the sum of all lanes in lane 0. */
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

template <int WIDE, class Source>
__global__ void __launch_bounds__(THREADS) columns_kernel(Source source, outcome out, crew c, int64_t outer) {
    const int lane = threadIdx.x >> c.shift;
    const int64_t packs = out.channels / WIDE, column = (int64_t)blockIdx.x * c.across() + threadIdx.x % c.across();
    const int64_t first = (int64_t)blockIdx.y * out.rows, end = first + out.rows < outer ? first + out.rows : outer;
    const bool writes = lane == 0 && column < packs;
    pack<float, WIDE> sum = {};
    if (column < packs) sum = add_up<WIDE>(source, column_index{packs, column}, first + lane, end, c.lanes());
    sum = add_lanes(sum, c);
    if (gridDim.y == 1) {
        if (writes) store(out.sums, column, sum);
        return;
    }
    if (writes) store(out.part, blockIdx.y * packs + column, sum);
    if (!is_last(&out.turn[blockIdx.x], gridDim.y)) return;
    const sums_of_parts parts = {out.part};
    sum = {};
    if (column < packs) sum = add_up<WIDE>(parts, column_index{packs, column}, lane, gridDim.y, c.lanes());
    sum = add_lanes(sum, c);
    if (writes) store(out.sums, column, sum);
}

/* ---- how many parts ---- */

/* Enough blocks to keep memory busy, and few enough parts for one block to add them quickly. */
static constexpr int64_t MOST_PARTS = 256, ENOUGH_BLOCKS = 2048;
static constexpr int64_t ROWS_OF_LANE = 16; /* for rows of one access; fewer if a row takes several */

static inline int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static inline crew crew_of(int64_t channels, int wide) {
    crew c = {0};
    while (c.across() < WARP && c.across() < channels / wide) c.shift++;
    return c;
}

/* Returns at most `desired` parts. `across`: blocks along the channels, each of which takes its own turn. */
static inline int64_t parts_of(int64_t desired, int64_t across) {
    if (across > TDM_CUDA_TURNS) return 1;
    return least(least(MOST_PARTS, ceil_div(ENOUGH_BLOCKS, across)), desired);
}

/* The number of parts; it grows with outer. */
static inline int64_t parts_of_columns(int64_t outer, int64_t channels, int64_t rows_of_lane) {
    const int lanes = crew_of(channels, channels % PACK == 0 ? PACK : 1).lanes();
    return parts_of(ceil_div(outer, rows_of_lane * lanes), ceil_div(channels, WARP));
}

/* Bytes of `room` below; the number grows with outer. */
static inline size_t room_of_columns(int64_t outer, int64_t channels, int64_t rows_of_lane) {
    return (size_t)(parts_of_columns(outer, channels, rows_of_lane) * channels) * sizeof(float);
}

/* Runs the source's pass, and writes sums[channel] = the sum over all rows. */
template <int WIDE, class Source>
tdm_status sum_columns(tdm_cuda_device *device, const Source &source, float *sums, void *room, int64_t outer,
                       int64_t channels, int64_t rows_of_lane) {
    const crew c = crew_of(channels, WIDE);
    const int64_t rows = ceil_div(outer, parts_of_columns(outer, channels, rows_of_lane));
    const outcome out = {sums, (float *)room, device->turns, channels, rows};
    const dim3 blocks((unsigned)ceil_div(channels / WIDE, c.across()), (unsigned)ceil_div(outer, rows));
    auto kernel = columns_kernel<WIDE, Source>;
    TDM_LAUNCH(kernel, blocks, THREADS, device->stream, source, out, c, outer);
    return TDM_OK;
}

} /* namespace tdm_cuda */
#endif
