/* conv2d by cuDNN. Descriptors and algorithms are made once at open, by cuDNN's heuristics and never by timing, which
 * would choose differently from run to run.
 *
 * Algorithms with larger rounding errors (Winograd, FFT) are left out unless `parallel.kernels: fast` asks for them, as
 * on the CPU: they do not follow PyTorch's loss curve. */
#include <limits.h>
#include <stdlib.h>

#include <tandem/job.h>

#include "ops/conv2d/conv2d_cuda.h"
#include "runtime/device/cuda/cuda_private.h"

#ifdef TDM_CUDA_NO_CUDNN

tdm_status tdm__conv_cudnn_open(tdm_conv_way **out, tdm_cuda_device *device, const tdm_conv_sizes *sizes) {
    (void)device;
    (void)sizes;
    *out = NULL;
    return TDM_OK;
}

#else

enum { CANDIDATES = 16 };
static const size_t most_workspace = (size_t)512 << 20;
static const float one = 1.0f, zero = 0.0f;

typedef enum { FORWARD, BACKWARD_DATA, BACKWARD_WEIGHTS, PASSES } pass;

typedef struct {
    tdm_conv_way way;
    cudnnTensorDescriptor_t x, y, bias;
    cudnnFilterDescriptor_t weights;
    cudnnActivationDescriptor_t activation;
    cudnnConvolutionDescriptor_t convolution[PASSES]; /* they differ in what their algorithm may round to */
    cudnnConvolutionFwdAlgo_t forward;
    cudnnConvolutionBwdDataAlgo_t backward_data;
    cudnnConvolutionBwdFilterAlgo_t backward_weights;
    size_t workspace_bytes[PASSES];
    bool fused; /* bias and relu in the same call; tried at the first run, cuDNN has no question for it */
} convolution;

static const tdm_cuda_libraries *library(const convolution *c) {
    return c->way.device->libraries;
}

static cudnnHandle_t handle(const convolution *c) {
    return (cudnnHandle_t)c->way.device->dnn;
}

static void close_way(tdm_conv_way *way) {
    convolution *c = (convolution *)way;
    const tdm_cudnn *dnn = &library(c)->dnn;
    for (int i = 0; i < PASSES; i++)
        if (c->convolution[i] != NULL) (void)dnn->cudnnDestroyConvolutionDescriptor(c->convolution[i]);
    if (c->activation != NULL) (void)dnn->cudnnDestroyActivationDescriptor(c->activation);
    if (c->weights != NULL) (void)dnn->cudnnDestroyFilterDescriptor(c->weights);
    if (c->bias != NULL) (void)dnn->cudnnDestroyTensorDescriptor(c->bias);
    if (c->y != NULL) (void)dnn->cudnnDestroyTensorDescriptor(c->y);
    if (c->x != NULL) (void)dnn->cudnnDestroyTensorDescriptor(c->x);
    free(c);
}

/* ---- descriptors ---- */

static cudnnDataType_t type_of(const convolution *c) {
    return c->way.sizes.number == TDM_CUDA_BF16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
}

static tdm_status open_tensor(const convolution *c, cudnnTensorDescriptor_t *out, int64_t rows, int64_t channels,
                              int64_t height, int64_t width) {
    const cudnnTensorFormat_t format = c->way.sizes.nhwc ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW;
    TDM_CUDNN(library(c), cudnnCreateTensorDescriptor(out));
    TDM_CUDNN(library(c),
              cudnnSetTensor4dDescriptor(*out, format, type_of(c), (int)rows, (int)channels, (int)height, (int)width));
    return TDM_OK;
}

/* cuDNN's default on tensor cores is tf32 for floats, and does not speak of bf16; "allow conversion" would mean half
 * precision, whose range is too small. Sums are float's in all. */
