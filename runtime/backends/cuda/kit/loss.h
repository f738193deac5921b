/* What losses on CUDA share: from the rows' losses to their sum, in the rows' order. For .cu files.
 *
 * A `Row` is a struct with `__device__ row_result run(int64_t row) const`, which computes one row in one thread: for
 * narrow rows. Losses of wide rows have their own kernels and end with add_rows. */
#ifndef TDM_CUDA_KIT_LOSS_H
#define TDM_CUDA_KIT_LOSS_H

#include "runtime/backends/cuda/kit/kernel.h"

namespace tdm_cuda {

struct row_result {
    double loss;
    int64_t hits; /* 1: the largest output is the label */
};

/* The totals that a loss adds to. */
struct loss_totals {
    double *loss_sum;
    int64_t *correct; /* NULL: not counted */
};

static constexpr int64_t NARROW = 32; /* the most elements of a row that one thread computes */
static constexpr int ADDERS = 1024;   /* threads of the block that adds the rows */

/* Adds the parts of the block's first `count` threads in the order of the threads; the other threads' parts are 0. All
 * threads of the block call it; the block has whole warps. One thread makes all additions, one after another, and
 * everything it reads is loaded ahead. */
__device__ inline void add_parts(const row_result &part, int64_t count, const loss_totals &totals) {
    __shared__ double loss[ADDERS];
    __shared__ int64_t hits[ADDERS / WARP];
    const int64_t hits_of_warp = warp_sum(part.hits);
    if (threadIdx.x % WARP == 0) hits[threadIdx.x / WARP] = hits_of_warp;
    loss[threadIdx.x] = part.loss;
    double sum_before = 0;
    int64_t correct_before = 0;
    if (threadIdx.x == 0) {
        sum_before = *totals.loss_sum;
        if (totals.correct != NULL) correct_before = *totals.correct;
    }
    __syncthreads();
    if (threadIdx.x != 0) return;
    double sum = 0;
    int64_t correct = 0;
    for (int64_t first = 0; first < count; first += WARP) {
        for (int i = 0; i < WARP; i++) sum += loss[first + i];
        correct += hits[first / WARP];
    }
    *totals.loss_sum = sum_before + sum;
    if (totals.correct != NULL) *totals.correct = correct_before + correct;
}

/* Runs in one block. If there are more rows than threads, each thread adds a run of neighbouring rows. */
__global__ static void __launch_bounds__(ADDERS, 1) add_rows(const row_result *row, int64_t rows, loss_totals totals) {
    const int64_t run = (rows + ADDERS - 1) / ADDERS, first = threadIdx.x * run;
    row_result part = {0, 0};
    for (int64_t n = first; n < first + run && n < rows; n++) {
        part.loss += row[n].loss;
        part.hits += row[n].hits;
    }
    add_parts(part, (rows + run - 1) / run, totals);
}

/* Computes all rows in one block and one launch. */
template <class Row>
__global__ void __launch_bounds__(ADDERS, 1) narrow_rows_at_once(Row row, int64_t rows, loss_totals totals) {
    row_result part = {0, 0};
    if (threadIdx.x < rows) part = row.run(threadIdx.x);
    add_parts(part, rows, totals);
}

template <class Row> __global__ void narrow_rows(Row row, int64_t first, int64_t rows, row_result *out) {
    for (int64_t n = thread_index(); n < rows; n += thread_count()) out[n] = row.run(first + n);
}

/* Computes the rows' results and adds them, as many at a time as the workspace holds; start(first, count, out) puts
 * those of the rows [first, first + count) on the device's stream. */
template <class Start>
tdm_status run_in_turns(tdm_cuda_device *device, int64_t rows, const loss_totals &totals, const Start &start) {
    TDM_MODULE_TRY(workspace_holds(device, TDM_CUDA_WORKSPACE_LEAST));
    row_result *out = (row_result *)device->workspace;
    const int64_t most = (int64_t)(device->workspace_bytes / sizeof(row_result));
    for (int64_t first = 0; first < rows; first += most) {
        const int64_t count = rows - first < most ? rows - first : most;
        TDM_MODULE_TRY(start(first, count, out));
        TDM_LAUNCH(add_rows, 1, ADDERS, device->stream, out, count, totals);
    }
    return TDM_OK;
}

template <class Row>
tdm_status run_narrow(tdm_cuda_device *device, const Row &row, int64_t rows, const loss_totals &totals) {
    if (rows <= ADDERS) {
        const unsigned threads = (unsigned)(ceil_div(rows, WARP) * WARP);
        TDM_LAUNCH(narrow_rows_at_once<Row>, 1, threads, device->stream, row, rows, totals);
        return TDM_OK;
    }
    return run_in_turns(device, rows, totals, [&](int64_t first, int64_t count, row_result *out) {
        TDM_LAUNCH(narrow_rows<Row>, blocks_for(count), THREADS, device->stream, row, first, count, out);
        return TDM_OK;
    });
}

} /* namespace tdm_cuda */
#endif
