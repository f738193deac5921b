/* See passes.h; sums.h says how sums are computed. */
#include "runtime/backends/cuda/kit/passes.h"

#include "runtime/backends/cuda/kit/sums.h"

using namespace tdm_cuda;

namespace {

/* ---- bias and relu ---- */

template <class Number> struct bias_item {
    Number *y;
    const Number *bias;
    divider inner, channels;
    bool clamp;
    template <int WIDE> __device__ void run(int64_t i) const {
        pack<float, WIDE> v = load<WIDE>((const Number *)y, i);
        for (int k = 0; bias != NULL && k < WIDE; k++) {
            int64_t plane = i * WIDE + k;
            split(inner, &plane);
            v.at[k] += get(bias, split(channels, &plane));
        }
        if (clamp) clamp_at_zero(&v);
        store(y, i, v);
    }
};

template <class Number>
tdm_status add_bias(tdm_cuda_device *device, Number *y, const Number *bias, int64_t outer, int64_t channels,
                    int64_t inner, bool clamp) {
    const bias_item<Number> item = {y, bias, divider_of(inner), divider_of(channels), clamp};
    return each<PACK_OF<Number>>(device, item, outer * channels * inner, is_aligned(y));
}

/* ---- mask ---- */

/* A Source of sums: dy, or what the relu lets through of it, which is also written. */
template <class Number> struct gradient {
    Number *masked;
    const Number *dy, *y; /* y NULL: no relu, and nothing is written */

    template <int WIDE> struct seen { pack<float, WIDE> dy, y; };
    template <int WIDE> __device__ seen<WIDE> fetch(int64_t i) const {
        seen<WIDE> s = {load<WIDE>(dy, i), {}};
        if (y != NULL) s.y = load<WIDE>(y, i);
        return s;
    }
    template <int WIDE> __device__ pack<float, WIDE> terms(int64_t i, seen<WIDE> s) const {
        if (y == NULL) return s.dy;
        keep_where_positive(&s.dy, s.y);
        store(masked, i, s.dy);
        return s.dy;
    }
    template <int WIDE> __device__ void run(int64_t i) const {
        terms<WIDE>(i, fetch<WIDE>(i));
    }
    bool aligned() const {
        return is_aligned(masked, dy, y);
    }
};

/* ---- mask and sums of planes ---- */

struct plane_index {
    divider inner; /* packs in a plane */
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

/* A block sums one channel over a part of the outer dimension. */
template <int WIDE, class Number>
__global__ void __launch_bounds__(THREADS)
    planes_kernel(gradient<Number> g, outcome out, divider inner, int64_t outer) {
    const int64_t channel = blockIdx.x, first = (int64_t)blockIdx.y * out.rows;
    const int64_t end = first + out.rows < outer ? first + out.rows : outer;
    const plane_index index_of = {inner, first, out.channels, channel};
    float sum = add_block(add_up<WIDE>(g, index_of, threadIdx.x, (end - first) * inner.by, THREADS));
    if (gridDim.y == 1) {
        if (threadIdx.x == 0) out.sums[channel] = sum;
        return;
    }
    if (threadIdx.x == 0) out.part[blockIdx.y * out.channels + channel] = sum;
    if (!is_last(&out.turn[channel], gridDim.y)) return;
    const sums_of_parts parts = {out.part};
    sum = add_block(add_up<1>(parts, column_index{out.channels, channel}, threadIdx.x, gridDim.y, THREADS));
    if (threadIdx.x == 0) out.sums[channel] = sum;
}

/* ---- host ---- */

constexpr int64_t POINTS_OF_PART = 4096;

/* The number of parts; it grows with outer. */
int64_t parts_of_planes(int64_t outer, int64_t channels, int64_t inner) {
    return parts_of(least(outer, ceil_div(outer * inner, POINTS_OF_PART)), channels);
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
    if (inner == 1) {
        const bool packs = channels % WIDE == 0 && g.aligned() && is_aligned(sums);
        auto sum = packs ? sum_columns<WIDE, gradient<Number>> : sum_columns<1, gradient<Number>>;
        return sum(device, g, sums, room, outer, channels, ROWS_OF_LANE);
    }
    const int64_t rows = ceil_div(outer, parts_of_planes(outer, channels, inner));
    const outcome out = {sums, (float *)room, device->turns, channels, rows};
    const bool packs = inner % WIDE == 0 && g.aligned();
    return packs ? sum_planes<WIDE>(device, g, out, outer, inner) : sum_planes<1>(device, g, out, outer, inner);
}

} /* namespace */

tdm_status tdm__cuda_bias(tdm_cuda_device *device, tdm_cuda_number number, void *y, const void *bias, int64_t outer,
                          int64_t channels, int64_t inner, bool clamp) {
    if (number == TDM_CUDA_BF16) return add_bias(device, (bf16 *)y, (const bf16 *)bias, outer, channels, inner, clamp);
    return add_bias(device, (float *)y, (const float *)bias, outer, channels, inner, clamp);
}

size_t tdm__cuda_mask_room(int64_t outer, int64_t channels, int64_t inner) {
    if (inner == 1) return room_of_columns(outer, channels, ROWS_OF_LANE);
    return (size_t)(parts_of_planes(outer, channels, inner) * channels) * sizeof(float);
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
