/* sgd and lars on CUDA: operation for operation that of sgd_lanes.c, so that the bits are the CPU's. */
#include "ops/optim/sgd/sgd.h"
#include "runtime/backends/cuda/kit/kernel.h"

using namespace tdm_cuda;

namespace {

struct sgd_item {
    const tdm_step_values *values;
    float *p;
    const float *g;
    float *buffer;
    const float *p_norm, *g_norm; /* or NULL */
    bf16 *p_bf16;                 /* or NULL */
    template <int WIDE> __device__ void run(int64_t i) const {
        /* The alignment, which the type has lost, lets pairs of scalars come in one load. */
        const tdm_sgd_values args =
            *(const tdm_sgd_values *)__builtin_assume_aligned(values->optim, sizeof *values->optim);
        const float step = -args.lr, decay = tdm__sgd_decay(&args, p_norm);
        const float ratio = tdm__sgd_ratio(&args, p_norm, g_norm);
        const bool decays = decay != 0.0f, moves = args.momentum != 0.0f;
        pack<float, WIDE> b = {}, d = load<WIDE>(g, i), w = load<WIDE>(p, i);
        if (buffer != NULL) b = load<WIDE>(buffer, i); /* asked for before it is known whether it counts */
        for (int k = 0; k < WIDE; k++) {
            if (decays) d.at[k] = tdm__add_scaled(d.at[k], w.at[k], decay);
            d.at[k] *= ratio;
            if (moves) {
                b.at[k] =
                    args.first_step ? d.at[k] : tdm__add_scaled(b.at[k] * args.momentum, d.at[k], args.one_minus_dampening);
                d.at[k] = args.nesterov ? tdm__add_scaled(d.at[k], b.at[k], args.momentum) : b.at[k];
            }
            w.at[k] = tdm__add_scaled(w.at[k], d.at[k], step);
        }
        if (moves) store(buffer, i, b);
        store(p, i, w);
        if (p_bf16 != NULL) store(p_bf16, i, w);
    }
};

} /* namespace */

tdm_status tdm__sgd_on_cuda(const tdm_optim_args *args) {
    const sgd_item item = {args->values, args->p,      args->g,      args->state[0],
                           args->p_norm, args->g_norm, (bf16 *)args->p_bf16};
    return each(tdm__cuda_device(args->device), item, (int64_t)args->count,
                is_aligned(item.p, item.g, item.buffer, item.p_bf16));
}

TDM_CUDA_OPTIM(sgd, tdm__sgd_on_cuda);
