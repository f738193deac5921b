/* What dropout and dropout2d share on CUDA. The mask is computed in forward and again in backward: this costs less than
 * storing it. */
#ifndef TDM_OPS_DROPOUT_CUDA_H
#define TDM_OPS_DROPOUT_CUDA_H

#include "runtime/backends/cuda/kit/kernel.h"
#include "ops/dropout/dropout.h"
#include "ops/dropout/dropout_draw.h"
#include "ops/elementwise.h"

namespace tdm_cuda {

static constexpr int DRAWN = 4; /* elements, or channels, per random draw */

template <class Number> struct masked {
    const Number *in;
    Number *out;
    const tdm_step_values *values;
    const int64_t *position; /* of each row */
    uint64_t key, threshold;
    uint32_t stream;
    float scale;

    __device__ void draw(uint32_t word[DRAWN], int64_t group, int64_t row) const {
        tdm__dropout_words(word, key, group, position[row], values->step, stream);
    }
    /* The factor is 0 or the scale. It is a product so that NaN and infinity show even where they are dropped, as in
     * PyTorch. */
    __device__ float factor(uint32_t word) const {
        return word >= threshold ? scale : 0.0f;
    }
};

template <class Number> masked<Number> masked_of(const tdm_kernel_args *args, const Number *in, Number *out) {
    const tdm_dropout_attrs *attrs = (const tdm_dropout_attrs *)args->desc->attrs;
    return {in,
            out,
            args->values,
            args->position,
            tdm__dropout_key(args->seed),
            tdm__dropout_threshold(attrs->p),
            args->stream,
            tdm__dropout_scale(attrs->p)};
}

/* Evaluation: y = x. */
template <class Number> tdm_status copy_x(const tdm_kernel_args *args) {
    if (args->y == args->x[0]) return TDM_OK;
    return copy_each(tdm__cuda_device(args->device), as<Number>(args->y), as<Number>(args->x[0]),
                     tdm__elementwise_count(args));
}

} /* namespace tdm_cuda */

#endif
