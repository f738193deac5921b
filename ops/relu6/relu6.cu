/* relu6 on CUDA: one pass in each direction. NaN passes through, as in PyTorch. */
#include "runtime/backends/cuda/kit/kernel.h"
#include "ops/elementwise.h"

using namespace tdm_cuda;

namespace {

template <class Number> struct relu6_item {
    const Number *x;
    Number *y;
    template <int WIDE> __device__ void run(int64_t i) const {
        pack<float, WIDE> v = load<WIDE>(x, i);
        for (int k = 0; k < WIDE; k++) v.at[k] = v.at[k] < 0.0f ? 0.0f : v.at[k] > 6.0f ? 6.0f : v.at[k];
        store(y, i, v);
    }
};

template <class Number> struct relu6_gradient_item {
    const Number *y, *dy;
    Number *dx;
    template <int WIDE> __device__ void run(int64_t i) const {
        const pack<float, WIDE> out = load<WIDE>(y, i);
        pack<float, WIDE> d = load<WIDE>(dy, i);
        for (int k = 0; k < WIDE; k++) d.at[k] = out.at[k] <= 0.0f || out.at[k] >= 6.0f ? 0.0f : d.at[k];
        store(dx, i, d);
    }
};

/* y = min(max(0, x), 6) */
template <class Number> tdm_status forward(const tdm_kernel_args *args) {
    const relu6_item<Number> item = {as<Number>(args->x[0]), as<Number>(args->y)};
    return each<PACK_OF<Number>>(tdm__cuda_device(args->device), item, tdm__elementwise_count(args),
                                 is_aligned(item.x, item.y));
}

/* dx = 0 where y <= 0 or y >= 6, else dy */
template <class Number> tdm_status backward(const tdm_kernel_args *args) {
    const relu6_gradient_item<Number> item = {as<Number>(args->y), as<Number>(args->dy), as<Number>(args->dx[0])};
    return each<PACK_OF<Number>>(tdm__cuda_device(args->device), item, tdm__elementwise_count(args),
                                 is_aligned(item.y, item.dy, item.dx));
}

} /* namespace */

TDM_CUDA_KERNEL(relu6, keep_layout); /* fits: any layout, y in that of x */
