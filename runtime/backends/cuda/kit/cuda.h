/* The kit of the CUDA module for kernels: the device behind a call, errors of CUDA, and launching kernels. Kernels that
 * call cublasLt or cuDNN also include library.h; .cu files begin with kernel.h.
 *
 * The module is built twice: by nvcc and the C compiler against the CUDA toolkit (libtandem-cuda.so), and by the C and
 * C++ compilers against tests/fake/cuda, which emulates CUDA on the host (libtandem-cuda-emulated.so), so that the
 * tests run every line of it on a machine without a GPU. */
#ifndef TDM_CUDA_KIT_H
#define TDM_CUDA_KIT_H

#include <cuda_runtime_api.h>

#include <tandem/sys/device.h>

#include "runtime/backends/kit/module_host.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Calls the CUDA runtime. A failure becomes TDM_E_DEVICE (TDM_E_MEMORY for a lack of memory), and the message names the
 * call. */
#define TDM_CUDA(call)                                                                        \
    do {                                                                                      \
        cudaError_t error_ = (call);                                                          \
        if (error_ != cudaSuccess) return tdm__cuda_error(error_, #call, __FILE__, __LINE__); \
    } while (0)
tdm_status tdm__cuda_error(cudaError_t error, const char *call, const char *file, int line);

/* Reports a failed call whose result has already been looked at. */
#define TDM_CUDA_RESULT(error, call)                                                             \
    do {                                                                                         \
        if ((error) != cudaSuccess) return tdm__cuda_error((error), (call), __FILE__, __LINE__); \
    } while (0)

/* Every function of the device begins with this: CUDA's current device belongs to the thread, and a device may be used
 * by different threads in turn. */
#define TDM_CUDA_ENTER(device)                              \
    do {                                                    \
        const cudaError_t enter_ = tdm__cuda_enter(device); \
        TDM_CUDA_RESULT(enter_, "cudaSetDevice");           \
    } while (0)
cudaError_t tdm__cuda_enter(const tdm_device *device);

struct tdm_cuda_libraries; /* cublasLt, cuDNN: kit/library.h */

typedef struct tdm_cuda_device {
    tdm_device base;
    cudaStream_t stream; /* the device's own queue */
    tdm_precision precision;
    bool deterministic;
    const struct tdm_cuda_libraries *libraries;
    void *blas, *dnn; /* cublasLtHandle_t; cudnnHandle_t, NULL without cuDNN */
    /* Used by one library call at a time: all of them run on `stream`. tdm__cuda_workspace grows it while kernels are
     * opened, never later. */
    void *workspace;
    size_t workspace_bytes;
    unsigned *turns; /* TDM_CUDA_TURNS counters, used like the workspace; every user leaves them 0 */
} tdm_cuda_device;

static inline tdm_cuda_device *tdm__cuda_device(tdm_device *device) {
    return (tdm_cuda_device *)device;
}

/* The workspace that every device has from the start: for losses and clipping, which have no open. */
enum { TDM_CUDA_WORKSPACE_LEAST = 1 << 20, TDM_CUDA_TURNS = 4096 };
/* Grows the workspace to at least `bytes`. Only from a kernel's open. */
tdm_status tdm__cuda_workspace(tdm_cuda_device *device, size_t bytes);

/* The element type behind a pointer, for kernels that exist for both. bf16: uint16_t, the upper half of a float. */
typedef enum tdm_cuda_number { TDM_CUDA_FLOAT, TDM_CUDA_BF16 } tdm_cuda_number;

static inline size_t tdm__cuda_size(tdm_cuda_number number) {
    return number == TDM_CUDA_BF16 ? sizeof(uint16_t) : sizeof(float);
}
/* Returns &from[index]. */
static inline const void *tdm__cuda_at(const void *from, int64_t index, tdm_cuda_number number) {
    return (const char *)from + index * (int64_t)tdm__cuda_size(number);
}

/* A matrix product, such as y[rows, out] = x[rows, in] w[out, in]^T (+ bias)(then max(0, y)) and the two products of
 * its backward. Row-major, all in the device's memory. Sums are in float. Open chooses the algorithm for these sizes. */
typedef struct tdm_cuda_matmul tdm_cuda_matmul;
typedef struct tdm_cuda_matmul_shape {
    int64_t m, n, k;               /* c[m, n] = op(a)[m, k] op(b)[k, n] */
    bool transpose_a, transpose_b; /* a is stored [k, m], b is stored [n, k] */
    tdm_cuda_number factors;       /* a and b */
    tdm_cuda_number result;        /* c, and the bias */
    bool bias, clamp;              /* c = max(0, c + bias[n]); the bias runs along n */
    int64_t batch;                 /* number of products, 1 or more; strides count elements */
    int64_t stride_a, stride_b, stride_c;
} tdm_cuda_matmul_shape;
tdm_status tdm__cuda_matmul_open(tdm_cuda_matmul **out, tdm_cuda_device *device, const tdm_cuda_matmul_shape *shape);
tdm_status tdm__cuda_matmul_run(tdm_cuda_matmul *matmul, const void *a, const void *b, const void *bias, void *c);
void tdm__cuda_matmul_close(tdm_cuda_matmul *matmul); /* NULL is allowed */

/* ops/cuda_kernels.c: the module's kernels; ends with NULL. Declared here because in C++ a constant is otherwise local
 * to its file. */
extern const tdm_kernel *const tdm__cuda_kernels[];
extern const tdm_loss_kernel *const tdm__cuda_losses[];
extern const tdm_optim_kernel *const tdm__cuda_optims[];

#ifdef __cplusplus
}
#endif

/* ---- in .cu files ---- */
#ifdef __cplusplus
/* TDM_LAUNCH(kernel, blocks, threads, stream, arguments...): a statement. If the launch fails, the calling function
 * returns the error. */
#ifdef TDM_CUDA_EMULATED
#include <cuda_emulated.h>
#define TDM_LAUNCH(kernel, blocks, threads, stream, ...)                                   \
    do {                                                                                   \
        cuda_emulated::launch(kernel, dim3(blocks), dim3(threads), (stream), __VA_ARGS__); \
        TDM_CUDA(cudaGetLastError());                                                      \
    } while (0)
#else
#define TDM_LAUNCH(kernel, blocks, threads, stream, ...)                   \
    do {                                                                   \
        kernel<<<dim3(blocks), dim3(threads), 0, (stream)>>>(__VA_ARGS__); \
        TDM_CUDA(cudaGetLastError());                                      \
    } while (0)
#endif
#endif
#endif
