/* The part of cuDNN 9 that tandem uses, for the fake library: see ../README.md. */
#ifndef CUDA_EMULATED_CUDNN_H
#define CUDA_EMULATED_CUDNN_H

#include <stddef.h>

#include <cuda_runtime_api.h>

#define CUDNN_MAJOR 9
#define CUDNN_MINOR 10
#define CUDNN_PATCHLEVEL 0
#define CUDNN_VERSION (CUDNN_MAJOR * 10000 + CUDNN_MINOR * 100 + CUDNN_PATCHLEVEL)

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    CUDNN_STATUS_SUCCESS = 0,
    CUDNN_STATUS_NOT_INITIALIZED = 1001,
    CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH = 1002,
    CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED = 1008,
    CUDNN_STATUS_BAD_PARAM = 2000,
    CUDNN_STATUS_BAD_PARAM_NULL_POINTER = 2002,
    CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT = 2006,
    CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH = 2008,
    CUDNN_STATUS_NOT_SUPPORTED = 3000,
    CUDNN_STATUS_NOT_SUPPORTED_SHAPE = 3002,
    CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE = 3003,
    CUDNN_STATUS_NOT_SUPPORTED_LAYOUT = 3004,
    CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH = 3007,
    CUDNN_STATUS_INTERNAL_ERROR = 4000,
    CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED = 4003,
    CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED = 4004,
    CUDNN_STATUS_EXECUTION_FAILED = 5000,
    CUDNN_STATUS_ALLOC_FAILED = CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED
} cudnnStatus_t;

typedef enum {
    CUDNN_DATA_FLOAT = 0,
    CUDNN_DATA_DOUBLE = 1,
    CUDNN_DATA_HALF = 2,
    CUDNN_DATA_BFLOAT16 = 9
} cudnnDataType_t;
typedef enum {
    CUDNN_DEFAULT_MATH = 0,
    CUDNN_TENSOR_OP_MATH = 1,
    CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION = 2,
    CUDNN_FMA_MATH = 3
} cudnnMathType_t;
typedef enum { CUDNN_NOT_PROPAGATE_NAN = 0, CUDNN_PROPAGATE_NAN = 1 } cudnnNanPropagation_t;
typedef enum { CUDNN_NON_DETERMINISTIC = 0, CUDNN_DETERMINISTIC = 1 } cudnnDeterminism_t;
typedef enum { CUDNN_TENSOR_NCHW = 0, CUDNN_TENSOR_NHWC = 1, CUDNN_TENSOR_NCHW_VECT_C = 2 } cudnnTensorFormat_t;
typedef enum { CUDNN_CONVOLUTION = 0, CUDNN_CROSS_CORRELATION = 1 } cudnnConvolutionMode_t;
typedef enum {
    CUDNN_ACTIVATION_SIGMOID = 0,
    CUDNN_ACTIVATION_RELU = 1,
    CUDNN_ACTIVATION_TANH = 2,
    CUDNN_ACTIVATION_CLIPPED_RELU = 3,
    CUDNN_ACTIVATION_ELU = 4,
    CUDNN_ACTIVATION_IDENTITY = 5,
    CUDNN_ACTIVATION_SWISH = 6
} cudnnActivationMode_t;
typedef enum {
    CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM = 0,
    CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM = 1,
    CUDNN_CONVOLUTION_FWD_ALGO_GEMM = 2,
    CUDNN_CONVOLUTION_FWD_ALGO_DIRECT = 3,
    CUDNN_CONVOLUTION_FWD_ALGO_FFT = 4,
    CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING = 5,
    CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD = 6,
    CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED = 7,
    CUDNN_CONVOLUTION_FWD_ALGO_COUNT = 8
} cudnnConvolutionFwdAlgo_t;
typedef enum {
    CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0 = 0,
    CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1 = 1,
    CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT = 2,
    CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3 = 3,
    CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD = 4,
    CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED = 5,
    CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT_TILING = 6,
    CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT = 7
} cudnnConvolutionBwdFilterAlgo_t;
typedef enum {
    CUDNN_CONVOLUTION_BWD_DATA_ALGO_0 = 0,
    CUDNN_CONVOLUTION_BWD_DATA_ALGO_1 = 1,
    CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT = 2,
    CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT_TILING = 3,
    CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD = 4,
    CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD_NONFUSED = 5,
    CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT = 6
} cudnnConvolutionBwdDataAlgo_t;

