/* The fakes of cublasLt and cuDNN against sums written out here, and against what the real ones refuse. */
#include "tests/support/tdm_test.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include <cublasLt.h>
#include <cuda_emulated.h>
#include <cudnn.h>

#include "runtime/base/bf16.h"

#define GOOD(call) CHECK_INT(call, 0)

/* ---- numbers on the device ---- */

struct numbers {
    float *at = nullptr;
    size_t count;
    explicit numbers(const std::vector<float> &values) : count(values.size()) {
        GOOD(cudaMalloc(reinterpret_cast<void **>(&at), count * sizeof *at));
        GOOD(cudaMemcpy(at, values.data(), count * sizeof *at, cudaMemcpyHostToDevice));
    }
    ~numbers() {
        GOOD(cudaFree(at));
    }
    numbers(const numbers &) = delete;
    numbers &operator=(const numbers &) = delete;
    std::vector<float> get() const {
        std::vector<float> values(count);
        GOOD(cudaMemcpy(values.data(), at, count * sizeof *at, cudaMemcpyDeviceToHost));
        return values;
    }
};

/* The same in bf16. */
struct narrow_numbers {
    uint16_t *at = nullptr;
    size_t count;
    explicit narrow_numbers(const std::vector<float> &values) : count(values.size()) {
        std::vector<uint16_t> narrow;
        for (float value : values) narrow.push_back(tdm__bf16_of(value));
        GOOD(cudaMalloc(reinterpret_cast<void **>(&at), count * sizeof *at));
        GOOD(cudaMemcpy(at, narrow.data(), count * sizeof *at, cudaMemcpyHostToDevice));
    }
    ~narrow_numbers() {
        GOOD(cudaFree(at));
    }
    narrow_numbers(const narrow_numbers &) = delete;
    narrow_numbers &operator=(const narrow_numbers &) = delete;
    std::vector<float> get() const {
        std::vector<uint16_t> narrow(count);
        std::vector<float> values;
        GOOD(cudaMemcpy(narrow.data(), at, count * sizeof *at, cudaMemcpyDeviceToHost));
        for (uint16_t value : narrow) values.push_back(tdm__bf16_float(value));
        return values;
    }
};

static std::vector<float> rounded(std::vector<float> values) {
    for (float &value : values) value = tdm__bf16_float(tdm__bf16_of(value));
    return values;
}

/* Small whole numbers: their products and sums are exact. */
static std::vector<float> some(size_t count, unsigned seed) {
    std::vector<float> values(count);
    for (float &value : values) {
        seed = seed * 1664525u + 1013904223u;
        value = static_cast<float>(seed >> 24) / 16.0f - 8.0f;
    }
    return values;
}

