/* libcudnn.so.9, played: convolutions of floats and of bf16 in 2 dimensions, NCHW or NHWC, with groups, strides,
 * padding and dilation, computed in double.
 *
 * As the real one it offers several algorithms, best first, some of which want a workspace and some of which add up in
 * no fixed order (these are not steady here); and unless the descriptor says CUDNN_FMA_MATH, factors are rounded to
 * tf32. */
#include "fake_convolution.h"
#include "fake_library.h"

#include <array>
#include <atomic>
#include <cstdio>
#include <vector>

#include <cudnn.h>

struct cudnnContext {
    cudaStream_t stream;
};
struct cudnnTensorStruct : fake::shape4 {};
struct cudnnFilterStruct : fake::shape4 {};
struct cudnnConvolutionStruct : fake::manner {};
struct cudnnActivationStruct {
    cudnnActivationMode_t mode;
    cudnnNanPropagation_t nan;
    bool set;
};

namespace {

using namespace fake;

/* ---- descriptors ---- */

template <class Made> cudnnStatus_t make(Made **out, const Made &from = Made()) {
    if (out == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    *out = nullptr;
    if (cuda_emulated_fails_now()) return CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
    *out = new Made(from);
    alive().add(*out);
    return CUDNN_STATUS_SUCCESS;
}

template <class Made> cudnnStatus_t destroy(Made *one) {
    if (!alive().remove(one)) return CUDNN_STATUS_BAD_PARAM;
    delete one;
    return cuda_emulated_fails_now() ? CUDNN_STATUS_INTERNAL_ERROR : CUDNN_STATUS_SUCCESS;
}

/* The beginning of every call. */
cudnnStatus_t enter(std::initializer_list<const void *> objects) {
    for (const void *one : objects) {
        if (one == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
        if (!alive().has(one)) return CUDNN_STATUS_BAD_PARAM;
    }
    return cuda_emulated_fails_now() ? CUDNN_STATUS_INTERNAL_ERROR : CUDNN_STATUS_SUCCESS;
}
#define ENTER(...)                                             \
    do {                                                       \
        const cudnnStatus_t entered_ = enter({__VA_ARGS__});   \
        if (entered_ != CUDNN_STATUS_SUCCESS) return entered_; \
    } while (0)
#define TRY(expression)                                    \
    do {                                                   \
        const cudnnStatus_t tried_ = (expression);         \
        if (tried_ != CUDNN_STATUS_SUCCESS) return tried_; \
    } while (0)

cudnnStatus_t set_shape(shape4 *to, cudnnDataType_t type, cudnnTensorFormat_t format, std::array<int64_t, 4> dim) {
    if (type != CUDNN_DATA_FLOAT && type != CUDNN_DATA_BFLOAT16) return CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE;
    if (format != CUDNN_TENSOR_NCHW && format != CUDNN_TENSOR_NHWC) return CUDNN_STATUS_NOT_SUPPORTED_LAYOUT;
    for (int64_t one : dim) {
        if (one < 1) return CUDNN_STATUS_BAD_PARAM;
    }
    to->dim = dim;
    to->kind = type == CUDNN_DATA_BFLOAT16 ? kind::bf16 : kind::floats;
    if (format == CUDNN_TENSOR_NCHW) {
        to->stride = {dim[C] * dim[H] * dim[W], dim[H] * dim[W], dim[W], 1};
    } else {
        to->stride = {dim[C] * dim[H] * dim[W], 1, dim[W] * dim[C], dim[C]};
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t set_strided(shape4 *to, cudnnDataType_t type, std::array<int64_t, 4> dim, std::array<int64_t, 4> stride) {
    TRY(set_shape(to, type, CUDNN_TENSOR_NCHW, dim));
    for (int64_t one : stride) {
        if (one < 1) return CUDNN_STATUS_BAD_PARAM;
    }
    to->stride = stride;
    return CUDNN_STATUS_SUCCESS;
}

std::array<int64_t, 4> four(const int *from) {
    return {from[0], from[1], from[2], from[3]};
}

size_t extent(const shape4 &s) {
    int64_t last = 0;
    for (size_t i = 0; i < 4; i++) last += (s.dim[i] - 1) * s.stride[i];
    return static_cast<size_t>(last + 1) * fake::size_of(s.kind);
}

bool reaches(const void *pointer, const shape4 &s) {
    return pointer != nullptr && cuda_emulated_reachable(pointer, extent(s));
}

/* ---- results ---- */

/* to = alpha sums + beta to, then what `last` makes of it: last(value, n, c, h, w). */
template <class Last>
void scatter(const convolution &c, const std::vector<double> &sums, float alpha, float beta, void *to, const shape4 &s,
             Last last) {
    size_t index = 0;
    for (int64_t n = 0; n < s.dim[N]; n++)
        for (int64_t channel = 0; channel < s.dim[C]; channel++)
            for (int64_t h = 0; h < s.dim[H]; h++)
                for (int64_t w = 0; w < s.dim[W]; w++) {
                    const int64_t one = at(s, n, channel, h, w);
                    double value = static_cast<double>(alpha) * sums[index++];
                    if (beta != 0) {
                        value += static_cast<double>(beta) * static_cast<double>(fake::number_at(to, s.kind, one));
                    }
                    const float out = static_cast<float>(last(value, n, channel, h, w));
                    fake::set_number(to, s.kind, one, c.steady ? out : fake::unsteady(out, s.kind, c.run));
                }
}

double as_it_is(double value, int64_t, int64_t, int64_t, int64_t) {
    return value;
}

/* ---- algorithms ---- */

struct offer {
    int algorithm;
    bool steady;
    bool workspace;
};
const offer forward_offers[] = {{CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED, true, true},
                                {CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, true, true},
                                {CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, true, false}};
const offer data_offers[] = {{CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, false, false},
                             {CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD_NONFUSED, true, true},
                             {CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, true, true}};
const offer filter_offers[] = {{CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0, false, false},
                               {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3, false, true},
                               {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, true, true}};

/* Winograd's are for 3 x 3, not dilated, without strides and groups. */
bool takes(const offer &o, const convolution &c, int winograd) {
    if (o.algorithm != winograd) return true;
    return c.w.dim[H] == 3 && c.w.dim[W] == 3 && c.how.stride[0] == 1 && c.how.stride[1] == 1 && c.how.groups == 1 &&
           c.how.dilation[0] == 1 && c.how.dilation[1] == 1;
}

size_t workspace_of(const offer &o, const convolution &c) {
    return o.workspace ? 256 + static_cast<size_t>(c.w.dim[K] * c.w.dim[C] * c.w.dim[H] * c.w.dim[W]) * sizeof(float)
                       : 0;
}

template <size_t count>
const offer *find_offer(const offer (&offers)[count], int algorithm, const convolution &c, int winograd) {
    for (const offer &one : offers) {
        if (one.algorithm == algorithm && takes(one, c, winograd)) return &one;
    }
    return nullptr;
}

template <class Result, size_t count>
cudnnStatus_t list_offers(const offer (&offers)[count], const convolution &c, int winograd, int wanted, int *found,
                          Result *results) {
    if (found == nullptr || results == nullptr || wanted < 1) return CUDNN_STATUS_BAD_PARAM;
    *found = 0;
    TRY(check(c));
    for (const offer &one : offers) {
        if (*found == wanted) break;
        Result &r = results[(*found)++];
        r = Result();
        r.algo = static_cast<decltype(r.algo)>(one.algorithm);
        r.status = takes(one, c, winograd) ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_SUPPORTED;
        r.time = -1; /* a heuristic does not measure */
        r.memory = workspace_of(one, c);
        r.determinism = one.steady ? CUDNN_DETERMINISTIC : CUDNN_NON_DETERMINISTIC;
        r.mathType = c.how.math;
    }
    return CUDNN_STATUS_SUCCESS;
}

enum {
    forward_winograd = CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED,
    data_winograd = CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD_NONFUSED,
    filter_winograd = CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED
};

/* Offered, and refused when it is run: CUDNN_EMULATED_REFUSES has words like "fused:1" and "dw:*", of a call and the
 * number of an algorithm, CUDNN_EMULATED_STATUS the number of what it says then. */
bool refuses(const std::string &call, int algorithm) {
    static const char variable[] = "CUDNN_EMULATED_REFUSES";
    return listed(variable, call + ":" + std::to_string(algorithm)) || listed(variable, call + ":*");
}

/* In the fused relu: CUDNN_EMULATED_DROPS_NAN has the numbers of algorithms. */
bool drops_nan(int algorithm) {
    return listed("CUDNN_EMULATED_DROPS_NAN", std::to_string(algorithm));
}

template <size_t count>
cudnnStatus_t choose(convolution *c, const char *call, const offer (&offers)[count], int winograd, int algorithm,
                     void *workspace, size_t bytes) {
    static std::atomic<unsigned> runs;
    TRY(check(*c));
    const offer *chosen = find_offer(offers, algorithm, *c, winograd);
    if (chosen == nullptr) return CUDNN_STATUS_NOT_SUPPORTED;
    if (refuses(call, algorithm)) {
        return static_cast<cudnnStatus_t>(number_in("CUDNN_EMULATED_STATUS", CUDNN_STATUS_NOT_SUPPORTED));
    }
    const size_t needs = workspace_of(*chosen, *c);
    if (bytes < needs) return CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT;
    if (bytes > 0 && workspace == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    if (needs > 0 && !cuda_emulated_reachable(workspace, bytes)) return CUDNN_STATUS_BAD_PARAM;
    c->steady = chosen->steady;
    c->run = runs++;
    c->workspace = workspace;
    c->workspace_bytes = needs;
    return CUDNN_STATUS_SUCCESS;
}

convolution join(const shape4 &x, const shape4 &w, const shape4 &y, const manner &how) {
    return {x, w, y, how, true, 0, nullptr, 0};
}

cudnnStatus_t queue(cudnnHandle_t handle, std::function<void()> work) {
    const cudaError_t error = cuda_emulated::enqueue(handle->stream, std::move(work));
    return error == cudaSuccess ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_EXECUTION_FAILED;
}

float number(const void *scale) {
    return *static_cast<const float *>(scale);
}

} // namespace

/* ---- the interface: handles and descriptors ---- */

size_t cudnnGetVersion() {
    return CUDNN_VERSION;
}

const char *cudnnGetErrorString(cudnnStatus_t status) {
    switch (status) {
    case CUDNN_STATUS_SUCCESS:
        return "CUDNN_STATUS_SUCCESS";
    case CUDNN_STATUS_NOT_INITIALIZED:
        return "CUDNN_STATUS_NOT_INITIALIZED";
    case CUDNN_STATUS_BAD_PARAM:
        return "CUDNN_STATUS_BAD_PARAM";
    case CUDNN_STATUS_BAD_PARAM_NULL_POINTER:
        return "CUDNN_STATUS_BAD_PARAM_NULL_POINTER";
    case CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT:
        return "CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT";
    case CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH:
        return "CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH";
    case CUDNN_STATUS_NOT_SUPPORTED:
        return "CUDNN_STATUS_NOT_SUPPORTED";
    case CUDNN_STATUS_INTERNAL_ERROR:
        return "CUDNN_STATUS_INTERNAL_ERROR";
    case CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED:
        return "CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED";
    case CUDNN_STATUS_EXECUTION_FAILED:
        return "CUDNN_STATUS_EXECUTION_FAILED";
    default:
        return "CUDNN_STATUS_OTHER";
    }
}

void cudnnGetLastErrorString(char *message, size_t bytes) {
    if (bytes > 0) std::snprintf(message, bytes, "the fake cuDNN keeps no message");
}

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle) {
    return make(handle);
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
    return destroy(handle);
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
    ENTER(handle);
    handle->stream = stream;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, cudaStream_t *stream) {
    ENTER(handle);
    *stream = handle->stream;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t *out) {
    return make(out);
}

cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t desc, cudnnTensorFormat_t format, cudnnDataType_t type,
                                         int n, int c, int h, int w) {
    ENTER(desc);
    return set_shape(desc, type, format, {n, c, h, w});
}

cudnnStatus_t cudnnSetTensor4dDescriptorEx(cudnnTensorDescriptor_t desc, cudnnDataType_t type, int n, int c, int h,
                                           int w, int n_stride, int c_stride, int h_stride, int w_stride) {
    ENTER(desc);
    return set_strided(desc, type, {n, c, h, w}, {n_stride, c_stride, h_stride, w_stride});
}

cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t desc, cudnnDataType_t type, int dims, const int dim[],
                                         const int stride[]) {
    ENTER(desc);
    if (dims != 4) return CUDNN_STATUS_NOT_SUPPORTED_SHAPE;
    return set_strided(desc, type, four(dim), four(stride));
}

cudnnStatus_t cudnnSetTensorNdDescriptorEx(cudnnTensorDescriptor_t desc, cudnnTensorFormat_t format,
                                           cudnnDataType_t type, int dims, const int dim[]) {
    ENTER(desc);
    return dims == 4 ? set_shape(desc, type, format, four(dim)) : CUDNN_STATUS_NOT_SUPPORTED_SHAPE;
}

cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t desc) {
    return destroy(desc);
}

cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t *out) {
    return make(out);
}

cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t desc, cudnnDataType_t type, cudnnTensorFormat_t format,
                                         int k, int c, int h, int w) {
    ENTER(desc);
    return set_shape(desc, type, format, {k, c, h, w});
}

cudnnStatus_t cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t desc, cudnnDataType_t type, cudnnTensorFormat_t format,
                                         int dims, const int dim[]) {
    ENTER(desc);
    return dims == 4 ? set_shape(desc, type, format, four(dim)) : CUDNN_STATUS_NOT_SUPPORTED_SHAPE;
}

cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t desc) {
    return destroy(desc);
}

cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t *out) {
    return make(out);
}

cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t desc, int pad_h, int pad_w, int stride_h,
                                              int stride_w, int dilation_h, int dilation_w, cudnnConvolutionMode_t mode,
                                              cudnnDataType_t compute) {
    ENTER(desc);
    if (compute != CUDNN_DATA_FLOAT) return CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE;
    if (pad_h < 0 || pad_w < 0 || stride_h < 1 || stride_w < 1 || dilation_h < 1 || dilation_w < 1) {
        return CUDNN_STATUS_BAD_PARAM;
    }
    static_cast<manner &>(*desc) = {
        {pad_h, pad_w}, {stride_h, stride_w}, {dilation_h, dilation_w}, 1, mode, CUDNN_DEFAULT_MATH, true};
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t desc, cudnnMathType_t math) {
    ENTER(desc);
    desc->math = math;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t desc, int groups) {
    ENTER(desc);
    if (groups < 1) return CUDNN_STATUS_BAD_PARAM;
    desc->groups = groups;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t desc) {
    return destroy(desc);
}

