/* cublasLt and cuDNN, opened when they are first needed. The module does not link them, so it opens on any machine and
 * can say what is missing. */
#ifndef TDM_CUDA_LIBRARIES_H
#define TDM_CUDA_LIBRARIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <cublasLt.h>
#ifndef TDM_CUDA_NO_CUDNN /* set if cudnn.h was absent from the build */
#include <cudnn.h>
#endif

/* A version of either library as people write it: "13.1.0" for 130100. */
typedef struct tdm_cuda_version {
    char of[32];
} tdm_cuda_version;
static inline tdm_cuda_version tdm__cuda_version_text(size_t version) {
    tdm_cuda_version text;
    snprintf(text.of, sizeof text.of, "%zu.%zu.%zu", version / 10000, version / 100 % 100, version % 100);
    return text;
}

/* One member per function, with its name and type. */
#define TDM_SYMBOL(name) __typeof__(&name) name;
typedef struct tdm_cublaslt {
    void *handle;
    size_t version;
#include "runtime/backends/cuda/kit/cublaslt.def"
} tdm_cublaslt;

typedef struct tdm_cudnn {
    void *handle; /* NULL: absent */
    size_t version;
#ifndef TDM_CUDA_NO_CUDNN
#include "runtime/backends/cuda/kit/cudnn.def"
#endif
} tdm_cudnn;
#undef TDM_SYMBOL

typedef struct tdm_cuda_libraries {
    tdm_cublaslt blas;
    tdm_cudnn dnn;
    /* For each: the path it was opened from; if absent, every path tried and why it would not do. */
    char blas_text[512], dnn_text[512];
} tdm_cuda_libraries;

/* Opens the libraries: searches `folders` (separated by ':', NULL: none), then asks the loader. Returns false without
 * cublasLt. */
bool tdm__cuda_libraries_open(tdm_cuda_libraries *libraries, const char *folders);
void tdm__cuda_libraries_close(tdm_cuda_libraries *libraries);

/* The libraries of the process, which stay open. The first call that finds cublasLt opens them, searching the folders
 * of TANDEM_CUDA_LIBRARIES first. Returns NULL without cublasLt; `why`, if not NULL, gets the reason as a sentence. Any
 * thread. */
const tdm_cuda_libraries *tdm__cuda_libraries(char *why, size_t bytes);

#endif