static cudaStream_t make_stream() {
    cudaStream_t stream = nullptr;
    GOOD(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return stream;
}

/* ---- cublasLt ---- */

struct matmul_case {
    int m, n, k, batch;
    bool transpose_a, transpose_b, bias, relu;
};

struct matmul {
    cublasLtHandle_t handle = nullptr;
    cublasLtMatmulDesc_t desc = nullptr;
    cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr;
    cublasLtMatmulPreference_t wish = nullptr;
    cublasLtMatmulHeuristicResult_t found[4];
    int count = 0;
    matmul_case is;

    template <class Value> void say(cublasLtMatmulDescAttributes_t attribute, Value value) {
        GOOD(cublasLtMatmulDescSetAttribute(desc, attribute, &value, sizeof value));
    }
    void layout(cublasLtMatrixLayout_t *out, int rows, int columns) {
        const int32_t batch = is.batch;
        const int64_t stride = static_cast<int64_t>(rows) * columns;
        GOOD(cublasLtMatrixLayoutCreate(out, CUDA_R_32F, static_cast<uint64_t>(rows), static_cast<uint64_t>(columns),
                                        rows));
        GOOD(cublasLtMatrixLayoutSetAttribute(*out, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof batch));
        GOOD(cublasLtMatrixLayoutSetAttribute(*out, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
                                              sizeof stride));
    }
    explicit matmul(matmul_case of, cublasComputeType_t compute = CUBLAS_COMPUTE_32F) : is(of) {
        const uint32_t epilogue = (is.bias ? 4u : 0u) + (is.relu ? 2u : 0u) + (is.bias || is.relu ? 0u : 1u);
        const int32_t turned = CUBLAS_OP_T, plain = CUBLAS_OP_N;
        const uint64_t most = 1 << 20;
        const uint32_t alignment = 4;
        GOOD(cublasLtCreate(&handle));
        GOOD(cublasLtMatmulDescCreate(&desc, compute, CUDA_R_32F));
        say(CUBLASLT_MATMUL_DESC_TRANSA, is.transpose_a ? turned : plain);
        say(CUBLASLT_MATMUL_DESC_TRANSB, is.transpose_b ? turned : plain);
        say(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
        layout(&a, is.transpose_a ? is.k : is.m, is.transpose_a ? is.m : is.k);
        layout(&b, is.transpose_b ? is.n : is.k, is.transpose_b ? is.k : is.n);
        layout(&c, is.m, is.n);
        GOOD(cublasLtMatmulPreferenceCreate(&wish));
        GOOD(cublasLtMatmulPreferenceSetAttribute(wish, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most, sizeof most));
        for (auto operand : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                             CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
            GOOD(cublasLtMatmulPreferenceSetAttribute(wish, operand, &alignment, sizeof alignment));
        }
    }
    ~matmul() {
        GOOD(cublasLtMatmulPreferenceDestroy(wish));
        GOOD(cublasLtMatrixLayoutDestroy(c));
        GOOD(cublasLtMatrixLayoutDestroy(b));
        GOOD(cublasLtMatrixLayoutDestroy(a));
        GOOD(cublasLtMatmulDescDestroy(desc));
        GOOD(cublasLtDestroy(handle));
    }
    matmul(const matmul &) = delete;
    matmul &operator=(const matmul &) = delete;

    void set_type(cublasLtMatrixLayout_t layout, uint32_t type) {
        GOOD(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_TYPE, &type, sizeof type));
    }
    cublasStatus_t ask() {
        return cublasLtMatmulAlgoGetHeuristic(handle, desc, a, b, c, c, wish, 4, found, &count);
    }
    cublasStatus_t run(int which, const void *x, const void *y, void *z, float alpha, float beta, void *workspace,
                       cudaStream_t stream) {
        return cublasLtMatmul(handle, desc, &alpha, x, a, y, b, &beta, z, c, z, c, &found[which].algo, workspace,
                              found[which].workspaceSize, stream);
    }
};

static std::vector<float> product(const matmul_case &is, const std::vector<float> &a, const std::vector<float> &b,
                                  const std::vector<float> &bias, const std::vector<float> &c, float alpha,
                                  float beta) {
    std::vector<float> out = c;
    for (int g = 0; g < is.batch; g++) {
        for (int i = 0; i < is.m; i++) {
            for (int j = 0; j < is.n; j++) {
                double sum = 0;
                for (int l = 0; l < is.k; l++) {
                    const int at_a = is.transpose_a ? l + i * is.k : i + l * is.m;
                    const int at_b = is.transpose_b ? j + l * is.n : l + j * is.k;
                    sum +=
                        static_cast<double>(a[g * is.m * is.k + at_a]) * static_cast<double>(b[g * is.k * is.n + at_b]);
                }
                float &one = out[g * is.m * is.n + i + j * is.m];
                one = alpha * static_cast<float>(sum) + beta * one + (is.bias ? bias[i] : 0.0f);
                if (is.relu && one < 0) one = 0;
            }
        }
    }
    return out;
}

TEST(products_are_right) {
    const matmul_case cases[] = {{4, 3, 5, 1, false, false, false, false}, {4, 3, 5, 1, true, false, true, false},
                                 {6, 2, 7, 3, false, true, false, true},   {2, 8, 3, 2, true, true, true, true},
                                 {1, 1, 1, 1, false, false, true, true},   {4, 1, 9, 1, true, false, false, false}};
    const cudaStream_t stream = make_stream();
    for (const matmul_case &is : cases) {
        const size_t batch = static_cast<size_t>(is.batch), m = static_cast<size_t>(is.m);
        const size_t n = static_cast<size_t>(is.n), k = static_cast<size_t>(is.k);
        const auto a = some(batch * m * k, 1), b = some(batch * k * n, 2), bias = some(m, 3),
                   c = some(batch * m * n, 4);
        numbers on_a(a), on_b(b), on_bias(bias), on_c(c), workspace(some(4096, 5));
        matmul mm(is);
        mm.say(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void *>(on_bias.at));
        GOOD(mm.ask());
        CHECK_INT(mm.count, 3);
        for (int which = 1; which < mm.count; which++) { /* the first is not steady */
            GOOD(cudaMemcpy(on_c.at, c.data(), c.size() * sizeof(float), cudaMemcpyDefault));
            GOOD(mm.run(which, on_a.at, on_b.at, on_c.at, 2, 0.5f, workspace.at, stream));
            GOOD(cudaStreamSynchronize(stream));
            CHECK(on_c.get() == product(is, a, b, bias, c, 2, 0.5f));
        }
    }
    GOOD(cudaStreamDestroy(stream));
}

TEST(products_are_queued) {
    const cudaStream_t stream = make_stream();
    numbers a(some(16, 1)), b(some(16, 2)), c(some(16, 3)), workspace(some(4096, 5));
    const auto before = c.get();
    matmul mm({4, 4, 4, 1, false, false, false, false});
    GOOD(mm.ask());
    GOOD(mm.run(2, a.at, b.at, c.at, 1, 0, nullptr, stream));
    CHECK(c.get() == before);
    GOOD(cudaStreamSynchronize(stream));
    CHECK(c.get() != before);
    GOOD(cudaStreamDestroy(stream));
}

TEST(tf32_rounds_and_f32_does_not) {
    const cudaStream_t stream = make_stream();
    numbers a({1.0f + 1.0f / 4096}), b({1.0f}), c({0.0f});
    for (const auto compute : {CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F_FAST_TF32}) {
        matmul mm({1, 1, 1, 1, false, false, false, false}, compute);
        GOOD(mm.ask());
        GOOD(mm.run(2, a.at, b.at, c.at, 1, 0, nullptr, stream));
        GOOD(cudaStreamSynchronize(stream));
        CHECK((c.get()[0] == 1.0f) == (compute == CUBLAS_COMPUTE_32F_FAST_TF32));
    }
    GOOD(cudaStreamDestroy(stream));
}

/* Factors are exact in bf16; sums are float, or are rounded once, the bias with them. */
TEST(products_of_bf16) {
    const cudaStream_t stream = make_stream();
    const matmul_case is = {6, 3, 9, 2, true, false, true, true};
    const auto a = some(2 * 6 * 9, 1), b = some(2 * 9 * 3, 2), bias = some(6, 3), c = some(2 * 6 * 3, 4);
    const auto wanted = product(is, a, b, bias, c, 1, 0);
    narrow_numbers on_a(a), on_b(b), narrow_bias(bias), narrow_c(c);
    numbers wide_bias(bias), wide_c(c);
    CHECK(rounded(a) == a && rounded(wanted) != wanted);
    for (const uint32_t type : {CUDA_R_32F, CUDA_R_16BF}) {
        const bool narrow = type == CUDA_R_16BF;
        matmul mm(is);
        mm.set_type(mm.a, CUDA_R_16BF);
        mm.set_type(mm.b, CUDA_R_16BF);
        mm.set_type(mm.c, type);
        mm.say(CUBLASLT_MATMUL_DESC_BIAS_POINTER,
               narrow ? static_cast<const void *>(narrow_bias.at) : static_cast<const void *>(wide_bias.at));
        GOOD(mm.ask());
        GOOD(mm.run(2, on_a.at, on_b.at, narrow ? static_cast<void *>(narrow_c.at) : wide_c.at, 1, 0, nullptr, stream));
        GOOD(cudaStreamSynchronize(stream));
        CHECK((narrow ? narrow_c.get() : wide_c.get()) == (narrow ? rounded(wanted) : wanted));
        mm.set_type(mm.a, CUDA_R_32F); /* a float beside a bf16 */
        CHECK_INT(mm.ask(), CUBLAS_STATUS_NOT_SUPPORTED);
        mm.set_type(mm.b, CUDA_R_32F);
        if (narrow) CHECK_INT(mm.ask(), CUBLAS_STATUS_NOT_SUPPORTED);
    }
    matmul mm(is, CUBLAS_COMPUTE_32F_FAST_TF32);
    mm.say(CUBLASLT_MATMUL_DESC_BIAS_POINTER, static_cast<const void *>(wide_bias.at));
    mm.set_type(mm.a, CUDA_R_16BF);
    mm.set_type(mm.b, CUDA_R_16BF);
    CHECK_INT(mm.ask(), CUBLAS_STATUS_NOT_SUPPORTED);
    GOOD(cudaStreamDestroy(stream));
}

TEST(schemes_are_obeyed_and_adding_in_place_is_not_steady) {
    const cudaStream_t stream = make_stream();
    numbers a(some(16, 1)), b(some(16, 2)), c(some(16, 3));
    matmul mm({4, 4, 4, 1, false, false, false, false});
    GOOD(mm.ask());
    std::vector<float> results[2];
    for (auto &result : results) {
        GOOD(mm.run(0, a.at, b.at, c.at, 1, 0, nullptr, stream));
        GOOD(cudaStreamSynchronize(stream));
        result = c.get();
    }
    CHECK(results[0] != results[1]);
    const uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    GOOD(cublasLtMatmulPreferenceSetAttribute(mm.wish, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes,
                                              sizeof schemes));
    GOOD(mm.ask());
    CHECK_INT(mm.count, 2);
    GOOD(cudaStreamDestroy(stream));
}

TEST(wrong_products_are_refused) {
    const cudaStream_t stream = make_stream();
    numbers a(some(64, 1)), b(some(64, 2)), c(some(64, 3)), workspace(some(64, 4));
    std::vector<float> host(64);
    matmul mm({4, 4, 4, 1, false, false, false, false});
    GOOD(mm.ask());
    CHECK_INT(mm.run(1, a.at, b.at, c.at, 1, 0, nullptr, stream), CUBLAS_STATUS_INVALID_VALUE); /* wants a workspace */
    CHECK_INT(mm.run(2, host.data(), b.at, c.at, 1, 0, nullptr, stream), CUBLAS_STATUS_INVALID_VALUE);
    CHECK_INT(mm.run(2, a.at, b.at, c.at + 60, 1, 0, nullptr, stream), CUBLAS_STATUS_INVALID_VALUE); /* too short */
    const uint32_t bias = CUBLASLT_EPILOGUE_BIAS;
    mm.say(CUBLASLT_MATMUL_DESC_EPILOGUE, bias);
    CHECK_INT(mm.run(2, a.at, b.at, c.at, 1, 0, nullptr, stream), CUBLAS_STATUS_INVALID_VALUE); /* without a bias */
    CHECK_INT(mm.ask(), CUBLAS_STATUS_NOT_SUPPORTED);
    int32_t number = 0;
    CHECK_INT(cublasLtMatmulDescSetAttribute(mm.desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &number, sizeof number),
              CUBLAS_STATUS_INVALID_VALUE);
    matmul other({4, 4, 5, 1, false, false, false, false});
    float one = 1;
    CHECK_INT(cublasLtMatmul(mm.handle, other.desc, &one, a.at, mm.a, b.at, other.b, &one, c.at, mm.c, c.at, mm.c,
                             nullptr, nullptr, 0, stream),
              CUBLAS_STATUS_INVALID_VALUE);
    /* an algorithm for aligned matrices */
    const uint32_t aligned = 16;
    for (auto operand : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                         CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
        GOOD(cublasLtMatmulPreferenceSetAttribute(other.wish, operand, &aligned, sizeof aligned));
    }
    GOOD(other.ask());
    CHECK_INT(other.run(2, a.at + 1, b.at, c.at, 1, 0, nullptr, stream), CUBLAS_STATUS_INVALID_VALUE);
    GOOD(other.run(2, a.at + 4, b.at, c.at, 1, 0, nullptr, stream));
    cuda_emulated_fail_at(1);
    CHECK_INT(other.run(2, a.at, b.at, c.at, 1, 0, nullptr, stream), CUBLAS_STATUS_EXECUTION_FAILED);
    GOOD(cudaStreamSynchronize(stream));
    GOOD(cudaStreamDestroy(stream));
}

/* ---- cuDNN ---- */

struct conv_case {
    int n, c, h, w, k, r, s, pad_h, pad_w, stride_h, stride_w, dilation_h, dilation_w, groups;
    cudnnTensorFormat_t format;
    int p() const {
        return (h + 2 * pad_h - dilation_h * (r - 1) - 1) / stride_h + 1;
    }
    int q() const {
        return (w + 2 * pad_w - dilation_w * (s - 1) - 1) / stride_w + 1;
    }
};

static int at(cudnnTensorFormat_t format, int channels, int height, int width, int n, int c, int h, int w) {
    if (format == CUDNN_TENSOR_NHWC) return ((n * height + h) * width + w) * channels + c;
    return ((n * channels + c) * height + h) * width + w;
}

/* body(x, w, y): the places of every product of the convolution */
template <class Body> static void every_product(const conv_case &is, Body body) {
    const int own = is.c / is.groups, each = is.k / is.groups, p = is.p(), q = is.q();
    for (int n = 0; n < is.n; n++)
        for (int k = 0; k < is.k; k++)
            for (int i = 0; i < p; i++)
                for (int j = 0; j < q; j++)
                    for (int c = 0; c < own; c++)
                        for (int r = 0; r < is.r; r++)
                            for (int s = 0; s < is.s; s++) {
                                const int h = i * is.stride_h - is.pad_h + r * is.dilation_h;
                                const int w = j * is.stride_w - is.pad_w + s * is.dilation_w;
                                if (h < 0 || h >= is.h || w < 0 || w >= is.w) continue;
                                body(at(is.format, is.c, is.h, is.w, n, k / each * own + c, h, w),
                                     at(is.format, own, is.r, is.s, k, c, r, s), at(is.format, is.k, p, q, n, k, i, j));
                            }
}

struct conv {
    cudnnHandle_t handle = nullptr;
    cudnnTensorDescriptor_t x = nullptr, y = nullptr, bias = nullptr;
    cudnnFilterDescriptor_t w = nullptr;
    cudnnConvolutionDescriptor_t how = nullptr;
    cudnnActivationDescriptor_t activation = nullptr;
    conv(const conv_case &is, cudaStream_t stream, cudnnMathType_t math = CUDNN_FMA_MATH,
         cudnnDataType_t type = CUDNN_DATA_FLOAT) {
        GOOD(cudnnCreate(&handle));
        GOOD(cudnnSetStream(handle, stream));
        GOOD(cudnnCreateTensorDescriptor(&x));
        GOOD(cudnnCreateTensorDescriptor(&y));
        GOOD(cudnnCreateTensorDescriptor(&bias));
        GOOD(cudnnCreateFilterDescriptor(&w));
        GOOD(cudnnCreateConvolutionDescriptor(&how));
        GOOD(cudnnCreateActivationDescriptor(&activation));
        GOOD(cudnnSetTensor4dDescriptor(x, is.format, type, is.n, is.c, is.h, is.w));
        GOOD(cudnnSetTensor4dDescriptor(y, is.format, type, is.n, is.k, is.p(), is.q()));
        GOOD(cudnnSetTensor4dDescriptor(bias, is.format, type, 1, is.k, 1, 1));
        GOOD(cudnnSetFilter4dDescriptor(w, type, is.format, is.k, is.c / is.groups, is.r, is.s));
        GOOD(cudnnSetConvolution2dDescriptor(how, is.pad_h, is.pad_w, is.stride_h, is.stride_w, is.dilation_h,
                                             is.dilation_w, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
        GOOD(cudnnSetConvolutionGroupCount(how, is.groups));
        GOOD(cudnnSetConvolutionMathType(how, math));
        GOOD(cudnnSetActivationDescriptor(activation, CUDNN_ACTIVATION_RELU, CUDNN_PROPAGATE_NAN, 0));
    }
    ~conv() {
        GOOD(cudnnDestroyActivationDescriptor(activation));
        GOOD(cudnnDestroyConvolutionDescriptor(how));
        GOOD(cudnnDestroyFilterDescriptor(w));
        GOOD(cudnnDestroyTensorDescriptor(bias));
        GOOD(cudnnDestroyTensorDescriptor(y));
        GOOD(cudnnDestroyTensorDescriptor(x));
        GOOD(cudnnDestroy(handle));
    }
    conv(const conv &) = delete;
    conv &operator=(const conv &) = delete;
};

static const conv_case conv_cases[] = {
    {2, 3, 5, 6, 4, 3, 3, 1, 1, 1, 1, 1, 1, 1, CUDNN_TENSOR_NCHW},
    {2, 3, 5, 6, 4, 3, 3, 1, 1, 1, 1, 1, 1, 1, CUDNN_TENSOR_NHWC},
    {1, 4, 7, 9, 6, 3, 2, 2, 0, 2, 3, 1, 2, 2, CUDNN_TENSOR_NCHW},
    {3, 2, 6, 5, 2, 1, 1, 0, 0, 1, 1, 1, 1, 2, CUDNN_TENSOR_NHWC},
    {1, 1, 3, 3, 1, 5, 5, 2, 2, 1, 1, 1, 1, 1, CUDNN_TENSOR_NCHW},
    {1, 2, 9, 9, 3, 3, 3, 4, 3, 2, 2, 3, 2, 1, CUDNN_TENSOR_NHWC},
};

template <class Body> static std::vector<float> sums(size_t count, const conv_case &is, Body body) {
    std::vector<double> exact(count);
    every_product(is, [&](int x, int w, int y) { body(exact, x, w, y); });
    return std::vector<float>(exact.begin(), exact.end());
}

static double times(float a, float b) {
    return static_cast<double>(a) * static_cast<double>(b);
}

static size_t size_of(int a, int b, int c, int d) {
    return static_cast<size_t>(a) * static_cast<size_t>(b) * static_cast<size_t>(c) * static_cast<size_t>(d);
}

TEST(convolutions_are_right) {
    const cudaStream_t stream = make_stream();
    const float one = 1, zero = 0;
    for (const conv_case &is : conv_cases) {
        const auto x = some(size_of(is.n, is.c, is.h, is.w), 1),
                   w = some(size_of(is.k, is.c / is.groups, is.r, is.s), 2);
        const auto dy = some(size_of(is.n, is.k, is.p(), is.q()), 3);
        numbers on_x(x), on_w(w), on_dy(dy), y(dy), dx(x), dw(w), workspace(some(1 << 12, 9));
        const size_t bytes = sizeof(float) << 12;
        conv c(is, stream);
        cudnnConvolutionFwdAlgoPerf_t forward[4];
        cudnnConvolutionBwdDataAlgoPerf_t data[4];
        cudnnConvolutionBwdFilterAlgoPerf_t filter[4];
        int counts[3] = {0, 0, 0};
        GOOD(cudnnGetConvolutionForwardAlgorithm_v7(c.handle, c.x, c.w, c.how, c.y, 4, &counts[0], forward));
        GOOD(cudnnGetConvolutionBackwardDataAlgorithm_v7(c.handle, c.w, c.y, c.how, c.x, 4, &counts[1], data));
        GOOD(cudnnGetConvolutionBackwardFilterAlgorithm_v7(c.handle, c.x, c.y, c.how, c.w, 4, &counts[2], filter));
        for (int i = 0; i < counts[0]; i++) {
            if (forward[i].status != CUDNN_STATUS_SUCCESS) continue;
            GOOD(cudnnConvolutionForward(c.handle, &one, c.x, on_x.at, c.w, on_w.at, c.how, forward[i].algo,
                                         workspace.at, bytes, &zero, c.y, y.at));
            GOOD(cudaStreamSynchronize(stream));
            CHECK(y.get() == sums(dy.size(), is, [&](std::vector<double> &to, int from, int tap, int place) {
                      to[place] += times(x[from], w[tap]);
                  }));
        }
        for (int i = 0; i < counts[1]; i++) {
            if (data[i].status != CUDNN_STATUS_SUCCESS || data[i].determinism == CUDNN_NON_DETERMINISTIC) continue;
            GOOD(cudnnConvolutionBackwardData(c.handle, &one, c.w, on_w.at, c.y, on_dy.at, c.how, data[i].algo,
                                              workspace.at, bytes, &zero, c.x, dx.at));
            GOOD(cudaStreamSynchronize(stream));
            CHECK(dx.get() == sums(x.size(), is, [&](std::vector<double> &to, int from, int tap, int place) {
                      to[from] += times(dy[place], w[tap]);
                  }));
        }
        for (int i = 0; i < counts[2]; i++) {
            if (filter[i].status != CUDNN_STATUS_SUCCESS || filter[i].determinism == CUDNN_NON_DETERMINISTIC) continue;
            GOOD(cudnnConvolutionBackwardFilter(c.handle, &one, c.x, on_x.at, c.y, on_dy.at, c.how, filter[i].algo,
                                                workspace.at, bytes, &zero, c.w, dw.at));
            GOOD(cudaStreamSynchronize(stream));
            CHECK(dw.get() == sums(w.size(), is, [&](std::vector<double> &to, int from, int tap, int place) {
                      to[tap] += times(dy[place], x[from]);
                  }));
        }
    }
    GOOD(cudaStreamDestroy(stream));
}

TEST(bias_activation_and_what_is_added) {
    const cudaStream_t stream = make_stream();
    const conv_case &is = conv_cases[1];
    const auto x = some(size_of(is.n, is.c, is.h, is.w), 1), w = some(size_of(is.k, is.c, is.r, is.s), 2);
    const auto z = some(size_of(is.n, is.k, is.p(), is.q()), 3), bias = some(static_cast<size_t>(is.k), 4);
    numbers on_x(x), on_w(w), y(z), on_bias(bias), workspace(some(1 << 12, 9)), db(bias);
    const float half = 0.5f, two = 2;
    conv c(is, stream);
    GOOD(cudnnConvolutionBiasActivationForward(
        c.handle, &half, c.x, on_x.at, c.w, on_w.at, c.how, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM,
        workspace.at, sizeof(float) << 12, &two, c.y, y.at, c.bias, on_bias.at, c.activation, c.y, y.at));
    GOOD(cudaStreamSynchronize(stream));
    auto wanted = sums(z.size(), is, [&](std::vector<double> &to, int from, int tap, int place) {
        to[place] += times(x[from], w[tap]);
    });
    for (size_t i = 0; i < wanted.size(); i++) { /* channels lie side by side */
        wanted[i] = 0.5f * wanted[i] + 2 * z[i] + bias[i % static_cast<size_t>(is.k)];
        if (wanted[i] < 0) wanted[i] = 0;
    }
    CHECK(y.get() == wanted);
    GOOD(cudnnConvolutionBackwardBias(c.handle, &two, c.y, y.at, &half, c.bias, db.at));
    GOOD(cudaStreamSynchronize(stream));
    auto column_sums = bias;
    for (float &one : column_sums) one *= 0.5f;
    for (size_t i = 0; i < wanted.size(); i++) column_sums[i % static_cast<size_t>(is.k)] += 2 * wanted[i];
    CHECK(db.get() == column_sums);
    /* without an activation only one algorithm serves */
    GOOD(cudnnSetActivationDescriptor(c.activation, CUDNN_ACTIVATION_IDENTITY, CUDNN_PROPAGATE_NAN, 0));
    CHECK_INT(cudnnConvolutionBiasActivationForward(c.handle, &half, c.x, on_x.at, c.w, on_w.at, c.how,
                                                    CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, nullptr, 0, &two, c.y,
                                                    y.at, c.bias, on_bias.at, c.activation, c.y, y.at),
              CUDNN_STATUS_NOT_SUPPORTED);
    GOOD(cudaStreamDestroy(stream));
}

/* Everything is bf16 but the sums: the weights' gradient too, and the bias. */
TEST(convolutions_of_bf16) {
    const cudaStream_t stream = make_stream();
    const conv_case &is = conv_cases[1];
    const auto x = some(size_of(is.n, is.c, is.h, is.w), 1), w = some(size_of(is.k, is.c, is.r, is.s), 2);
    const auto dy = some(size_of(is.n, is.k, is.p(), is.q()), 3), bias = some(static_cast<size_t>(is.k), 4);
    narrow_numbers on_x(x), on_w(w), on_dy(dy), y(dy), dx(x), dw(w), on_bias(bias);
    numbers wide_bias(bias), workspace(some(1 << 12, 9));
    const size_t bytes = sizeof(float) << 12;
    const float one = 1, zero = 0;
    conv c(is, stream, CUDNN_TENSOR_OP_MATH, CUDNN_DATA_BFLOAT16);
    const auto fused = [&](const void *from) {
        return cudnnConvolutionBiasActivationForward(c.handle, &one, c.x, on_x.at, c.w, on_w.at, c.how,
                                                     CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, workspace.at,
                                                     bytes, &zero, c.y, y.at, c.bias, from, c.activation, c.y, y.at);
    };
    GOOD(fused(on_bias.at));
    GOOD(cudnnConvolutionBackwardData(c.handle, &one, c.w, on_w.at, c.y, on_dy.at, c.how,
                                      CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, workspace.at, bytes, &zero, c.x, dx.at));
    GOOD(cudnnConvolutionBackwardFilter(c.handle, &one, c.x, on_x.at, c.y, on_dy.at, c.how,
                                        CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, workspace.at, bytes, &zero, c.w, dw.at));
    GOOD(cudaStreamSynchronize(stream));
    auto wanted = sums(dy.size(), is, [&](std::vector<double> &to, int from, int tap, int place) {
        to[place] += times(x[from], w[tap]);
    });
    for (size_t i = 0; i < wanted.size(); i++) wanted[i] = std::max(0.0f, wanted[i] + bias[i % bias.size()]);
    CHECK(y.get() == rounded(wanted) && rounded(wanted) != wanted);
    CHECK(dx.get() == rounded(sums(x.size(), is, [&](std::vector<double> &to, int from, int tap, int place) {
              to[from] += times(dy[place], w[tap]);
          })));
    CHECK(dw.get() == rounded(sums(w.size(), is, [&](std::vector<double> &to, int from, int tap, int place) {
              to[tap] += times(dy[place], x[from]);
          })));
    GOOD(cudnnSetTensor4dDescriptor(c.bias, is.format, CUDNN_DATA_FLOAT, 1, is.k, 1, 1));
    CHECK_INT(fused(wide_bias.at), CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE);
    GOOD(cudnnSetFilter4dDescriptor(c.w, CUDNN_DATA_FLOAT, is.format, is.k, is.c, is.r, is.s));
    int count = 0;
    cudnnConvolutionFwdAlgoPerf_t offers[4];
    CHECK_INT(cudnnGetConvolutionForwardAlgorithm_v7(c.handle, c.x, c.w, c.how, c.y, 4, &count, offers),
              CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE);
    GOOD(cudaStreamDestroy(stream));
}

TEST(math_types_round) {
    const cudaStream_t stream = make_stream();
    const conv_case is = {1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 1, 1, 1, CUDNN_TENSOR_NCHW};
    const float one = 1, zero = 0, fine = 1.0f + 1.0f / 4096;
    numbers x({fine}), w({1.0f}), y({0.0f});
    for (const auto math : {CUDNN_FMA_MATH, CUDNN_DEFAULT_MATH}) {
        conv c(is, stream, math);
        GOOD(cudnnConvolutionForward(c.handle, &one, c.x, x.at, c.w, w.at, c.how,
                                     CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, nullptr, 0, &zero, c.y, y.at));
        GOOD(cudaStreamSynchronize(stream));
        CHECK((y.get()[0] == fine) == (math == CUDNN_FMA_MATH));
    }
    GOOD(cudaStreamDestroy(stream));
}

TEST(wrong_convolutions_are_refused) {
    const cudaStream_t stream = make_stream();
    const conv_case &is = conv_cases[0];
    const float one = 1, zero = 0;
    numbers x(some(size_of(is.n, is.c, is.h, is.w), 1)), w(some(size_of(is.k, is.c, is.r, is.s), 2));
    numbers y(some(size_of(is.n, is.k, is.p(), is.q()), 3));
    conv c(is, stream);
    const auto run = [&](cudnnConvolutionFwdAlgo_t algo, const float *from, void *workspace, size_t bytes) {
        return cudnnConvolutionForward(c.handle, &one, c.x, from, c.w, w.at, c.how, algo, workspace, bytes, &zero, c.y,
                                       y.at);
    };
    const auto gemm = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM,
               precomputed = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
    CHECK_INT(run(precomputed, x.at, nullptr, 0), CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT);
    CHECK_INT(run(precomputed, x.at, nullptr, 1 << 20), CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
    CHECK_INT(run(gemm, nullptr, nullptr, 0), CUDNN_STATUS_BAD_PARAM);
    CHECK_INT(run(gemm, &one, nullptr, 0), CUDNN_STATUS_BAD_PARAM);
    CHECK_INT(run(CUDNN_CONVOLUTION_FWD_ALGO_FFT, x.at, nullptr, 0), CUDNN_STATUS_NOT_SUPPORTED);
    GOOD(run(gemm, x.at, nullptr, 0));
    GOOD(cudnnSetTensor4dDescriptor(c.y, is.format, CUDNN_DATA_FLOAT, is.n, is.k, is.p(), is.q() + 1));
    CHECK_INT(run(gemm, x.at, nullptr, 0), CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH);
    CHECK_INT(cudnnSetTensor4dDescriptor(c.y, is.format, CUDNN_DATA_HALF, 1, 1, 1, 1),
              CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE);
    cudnnTensorDescriptor_t gone = nullptr;
    GOOD(cudnnCreateTensorDescriptor(&gone));
    GOOD(cudnnDestroyTensorDescriptor(gone));
    CHECK_INT(cudnnSetTensor4dDescriptor(gone, is.format, CUDNN_DATA_FLOAT, 1, 1, 1, 1), CUDNN_STATUS_BAD_PARAM);
    cuda_emulated_fail_at(1);
    CHECK_INT(run(gemm, x.at, nullptr, 0), CUDNN_STATUS_INTERNAL_ERROR);
    GOOD(cudaStreamSynchronize(stream));
    GOOD(cudaStreamDestroy(stream));
}

TEST_MAIN(RUN(products_are_right); RUN(products_of_bf16); RUN(products_are_queued); RUN(tf32_rounds_and_f32_does_not);
          RUN(schemes_are_obeyed_and_adding_in_place_is_not_steady); RUN(wrong_products_are_refused);
          RUN(convolutions_are_right); RUN(convolutions_of_bf16); RUN(bias_activation_and_what_is_added);
          RUN(math_types_round); RUN(wrong_convolutions_are_refused); CHECK_INT(cuda_emulated_live(), 0);)
