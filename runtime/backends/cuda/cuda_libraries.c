/* See cuda_libraries.h and cuda_nvml.h. */
#include "runtime/backends/cuda/kit/cuda_libraries.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "runtime/backends/cuda/cuda_nvml.h"
#include "runtime/backends/kit/module_host.h"
#include "runtime/backends/nvidia/library.h"

static bool is_new_enough(const tdm_nvidia_library *library, void *handle, size_t *version, char *why, size_t bytes) {
    size_t (*get)(void) = NULL;
    void *address = dlsym(handle, library->get_version);
    if (address == NULL) {
        snprintf(why, bytes, "has no %s", library->get_version);
        return false;
    }
    memcpy(&get, &address, sizeof get);
    *version = get();
    if (*version < library->least)
        snprintf(why, bytes, "is version %s, %s or newer is needed", tdm__cuda_version_text(*version).of,
                 tdm__cuda_version_text(library->least).of);
    else
        snprintf(why, bytes, "version %s", tdm__cuda_version_text(*version).of);
    return *version >= library->least;
}

#define TDM_SYMBOL(name) {#name, offsetof(tdm_cublaslt, name), false},
static const tdm_nvidia_symbol blas_symbols[] = {
#include "runtime/backends/cuda/kit/cublaslt.def"
};
#undef TDM_SYMBOL
static const tdm_nvidia_library blas = {"libcublasLt.so.13",  is_new_enough,
                                        "cublasLtGetVersion", 130000,
                                        blas_symbols,         sizeof blas_symbols / sizeof blas_symbols[0]};

#ifndef TDM_CUDA_NO_CUDNN
#define TDM_SYMBOL(name) {#name, offsetof(tdm_cudnn, name), false},
static const tdm_nvidia_symbol dnn_symbols[] = {
#include "runtime/backends/cuda/kit/cudnn.def"
};
#undef TDM_SYMBOL
static const tdm_nvidia_library dnn = {"libcudnn.so.9", is_new_enough, "cudnnGetVersion",
                                       90000,           dnn_symbols,   sizeof dnn_symbols / sizeof dnn_symbols[0]};
#endif

#define TDM_SYMBOL(name, result, parameters) {#name, offsetof(tdm_nvml, name), false},
static const tdm_nvidia_symbol nvml_symbols[] = {
#include "runtime/backends/cuda/nvml.def"
};
#undef TDM_SYMBOL
static const tdm_nvidia_library nvml_library = {
    "libnvidia-ml.so.1", NULL, NULL, 0, nvml_symbols, sizeof nvml_symbols / sizeof nvml_symbols[0]};

bool tdm__cuda_libraries_open(tdm_cuda_libraries *libraries, const char *folders) {
    tdm_cuda_libraries *l = libraries;
    memset(l, 0, sizeof *l);
    /* cublasLt comes first: cuDNN uses it, too, and takes the copy that is already loaded. */
    l->blas.handle = tdm__nvidia_open(&blas, &l->blas, &l->blas.version, folders, l->blas_text, sizeof l->blas_text);
    if (l->blas.handle == NULL) return false;
#ifdef TDM_CUDA_NO_CUDNN
    snprintf(l->dnn_text, sizeof l->dnn_text, "tandem was built without cudnn.h");
#else
    l->dnn.handle = tdm__nvidia_open(&dnn, &l->dnn, &l->dnn.version, folders, l->dnn_text, sizeof l->dnn_text);
#endif
    return true;
}

void tdm__cuda_libraries_close(tdm_cuda_libraries *libraries) {
    if (libraries->dnn.handle != NULL) dlclose(libraries->dnn.handle);
    if (libraries->blas.handle != NULL) dlclose(libraries->blas.handle);
    memset(libraries, 0, sizeof *libraries);
}

const tdm_cuda_libraries *tdm__cuda_libraries(char *why, size_t bytes) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static tdm_cuda_libraries found;
    pthread_mutex_lock(&lock);
    const bool usable =
        found.blas.handle != NULL || tdm__cuda_libraries_open(&found, tdm__module_variable("TANDEM_CUDA_LIBRARIES"));
    if (!usable && why != NULL)
        snprintf(why, bytes,
                 "cublasLt 13 was not found: %s; install CUDA's libcublas 13, or name its folder in "
                 "TANDEM_CUDA_LIBRARIES",
                 found.blas_text);
    pthread_mutex_unlock(&lock);
    return usable ? &found : NULL;
}

bool tdm__cuda_nvml_open(tdm_nvml *nvml, char *text, size_t bytes) {
    size_t version = 0;
    memset(nvml, 0, sizeof *nvml);
    nvml->handle =
        tdm__nvidia_open(&nvml_library, nvml, &version, tdm__module_variable("TANDEM_CUDA_LIBRARIES"), text, bytes);
    return nvml->handle != NULL;
}

void tdm__cuda_nvml_close(tdm_nvml *nvml) {
    if (nvml->handle != NULL) dlclose(nvml->handle);
    memset(nvml, 0, sizeof *nvml);
}
