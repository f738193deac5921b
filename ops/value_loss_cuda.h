/* Losses over floats on CUDA: loss and gradient in one pass; see value_loss.h. The losses of a row are summed in
 * double. A wide row is cut into slices, so that a few rows keep the device busy, too; the sums of the slices are added
 * as rows are. For .cu files. */
#ifndef TDM_OPS_VALUE_LOSS_CUDA_H
#define TDM_OPS_VALUE_LOSS_CUDA_H

#include "ops/value_loss.h"
#include "runtime/backends/cuda/kit/loss.h"

namespace tdm_cuda {

template <class Formula, class Number> struct value_row {
    const Number *y;
    const float *target;
    const tdm_step_values *values;
    Number *dy; /* NULL: no gradient is needed */
    int64_t width;
    tdm_column_settings settings;

    /* Returns the loss of an element of a row or of a slice, and writes dy. */
    __device__ double point(int64_t i, int64_t column, float seed) const {
        const float at = get(y, i), of_column = tdm__column_setting(&settings, column);
        const double loss = Formula::value(at, target[i], of_column);
        if (dy != NULL) put(dy, i, Formula::gradient(at, target[i], of_column, seed));
        return loss;
    }

    __device__ row_result run(int64_t n) const {
        const float seed = values->loss_seed;
        double sum = 0;
        for (int64_t c = 0; c < width; c++) sum += point(n * width + c, c, seed);
        return {sum, 0};
    }
};

static constexpr int64_t SLICES = 1024;      /* slices of all rows together, unless there are more rows than this */
static constexpr int64_t LEAST_SLICE = 2048; /* elements */

struct value_slices {
    int64_t per_row, length;
};

static inline value_slices slices_of(int64_t rows, int64_t width) {
    int64_t per_row = ceil_div(SLICES, rows), most = ceil_div(width, LEAST_SLICE);
    if (per_row > most) per_row = most;
    return {per_row, ceil_div(width, per_row)};
}

/* Blocks compute the slices from `first` up to `first + count`; slices are numbered row after row. */
template <class Formula, class Number>
__global__ void wide_value_rows(value_row<Formula, Number> row, value_slices slices, int64_t first, int64_t count,
                                row_result *out) {
    __shared__ double room[THREADS / WARP];
    const float seed = row.values->loss_seed;
    for (int64_t s = blockIdx.x; s < count; s += gridDim.x) {
        const int64_t n = (first + s) / slices.per_row, begin = (first + s) % slices.per_row * slices.length;
        const int64_t end = begin + slices.length < row.width ? begin + slices.length : row.width;
        double sum = 0;
        for (int64_t i = begin + threadIdx.x; i < end; i += THREADS) sum += row.point(n * row.width + i, i, seed);
        sum = block_sum<THREADS>(sum, room);
        if (threadIdx.x == 0) out[s] = {sum, 0};
    }
}

template <class Formula, class Number>
tdm_status run_wide_values(tdm_cuda_device *device, const value_row<Formula, Number> &row, int64_t rows,
                           const loss_totals &totals) {
    const value_slices slices = slices_of(rows, row.width);
    return run_in_turns(device, rows * slices.per_row, totals, [&](int64_t first, int64_t count, row_result *out) {
        TDM_LAUNCH((wide_value_rows<Formula, Number>), blocks_for(count, 1), THREADS, device->stream, row, slices,
                   first, count, out);
        return TDM_OK;
    });
}

template <class Formula, class Number>
tdm_status run_values(const tdm_loss_args *args, const tdm_column_settings &settings) {
    tdm_cuda_device *device = tdm__cuda_device(args->device);
    const value_row<Formula, Number> row = {
        as<Number>(args->y), (const float *)args->target, args->values, as<Number>(args->dy), args->width, settings};
    const loss_totals totals = {args->loss_sum, NULL};
    if (args->width <= NARROW) return run_narrow(device, row, args->rows, totals);
    return run_wide_values(device, row, args->rows, totals);
}

} /* namespace tdm_cuda */

#define TDM_VALUE_LOSS_CUDA(loss, p_settings)                                     \
    namespace {                                                                   \
    using namespace tdm_cuda;                                                     \
    struct formula {                                                              \
        static __device__ double value(float y, float t, float p) {               \
            return tdm__##loss(y, t, p);                                          \
        }                                                                         \
        static __device__ float gradient(float y, float t, float p, float seed) { \
            return tdm__##loss##_gradient(y, t, p, seed);                         \
        }                                                                         \
    };                                                                            \
    template <class Number> tdm_status run(const tdm_loss_args *args) {           \
        return run_values<formula, Number>(args, (p_settings));                   \
    }                                                                             \
    }                                                                             \
    TDM_CUDA_LOSS(loss)

#endif
