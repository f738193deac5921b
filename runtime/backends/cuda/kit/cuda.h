/* The kit of the CUDA module, for kernels: the device behind a call, errors of CUDA, and how kernels are started.
 * Kernels that call cublasLt or cuDNN want library.h, too; .cu files begin with kernel.h.
 *
 * The module is compiled twice: by nvcc and the C compiler against the CUDA toolkit (libtandem-cuda.so), and by the
 * C and C++ compilers against tests/fake/cuda, which plays CUDA on the host (libtandem-cuda-emulated.so), so that every
 * line of it runs in the tests of a machine without a GPU. */
#ifndef TDM_CUDA_KIT_H
#define TDM_CUDA_KIT_H

#include <cuda_runtime_api.h>

#include <tandem/sys/device.h>
#include <tandem/sys/module.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The calls that tandem handed over; valid after init. */
const tdm_host_calls *tdm__cuda_host(void);
void tdm__cuda_init(const tdm_host_calls *calls);

#define TDM_CUDA_FAIL(code, ...) return tdm__cuda_host()->fail((code), __FILE__, __LINE__, NULL, __VA_ARGS__)
/* A status, passed on with a frame. */
#define TDM_CUDA_TRY(expression)                                                                    \
    do {                                                                                            \
        tdm_status try_status_ = (expression);                                                      \
        if (try_status_ != TDM_OK) return tdm__cuda_host()->frame(try_status_, __FILE__, __LINE__); \
    } while (0)
/* A call of the CUDA runtime; a failure becomes TDM_E_DEVICE (TDM_E_MEMORY when memory was short) and names the call.
 */
#define TDM_CUDA(call)                                                                        \
    do {                                                                                      \
        cudaError_t error_ = (call);                                                          \
        if (error_ != cudaSuccess) return tdm__cuda_error(error_, #call, __FILE__, __LINE__); \
    } while (0)
tdm_status tdm__cuda_error(cudaError_t error, const char *call, const char *file, int line);

struct tdm_cuda_libraries; /* cublasLt, cuDNN: kit/library.h */

typedef struct tdm_cuda_device {
    tdm_device base;
    cudaStream_t stream; /* the device's own queue */
    int precision;       /* tdm_precision of tandem/job.h */
    bool deterministic;
    const struct tdm_cuda_libraries *libraries;
    void *blas, *dnn; /* cublasLtHandle_t; cudnnHandle_t, NULL without cuDNN */
    /* Lent to one library call at a time: all run on `stream`. Grown by tdm__cuda_workspace while kernels are opened,
     * never later. */
    void *workspace;
    size_t workspace_bytes;
    unsigned *turns; /* TDM_CUDA_TURNS of them, lent likewise; 0, and left so */
} tdm_cuda_device;

static inline tdm_cuda_device *tdm__cuda_device(tdm_device *device) {
    return (tdm_cuda_device *)device;
}

/* What every device's workspace has from the start: for losses and clipping, which nobody opens. */
enum { TDM_CUDA_WORKSPACE_LEAST = 1 << 20, TDM_CUDA_TURNS = 4096 };
/* The workspace has at least `bytes` afterwards. Only from a kernel's open. */
tdm_status tdm__cuda_workspace(tdm_cuda_device *device, size_t bytes);

/* What a pointer points to where kernels exist for both. bf16: uint16_t, the upper half of a float. */
typedef enum tdm_cuda_number { TDM_CUDA_FLOAT, TDM_CUDA_BF16 } tdm_cuda_number;

static inline size_t tdm__cuda_size(tdm_cuda_number number) {
    return number == TDM_CUDA_BF16 ? sizeof(uint16_t) : sizeof(float);
}
/* As &from[index]. */
static inline const void *tdm__cuda_at(const void *from, int64_t index, tdm_cuda_number number) {
    return (const char *)from + index * (int64_t)tdm__cuda_size(number);
}

/* y[rows, out] = x[rows, in] w[out, in]^T (+ bias)(then relu), and the two products of its backward; row-major, all in
 * the device's memory. Sums are taken in float. Algorithms are chosen at open, for these sizes. */
typedef struct tdm_cuda_matmul tdm_cuda_matmul;
typedef struct tdm_cuda_matmul_shape {
    int64_t m, n, k;               /* c[m, n] = op(a)[m, k] op(b)[k, n] */
    bool transpose_a, transpose_b; /* a is stored [k, m], b is stored [n, k] */
    tdm_cuda_number factors;       /* a and b */
    tdm_cuda_number result;        /* c, and the bias */
    bool bias, relu;               /* c = max(0, c + bias[n]); bias along n */
    int64_t batch;                 /* 1, or so many products side by side; strides in numbers */
    int64_t stride_a, stride_b, stride_c;
} tdm_cuda_matmul_shape;
tdm_status tdm__cuda_matmul_open(tdm_cuda_matmul **out, tdm_cuda_device *device, const tdm_cuda_matmul_shape *shape);
tdm_status tdm__cuda_matmul_run(tdm_cuda_matmul *matmul, const void *a, const void *b, const void *bias, void *c);
void tdm__cuda_matmul_close(tdm_cuda_matmul *matmul); /* NULL is fine */

/* ops/cuda_kernels.c: those of the module; end with NULL. Declared here for C++, where a definition alone is local. */
extern const tdm_kernel *const tdm__cuda_kernels[];
extern const tdm_loss_kernel *const tdm__cuda_losses[];
extern const tdm_optim_kernel *const tdm__cuda_optims[];

#ifdef __cplusplus
}
#endif

/* ---- in .cu files ---- */
#ifdef __cplusplus
/* TDM_LAUNCH(kernel, blocks, threads, stream, arguments...): a statement; a failed start returns from the function. */
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
