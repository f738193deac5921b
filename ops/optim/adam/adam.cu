/* adam and adamw on CUDA: operation for operation those of adam_lanes.c, so that the bits are the CPU's. */
#include "ops/optim/adam/adam.h"
#include "runtime/backends/cuda/kit/kernel.h"

using namespace tdm_cuda;

namespace {

/* How the first moment moves towards the gradient. */
__device__ inline float first_moment(const tdm_adam_values &args, float m, float d) {
    const float weight = args.one_minus_beta1;
    return args.lerp ? tdm__lerp(m, d, weight, tdm__lerps_from_other(weight))
                     : tdm__add_scaled(m * args.beta1, d, weight);
}

struct adam_item {
    const tdm_step_values *values;
    float *p;
    const float *g;
    float *m, *v, *most; /* most: with amsgrad, else NULL */
    bf16 *p_bf16; /* or NULL */
    template <int WIDE> __device__ void run(int64_t i) const {
        const tdm_adam_values args = *(const tdm_adam_values *)values->optim;
        const bool decays_gradient = args.weight_decay != 0.0f, decays_parameter = args.decay_factor != 1.0f;
        const pack<float, WIDE> gradient = load<WIDE>(g, i);
        pack<float, WIDE> first = load<WIDE>(m, i), second = load<WIDE>(v, i), w = load<WIDE>(p, i), largest = {};
        if (args.amsgrad) largest = load<WIDE>(most, i);
        for (int k = 0; k < WIDE; k++) {
            const float p0 = decays_parameter ? w.at[k] * args.decay_factor : w.at[k];
            const float d = decays_gradient ? tdm__add_scaled(gradient.at[k], p0, args.weight_decay) : gradient.at[k];
            const float m1 = first_moment(args, first.at[k], d);
            const float v1 = fmaf(args.one_minus_beta2 * d, d, second.at[k] * args.beta2);
            first.at[k] = m1;
            second.at[k] = v1;
            largest.at[k] = args.amsgrad && largest.at[k] > v1 ? largest.at[k] : v1;
            w.at[k] = p0 + args.step_size * m1 / (sqrtf(largest.at[k]) / args.sqrt_correction + args.eps);
        }
        store(m, i, first);
        store(v, i, second);
        if (args.amsgrad) store(most, i, largest);
        store(p, i, w);
        if (p_bf16 != NULL) store(p_bf16, i, w);
    }
};

} /* namespace */

tdm_status tdm__adam_on_cuda(const tdm_optim_args *args) {
    const adam_item item = {args->values,   args->p,        args->g, args->state[0],
                            args->state[1], args->state[2], (bf16 *)args->p_bf16};
    return each(tdm__cuda_device(args->device), item, (int64_t)args->count,
                is_aligned(item.p, item.g, item.m, item.v, item.most, item.p_bf16));
}

TDM_CUDA_OPTIM(adam, tdm__adam_on_cuda);
