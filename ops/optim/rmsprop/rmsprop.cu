/* rmsprop on CUDA: operation for operation that of rmsprop_lanes.c, so that the bits are the CPU's. */
#include "ops/optim/rmsprop/rmsprop.h"
#include "runtime/backends/cuda/kit/kernel.h"

using namespace tdm_cuda;

namespace {

struct rmsprop_item {
    const tdm_step_values *values;
    float *p;
    const float *g;
    float *v, *buffer, *average; /* buffer and average: NULL where the job has none */
    bf16 *p_bf16;                /* or NULL */
    template <int WIDE> __device__ void run(int64_t i) const {
        const tdm_rmsprop_values args = *(const tdm_rmsprop_values *)values->optim;
        const float step = -args.lr, decay = args.weight_decay;
        const bool decays = decay != 0.0f, moves = args.momentum != 0.0f;
        const bool from_new = tdm__lerps_from_other(args.one_minus_alpha);
        const pack<float, WIDE> gradient = load<WIDE>(g, i);
        pack<float, WIDE> squares = load<WIDE>(v, i), w = load<WIDE>(p, i), b = {}, a = {};
        if (moves) b = load<WIDE>(buffer, i);
        if (args.centered) a = load<WIDE>(average, i);
        for (int k = 0; k < WIDE; k++) {
            const float d = decays ? tdm__add_scaled(gradient.at[k], w.at[k], decay) : gradient.at[k];
            const float v1 = fmaf(args.one_minus_alpha * d, d, squares.at[k] * args.alpha);
            float square = v1;
            squares.at[k] = v1;
            if (args.centered) {
                a.at[k] = tdm__lerp(a.at[k], d, args.one_minus_alpha, from_new);
                square = fmaf(-a.at[k], a.at[k], v1);
            }
            const float root = sqrtf(square) + args.eps;
            if (moves) {
                b.at[k] = b.at[k] * args.momentum + d / root;
                w.at[k] = tdm__add_scaled(w.at[k], b.at[k], step);
            } else {
                w.at[k] = w.at[k] + step * d / root;
            }
        }
        store(v, i, squares);
        if (moves) store(buffer, i, b);
        if (args.centered) store(average, i, a);
        store(p, i, w);
        if (p_bf16 != NULL) store(p_bf16, i, w);
    }
};

tdm_status run(const tdm_optim_args *args) {
    const rmsprop_item item = {args->values,   args->p,        args->g,        args->state[0],
                               args->state[1], args->state[2], (bf16 *)args->p_bf16};
    return each(tdm__cuda_device(args->device), item, (int64_t)args->count,
                is_aligned(item.p, item.g, item.v, item.buffer, item.average, item.p_bf16));
}

} /* namespace */

TDM_CUDA_OPTIM(rmsprop, run);
