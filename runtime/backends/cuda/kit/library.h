/* The part of the kit for kernels that call cublasLt or cuDNN: the libraries, their errors, and trials of algorithms.
 */
#ifndef TDM_CUDA_KIT_LIBRARY_H
#define TDM_CUDA_KIT_LIBRARY_H

#include <tandem/job.h>

#include "runtime/backends/cuda/kit/cuda.h"
#include "runtime/backends/cuda/kit/cuda_libraries.h"
#include "runtime/base/round.h"

/* cuda_trial.c: memory on which an algorithm of a library is run once before it is chosen. All its input is NaN, so all
 * its output must be. */
typedef struct tdm_cuda_trial {
    tdm_cuda_device *device;
    char *in, *out; /* NULL: there was no memory, so nothing can be tried */
    size_t in_bytes, out_bytes;
} tdm_cuda_trial;
void tdm__cuda_trial_open(tdm_cuda_trial *trial, tdm_cuda_device *device, size_t in_bytes, size_t out_bytes);
void tdm__cuda_trial_close(tdm_cuda_trial *trial);
tdm_status tdm__cuda_trial_begin(const tdm_cuda_trial *trial);
/* Ends a trial and waits for it. `refused`: the library did not start it. *passes_nan: the first `count` elements from
 * `out` on are NaN. */
tdm_status tdm__cuda_trial_end(const tdm_cuda_trial *trial, bool refused, const void *out, tdm_cuda_number number,
                               size_t count, bool *passes_nan);

/* What products and convolutions read: the precision of x, y, their gradients and the parameters. */
static inline tdm_cuda_number tdm__cuda_number_of(const tdm_kernel_desc *desc) {
    return desc->precision == TDM_BF16 ? TDM_CUDA_BF16 : TDM_CUDA_FLOAT;
}
static inline const void *tdm__cuda_parameter(const tdm_kernel_args *args, int i) {
    return args->desc->precision == TDM_BF16 ? args->param_bf16[i] : args->param[i];
}
/* Rounds the size of one part of scratch, so that the next is aligned. */
static inline size_t tdm__cuda_part(size_t bytes) {
    return tdm__round_up(bytes, 256);
}

/* cuda_matmul.c: describes the algorithm that was chosen for aligned operands. `fused`: how people call nothing, a
 * bias, a clamp, and both. */
void tdm__cuda_matmul_algorithm(const tdm_cuda_matmul *matmul, const char *pass, const char *const fused[4],
                                tdm_algorithms *out);
/* Returns how many bytes at the start of the workspace `run` may use. NULL: 0. */
size_t tdm__cuda_matmul_workspace(const tdm_cuda_matmul *matmul);

/* Returns "f32", "tf32" or "bf16": what products on this device round these elements to. */
const char *tdm__cuda_math(const tdm_cuda_device *device, tdm_cuda_number number);

/* Turns a failed call of cublasLt or cuDNN into a status and a message; `call` is the source text of the call. */
tdm_status tdm__cublas_error(const tdm_cuda_libraries *libraries, cublasStatus_t status, const char *call,
                             const char *file, int line);
#define TDM_CUBLAS(libraries, call)                                                         \
    do {                                                                                    \
        cublasStatus_t blas_status_ = (libraries)->blas.call;                               \
        if (blas_status_ != CUBLAS_STATUS_SUCCESS)                                          \
            return tdm__cublas_error((libraries), blas_status_, #call, __FILE__, __LINE__); \
    } while (0)
#ifndef TDM_CUDA_NO_CUDNN
tdm_status tdm__cudnn_error(const tdm_cuda_libraries *libraries, cudnnStatus_t status, const char *call,
                            const char *file, int line);
#define TDM_CUDNN(libraries, call)                                                        \
    do {                                                                                  \
        cudnnStatus_t dnn_status_ = (libraries)->dnn.call;                                \
        if (dnn_status_ != CUDNN_STATUS_SUCCESS)                                          \
            return tdm__cudnn_error((libraries), dnn_status_, #call, __FILE__, __LINE__); \
    } while (0)
#endif

#endif
