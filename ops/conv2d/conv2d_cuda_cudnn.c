/* conv2d by cuDNN. Descriptors and algorithms are made once at open. Algorithms are chosen by cuDNN's heuristics and
 * never by timing, which would choose differently from run to run. The heuristics also offer algorithms that then
 * refuse to run, so each algorithm is run once before it is chosen.
 *
 * Algorithms with larger rounding errors (Winograd, FFT) are left out unless the job has `parallel.kernels: fast`, as
 * on the CPU: they do not follow PyTorch's loss curve. */
#include <limits.h>
#include <stdio.h>

#include <tandem/job.h>

#include "ops/conv2d/conv2d_cuda.h"
#include "ops/fused.h"
#include "runtime/backends/cuda/kit/library.h"

#ifdef TDM_CUDA_NO_CUDNN

tdm_status tdm__conv_cudnn_open(tdm_conv_method **out, tdm_cuda_device *device, const tdm_conv_sizes *sizes, char *why,
                                size_t bytes) {
    (void)device, (void)sizes;
    snprintf(why, bytes, "is not used: tandem was built without cudnn.h");
    *out = NULL;
    return TDM_OK;
}

#else

enum { CANDIDATES = 16 };
static const size_t most_workspace = (size_t)512 << 20;
static const float one = 1.0f, zero = 0.0f;

typedef enum { FORWARD, BACKWARD_DATA, BACKWARD_WEIGHTS, PASSES } pass;

typedef struct {
    tdm_conv_method method;
    cudnnTensorDescriptor_t x, y, bias;
    cudnnFilterDescriptor_t weights;
    cudnnActivationDescriptor_t activation;
    cudnnConvolutionDescriptor_t
        convolution[PASSES]; /* they differ in the precision that their algorithm may round to */
    int algorithm[PASSES];
    cudnnMathType_t math[PASSES];
    size_t workspace_bytes[PASSES];
    bool fused; /* bias and relu are part of the forward call */
} convolution;

static const char *const pass_names[PASSES] = {"forward", "dx", "dw"};

static const tdm_cuda_libraries *library(const convolution *c) {
    return c->method.device->libraries;
}

static cudnnHandle_t handle(const convolution *c) {
    return (cudnnHandle_t)c->method.device->dnn;
}

static void close_method(tdm_conv_method *method) {
    convolution *c = (convolution *)method;
    const tdm_cudnn *dnn = &library(c)->dnn;
    for (int i = 0; i < PASSES; i++)
        if (c->convolution[i] != NULL) (void)dnn->cudnnDestroyConvolutionDescriptor(c->convolution[i]);
    if (c->activation != NULL) (void)dnn->cudnnDestroyActivationDescriptor(c->activation);
    if (c->weights != NULL) (void)dnn->cudnnDestroyFilterDescriptor(c->weights);
    if (c->bias != NULL) (void)dnn->cudnnDestroyTensorDescriptor(c->bias);
    if (c->y != NULL) (void)dnn->cudnnDestroyTensorDescriptor(c->y);
    if (c->x != NULL) (void)dnn->cudnnDestroyTensorDescriptor(c->x);
    tdm__module_delete(c);
}

/* ---- descriptors ---- */

static cudnnDataType_t type_of(const convolution *c) {
    return c->method.sizes.number == TDM_CUDA_BF16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
}

static tdm_status open_tensor(const convolution *c, cudnnTensorDescriptor_t *out, int64_t rows, int64_t channels,
                              int64_t height, int64_t width) {
    const cudnnTensorFormat_t format = c->method.sizes.nhwc ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW;
    TDM_CUDNN(library(c), cudnnCreateTensorDescriptor(out));
    TDM_CUDNN(library(c),
              cudnnSetTensor4dDescriptor(*out, format, type_of(c), (int)rows, (int)channels, (int)height, (int)width));
    return TDM_OK;
}

/* cuDNN's default math on tensor cores is tf32 for floats and leaves bf16 alone. "Allow conversion" would mean half
 * precision, whose range is too small. Sums are in float in every case. */
static cudnnMathType_t math_of(const convolution *c) {
    if (c->method.sizes.number == TDM_CUDA_BF16) return CUDNN_TENSOR_OP_MATH;
    return c->method.device->precision == TDM_TF32 ? CUDNN_DEFAULT_MATH : CUDNN_FMA_MATH;
}

