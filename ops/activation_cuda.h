/* The kernels of activations on CUDA: one pass in each direction. For .cu files; see activation.h. */
#ifndef TDM_OPS_ACTIVATION_CUDA_H
#define TDM_OPS_ACTIVATION_CUDA_H

#include "runtime/backends/cuda/kit/kernel.h"
#include "ops/elementwise.h"

namespace tdm_cuda {

template <class Formula, class Number> struct activation_item {
    const Number *x;
    Number *y;
    float p;
    template <int WIDE> __device__ void run(int64_t i) const {
        pack<float, WIDE> v = load<WIDE>(x, i);
        for (int k = 0; k < WIDE; k++) v.at[k] = Formula::value(v.at[k], p);
        store(y, i, v);
    }
};

template <class Formula, class Number> struct activation_gradient_item {
    const Number *v, *dy;
    Number *dx;
    float p;
    template <int WIDE> __device__ void run(int64_t i) const {
        const pack<float, WIDE> in = load<WIDE>(v, i);
        pack<float, WIDE> d = load<WIDE>(dy, i);
        for (int k = 0; k < WIDE; k++) d.at[k] = Formula::gradient(in.at[k], d.at[k], p);
        store(dx, i, d);
    }
};

} /* namespace tdm_cuda */

#define TDM_ACTIVATION_CUDA(op, v_pointer, p_value)                                                             \
    namespace {                                                                                                 \
    using namespace tdm_cuda;                                                                                   \
    struct formula {                                                                                            \
        static __device__ float value(float x, float p) {                                                       \
            return tdm__##op(x, p);                                                                             \
        }                                                                                                       \
        static __device__ float gradient(float v, float dy, float p) {                                          \
            return tdm__##op##_gradient(v, dy, p);                                                              \
        }                                                                                                       \
    };                                                                                                          \
    template <class Number> tdm_status forward(const tdm_kernel_args *args) {                                   \
        const activation_item<formula, Number> item = {as<Number>(args->x[0]), as<Number>(args->y), (p_value)}; \
        return each<PACK_OF<Number>>(tdm__cuda_device(args->device), item, tdm__elementwise_count(args),        \
                                     is_aligned(item.x, item.y));                                               \
    }                                                                                                           \
    template <class Number> tdm_status backward(const tdm_kernel_args *args) {                                  \
        const activation_gradient_item<formula, Number> item = {as<Number>(v_pointer), as<Number>(args->dy),    \
                                                                as<Number>(args->dx[0]), (p_value)};            \
        return each<PACK_OF<Number>>(tdm__cuda_device(args->device), item, tdm__elementwise_count(args),        \
                                     is_aligned(item.v, item.dy, item.dx));                                     \
    }                                                                                                           \
    }                                                                                                           \
    TDM_CUDA_KERNEL(op, keep_layout)

#endif
