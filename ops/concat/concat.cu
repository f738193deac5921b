/* concat on CUDA: one copy for each input, in either direction. */
#include "ops/concat/concat.h"
#include "runtime/backends/cuda/kit/kernel.h"

using namespace tdm_cuda;

namespace {

/* The runs of one input, in packs: `length` of every `total` of y, from `offset` on. */
template <class Number> struct runs_item {
    const Number *from;
    Number *to;
    divider length;
    int64_t total, offset;
    bool gathers; /* y to x: the gradient */
};

template <int WIDE, class Number> __global__ void copy_runs(runs_item<Number> item, int64_t count) {
    for (int64_t i = thread_index(); i < count; i += thread_count()) {
        int64_t run = i;
        const int64_t at = split(item.length, &run), joined = run * item.total + item.offset + at;
        store(item.to, item.gathers ? i : joined, load<WIDE>(item.from, item.gathers ? joined : i));
    }
}

template <int WIDE, class Number>
tdm_status launch(const tdm_kernel_args *args, const tdm_concat_runs &runs, runs_item<Number> item, int64_t length,
                  int64_t offset) {
    item.length = divider_of(length / WIDE);
    item.total = runs.total / WIDE;
    item.offset = offset / WIDE;
    const int64_t count = runs.outer * (length / WIDE);
    auto kernel = copy_runs<WIDE, Number>;
    TDM_LAUNCH(kernel, blocks_for(count), THREADS, tdm__cuda_device(args->device)->stream, item, count);
    return TDM_OK;
}

/* joined: y in forward, dy in backward. */
template <class Number> tdm_status copy_all(const tdm_kernel_args *args, const Number *joined, bool gathers) {
    static constexpr int WIDE = PACK_OF<Number>;
    const tdm_concat_runs runs = tdm__concat_runs_of(args->desc, args->rows);
    int64_t offset = 0;
    for (int k = 0; k < args->desc->input_count; offset += runs.length[k++]) {
        runs_item<Number> item = {};
        item.gathers = gathers;
        item.from = gathers ? joined : as<Number>(args->x[k]);
        item.to = as<Number>(gathers ? args->dx[k] : args->y);
        if (item.to == NULL) continue;
        const bool packs = runs.length[k] % WIDE == 0 && runs.total % WIDE == 0 && offset % WIDE == 0 &&
                           is_aligned(item.from, item.to);
        TDM_MODULE_TRY(packs ? (launch<WIDE, Number>(args, runs, item, runs.length[k], offset))
                             : (launch<1, Number>(args, runs, item, runs.length[k], offset)));
    }
    return TDM_OK;
}

template <class Number> tdm_status forward(const tdm_kernel_args *args) {
    return copy_all<Number>(args, NULL, false);
}

template <class Number> tdm_status backward(const tdm_kernel_args *args) {
    return copy_all<Number>(args, as<Number>(args->dy), true);
}

} /* namespace */

TDM_CUDA_KERNEL(concat, keep_layout);