static cudnnMathType_t math_of(const convolution *c) {
    if (c->way.sizes.number == TDM_CUDA_BF16) return CUDNN_TENSOR_OP_MATH;
    return c->way.device->precision == TDM_TF32 ? CUDNN_DEFAULT_MATH : CUDNN_FMA_MATH;
}

static tdm_status open_convolution(const convolution *c, cudnnConvolutionDescriptor_t *out) {
    const tdm_window *w = &c->way.sizes.window;
    TDM_CUDNN(library(c), cudnnCreateConvolutionDescriptor(out));
    TDM_CUDNN(library(c), cudnnSetConvolution2dDescriptor(
                              *out, (int)w->padding[0], (int)w->padding[1], (int)w->stride[0], (int)w->stride[1],
                              (int)w->dilation[0], (int)w->dilation[1], CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
    TDM_CUDNN(library(c), cudnnSetConvolutionGroupCount(*out, (int)c->way.sizes.groups));
    TDM_CUDNN(library(c), cudnnSetConvolutionMathType(*out, math_of(c)));
    return TDM_OK;
}

static tdm_status describe(convolution *c) {
    const tdm_conv_sizes *s = &c->way.sizes;
    const cudnnTensorFormat_t format = s->nhwc ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW;
    TDM_CUDA_TRY(open_tensor(c, &c->x, s->rows, s->stored, s->height, s->width));
    TDM_CUDA_TRY(open_tensor(c, &c->y, s->rows, s->out, s->out_height, s->out_width));
    TDM_CUDA_TRY(open_tensor(c, &c->bias, 1, s->out, 1, 1));
    TDM_CUDNN(library(c), cudnnCreateFilterDescriptor(&c->weights));
    TDM_CUDNN(library(c),
              cudnnSetFilter4dDescriptor(c->weights, type_of(c), format, (int)s->out, (int)(s->stored / s->groups),
                                         (int)s->window.kernel[0], (int)s->window.kernel[1]));
    TDM_CUDNN(library(c), cudnnCreateActivationDescriptor(&c->activation));
    TDM_CUDNN(library(c),
              cudnnSetActivationDescriptor(c->activation, s->relu ? CUDNN_ACTIVATION_RELU : CUDNN_ACTIVATION_IDENTITY,
                                           CUDNN_PROPAGATE_NAN, 0.0));
    for (int i = 0; i < PASSES; i++) TDM_CUDA_TRY(open_convolution(c, &c->convolution[i]));
    return TDM_OK;
}

/* ---- the choice of algorithms ---- */

/* What a candidate may round to: the heuristics also offer more than was asked for. */
static bool rounds_as_wished(const convolution *c, cudnnMathType_t math) {
    return math_of(c) == CUDNN_FMA_MATH ? math == CUDNN_FMA_MATH : math != CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION;
}

/* cuDNN 9 says in the last digits why it does not support or accept something. */
static bool is_refusal(cudnnStatus_t status) {
    const int kind = (int)status / 1000 * 1000;
    return kind == (int)CUDNN_STATUS_NOT_SUPPORTED || kind == (int)CUDNN_STATUS_BAD_PARAM;
}

static bool serves(const convolution *c, cudnnStatus_t status, cudnnDeterminism_t determinism, size_t memory,
                   bool exact) {
    return status == CUDNN_STATUS_SUCCESS && memory <= most_workspace && (exact || c->way.sizes.fast) &&
           (determinism == CUDNN_DETERMINISTIC || !c->way.device->deterministic);
}

/* Candidates of cuDNN's heuristics, best first; none where it does not do this convolution at all. */
#define ASK(c, count, call)                                                         \
    do {                                                                            \
        const cudnnStatus_t asked_ = library(c)->dnn.call;                          \
        if (is_refusal(asked_))                                                     \
            (count) = 0;                                                            \
        else if (asked_ != CUDNN_STATUS_SUCCESS)                                    \
            return tdm__cudnn_error(library(c), asked_, #call, __FILE__, __LINE__); \
    } while (0)

/* Takes the first candidate that serves. */
#define TAKE_FIRST(c, candidate, count, which, field, exact)                                                     \
    for (int i = 0; i < (count) && !*found; i++) {                                                               \
        *found = rounds_as_wished((c), (candidate)[i].mathType) &&                                               \
                 serves((c), (candidate)[i].status, (candidate)[i].determinism, (candidate)[i].memory, (exact)); \
        if (!*found) continue;                                                                                   \
        (c)->field = (candidate)[i].algo;                                                                        \
        (c)->workspace_bytes[which] = (candidate)[i].memory;                                                     \
        TDM_CUDNN(library(c), cudnnSetConvolutionMathType((c)->convolution[which], (candidate)[i].mathType));    \
    }

static tdm_status choose_forward(convolution *c, bool *found) {
    cudnnConvolutionFwdAlgoPerf_t candidate[CANDIDATES];
    int count = 0;
    *found = false;
    ASK(c, count,
        cudnnGetConvolutionForwardAlgorithm_v7(handle(c), c->x, c->weights, c->convolution[FORWARD], c->y, CANDIDATES,
                                               &count, candidate));
    TAKE_FIRST(c, candidate, count, FORWARD, forward,
               candidate[i].algo == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM ||
                   candidate[i].algo == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM ||
                   candidate[i].algo == CUDNN_CONVOLUTION_FWD_ALGO_GEMM)
    return TDM_OK;
}

static tdm_status choose_backward_data(convolution *c, bool *found) {
    cudnnConvolutionBwdDataAlgoPerf_t candidate[CANDIDATES];
    int count = 0;
    *found = false;
    ASK(c, count,
        cudnnGetConvolutionBackwardDataAlgorithm_v7(handle(c), c->weights, c->y, c->convolution[BACKWARD_DATA], c->x,
                                                    CANDIDATES, &count, candidate));
    TAKE_FIRST(c, candidate, count, BACKWARD_DATA, backward_data,
               candidate[i].algo == CUDNN_CONVOLUTION_BWD_DATA_ALGO_0 ||
                   candidate[i].algo == CUDNN_CONVOLUTION_BWD_DATA_ALGO_1)
    return TDM_OK;
}

static tdm_status choose_backward_weights(convolution *c, bool *found) {
    cudnnConvolutionBwdFilterAlgoPerf_t candidate[CANDIDATES];
    int count = 0;
    *found = false;
    ASK(c, count,
        cudnnGetConvolutionBackwardFilterAlgorithm_v7(handle(c), c->x, c->y, c->convolution[BACKWARD_WEIGHTS],
                                                      c->weights, CANDIDATES, &count, candidate));
    TAKE_FIRST(c, candidate, count, BACKWARD_WEIGHTS, backward_weights,
               candidate[i].algo == CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0 ||
                   candidate[i].algo == CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1 ||
                   candidate[i].algo == CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3)
    return TDM_OK;
}

static tdm_status choose(convolution *c, bool *found) {
    const tdm_conv_sizes *s = &c->way.sizes;
    size_t most = 0;
    TDM_CUDA_TRY(choose_forward(c, found));
    if (*found && s->training) TDM_CUDA_TRY(choose_backward_weights(c, found));
    if (*found && s->training && s->wants_dx) TDM_CUDA_TRY(choose_backward_data(c, found));
    if (!*found) return TDM_OK;
    for (int i = 0; i < PASSES; i++)
        if (c->workspace_bytes[i] > most) most = c->workspace_bytes[i];
    /* cuDNN takes the identity, a bias alone, with one algorithm only. */
    c->fused = s->bias && (s->relu || c->forward == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM);
    return tdm__cuda_workspace(c->way.device, most);
}

/* ---- running ---- */

static tdm_status forward(tdm_conv_way *way, const void *x, const void *w, const void *bias, void *y, bool *done) {
    convolution *c = (convolution *)way;
    tdm_cuda_device *device = way->device;
    *done = false;
    if (c->fused) {
        const cudnnStatus_t status = library(c)->dnn.cudnnConvolutionBiasActivationForward(
            handle(c), &one, c->x, x, c->weights, w, c->convolution[FORWARD], c->forward, device->workspace,
            c->workspace_bytes[FORWARD], &zero, c->y, y, c->bias, bias, c->activation, c->y, y);
        *done = status == CUDNN_STATUS_SUCCESS;
        if (*done) return TDM_OK;
        if (!is_refusal(status))
            return tdm__cudnn_error(library(c), status, "cudnnConvolutionBiasActivationForward", __FILE__, __LINE__);
        c->fused = false;
    }
    TDM_CUDNN(library(c),
              cudnnConvolutionForward(handle(c), &one, c->x, x, c->weights, w, c->convolution[FORWARD], c->forward,
                                      device->workspace, c->workspace_bytes[FORWARD], &zero, c->y, y));
    return TDM_OK;
}

/* The weights' gradient, which cuDNN gives in the weights' numbers. */
static tdm_status backward_weights(const convolution *c, const void *x, const void *dy, float *dw, void *scratch) {
    const tdm_conv_sizes *s = &c->way.sizes;
    tdm_cuda_device *device = c->way.device;
    const bool narrow = s->number != TDM_CUDA_FLOAT;
    void *gradient = narrow ? scratch : dw;
    TDM_CUDNN(library(c), cudnnConvolutionBackwardFilter(
                              handle(c), &one, c->x, x, c->y, dy, c->convolution[BACKWARD_WEIGHTS], c->backward_weights,
                              device->workspace, c->workspace_bytes[BACKWARD_WEIGHTS], &zero, c->weights, gradient));
    return narrow ? tdm__conv_widen(device, dw, gradient, tdm__conv_weight_count(s)) : TDM_OK;
}

static tdm_status backward(tdm_conv_way *way, const void *x, const void *w, const void *dy, float *dw, void *dx,
                           void *scratch) {
    const convolution *c = (const convolution *)way;
    TDM_CUDA_TRY(backward_weights(c, x, dy, dw, scratch));
    if (dx == NULL) return TDM_OK;
    TDM_CUDNN(library(c), cudnnConvolutionBackwardData(
                              handle(c), &one, c->weights, w, c->y, dy, c->convolution[BACKWARD_DATA], c->backward_data,
                              way->device->workspace, c->workspace_bytes[BACKWARD_DATA], &zero, c->x, dx));
    return TDM_OK;
}

/* ---- opening ---- */

static const tdm_conv_way_ops ops = {.forward = forward, .backward = backward, .close = close_way};

/* cuDNN counts in int. */
static bool is_countable(const tdm_conv_sizes *s) {
    return (double)s->rows * (double)tdm__conv_in_count(s) <= INT_MAX &&
           (double)s->rows * (double)s->out * (double)tdm__conv_points(s) <= INT_MAX &&
           (double)tdm__conv_weight_count(s) <= INT_MAX;
}

tdm_status tdm__conv_cudnn_open(tdm_conv_way **out, tdm_cuda_device *device, const tdm_conv_sizes *sizes) {
    bool found = false;
    *out = NULL;
    if (device->dnn == NULL || !is_countable(sizes)) return TDM_OK;
    convolution *c = calloc(1, sizeof *c);
    if (c == NULL) TDM_CUDA_FAIL(TDM_E_MEMORY, "conv2d: out of memory for %zu bytes of state", sizeof *c);
    c->way = (tdm_conv_way){&ops, device, *sizes};
    tdm_status status = describe(c);
    if (status == TDM_OK) status = choose(c, &found);
    if (status != TDM_OK || !found) {
        close_way(&c->way);
        return status;
    }
    *out = &c->way;
    return TDM_OK;
}

#endif
