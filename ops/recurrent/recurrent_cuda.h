/* lstm and gru on CUDA: a block for each row, which goes through the steps; its threads share the units. Then a thread
 * for each weight goes through rows and steps. The order of additions is that of recurrent.c. */
#ifndef TDM_OPS_RECURRENT_CUDA_H
#define TDM_OPS_RECURRENT_CUDA_H

#include "ops/recurrent/recurrent.h"
#include "runtime/backends/cuda/kit/kernel.h"

namespace tdm_cuda {

/* One layer. x: the batch, of the first layer; else NULL, and the input is the state of the layer below. */
template <class Number> struct recurrent_layer {
    tdm_recurrent r;
    int64_t layer, in, wide;
    const Number *x, *dy;
    Number *y, *dx; /* y: of the last layer, else NULL; dx: of the first, NULL where not needed */
    const float *ih, *hh, *bias_ih, *bias_hh;
    float *kept, *carried, *d_ih, *d_hh, *d_bias_ih, *d_bias_hh;

    __device__ float *step(int64_t n, int64_t layer_of, int64_t t) const {
        return kept + tdm__recurrent_at(&r, layer_of, n, t);
    }
    __device__ float input(int64_t n, int64_t t, int64_t i) const {
        return x != NULL ? get(x, (n * r.steps + t) * in + i) : step(n, layer - 1, t)[r.h + i];
    }
    __device__ float sum_of_h(float sum, const float *before, int64_t k) const {
        for (int64_t i = 0; before != NULL && i < r.hidden; i++) sum += before[r.h + i] * hh[k * r.hidden + i];
        return sum;
    }
};

template <class Number> __global__ void recurrent_forward(recurrent_layer<Number> m) {
    const tdm_recurrent &r = m.r;
    for (int64_t n = blockIdx.x; n < r.rows; n += gridDim.x) {
        for (int64_t t = 0; t < r.steps; t++) {
            float *now = m.step(n, m.layer, t);
            const float *before = t > 0 ? m.step(n, m.layer, t - 1) : NULL;
            for (int64_t k = threadIdx.x; k < m.wide; k += blockDim.x) {
                const bool is_apart = r.is_gru && k >= 2 * r.hidden;
                float sum = m.bias_ih[k];
                for (int64_t i = 0; i < m.in; i++) sum += m.input(n, t, i) * m.ih[k * m.in + i];
                now[k] = is_apart ? sum : m.sum_of_h(sum + m.bias_hh[k], before, k);
                if (is_apart) now[k + r.hidden] = m.sum_of_h(m.bias_hh[k], before, k);
            }
            __syncthreads();
            for (int64_t j = threadIdx.x; j < r.hidden; j += blockDim.x) {
                tdm__recurrent_unit(&r, now, before, j);
                if (m.y != NULL && r.gives_all) put(m.y, (n * r.steps + t) * r.hidden + j, now[r.h + j]);
                if (m.y != NULL && !r.gives_all && t == r.steps - 1) put(m.y, n * r.hidden + j, now[r.h + j]);
            }
            __syncthreads();
        }
    }
}

template <class Number>
__device__ float recurrent_dy(const recurrent_layer<Number> &m, int64_t n, int64_t t, int64_t j) {
    const tdm_recurrent &r = m.r;
    if (r.gives_all) return get(m.dy, (n * r.steps + t) * r.hidden + j);
    return t == r.steps - 1 ? get(m.dy, n * r.hidden + j) : 0.0f;
}

template <class Number> __global__ void recurrent_backward(recurrent_layer<Number> m) {
    const tdm_recurrent &r = m.r;
    for (int64_t n = blockIdx.x; n < r.rows; n += gridDim.x) {
        float *carried = m.carried + n * 2 * r.hidden;
        for (int64_t j = threadIdx.x; j < 2 * r.hidden; j += blockDim.x) carried[j] = 0.0f;
        __syncthreads();
        for (int64_t t = r.steps - 1; t >= 0; t--) {
            float *now = m.step(n, m.layer, t);
            const float *before = t > 0 ? m.step(n, m.layer, t - 1) : NULL;
            for (int64_t j = threadIdx.x; j < r.hidden; j += blockDim.x) {
                if (m.dy != NULL) now[r.dh + j] = recurrent_dy(m, n, t, j);
                tdm__recurrent_unit_back(&r, now, before, carried, j);
            }
            __syncthreads();
            for (int64_t i = threadIdx.x; before != NULL && i < r.hidden; i += blockDim.x)
                for (int64_t k = 0; k < m.wide; k++)
                    carried[i] += now[tdm__recurrent_of_h(&r, k)] * m.hh[k * r.hidden + i];
            for (int64_t i = threadIdx.x; (m.layer > 0 || m.dx != NULL) && i < m.in; i += blockDim.x) {
                float sum = 0.0f;
                for (int64_t k = 0; k < m.wide; k++) sum += now[k] * m.ih[k * m.in + i];
                if (m.layer > 0)
                    m.step(n, m.layer - 1, t)[r.dh + i] = sum;
                else
                    put(m.dx, (n * r.steps + t) * m.in + i, sum);
            }
            __syncthreads();
        }
    }
}

/* An item is a weight or bias: of gate k, for each of the inputs, the states, and twice the bias. */
template <class Number> struct recurrent_weight {
    recurrent_layer<Number> m;
    template <int WIDE> __device__ void run(int64_t index) const {
        const tdm_recurrent &r = m.r;
        const int64_t each = m.in + r.hidden + 2, k = index / each, at = index % each;
        const bool of_x = at < m.in || at == m.in + r.hidden;
        float sum = 0.0f;
        for (int64_t n = 0; n < r.rows; n++) {
            for (int64_t t = 0; t < r.steps; t++) {
                const float d = m.step(n, m.layer, t)[of_x ? k : tdm__recurrent_of_h(&r, k)];
                if (at < m.in)
                    sum += d * m.input(n, t, at);
                else if (at >= m.in + r.hidden)
                    sum += d;
                else if (t > 0)
                    sum += d * m.step(n, m.layer, t - 1)[r.h + at - m.in];
            }
        }
        if (at < m.in)
            m.d_ih[k * m.in + at] = sum;
        else if (at < m.in + r.hidden)
            m.d_hh[k * r.hidden + at - m.in] = sum;
        else
            (of_x ? m.d_bias_ih : m.d_bias_hh)[k] = sum;
    }
};

static inline bool recurrent_fits(const tdm_kernel_desc *desc, tdm_kernel_fit *fit, bool is_gru) {
    const tdm_recurrent r = tdm__recurrent_of(desc, is_gru, desc->y.dim[0]);
    return tdm__recurrent_take(desc, fit, &r, r.rows * 2 * r.hidden);
}

template <class Number>
recurrent_layer<Number> recurrent_layer_of(const tdm_kernel_args *args, bool is_gru, int64_t layer) {
    recurrent_layer<Number> m = {};
    float *scratch = (float *)args->scratch;
    m.r = tdm__recurrent_of(args->desc, is_gru, args->rows);
    m.layer = layer;
    m.in = layer == 0 ? m.r.in : m.r.hidden;
    m.wide = m.r.gates * m.r.hidden;
    m.x = layer == 0 ? as<Number>(args->x[0]) : NULL;
    const float *const *param = args->param + layer * TDM_RECURRENT_PARAMS;
    float *const *dparam = args->dparam + layer * TDM_RECURRENT_PARAMS;
    m.ih = param[0], m.hh = param[1], m.bias_ih = param[2], m.bias_hh = param[3];
    m.d_ih = dparam[0], m.d_hh = dparam[1], m.d_bias_ih = dparam[2], m.d_bias_hh = dparam[3];
    m.carried = scratch;
    m.kept = args->saved != NULL ? (float *)args->saved : scratch + m.r.rows * 2 * m.r.hidden;
    return m;
}

template <class Number> tdm_status recurrent_forward_of(const tdm_kernel_args *args, bool is_gru) {
    const int64_t layers = ((const tdm_recurrent_attrs *)args->desc->attrs)->layers;
    for (int64_t layer = 0; layer < layers; layer++) {
        recurrent_layer<Number> m = recurrent_layer_of<Number>(args, is_gru, layer);
        if (layer == layers - 1) m.y = as<Number>(args->y);
        TDM_LAUNCH(recurrent_forward<Number>, blocks_for(args->rows, 1), THREADS,
                   tdm__cuda_device(args->device)->stream, m);
    }
    return TDM_OK;
}

template <class Number> tdm_status recurrent_backward_of(const tdm_kernel_args *args, bool is_gru) {
    const int64_t layers = ((const tdm_recurrent_attrs *)args->desc->attrs)->layers;
    tdm_cuda_device *device = tdm__cuda_device(args->device);
    for (int64_t layer = layers - 1; layer >= 0; layer--) {
        recurrent_layer<Number> m = recurrent_layer_of<Number>(args, is_gru, layer);
        if (layer == layers - 1) m.dy = as<Number>(args->dy);
        if (layer == 0 && args->dx[0] != NULL) m.dx = as<Number>(args->dx[0]);
        TDM_LAUNCH(recurrent_backward<Number>, blocks_for(args->rows, 1), THREADS, device->stream, m);
        if (m.d_ih != NULL)
            TDM_MODULE_TRY(each<1>(device, recurrent_weight<Number>{m}, m.wide * (m.in + m.r.hidden + 2), true));
    }
    return TDM_OK;
}

} /* namespace tdm_cuda */

#define TDM_RECURRENT_CUDA(name, is_gru)                                       \
    namespace {                                                                \
    bool fits(const tdm_kernel_desc *desc, tdm_kernel_fit *fit) {              \
        return tdm_cuda::recurrent_fits(desc, fit, is_gru);                    \
    }                                                                          \
    template <class Number> tdm_status forward(const tdm_kernel_args *args) {  \
        return tdm_cuda::recurrent_forward_of<Number>(args, is_gru);           \
    }                                                                          \
    template <class Number> tdm_status backward(const tdm_kernel_args *args) { \
        return tdm_cuda::recurrent_backward_of<Number>(args, is_gru);          \
    }                                                                          \
    }                                                                          \
    using namespace tdm_cuda;                                                  \
    TDM_CUDA_KERNEL(name, fits)

#endif
