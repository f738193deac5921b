/* soft_cross_entropy on CUDA: the formulas and the order of operations of soft_cross_entropy.c; one thread computes a
 * row. */
#include "ops/loss/classes.h"

#include "runtime/backends/cuda/kit/loss.h"

using namespace tdm_cuda;

namespace {

template <class Number> struct soft_row {
    const float *target;
    const tdm_step_values *values;
    int64_t width;
    tdm_class_weights weights;
    double kept, spread;
    const Number *y;
    Number *dy; /* NULL: no gradient is needed */

    /* The share of a class, weighted. */
    __device__ double share_of(const float *t, int64_t c) const {
        return (kept * (double)t[c] + spread) * tdm__class_weight(&weights, c);
    }

    __device__ row_result run(int64_t n) const {
        const Number *in = y + n * width;
        const float *t = target + n * width, seed = values->loss_seed;
        Number *out = dy != NULL ? dy + n * width : NULL;
        float max = get(in, 0), sum = 0;
        for (int64_t c = 1; c < width; c++) {
            const float other = get(in, c);
            if (other > max || other != other) max = other;
        }
        for (int64_t c = 0; c < width; c++) sum += expf(get(in, c) - max);
        const float log_total = logf(sum);
        double loss = 0, share = 0;
        for (int64_t c = 0; c < width; c++) {
            const double q = share_of(t, c);
            loss += q * (double)-((get(in, c) - max) - log_total);
            share += q;
        }
        for (int64_t c = 0; out != NULL && c < width; c++) {
            const float softmax = expf((get(in, c) - max) - log_total);
            put(out, c, softmax * ((float)share * seed) - (float)share_of(t, c) * seed);
        }
        return {(double)(float)loss, 0};
    }
};

template <class Number> tdm_status run(const tdm_loss_args *args) {
    soft_row<Number> row = {};
    row.target = (const float *)args->target;
    row.values = args->values;
    row.width = args->width;
    row.weights = tdm__class_weights(args);
    row.kept = 1.0 - args->section->label_smoothing;
    row.spread = args->section->label_smoothing / (double)args->width;
    row.y = as<Number>(args->y);
    row.dy = as<Number>(args->dy);
    return run_narrow(tdm__cuda_device(args->device), row, args->rows, {args->loss_sum, NULL});
}

} /* namespace */

TDM_CUDA_LOSS(soft_cross_entropy);
