/* slice on CUDA. */
#include "ops/elementwise.h"
#include "ops/slice/slice.h"
#include "runtime/backends/cuda/kit/kernel.h"

using namespace tdm_cuda;

namespace {

struct spans {
    divider x, y;   /* numbers of a row of x and of y */
    int64_t before; /* in front of those of y */
};

/* The shape of y may be another one of as many numbers, as in slice_ref.c. */
spans spans_of(const tdm_kernel_desc *desc) {
    int64_t x = 1, y = 1;
    for (int i = 1; i < desc->x[0].ndim; i++) x *= desc->x[0].dim[i];
    for (int i = 1; i < desc->y.ndim; i++) y *= desc->y.dim[i];
    const int64_t start = ((const tdm_slice_attrs *)desc->attrs)->start;
    return {divider_of(x), divider_of(y), start * (x / desc->x[0].dim[1])};
}

template <class Number> struct take {
    const Number *x;
    Number *y;
    spans s;
    template <int WIDE> __device__ void run(int64_t i) const {
        int64_t row = i;
        const int64_t k = split(s.y, &row);
        y[i] = x[row * s.x.by + s.before + k];
    }
};

template <class Number> struct give_back {
    const Number *dy;
    Number *dx;
    spans s;
    template <int WIDE> __device__ void run(int64_t i) const {
        int64_t row = i;
        const int64_t k = split(s.x, &row) - s.before;
        if (k >= 0 && k < s.y.by)
            dx[i] = dy[row * s.y.by + k];
        else
            put(dx, i, 0.0f);
    }
};

template <class Number> tdm_status forward(const tdm_kernel_args *args) {
    const spans s = spans_of(args->desc);
    const take<Number> item = {as<Number>(args->x[0]), as<Number>(args->y), s};
    return each<1>(tdm__cuda_device(args->device), item, args->rows * s.y.by, true);
}

template <class Number> tdm_status backward(const tdm_kernel_args *args) {
    const spans s = spans_of(args->desc);
    const give_back<Number> item = {as<Number>(args->dy), as<Number>(args->dx[0]), s};
    return each<1>(tdm__cuda_device(args->device), item, args->rows * s.x.by, true);
}

} /* namespace */

TDM_CUDA_KERNEL(slice, tdm__plain_fits); /* in another the items of a row do not lie together */