typedef struct cudnnContext *cudnnHandle_t;
typedef struct cudnnTensorStruct *cudnnTensorDescriptor_t;
typedef struct cudnnFilterStruct *cudnnFilterDescriptor_t;
typedef struct cudnnConvolutionStruct *cudnnConvolutionDescriptor_t;
typedef struct cudnnActivationStruct *cudnnActivationDescriptor_t;

typedef struct cudnnConvolutionFwdAlgoPerfStruct {
    cudnnConvolutionFwdAlgo_t algo;
    cudnnStatus_t status;
    float time;
    size_t memory;
    cudnnDeterminism_t determinism;
    cudnnMathType_t mathType;
    int reserved[3];
} cudnnConvolutionFwdAlgoPerf_t;
typedef struct cudnnConvolutionBwdDataAlgoPerfStruct {
    cudnnConvolutionBwdDataAlgo_t algo;
    cudnnStatus_t status;
    float time;
    size_t memory;
    cudnnDeterminism_t determinism;
    cudnnMathType_t mathType;
    int reserved[3];
} cudnnConvolutionBwdDataAlgoPerf_t;
typedef struct cudnnConvolutionBwdFilterAlgoPerfStruct {
    cudnnConvolutionBwdFilterAlgo_t algo;
    cudnnStatus_t status;
    float time;
    size_t memory;
    cudnnDeterminism_t determinism;
    cudnnMathType_t mathType;
    int reserved[3];
} cudnnConvolutionBwdFilterAlgoPerf_t;

CUDA_EMULATED_API size_t cudnnGetVersion(void);
CUDA_EMULATED_API const char *cudnnGetErrorString(cudnnStatus_t status);
CUDA_EMULATED_API void cudnnGetLastErrorString(char *message, size_t bytes);
CUDA_EMULATED_API cudnnStatus_t cudnnCreate(cudnnHandle_t *handle);
CUDA_EMULATED_API cudnnStatus_t cudnnDestroy(cudnnHandle_t handle);
CUDA_EMULATED_API cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream);
CUDA_EMULATED_API cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, cudaStream_t *stream);
CUDA_EMULATED_API cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t *out);
CUDA_EMULATED_API cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t desc, cudnnTensorFormat_t format,
                                                           cudnnDataType_t type, int n, int c, int h, int w);
CUDA_EMULATED_API cudnnStatus_t cudnnSetTensor4dDescriptorEx(cudnnTensorDescriptor_t desc, cudnnDataType_t type, int n,
                                                             int c, int h, int w, int n_stride, int c_stride,
                                                             int h_stride, int w_stride);
CUDA_EMULATED_API cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t desc, cudnnDataType_t type, int dims,
                                                           const int dim[], const int stride[]);
CUDA_EMULATED_API cudnnStatus_t cudnnSetTensorNdDescriptorEx(cudnnTensorDescriptor_t desc, cudnnTensorFormat_t format,
                                                             cudnnDataType_t type, int dims, const int dim[]);
CUDA_EMULATED_API cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t desc);
CUDA_EMULATED_API cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t *out);
CUDA_EMULATED_API cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t desc, cudnnDataType_t type,
                                                           cudnnTensorFormat_t format, int k, int c, int h, int w);
CUDA_EMULATED_API cudnnStatus_t cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t desc, cudnnDataType_t type,
                                                           cudnnTensorFormat_t format, int dims, const int dim[]);
CUDA_EMULATED_API cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t desc);
CUDA_EMULATED_API cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t *out);
CUDA_EMULATED_API cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t desc, int pad_h, int pad_w,
                                                                int stride_h, int stride_w, int dilation_h,
                                                                int dilation_w, cudnnConvolutionMode_t mode,
                                                                cudnnDataType_t compute);
CUDA_EMULATED_API cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t desc, cudnnMathType_t math);
CUDA_EMULATED_API cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t desc, int groups);
CUDA_EMULATED_API cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t desc);
CUDA_EMULATED_API cudnnStatus_t cudnnCreateActivationDescriptor(cudnnActivationDescriptor_t *out);
CUDA_EMULATED_API cudnnStatus_t cudnnSetActivationDescriptor(cudnnActivationDescriptor_t desc,
                                                             cudnnActivationMode_t mode, cudnnNanPropagation_t nan,
                                                             double coefficient);
CUDA_EMULATED_API cudnnStatus_t cudnnDestroyActivationDescriptor(cudnnActivationDescriptor_t desc);
CUDA_EMULATED_API cudnnStatus_t cudnnGetConvolution2dForwardOutputDim(cudnnConvolutionDescriptor_t conv,
                                                                      cudnnTensorDescriptor_t x,
                                                                      cudnnFilterDescriptor_t w, int *n, int *c, int *h,
                                                                      int *width);
