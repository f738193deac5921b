/* See passes.h. Sums are cut into parts by the sizes alone; a part is a block, and parts are added in their order. */
#include "ops/cuda_module/passes.h"

#include "ops/cuda_module/kernel.h"

using namespace tdm_cuda;

namespace {

/* ---- bias and relu ---- */

struct bias_item {
    float *y;
    const float *bias;
    divider inner, channels;
    bool relu;
    template <int WIDE> __device__ void run(int64_t i) const {
        pack<float, WIDE> v = load<WIDE>(y, i);
        for (int k = 0; k < WIDE; k++) {
            if (bias != NULL) {
                int64_t plane = i * WIDE + k;
                split(inner, &plane);
                v.at[k] += bias[split(channels, &plane)];
            }
            if (relu) v.at[k] = v.at[k] < 0.0f ? 0.0f : v.at[k];
        }
        store(y, i, v);
    }
};

/* ---- mask and sums ---- */

struct mask_item {
    float *masked;
    const float *dy, *y;
    template <int WIDE> __device__ void run(int64_t i) const {
        const pack<float, WIDE> out = load<WIDE>(y, i);
        pack<float, WIDE> d = load<WIDE>(dy, i);
        for (int k = 0; k < WIDE; k++) d.at[k] = out.at[k] <= 0.0f ? 0.0f : d.at[k];
        store(masked, i, d);
    }
};

/* dy, or what the relu lets through of it, which is also written down. */
__device__ inline float take(float *masked, const float *dy, const float *y, int64_t at) {
    float d = dy[at];
    if (y != NULL) {
        d = y[at] <= 0.0f ? 0.0f : d;
        masked[at] = d;
    }
    return d;
}

constexpr int LANES = THREADS / WARP; /* rows that a block has in hand at a time */

/* Neighbouring columns to neighbouring threads; part blockIdx.y has `rows` rows of them. */
__global__ void columns_kernel(float *masked, const float *dy, const float *y, float *sums, int64_t outer,
                               int64_t channels, int64_t rows) {
    __shared__ float room[LANES][WARP + 1];
    const int column = threadIdx.x % WARP, lane = threadIdx.x / WARP;
    const int64_t channel = (int64_t)blockIdx.x * WARP + column, first = (int64_t)blockIdx.y * rows;
    const int64_t end = first + rows < outer ? first + rows : outer;
    float sum = 0.0f;
    if (channel < channels)
        for (int64_t row = first + lane; row < end; row += LANES) sum += take(masked, dy, y, row * channels + channel);
    room[lane][column] = sum;
    __syncthreads();
    if (lane != 0 || channel >= channels) return;
    for (int i = 1; i < LANES; i++) sum += room[i][column];
    sums[(int64_t)blockIdx.y * channels + channel] = sum;
}

/* A block has one channel; part blockIdx.y has `rows` of the outer ones. */
__global__ void planes_kernel(float *masked, const float *dy, const float *y, float *sums, int64_t outer,
                              int64_t channels, divider inner, int64_t rows) {
    __shared__ float room[THREADS / WARP];
    const int64_t channel = blockIdx.x, first = (int64_t)blockIdx.y * rows;
    const int64_t end = first + rows < outer ? first + rows : outer, count = (end - first) * inner.by;
    float sum = 0.0f;
    for (int64_t i = threadIdx.x; i < count; i += THREADS) {
        int64_t row = i;
        const int64_t point = split(inner, &row);
        sum += take(masked, dy, y, ((first + row) * channels + channel) * inner.by + point);
    }
    sum = block_sum<THREADS>(sum, room);
    if (threadIdx.x == 0) sums[(int64_t)blockIdx.y * channels + channel] = sum;
}

/* ---- how many parts ---- */

constexpr int64_t MOST_PARTS = 512, SMALL = 512, ROWS_OF_PART = 64, POINTS_OF_PART = 4096;

int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* Grows with outer. */
int64_t most_parts(int64_t outer, int64_t inner) {
    if (inner == 1) return outer <= SMALL ? 1 : least(MOST_PARTS, ceil_div(outer, ROWS_OF_PART));
    return least(least(MOST_PARTS, outer), ceil_div(outer * inner, POINTS_OF_PART));
}

tdm_status sum_columns(tdm_cuda_device *device, float *masked, const float *dy, const float *y, float *sums,
                       int64_t outer, int64_t channels, int64_t rows) {
    const dim3 blocks((unsigned)ceil_div(channels, WARP), (unsigned)ceil_div(outer, rows));
    TDM_LAUNCH(columns_kernel, blocks, THREADS, device->stream, masked, dy, y, sums, outer, channels, rows);
    return TDM_OK;
}

tdm_status sum_planes(tdm_cuda_device *device, float *masked, const float *dy, const float *y, float *sums,
                      int64_t outer, int64_t channels, int64_t inner, int64_t rows) {
    const dim3 blocks((unsigned)channels, (unsigned)ceil_div(outer, rows));
    TDM_LAUNCH(planes_kernel, blocks, THREADS, device->stream, masked, dy, y, sums, outer, channels, divider_of(inner),
               rows);
    return TDM_OK;
}

} /* namespace */

tdm_status tdm__cuda_bias(tdm_cuda_device *device, float *y, const float *bias, int64_t outer, int64_t channels,
                          int64_t inner, bool relu) {
    const bias_item item = {y, bias, divider_of(inner), divider_of(channels), relu};
    return each(device, item, outer * channels * inner, is_aligned(y));
}

size_t tdm__cuda_mask_room(int64_t outer, int64_t channels, int64_t inner) {
    return (size_t)(most_parts(outer, inner) * channels) * sizeof(float);
}

tdm_status tdm__cuda_mask(tdm_cuda_device *device, float *masked, const float *dy, const float *y, float *sums,
                          void *room, int64_t outer, int64_t channels, int64_t inner) {
    if (sums == NULL) {
        const mask_item item = {masked, dy, y};
        if (y == NULL) return TDM_OK;
        return each(device, item, outer * channels * inner, is_aligned(masked) && is_aligned(dy) && is_aligned(y));
    }
    const int64_t rows = ceil_div(outer, most_parts(outer, inner)), parts = ceil_div(outer, rows);
    float *partial = parts > 1 ? (float *)room : sums;
    if (inner == 1) {
        TDM_CUDA_TRY(sum_columns(device, masked, dy, y, partial, outer, channels, rows));
    } else {
        TDM_CUDA_TRY(sum_planes(device, masked, dy, y, partial, outer, channels, inner, rows));
    }
    return parts > 1 ? sum_columns(device, NULL, partial, NULL, sums, parts, channels, parts) : TDM_OK;
}
