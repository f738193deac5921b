/* add on CUDA: one pass in each direction, including a relu that follows. */
#include "runtime/backends/cuda/kit/kernel.h"
#include "ops/elementwise.h"

using namespace tdm_cuda;

namespace {

/* y = ((x0 + x1) + x2) + ... */
template <class Number> struct add_item {
    const Number *x[TDM_MAX_INPUTS];
    Number *y;
    int inputs;
    bool relu;
    template <int WIDE> __device__ void run(int64_t i) const {
        pack<float, WIDE> sum = load<WIDE>(x[0], i);
        for (int s = 1; s < TDM_MAX_INPUTS; s++) {
            if (s == inputs) break;
            const pack<float, WIDE> v = load<WIDE>(x[s], i);
            for (int k = 0; k < WIDE; k++) sum.at[k] += v.at[k];
        }
        if (relu) clamp_at_zero(&sum);
        store(y, i, sum);
    }
};

/* dx_k = dy; with a relu, 0 where y <= 0, else dy. One pass writes all dx_k, so one of them may share memory with dy. */
template <class Number> struct add_gradient_item {
    const Number *y, *dy; /* y: NULL if there is no relu */
    Number *dx[TDM_MAX_INPUTS];
    int count;
    template <int WIDE> __device__ void run(int64_t i) const {
        pack<float, WIDE> d = load<WIDE>(dy, i);
        if (y != NULL) keep_where_positive(&d, load<WIDE>(y, i));
        for (int s = 0; s < TDM_MAX_INPUTS; s++) {
            if (s == count) break;
            store(dx[s], i, d);
        }
    }
};

bool fits(const tdm_kernel_desc *desc, tdm_kernel_fit *fit) {
    keep_layout(desc, fit);
    fit->epilogue = TDM_EPILOGUE_RELU;
    return true;
}

template <class Number> tdm_status forward(const tdm_kernel_args *args) {
    add_item<Number> item = {{NULL}, as<Number>(args->y), args->desc->input_count, tdm_has_epilogue(args->desc, TDM_EPILOGUE_RELU)};
    bool aligned = is_aligned(args->y);
    for (int s = 0; s < item.inputs; s++) {
        item.x[s] = as<Number>(args->x[s]);
        aligned = aligned && is_aligned(args->x[s]);
    }
    return each<PACK_OF<Number>>(tdm__cuda_device(args->device), item, tdm__elementwise_count(args), aligned);
}

template <class Number> tdm_status backward(const tdm_kernel_args *args) {
    add_gradient_item<Number> item = {tdm_has_epilogue(args->desc, TDM_EPILOGUE_RELU) ? as<Number>(args->y) : NULL, as<Number>(args->dy), {NULL}, 0};
    bool aligned = is_aligned(item.y, item.dy);
    for (int s = 0; s < args->desc->input_count; s++) {
        float *dx = args->dx[s];
        if (dx == NULL || (dx == args->dy && item.y == NULL)) continue;
        item.dx[item.count++] = as<Number>(dx);
        aligned = aligned && is_aligned(dx);
    }
    if (item.count == 0) return TDM_OK;
    return each<PACK_OF<Number>>(tdm__cuda_device(args->device), item, tdm__elementwise_count(args), aligned);
}

} /* namespace */

TDM_CUDA_KERNEL(add, fits);
