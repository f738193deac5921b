/* embedding on CUDA. The reference's additions in its order: each thread owns a feature and goes through all numbers. */
#include "ops/elementwise.h"
#include "ops/embedding/embedding.h"
#include "runtime/backends/cuda/kit/kernel.h"

using namespace tdm_cuda;

namespace {

/* A number that asks for no row gives NaN, which the loss shows. */
template <class Number> struct look_up {
    const Number *x;
    const float *weight;
    Number *y;
    int64_t vocabulary;
    divider dim;
    template <int WIDE> __device__ void run(int64_t i) const {
        int64_t number = i;
        const int64_t k = split(dim, &number);
        const int64_t row = tdm__embedding_row(get(x, number), vocabulary);
        put(y, i, row < 0 ? NAN : weight[row * dim.by + k]);
    }
};

struct zero_item {
    float *to;
    template <int WIDE> __device__ void run(int64_t i) const {
        to[i] = 0.0f;
    }
};

template <class Number> struct zero_dx {
    Number *to;
    template <int WIDE> __device__ void run(int64_t i) const {
        put(to, i, 0.0f);
    }
};

template <class Number> struct add_rows {
    const Number *x, *dy;
    float *dw;
    int64_t count, dim, vocabulary, padding;
    template <int WIDE> __device__ void run(int64_t k) const {
        for (int64_t i = 0; i < count; i++) {
            const int64_t row = tdm__embedding_row(get(x, i), vocabulary);
            if (row >= 0 && row != padding) dw[row * dim + k] += get(dy, i * dim + k);
        }
    }
};

template <class Number> tdm_status forward(const tdm_kernel_args *args) {
    const tdm_embedding_attrs *attrs = (const tdm_embedding_attrs *)args->desc->attrs;
    const look_up<Number> item = {as<Number>(args->x[0]), args->param[0], as<Number>(args->y), attrs->vocabulary,
                                  divider_of(attrs->dim)};
    return each<1>(tdm__cuda_device(args->device), item, tdm__embedding_numbers(args) * attrs->dim, true);
}

template <class Number> tdm_status backward(const tdm_kernel_args *args) {
    const tdm_embedding_attrs *attrs = (const tdm_embedding_attrs *)args->desc->attrs;
    tdm_cuda_device *device = tdm__cuda_device(args->device);
    const int64_t count = tdm__embedding_numbers(args), dim = attrs->dim;
    if (args->dx[0] != NULL)
        TDM_MODULE_TRY(each<1>(device, zero_dx<Number>{as<Number>(args->dx[0])}, count, true));
    if (args->dparam[0] == NULL) return TDM_OK;
    TDM_MODULE_TRY(each<1>(device, zero_item{args->dparam[0]}, attrs->vocabulary * dim, true));
    const add_rows<Number> item = {as<Number>(args->x[0]), as<Number>(args->dy), args->dparam[0],  count, dim,
                                   attrs->vocabulary,      attrs->padding_idx};
    return each<1>(device, item, dim, true);
}

} /* namespace */

TDM_CUDA_KERNEL(embedding, tdm__plain_fits);