static tdm_status open_convolution(const convolution *c, cudnnConvolutionDescriptor_t *out) {
    const tdm_window *w = &c->method.sizes.window;
    TDM_CUDNN(library(c), cudnnCreateConvolutionDescriptor(out));
    TDM_CUDNN(library(c), cudnnSetConvolution2dDescriptor(
                              *out, (int)w->padding[0], (int)w->padding[1], (int)w->stride[0], (int)w->stride[1],
                              (int)w->dilation[0], (int)w->dilation[1], CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
    TDM_CUDNN(library(c), cudnnSetConvolutionGroupCount(*out, (int)c->method.sizes.groups));
    TDM_CUDNN(library(c), cudnnSetConvolutionMathType(*out, math_of(c)));
    return TDM_OK;
}

static tdm_status describe(convolution *c) {
    const tdm_conv_sizes *s = &c->method.sizes;
    const cudnnTensorFormat_t format = s->nhwc ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW;
    TDM_MODULE_TRY(open_tensor(c, &c->x, s->rows, s->stored, s->height, s->width));
    TDM_MODULE_TRY(open_tensor(c, &c->y, s->rows, s->out, s->out_height, s->out_width));
    TDM_MODULE_TRY(open_tensor(c, &c->bias, 1, s->out, 1, 1));
    TDM_CUDNN(library(c), cudnnCreateFilterDescriptor(&c->weights));
    TDM_CUDNN(library(c),
              cudnnSetFilter4dDescriptor(c->weights, type_of(c), format, (int)s->out, (int)(s->stored / s->groups),
                                         (int)s->window.kernel[0], (int)s->window.kernel[1]));
    TDM_CUDNN(library(c), cudnnCreateActivationDescriptor(&c->activation));
    TDM_CUDNN(library(c),
              cudnnSetActivationDescriptor(c->activation, s->relu ? CUDNN_ACTIVATION_RELU : CUDNN_ACTIVATION_IDENTITY,
                                           CUDNN_PROPAGATE_NAN, 0.0));
    for (int i = 0; i < PASSES; i++) TDM_MODULE_TRY(open_convolution(c, &c->convolution[i]));
    return TDM_OK;
}

/* ---- calls ---- */

static cudnnStatus_t start_fused(const convolution *c, const void *x, const void *w, const void *bias, void *y) {
    return library(c)->dnn.cudnnConvolutionBiasActivationForward(
        handle(c), &one, c->x, x, c->weights, w, c->convolution[FORWARD],
        (cudnnConvolutionFwdAlgo_t)c->algorithm[FORWARD], c->method.device->workspace, c->workspace_bytes[FORWARD],
        &zero, c->y, y, c->bias, bias, c->activation, c->y, y);
}

static cudnnStatus_t start_forward(const convolution *c, const void *x, const void *w, void *y) {
    return library(c)->dnn.cudnnConvolutionForward(handle(c), &one, c->x, x, c->weights, w, c->convolution[FORWARD],
                                                   (cudnnConvolutionFwdAlgo_t)c->algorithm[FORWARD],
                                                   c->method.device->workspace, c->workspace_bytes[FORWARD], &zero,
                                                   c->y, y);
}

static cudnnStatus_t start_dx(const convolution *c, const void *w, const void *dy, void *dx) {
    return library(c)->dnn.cudnnConvolutionBackwardData(
        handle(c), &one, c->weights, w, c->y, dy, c->convolution[BACKWARD_DATA],
        (cudnnConvolutionBwdDataAlgo_t)c->algorithm[BACKWARD_DATA], c->method.device->workspace,
        c->workspace_bytes[BACKWARD_DATA], &zero, c->x, dx);
}

static cudnnStatus_t start_dw(const convolution *c, const void *x, const void *dy, void *dw) {
    return library(c)->dnn.cudnnConvolutionBackwardFilter(
        handle(c), &one, c->x, x, c->y, dy, c->convolution[BACKWARD_WEIGHTS],
        (cudnnConvolutionBwdFilterAlgo_t)c->algorithm[BACKWARD_WEIGHTS], c->method.device->workspace,
        c->workspace_bytes[BACKWARD_WEIGHTS], &zero, c->weights, dw);
}

/* ---- the choice of algorithms ---- */

typedef struct {
    int algorithm;
    size_t memory;
    cudnnMathType_t math;
} offer;

typedef struct {
    convolution *c;
    tdm_cuda_trial memory;
    char *why; /* why the last one tried was rejected */
    size_t bytes;
} trial;

static const char *const forward_names[] = {
    "implicit_gemm", "implicit_precomp_gemm", "gemm", "direct", "fft", "fft_tiling", "winograd", "winograd_nonfused"};
static const char *const dx_names[] = {"0", "1", "fft", "fft_tiling", "winograd", "winograd_nonfused"};
static const char *const dw_names[] = {"0", "1", "fft", "3", "winograd", "winograd_nonfused", "fft_tiling"};

static const char *name_of(pass which, int algorithm) {
    static const char *const *const names[PASSES] = {forward_names, dx_names, dw_names};
    return names[which][algorithm];
}

/* The last digits of a cuDNN 9 status say why something is not supported or not accepted. */
static bool is_refusal(cudnnStatus_t status) {
    const int kind = (int)status / 1000 * 1000;
    return kind == (int)CUDNN_STATUS_NOT_SUPPORTED || kind == (int)CUDNN_STATUS_BAD_PARAM;
}

/* Whether a candidate rounds no coarser than the job allows (the heuristics also offer coarser ones) and fits its other
 * settings. */
static bool serves(const convolution *c, pass which, const offer *offered, cudnnStatus_t status,
                   cudnnDeterminism_t determinism) {
    static const unsigned exact[PASSES] = {
        [FORWARD] = 1u << CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM |
                    1u << CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM | 1u << CUDNN_CONVOLUTION_FWD_ALGO_GEMM,
        [BACKWARD_DATA] = 1u << CUDNN_CONVOLUTION_BWD_DATA_ALGO_0 | 1u << CUDNN_CONVOLUTION_BWD_DATA_ALGO_1,
        [BACKWARD_WEIGHTS] = 1u << CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0 | 1u << CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1 |
                             1u << CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3,
    };
    const bool rounds = math_of(c) == CUDNN_FMA_MATH ? offered->math == CUDNN_FMA_MATH
                                                     : offered->math != CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION;
    return status == CUDNN_STATUS_SUCCESS && rounds && offered->memory <= most_workspace &&
           ((exact[which] >> offered->algorithm & 1u) != 0 || c->method.sizes.fast) &&
           (determinism == CUDNN_DETERMINISTIC || !c->method.device->deterministic);
}

/* Keeps those candidates of cuDNN's heuristics that serve, best first; none if cuDNN cannot do this convolution at all.
 * A macro, because cuDNN has three types of candidates. `call` fills `candidate` and `count`. */
#define ASK(which, Candidate, call)                                                                                   \
    Candidate candidate[CANDIDATES];                                                                                  \
    int count = 0;                                                                                                    \
    const cudnnStatus_t asked_ = library(c)->dnn.call;                                                                \
    if (asked_ != CUDNN_STATUS_SUCCESS && !is_refusal(asked_))                                                        \
        return tdm__cudnn_error(library(c), asked_, #call, __FILE__, __LINE__);                                       \
    for (int i = 0; asked_ == CUDNN_STATUS_SUCCESS && i < count; i++) {                                               \
        const offer offered = {(int)candidate[i].algo, candidate[i].memory, candidate[i].mathType};                   \
        if (serves(c, (which), &offered, candidate[i].status, candidate[i].determinism)) offers[(*kept)++] = offered; \
    }                                                                                                                 \
    return TDM_OK

static tdm_status ask_forward(convolution *c, offer *offers, int *kept) {
    ASK(FORWARD, cudnnConvolutionFwdAlgoPerf_t,
        cudnnGetConvolutionForwardAlgorithm_v7(handle(c), c->x, c->weights, c->convolution[FORWARD], c->y, CANDIDATES,
                                               &count, candidate));
}

static tdm_status ask_dx(convolution *c, offer *offers, int *kept) {
    ASK(BACKWARD_DATA, cudnnConvolutionBwdDataAlgoPerf_t,
        cudnnGetConvolutionBackwardDataAlgorithm_v7(handle(c), c->weights, c->y, c->convolution[BACKWARD_DATA], c->x,
                                                    CANDIDATES, &count, candidate));
}

static tdm_status ask_dw(convolution *c, offer *offers, int *kept) {
    ASK(BACKWARD_WEIGHTS, cudnnConvolutionBwdFilterAlgoPerf_t,
        cudnnGetConvolutionBackwardFilterAlgorithm_v7(handle(c), c->x, c->y, c->convolution[BACKWARD_WEIGHTS],
                                                      c->weights, CANDIDATES, &count, candidate));
}

/* Runs the current setting once. It serves if cuDNN accepts it and its relu, if it has one, lets NaN through. */
static tdm_status try_call(trial *t, pass which, bool *good) {
    const convolution *c = t->c;
    const tdm_conv_sizes *s = &c->method.sizes;
    const char *in = t->memory.in;
    char *out = t->memory.out;
    cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
    bool passes_nan = false;
    TDM_MODULE_TRY(tdm__cuda_trial_begin(&t->memory));
    if (which == BACKWARD_DATA) status = start_dx(c, in, in, out);
    if (which == BACKWARD_WEIGHTS) status = start_dw(c, in, in, out);
    if (which == FORWARD) status = c->fused ? start_fused(c, in, in, in, out) : start_forward(c, in, in, out);
    const bool refused = status != CUDNN_STATUS_SUCCESS;
    TDM_MODULE_TRY(tdm__cuda_trial_end(&t->memory, refused, out, s->number,
                                       (size_t)(s->rows * s->out * tdm__conv_points(s)), &passes_nan));
    const bool drops_nan = which == FORWARD && c->fused && s->relu && !passes_nan;
    *good = !refused && !drops_nan;
    if (!*good)
        snprintf(t->why, t->bytes, "refuses every algorithm that it offers for %s; the last, %s: %s", pass_names[which],
                 name_of(which, c->algorithm[which]),
                 refused ? library(c)->dnn.cudnnGetErrorString(status) : "its relu turns NaN into 0");
    return TDM_OK;
}

/* Tries the algorithm with bias and relu in the same call, then without, which costs one more pass. */
static tdm_status try_offer(trial *t, pass which, const offer *offered, bool *good) {
    convolution *c = t->c;
    const tdm_conv_sizes *s = &c->method.sizes;
    c->algorithm[which] = offered->algorithm;
    c->math[which] = offered->math;
    c->workspace_bytes[which] = offered->memory;
    TDM_CUDNN(library(c), cudnnSetConvolutionMathType(c->convolution[which], offered->math));
    TDM_MODULE_TRY(tdm__cuda_workspace(c->method.device, offered->memory));
    *good = t->memory.in == NULL; /* no memory for a trial: take it unfused, which is known to be right */
    if (*good) return TDM_OK;
    /* Only one algorithm of cuDNN's accepts the identity, that is, a bias without a relu. */
    if (which == FORWARD && s->bias &&
        (s->relu || offered->algorithm == (int)CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM)) {
        c->fused = true;
        TDM_MODULE_TRY(try_call(t, which, good));
        if (*good) return TDM_OK;
        c->fused = false;
    }
    return try_call(t, which, good);
}

static tdm_status choose_pass(trial *t, pass which, bool *found) {
    static tdm_status (*const ask[PASSES])(convolution *, offer *, int *) = {ask_forward, ask_dx, ask_dw};
    offer offers[CANDIDATES];
    int count = 0;
    TDM_MODULE_TRY(ask[which](t->c, offers, &count));
    *found = false;
    if (count == 0)
        snprintf(t->why, t->bytes, "%s offers no algorithm for %s that %s",
                 tdm__cuda_version_text(library(t->c)->dnn.version).of, pass_names[which],
                 t->c->method.device->deterministic ? "always gives the same bits" : "is exact");
    for (int i = 0; i < count && !*found; i++) TDM_MODULE_TRY(try_offer(t, which, &offers[i], found));
    return TDM_OK;
}

static tdm_status choose_all(trial *t, bool *found) {
    const tdm_conv_sizes *s = &t->c->method.sizes;
    TDM_MODULE_TRY(choose_pass(t, FORWARD, found));
    if (*found && s->training) TDM_MODULE_TRY(choose_pass(t, BACKWARD_WEIGHTS, found));
    if (*found && s->training && s->needs_dx) TDM_MODULE_TRY(choose_pass(t, BACKWARD_DATA, found));
    return TDM_OK;
}

static tdm_status choose(convolution *c, bool *found, char *why, size_t bytes) {
    const tdm_conv_sizes *s = &c->method.sizes;
    const size_t x = (size_t)(s->rows * tdm__conv_in_count(s)), y = (size_t)(s->rows * s->out * tdm__conv_points(s));
    const size_t most = tdm__larger(tdm__larger(x, y), (size_t)tdm__conv_weight_count(s)) * tdm__cuda_size(s->number);
    trial t = {.c = c, .why = why, .bytes = bytes};
    tdm__cuda_trial_open(&t.memory, c->method.device, most, most);
    const tdm_status status = choose_all(&t, found);
    tdm__cuda_trial_close(&t.memory);
    return status;
}

static void algorithms(const tdm_conv_method *method, tdm_algorithms *out) {
    const convolution *c = (const convolution *)method;
    const tdm_conv_sizes *s = &method->sizes;
    const bool is_used[PASSES] = {true, s->training && s->needs_dx, s->training};
    for (int i = 0; i < PASSES; i++) {
        if (!is_used[i]) continue;
        tdm_algorithm *chosen = &out->of[out->count++];
        *chosen =
            (tdm_algorithm){.pass = pass_names[i],
                            .math = c->math[i] == CUDNN_FMA_MATH ? "f32" : tdm__cuda_math(method->device, s->number),
                            .workspace_bytes = c->workspace_bytes[i]};
        snprintf(chosen->name, sizeof chosen->name, "cuDNN %s", name_of((pass)i, c->algorithm[i]));
    }
    if (!s->bias) return;
    out->of[0].fused = tdm__fused_names[c->fused ? 1 + 2 * s->relu : 0];
}

/* ---- running ---- */

static tdm_status check(const convolution *c, cudnnStatus_t status, const char *call) {
    return status == CUDNN_STATUS_SUCCESS ? TDM_OK : tdm__cudnn_error(library(c), status, call, __FILE__, __LINE__);
}

static tdm_status forward(tdm_conv_method *method, const void *x, const void *w, const void *bias, void *y,
                          bool *done) {
    const convolution *c = (const convolution *)method;
    const cudnnStatus_t status = c->fused ? start_fused(c, x, w, bias, y) : start_forward(c, x, w, y);
    *done = c->fused;
    return check(c, status, c->fused ? "cudnnConvolutionBiasActivationForward" : "cudnnConvolutionForward");
}

/* Computes the weights' gradient. cuDNN writes it in the type of the weights, so bf16 is widened to float. */
static tdm_status backward_weights(const convolution *c, const void *x, const void *dy, float *dw, void *scratch) {
    const tdm_conv_sizes *s = &c->method.sizes;
    const bool is_bf16 = s->number != TDM_CUDA_FLOAT;
    void *gradient = is_bf16 ? scratch : dw;
    TDM_MODULE_TRY(check(c, start_dw(c, x, dy, gradient), "cudnnConvolutionBackwardFilter"));
    return is_bf16 ? tdm__conv_widen(c->method.device, dw, gradient, tdm__conv_weight_count(s)) : TDM_OK;
}

static tdm_status backward(tdm_conv_method *method, const void *x, const void *w, const void *dy, float *dw, void *dx,
                           void *scratch) {
    const convolution *c = (const convolution *)method;
    if (dw != NULL) TDM_MODULE_TRY(backward_weights(c, x, dy, dw, scratch));
    if (dx == NULL) return TDM_OK;
    return check(c, start_dx(c, w, dy, dx), "cudnnConvolutionBackwardData");
}

/* ---- opening ---- */

static const tdm_conv_method_ops ops = {
    .forward = forward, .backward = backward, .algorithms = algorithms, .close = close_method};

/* cuDNN's counts are int. */
static bool is_countable(const tdm_conv_sizes *s) {
    return (double)s->rows * (double)tdm__conv_in_count(s) <= INT_MAX &&
           (double)s->rows * (double)s->out * (double)tdm__conv_points(s) <= INT_MAX &&
           (double)tdm__conv_weight_count(s) <= INT_MAX;
}

tdm_status tdm__conv_cudnn_open(tdm_conv_method **out, tdm_cuda_device *device, const tdm_conv_sizes *sizes, char *why,
                                size_t bytes) {
    bool found = false;
    *out = NULL;
    if (device->dnn == NULL) {
        snprintf(why, bytes, "was not found; `tandem doctor` lists where it was searched");
        return TDM_OK;
    }
    if (sizes->is_uneven) {
        snprintf(why, bytes, "takes no more zeros below or to the right than above or to the left");
        return TDM_OK;
    }
    if (!is_countable(sizes)) {
        snprintf(why, bytes,
                 "is limited to 2^31 - 1 elements, and a batch has more; make train.batch.per_device smaller");
        return TDM_OK;
    }
    convolution *c = tdm__module_new(device->base.host, sizeof *c);
    if (c == NULL) TDM_MODULE_FAIL(TDM_E_MEMORY, "conv2d: out of memory for %zu bytes of state", sizeof *c);
    c->method = (tdm_conv_method){.ops = &ops, .device = device, .sizes = *sizes};
    tdm_status status = describe(c);
    if (status == TDM_OK) status = choose(c, &found, why, bytes);
    if (status != TDM_OK || !found) {
        close_method(&c->method);
        return status;
    }
    *out = &c->method;
    return TDM_OK;
}

#endif
