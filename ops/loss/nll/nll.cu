/* nll on CUDA: operation for operation that of nll.c; one thread computes a row. A label out of range makes its row
 * NaN, as in cross_entropy.cu. */
#include "ops/loss/classes.h"

#include "runtime/backends/cuda/kit/loss.h"

using namespace tdm_cuda;

namespace {

__device__ inline bool is_nan(float x) {
    return x != x;
}

template <class Number> struct nll_row {
    const int64_t *label;
    const tdm_step_values *values;
    int64_t width, ignore_index;
    tdm_class_weights weights;
    const Number *y;
    Number *dy; /* NULL: no gradient is needed */

    /* A row that is ignored, or whose label is wrong. */
    __device__ row_result without_label(Number *out, float value) const {
        for (int64_t c = 0; out != NULL && c < width; c++) put(out, c, value);
        return {(double)value, 0};
    }

    __device__ row_result run(int64_t n) const {
        const Number *in = y + n * width;
        Number *out = dy != NULL ? dy + n * width : NULL;
        const int64_t is = label[n];
        if (is == ignore_index) return without_label(out, 0.0f);
        if (is < 0 || is >= width) return without_label(out, NAN);
        const float weight = (float)tdm__class_weight(&weights, is);
        float best = get(in, 0);
        int64_t at = 0;
        for (int64_t c = 1; c < width; c++) {
            const float other = get(in, c);
            if (!(other > best || (is_nan(other) && !is_nan(best)))) continue;
            best = other;
            at = c;
        }
        for (int64_t c = 0; out != NULL && c < width; c++) put(out, c, c == is ? -weight * values->loss_seed : 0.0f);
        return {-(double)(weight * get(in, is)), at == is};
    }
};

template <class Number> tdm_status run(const tdm_loss_args *args) {
    nll_row<Number> row = {};
    row.label = (const int64_t *)args->target;
    row.values = args->values;
    row.width = args->width;
    row.ignore_index = args->section->ignore_index;
    row.weights = tdm__class_weights(args);
    row.y = as<Number>(args->y);
    row.dy = as<Number>(args->dy);
    return run_narrow(tdm__cuda_device(args->device), row, args->rows, {args->loss_sum, args->correct});
}

} /* namespace */

TDM_CUDA_LOSS(nll);
