/* relu on CUDA: one pass each way. NaN passes through, as in PyTorch. */
#include "ops/cuda_module/kernel.h"
#include "ops/elementwise.h"

using namespace tdm_cuda;

namespace {

struct relu_item {
    const float *x;
    float *y;
    template <int WIDE> __device__ void run(int64_t i) const {
        pack<float, WIDE> v = load<WIDE>(x, i);
        for (int k = 0; k < WIDE; k++) v.at[k] = v.at[k] < 0.0f ? 0.0f : v.at[k];
        store(y, i, v);
    }
};

struct relu_gradient_item {
    const float *y, *dy;
    float *dx;
    template <int WIDE> __device__ void run(int64_t i) const {
        const pack<float, WIDE> out = load<WIDE>(y, i);
        pack<float, WIDE> d = load<WIDE>(dy, i);
        for (int k = 0; k < WIDE; k++) d.at[k] = out.at[k] <= 0.0f ? 0.0f : d.at[k];
        store(dx, i, d);
    }
};

bool fits(const tdm_kernel_desc *desc, tdm_kernel_fit *fit) {
    keep_layout(desc, fit);
    return true;
}

/* y = max(0, x) */
tdm_status forward(const tdm_kernel_args *args) {
    const relu_item item = {args->x[0], args->y};
    return each(tdm__cuda_device(args->device), item, tdm__elementwise_count(args),
                is_aligned(item.x) && is_aligned(item.y));
}

/* dx = dy where y > 0 */
tdm_status backward(const tdm_kernel_args *args) {
    const relu_gradient_item item = {args->y, args->dy, args->dx[0]};
    return each(tdm__cuda_device(args->device), item, tdm__elementwise_count(args),
                is_aligned(item.y) && is_aligned(item.dy) && is_aligned(item.dx));
}

} /* namespace */

const tdm_kernel tdm__relu_cuda = {
    .op = "relu",
    .variant = "cuda",
    .fits = fits,
    .open = NULL,
    .close = NULL,
    .forward = forward,
    .backward = backward,
};
