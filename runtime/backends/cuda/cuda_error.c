/* Turns failures of CUDA and its libraries into a status and a message. */
#include <stdio.h>
#include <string.h>

#include "runtime/backends/cuda/cuda_private.h"

/* After one of these errors CUDA fails every further call of this process on this device with the same error. */
static bool is_lasting(cudaError_t error) {
    switch (error) {
    case cudaErrorContained:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
        return true;
    default:
        return false;
    }
}

/* The length of "cudaMalloc" in "cudaMalloc(&memory, bytes)". */
static int name_length(const char *call) {
    return (int)strcspn(call, "( ");
}

/* The device that this thread last entered, for messages: CUDA does not name a device that is lost. */
static _Thread_local int entered = -1;

cudaError_t tdm__cuda_enter(const tdm_device *device) {
    entered = device->index;
    return cudaSetDevice(device->index);
}

tdm_status tdm__cuda_error(cudaError_t error, const char *call, const char *file, int line) {
    int index = -1;
    char where[24] = "cuda";
    (void)cudaGetLastError(); /* clear it, or the next launch would report this failure as its own */
    if (cudaGetDevice(&index) != cudaSuccess) index = entered;
    if (index >= 0) snprintf(where, sizeof where, "cuda:%d", index);
    return tdm__module_host()->fail(
        error == cudaErrorMemoryAllocation ? TDM_E_MEMORY : TDM_E_DEVICE, file, line, NULL, "%s: %.*s failed: %s, %s%s",
        where, name_length(call), call, cudaGetErrorName(error), cudaGetErrorString(error),
        is_lasting(error) ? "; the device is lost to this process: end it and start it again" : "");
}

tdm_status tdm__cublas_error(const tdm_cuda_libraries *libraries, cublasStatus_t status, const char *call,
                             const char *file, int line) {
    tdm_status code = TDM_E_DEVICE;
    if (status == CUBLAS_STATUS_ALLOC_FAILED) code = TDM_E_MEMORY;
    if (status == CUBLAS_STATUS_NOT_SUPPORTED) code = TDM_E_UNSUPPORTED;
    (void)cudaGetLastError();
    return tdm__module_host()->fail(code, file, line, NULL, "%.*s failed: %s, %s (cublasLt %s)", name_length(call),
                                    call, libraries->blas.cublasLtGetStatusName(status),
                                    libraries->blas.cublasLtGetStatusString(status),
                                    tdm__cuda_version_text(libraries->blas.version).of);
}

#ifndef TDM_CUDA_NO_CUDNN
tdm_status tdm__cudnn_error(const tdm_cuda_libraries *libraries, cudnnStatus_t status, const char *call,
                            const char *file, int line) {
    tdm_status code = TDM_E_DEVICE;
    if (status == CUDNN_STATUS_ALLOC_FAILED) code = TDM_E_MEMORY;
    if (status == CUDNN_STATUS_NOT_SUPPORTED) code = TDM_E_UNSUPPORTED;
    (void)cudaGetLastError();
    return tdm__module_host()->fail(code, file, line, NULL, "%.*s failed: %s (cuDNN %s)", name_length(call), call,
                                    libraries->dnn.cudnnGetErrorString(status),
                                    tdm__cuda_version_text(libraries->dnn.version).of);
}
#endif

tdm_status tdm__cuda_count(int *out) {
    *out = 0;
    const cudaError_t error = cudaGetDeviceCount(out);
    if (error == cudaErrorNoDevice) {
        (void)cudaGetLastError();
        *out = 0;
        return TDM_OK;
    }
    TDM_CUDA_RESULT(error, "cudaGetDeviceCount");
    if (*out > TDM_CUDA_MOST_DEVICES) *out = TDM_CUDA_MOST_DEVICES;
    return TDM_OK;
}
