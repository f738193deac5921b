/* cublasLt and cuDNN, found when the module is first asked: nothing of them is linked, so that the module opens, and
 * says what is missing, on any machine. */
#ifndef TDM_CUDA_LIBRARIES_H
#define TDM_CUDA_LIBRARIES_H

#include <stdbool.h>
#include <stddef.h>

#include <cublasLt.h>
#ifndef TDM_CUDA_NO_CUDNN /* built where cudnn.h is absent */
#include <cudnn.h>
#endif

/* A member per function, of its name and type. */
#define TDM_SYMBOL(name) __typeof__(&name) name;
typedef struct tdm_cublaslt {
    void *handle;
    size_t version; /* 130100: 13.1.0 */
#include "runtime/backends/cuda/kit/cublaslt.def"
} tdm_cublaslt;

typedef struct tdm_cudnn {
    void *handle;   /* NULL: absent */
    size_t version; /* 92800: 9.28.0 */
#ifndef TDM_CUDA_NO_CUDNN
#include "runtime/backends/cuda/kit/cudnn.def"
#endif
} tdm_cudnn;
#undef TDM_SYMBOL

typedef struct tdm_cuda_libraries {
    tdm_cublaslt blas;
    tdm_cudnn dnn;
    /* Of each: the path it was opened from; where it is absent, every path tried and why it did not serve. */
    char blas_text[512], dnn_text[512];
} tdm_cuda_libraries;

/* Looks in `folders` (separated by ':', NULL: none), then asks the loader. False without cublasLt. */
bool tdm__cuda_libraries_open(tdm_cuda_libraries *libraries, const char *folders);
void tdm__cuda_libraries_close(tdm_cuda_libraries *libraries);

/* Those of the process, which stay open: opened by the first call that finds cublasLt, in the folders of
 * TANDEM_CUDA_LIBRARIES. NULL without it; `why`, if not NULL, gets the sentence. Any thread. */
const tdm_cuda_libraries *tdm__cuda_libraries(char *why, size_t bytes);

#endif