CUDA_EMULATED_API cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(
    cudnnHandle_t handle, cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w, cudnnConvolutionDescriptor_t conv,
    cudnnTensorDescriptor_t y, int wanted, int *count, cudnnConvolutionFwdAlgoPerf_t *results);
CUDA_EMULATED_API cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(
    cudnnHandle_t handle, cudnnFilterDescriptor_t w, cudnnTensorDescriptor_t dy, cudnnConvolutionDescriptor_t conv,
    cudnnTensorDescriptor_t dx, int wanted, int *count, cudnnConvolutionBwdDataAlgoPerf_t *results);
CUDA_EMULATED_API cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(
    cudnnHandle_t handle, cudnnTensorDescriptor_t x, cudnnTensorDescriptor_t dy, cudnnConvolutionDescriptor_t conv,
    cudnnFilterDescriptor_t dw, int wanted, int *count, cudnnConvolutionBwdFilterAlgoPerf_t *results);
CUDA_EMULATED_API cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(cudnnHandle_t handle, cudnnTensorDescriptor_t x,
                                                                        cudnnFilterDescriptor_t w,
                                                                        cudnnConvolutionDescriptor_t conv,
                                                                        cudnnTensorDescriptor_t y,
                                                                        cudnnConvolutionFwdAlgo_t algo, size_t *bytes);
CUDA_EMULATED_API cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(
    cudnnHandle_t handle, cudnnFilterDescriptor_t w, cudnnTensorDescriptor_t dy, cudnnConvolutionDescriptor_t conv,
    cudnnTensorDescriptor_t dx, cudnnConvolutionBwdDataAlgo_t algo, size_t *bytes);
CUDA_EMULATED_API cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(
    cudnnHandle_t handle, cudnnTensorDescriptor_t x, cudnnTensorDescriptor_t dy, cudnnConvolutionDescriptor_t conv,
    cudnnFilterDescriptor_t dw, cudnnConvolutionBwdFilterAlgo_t algo, size_t *bytes);
CUDA_EMULATED_API cudnnStatus_t cudnnConvolutionForward(
    cudnnHandle_t handle, const void *alpha, cudnnTensorDescriptor_t x_desc, const void *x,
    cudnnFilterDescriptor_t w_desc, const void *w, cudnnConvolutionDescriptor_t conv, cudnnConvolutionFwdAlgo_t algo,
    void *workspace, size_t workspace_bytes, const void *beta, cudnnTensorDescriptor_t y_desc, void *y);
CUDA_EMULATED_API cudnnStatus_t cudnnConvolutionBiasActivationForward(
    cudnnHandle_t handle, const void *alpha1, cudnnTensorDescriptor_t x_desc, const void *x,
    cudnnFilterDescriptor_t w_desc, const void *w, cudnnConvolutionDescriptor_t conv, cudnnConvolutionFwdAlgo_t algo,
    void *workspace, size_t workspace_bytes, const void *alpha2, cudnnTensorDescriptor_t z_desc, const void *z,
    cudnnTensorDescriptor_t bias_desc, const void *bias, cudnnActivationDescriptor_t activation,
    cudnnTensorDescriptor_t y_desc, void *y);
CUDA_EMULATED_API cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void *alpha,
                                                             cudnnFilterDescriptor_t w_desc, const void *w,
                                                             cudnnTensorDescriptor_t dy_desc, const void *dy,
                                                             cudnnConvolutionDescriptor_t conv,
                                                             cudnnConvolutionBwdDataAlgo_t algo, void *workspace,
                                                             size_t workspace_bytes, const void *beta,
                                                             cudnnTensorDescriptor_t dx_desc, void *dx);
CUDA_EMULATED_API cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void *alpha,
                                                               cudnnTensorDescriptor_t x_desc, const void *x,
                                                               cudnnTensorDescriptor_t dy_desc, const void *dy,
                                                               cudnnConvolutionDescriptor_t conv,
                                                               cudnnConvolutionBwdFilterAlgo_t algo, void *workspace,
                                                               size_t workspace_bytes, const void *beta,
                                                               cudnnFilterDescriptor_t dw_desc, void *dw);
CUDA_EMULATED_API cudnnStatus_t cudnnConvolutionBackwardBias(cudnnHandle_t handle, const void *alpha,
                                                             cudnnTensorDescriptor_t dy_desc, const void *dy,
                                                             const void *beta, cudnnTensorDescriptor_t db_desc,
                                                             void *db);

#ifdef __cplusplus
}
#endif
#endif
