/* mse on CUDA: loss and gradient in one pass. The squares of a row are summed in double. A wide row is cut into slices,
 * so that a few rows keep the device busy, too; the sums of the slices are added as rows are. */
#include "runtime/backends/cuda/kit/loss.h"

using namespace tdm_cuda;

namespace {

template <class Number> struct mse_row {
    const Number *y;
    const float *target;
    const tdm_step_values *values;
    Number *dy; /* NULL: no gradient is needed */
    int64_t width;

    /* Returns d^2 and writes dy, for an element of a row or of a slice. */
    __device__ double point(int64_t i, float twice) const {
        const float d = get(y, i) - target[i];
        if (dy != NULL) put(dy, i, twice * d);
        return (double)d * (double)d;
    }

    __device__ row_result run(int64_t n) const {
        const float twice = 2.0f * values->loss_seed;
        double sum = 0;
        for (int64_t i = n * width; i < (n + 1) * width; i++) sum += point(i, twice);
        return {sum, 0};
    }
};

static constexpr int64_t SLICES = 1024;      /* slices of all rows together, unless there are more rows than this */
static constexpr int64_t LEAST_SLICE = 2048; /* elements */

struct mse_slices {
    int64_t per_row, length;
};

mse_slices slices_of(int64_t rows, int64_t width) {
    int64_t per_row = ceil_div(SLICES, rows), most = ceil_div(width, LEAST_SLICE);
    if (per_row > most) per_row = most;
    return {per_row, ceil_div(width, per_row)};
}

/* Blocks compute the slices from `first` up to `first + count`; slices are numbered row after row. */
template <class Number>
__global__ void wide_rows(mse_row<Number> row, mse_slices slices, int64_t first, int64_t count, row_result *out) {
    __shared__ double room[THREADS / WARP];
    const float twice = 2.0f * row.values->loss_seed;
    for (int64_t s = blockIdx.x; s < count; s += gridDim.x) {
        const int64_t n = (first + s) / slices.per_row, begin = (first + s) % slices.per_row * slices.length;
        const int64_t end = begin + slices.length < row.width ? begin + slices.length : row.width;
        double sum = 0;
        for (int64_t i = begin + threadIdx.x; i < end; i += THREADS) sum += row.point(n * row.width + i, twice);
        sum = block_sum<THREADS>(sum, room);
        if (threadIdx.x == 0) out[s] = {sum, 0};
    }
}

template <class Number>
tdm_status run_wide(tdm_cuda_device *device, const mse_row<Number> &row, int64_t rows, const loss_totals &totals) {
    const mse_slices slices = slices_of(rows, row.width);
    return run_in_turns(device, rows * slices.per_row, totals, [&](int64_t first, int64_t count, row_result *out) {
        TDM_LAUNCH(wide_rows<Number>, blocks_for(count, 1), THREADS, device->stream, row, slices, first, count, out);
        return TDM_OK;
    });
}

template <class Number> tdm_status run(const tdm_loss_args *args) {
    tdm_cuda_device *device = tdm__cuda_device(args->device);
    const mse_row<Number> row = {as<Number>(args->y), (const float *)args->target, args->values, as<Number>(args->dy),
                                 args->width};
    const loss_totals totals = {args->loss_sum, NULL};
    if (args->width <= NARROW) return run_narrow(device, row, args->rows, totals);
    return run_wide(device, row, args->rows, totals);
}

} /* namespace */

TDM_CUDA_LOSS(mse);