cudnnStatus_t cudnnCreateActivationDescriptor(cudnnActivationDescriptor_t *out) {
    return make(out);
}

cudnnStatus_t cudnnSetActivationDescriptor(cudnnActivationDescriptor_t desc, cudnnActivationMode_t mode,
                                           cudnnNanPropagation_t nan, double) {
    ENTER(desc);
    *desc = {mode, nan, true};
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroyActivationDescriptor(cudnnActivationDescriptor_t desc) {
    return destroy(desc);
}

/* ---- the interface: algorithms ---- */

cudnnStatus_t cudnnGetConvolution2dForwardOutputDim(cudnnConvolutionDescriptor_t conv, cudnnTensorDescriptor_t x,
                                                    cudnnFilterDescriptor_t w, int *n, int *c, int *h, int *width) {
    ENTER(conv, x, w);
    const convolution joined = join(*x, *w, *x, *conv);
    if (x->dim[C] != w->dim[C] * conv->groups) return CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH;
    *n = static_cast<int>(x->dim[N]);
    *c = static_cast<int>(w->dim[K]);
    *h = static_cast<int>(out_size(joined, 0));
    *width = static_cast<int>(out_size(joined, 1));
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(cudnnHandle_t handle, cudnnTensorDescriptor_t x,
                                                     cudnnFilterDescriptor_t w, cudnnConvolutionDescriptor_t conv,
                                                     cudnnTensorDescriptor_t y, int wanted, int *count,
                                                     cudnnConvolutionFwdAlgoPerf_t *results) {
    ENTER(handle, x, w, conv, y);
    return list_offers(forward_offers, join(*x, *w, *y, *conv), forward_winograd, wanted, count, results);
}

cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(cudnnHandle_t handle, cudnnFilterDescriptor_t w,
                                                          cudnnTensorDescriptor_t dy, cudnnConvolutionDescriptor_t conv,
                                                          cudnnTensorDescriptor_t dx, int wanted, int *count,
                                                          cudnnConvolutionBwdDataAlgoPerf_t *results) {
    ENTER(handle, w, dy, conv, dx);
    return list_offers(data_offers, join(*dx, *w, *dy, *conv), data_winograd, wanted, count, results);
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(cudnnHandle_t handle, cudnnTensorDescriptor_t x,
                                                            cudnnTensorDescriptor_t dy,
                                                            cudnnConvolutionDescriptor_t conv,
                                                            cudnnFilterDescriptor_t dw, int wanted, int *count,
                                                            cudnnConvolutionBwdFilterAlgoPerf_t *results) {
    ENTER(handle, x, dy, conv, dw);
    return list_offers(filter_offers, join(*x, *dw, *dy, *conv), filter_winograd, wanted, count, results);
}

namespace {
template <size_t count>
cudnnStatus_t tell_workspace(const offer (&offers)[count], const convolution &c, int algorithm, int winograd,
                             size_t *bytes) {
    if (bytes == nullptr) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    TRY(check(c));
    const offer *one = find_offer(offers, algorithm, c, winograd);
    if (one == nullptr) return CUDNN_STATUS_NOT_SUPPORTED;
    *bytes = workspace_of(*one, c);
    return CUDNN_STATUS_SUCCESS;
}
} // namespace

cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(cudnnHandle_t handle, cudnnTensorDescriptor_t x,
                                                      cudnnFilterDescriptor_t w, cudnnConvolutionDescriptor_t conv,
                                                      cudnnTensorDescriptor_t y, cudnnConvolutionFwdAlgo_t algo,
                                                      size_t *bytes) {
    ENTER(handle, x, w, conv, y);
    return tell_workspace(forward_offers, join(*x, *w, *y, *conv), algo, forward_winograd, bytes);
}

cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(cudnnHandle_t handle, cudnnFilterDescriptor_t w,
                                                           cudnnTensorDescriptor_t dy,
                                                           cudnnConvolutionDescriptor_t conv,
                                                           cudnnTensorDescriptor_t dx,
                                                           cudnnConvolutionBwdDataAlgo_t algo, size_t *bytes) {
    ENTER(handle, w, dy, conv, dx);
    return tell_workspace(data_offers, join(*dx, *w, *dy, *conv), algo, data_winograd, bytes);
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(cudnnHandle_t handle, cudnnTensorDescriptor_t x,
                                                             cudnnTensorDescriptor_t dy,
                                                             cudnnConvolutionDescriptor_t conv,
                                                             cudnnFilterDescriptor_t dw,
                                                             cudnnConvolutionBwdFilterAlgo_t algo, size_t *bytes) {
    ENTER(handle, x, dy, conv, dw);
    return tell_workspace(filter_offers, join(*x, *dw, *dy, *conv), algo, filter_winograd, bytes);
}

/* ---- the interface: convolutions ---- */

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void *alpha, cudnnTensorDescriptor_t x_desc,
                                      const void *x, cudnnFilterDescriptor_t w_desc, const void *w,
                                      cudnnConvolutionDescriptor_t conv, cudnnConvolutionFwdAlgo_t algo,
                                      void *workspace, size_t workspace_bytes, const void *beta,
                                      cudnnTensorDescriptor_t y_desc, void *y) {
    ENTER(handle, x_desc, w_desc, conv, y_desc);
    convolution c = join(*x_desc, *w_desc, *y_desc, *conv);
    TRY(choose(&c, "forward", forward_offers, forward_winograd, algo, workspace, workspace_bytes));
    if (alpha == nullptr || beta == nullptr || !reaches(x, c.x) || !reaches(w, c.w) || !reaches(y, c.y)) {
        return CUDNN_STATUS_BAD_PARAM;
    }
    return queue(handle, [=, scale = number(alpha), keep = number(beta)] {
        fake::use_workspace(c.workspace, c.workspace_bytes);
        scatter(c, forward_sums(c, x, w), scale, keep, y, c.y, as_it_is);
    });
}

cudnnStatus_t cudnnConvolutionBiasActivationForward(
    cudnnHandle_t handle, const void *alpha1, cudnnTensorDescriptor_t x_desc, const void *x,
    cudnnFilterDescriptor_t w_desc, const void *w, cudnnConvolutionDescriptor_t conv, cudnnConvolutionFwdAlgo_t algo,
    void *workspace, size_t workspace_bytes, const void *alpha2, cudnnTensorDescriptor_t z_desc, const void *z,
    cudnnTensorDescriptor_t bias_desc, const void *bias, cudnnActivationDescriptor_t activation,
    cudnnTensorDescriptor_t y_desc, void *y) {
    ENTER(handle, x_desc, w_desc, conv, z_desc, bias_desc, activation, y_desc);
    convolution c = join(*x_desc, *w_desc, *y_desc, *conv);
    const shape4 z_shape = *z_desc, bias_shape = *bias_desc;
    TRY(choose(&c, "fused", forward_offers, forward_winograd, algo, workspace, workspace_bytes));
    if (z_shape.dim != c.y.dim || bias_shape.dim != std::array<int64_t, 4>{1, c.y.dim[C], 1, 1}) {
        return CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH;
    }
    /* The table under cudnnConvolutionBiasActivationForward: z and the bias are of y's type, in bf16 too. */
    if (z_shape.kind != c.y.kind || bias_shape.kind != c.y.kind) return CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE;
    const bool relu = activation->mode == CUDNN_ACTIVATION_RELU;
    const bool keeps_nan = activation->nan == CUDNN_PROPAGATE_NAN && !drops_nan(algo);
    if (!activation->set || (!relu && activation->mode != CUDNN_ACTIVATION_IDENTITY)) return CUDNN_STATUS_NOT_SUPPORTED;
    if (!relu && algo != CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM) return CUDNN_STATUS_NOT_SUPPORTED;
    if (alpha1 == nullptr || alpha2 == nullptr || !reaches(x, c.x) || !reaches(w, c.w) || !reaches(y, c.y) ||
        !reaches(z, z_shape) || !reaches(bias, bias_shape)) {
        return CUDNN_STATUS_BAD_PARAM;
    }
    return queue(handle, [=, scale = number(alpha1), add = number(alpha2)] {
        fake::use_workspace(c.workspace, c.workspace_bytes);
        scatter(c, forward_sums(c, x, w), scale, 0, y, c.y,
                [&](double value, int64_t n, int64_t channel, int64_t h, int64_t column) {
                    if (add != 0) {
                        const int64_t place = at(z_shape, n, channel, h, column);
                        value += static_cast<double>(add) * static_cast<double>(number_at(z, z_shape.kind, place));
                    }
                    const int64_t place = channel * bias_shape.stride[C];
                    value += static_cast<double>(number_at(bias, bias_shape.kind, place));
                    if (!relu || (std::isnan(value) && keeps_nan)) return value;
                    return value > 0 ? value : 0;
                });
    });
}

cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void *alpha, cudnnFilterDescriptor_t w_desc,
                                           const void *w, cudnnTensorDescriptor_t dy_desc, const void *dy,
                                           cudnnConvolutionDescriptor_t conv, cudnnConvolutionBwdDataAlgo_t algo,
                                           void *workspace, size_t workspace_bytes, const void *beta,
                                           cudnnTensorDescriptor_t dx_desc, void *dx) {
    ENTER(handle, w_desc, dy_desc, conv, dx_desc);
    convolution c = join(*dx_desc, *w_desc, *dy_desc, *conv);
    TRY(choose(&c, "dx", data_offers, data_winograd, algo, workspace, workspace_bytes));
    if (alpha == nullptr || beta == nullptr || !reaches(w, c.w) || !reaches(dy, c.y) || !reaches(dx, c.x)) {
        return CUDNN_STATUS_BAD_PARAM;
    }
    return queue(handle, [=, scale = number(alpha), keep = number(beta)] {
        fake::use_workspace(c.workspace, c.workspace_bytes);
        scatter(c, data_sums(c, w, dy), scale, keep, dx, c.x, as_it_is);
    });
}

cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void *alpha, cudnnTensorDescriptor_t x_desc,
                                             const void *x, cudnnTensorDescriptor_t dy_desc, const void *dy,
                                             cudnnConvolutionDescriptor_t conv, cudnnConvolutionBwdFilterAlgo_t algo,
                                             void *workspace, size_t workspace_bytes, const void *beta,
                                             cudnnFilterDescriptor_t dw_desc, void *dw) {
    ENTER(handle, x_desc, dy_desc, conv, dw_desc);
    convolution c = join(*x_desc, *dw_desc, *dy_desc, *conv);
    TRY(choose(&c, "dw", filter_offers, filter_winograd, algo, workspace, workspace_bytes));
    if (alpha == nullptr || beta == nullptr || !reaches(x, c.x) || !reaches(dy, c.y) || !reaches(dw, c.w)) {
        return CUDNN_STATUS_BAD_PARAM;
    }
    return queue(handle, [=, scale = number(alpha), keep = number(beta)] {
        fake::use_workspace(c.workspace, c.workspace_bytes);
        scatter(c, filter_sums(c, x, dy), scale, keep, dw, c.w, as_it_is);
    });
}

cudnnStatus_t cudnnConvolutionBackwardBias(cudnnHandle_t handle, const void *alpha, cudnnTensorDescriptor_t dy_desc,
                                           const void *dy, const void *beta, cudnnTensorDescriptor_t db_desc,
                                           void *db) {
    ENTER(handle, dy_desc, db_desc);
    const shape4 from = *dy_desc, to = *db_desc;
    if (to.dim != std::array<int64_t, 4>{1, from.dim[C], 1, 1}) return CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH;
    if (alpha == nullptr || beta == nullptr || !reaches(dy, from) || !reaches(db, to)) return CUDNN_STATUS_BAD_PARAM;
    return queue(handle, [=, scale = number(alpha), keep = number(beta)] {
        std::vector<double> sums = zeros(to);
        for (int64_t n = 0; n < from.dim[N]; n++)
            for (int64_t c = 0; c < from.dim[C]; c++)
                for (int64_t h = 0; h < from.dim[H]; h++)
                    for (int64_t w = 0; w < from.dim[W]; w++) {
                        sums[static_cast<size_t>(c)] +=
                            static_cast<double>(number_at(dy, from.kind, at(from, n, c, h, w)));
                    }
        const convolution steady = join(from, from, from, manner());
        scatter(steady, sums, scale, keep, db, to, as_it_is);
    });
}
