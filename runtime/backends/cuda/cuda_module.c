/* libtandem-cuda.so: NVIDIA GPUs as devices, and the kernels for them; opened at run time on demand. The CUDA runtime
 * is linked in. Driver, cublasLt and cuDNN are looked up here, and the message names what is missing. */
#include <dlfcn.h>
#include <stdio.h>

#include "runtime/backends/cuda/cuda_private.h"

enum { CUDA_MAJOR = CUDART_VERSION / 1000 };

/* The runtime says "no device" without a driver, too; whether libcuda.so.1 can be loaded tells the two apart. */
static bool has_driver(char *text, size_t bytes) {
#ifndef TDM_CUDA_EMULATED
    if (dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL) == NULL) { /* stays open: the runtime needs it next */
        snprintf(text, bytes, "there is no NVIDIA driver on this machine: %s", dlerror());
        return false;
    }
#endif
    int version = 0;
    const cudaError_t error = cudaDriverGetVersion(&version);
    if (error != cudaSuccess || version == 0) {
        snprintf(text, bytes, "there is no NVIDIA driver on this machine: %s",
                 error != cudaSuccess ? cudaGetErrorString(error) : "cudaDriverGetVersion is 0");
        return false;
    }
    if (version >= CUDA_MAJOR * 1000) return true;
    snprintf(text, bytes,
             "the NVIDIA driver is too old: CUDA %d is needed, it has CUDA %d.%d; update it, or build tandem with "
             "CUDA %d",
             CUDA_MAJOR, version / 1000, version % 1000 / 10, version / 1000);
    return false;
}

static bool has_device(char *text, size_t bytes, int *count) {
    *count = 0;
    const cudaError_t error = cudaGetDeviceCount(count);
    if (error == cudaSuccess && *count > 0) return true;
    (void)cudaGetLastError();
    if (error == cudaSuccess || error == cudaErrorNoDevice) {
        snprintf(text, bytes,
                 "the NVIDIA driver shows no GPU to this process; see nvidia-smi and "
                 "CUDA_VISIBLE_DEVICES");
    } else {
        snprintf(text, bytes, "the number of GPUs cannot be read: %s, %s", cudaGetErrorName(error),
                 cudaGetErrorString(error));
    }
    return false;
}

static int probe(char *text, size_t bytes) {
    int count = 0, runtime = CUDART_VERSION;
    struct cudaDeviceProp properties;
    char more[32] = "", dnn[64] = "no cuDNN";
    if (!has_driver(text, bytes) || !has_device(text, bytes, &count)) return 0;
    const tdm_cuda_libraries *libraries = tdm__cuda_libraries(text, bytes);
    if (libraries == NULL) return 0;
    if (cudaGetDeviceProperties(&properties, 0) != cudaSuccess) {
        snprintf(text, bytes, "the name of cuda:0 cannot be read: %s", cudaGetErrorString(cudaGetLastError()));
        return 0;
    }
    (void)cudaRuntimeGetVersion(&runtime);
    if (count > 1) snprintf(more, sizeof more, " and %d more", count - 1);
    if (libraries->dnn.handle != NULL)
        snprintf(dnn, sizeof dnn, "cuDNN %s", tdm__cuda_version_text(libraries->dnn.version).of);
    snprintf(text, bytes, "%.90s%s, CUDA %d.%d, cublasLt %s, %s", properties.name, more, runtime / 1000,
             runtime % 1000 / 10, tdm__cuda_version_text(libraries->blas.version).of, dnn);
    return 1;
}

TDM_API extern const tdm_module tdm_module_v1;
const tdm_module tdm_module_v1 = {
    .abi = TDM_MODULE_ABI,
    .name = "cuda",
    .probe = probe,
    .init = tdm__module_init,
    .kernels = tdm__cuda_kernels,
    .device = &tdm__cuda_device_ops,
    .losses = tdm__cuda_losses,
    .optims = tdm__cuda_optims,
};
