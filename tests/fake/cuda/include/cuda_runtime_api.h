/* The part of the CUDA runtime's C interface that tandem uses, played on the host: see ../README.md. Names, values and
 * signatures are CUDA 13's. */
#ifndef CUDA_EMULATED_RUNTIME_API_H
#define CUDA_EMULATED_RUNTIME_API_H

#include <stddef.h>

#define CUDART_VERSION 13000
#define CUDARTAPI
#define CUDART_CB

#define CUDA_EMULATED_API __attribute__((visibility("default")))
#ifdef __cplusplus
#define CUDA_EMULATED_DEFAULT(value) = value
extern "C" {
#else
#define CUDA_EMULATED_DEFAULT(value)
#endif

typedef enum cudaError {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInitializationError = 3,
    cudaErrorInvalidConfiguration = 9,
    cudaErrorInvalidDevicePointer = 17,
    cudaErrorInvalidMemcpyDirection = 21,
    cudaErrorStubLibrary = 34,
    cudaErrorInsufficientDriver = 35,
    cudaErrorDevicesUnavailable = 46,
    cudaErrorInvalidDeviceFunction = 98,
    cudaErrorNoDevice = 100,
    cudaErrorInvalidDevice = 101,
    cudaErrorNoKernelImageForDevice = 209,
    cudaErrorECCUncorrectable = 214,
    cudaErrorContained = 226,
    cudaErrorPeerAccessUnsupported = 217,
    cudaErrorNvlinkUncorrectable = 220,
    cudaErrorUnsupportedPtxVersion = 222,
    cudaErrorInvalidResourceHandle = 400,
    cudaErrorIllegalState = 401,
    cudaErrorNotReady = 600,
    cudaErrorIllegalAddress = 700,
    cudaErrorLaunchOutOfResources = 701,
    cudaErrorLaunchTimeout = 702,
    cudaErrorPeerAccessAlreadyEnabled = 704,
    cudaErrorPeerAccessNotEnabled = 705,
    cudaErrorAssert = 710,
    cudaErrorHostMemoryAlreadyRegistered = 712,
    cudaErrorHostMemoryNotRegistered = 713,
    cudaErrorHardwareStackError = 714,
    cudaErrorIllegalInstruction = 715,
    cudaErrorMisalignedAddress = 716,
    cudaErrorInvalidAddressSpace = 717,
    cudaErrorInvalidPc = 718,
    cudaErrorLaunchFailure = 719,
    cudaErrorNotPermitted = 800,
    cudaErrorNotSupported = 801,
    cudaErrorSystemNotReady = 802,
    cudaErrorSystemDriverMismatch = 803,
    cudaErrorStreamCaptureUnsupported = 900,
    cudaErrorStreamCaptureInvalidated = 901,
    cudaErrorStreamCaptureMerge = 902,
    cudaErrorStreamCaptureUnmatched = 903,
    cudaErrorStreamCaptureUnjoined = 904,
    cudaErrorStreamCaptureIsolation = 905,
    cudaErrorStreamCaptureImplicit = 906,
    cudaErrorCapturedEvent = 907,
    cudaErrorStreamCaptureWrongThread = 908,
    cudaErrorTimeout = 909,
    cudaErrorUnknown = 999
} cudaError_t;

typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
typedef struct CUgraph_st *cudaGraph_t;
typedef struct CUgraphExec_st *cudaGraphExec_t;
typedef struct CUgraphNode_st *cudaGraphNode_t;

enum cudaMemcpyKind {
    cudaMemcpyHostToHost = 0,
    cudaMemcpyHostToDevice = 1,
    cudaMemcpyDeviceToHost = 2,
    cudaMemcpyDeviceToDevice = 3,
    cudaMemcpyDefault = 4
};
enum cudaStreamCaptureStatus {
    cudaStreamCaptureStatusNone = 0,
    cudaStreamCaptureStatusActive = 1,
    cudaStreamCaptureStatusInvalidated = 2
};
enum cudaStreamCaptureMode {
    cudaStreamCaptureModeGlobal = 0,
    cudaStreamCaptureModeThreadLocal = 1,
    cudaStreamCaptureModeRelaxed = 2
};
enum cudaMemoryType {
    cudaMemoryTypeUnregistered = 0,
    cudaMemoryTypeHost = 1,
    cudaMemoryTypeDevice = 2,
    cudaMemoryTypeManaged = 3
};
enum cudaDeviceAttr {
    cudaDevAttrMaxThreadsPerBlock = 1,
    cudaDevAttrMaxSharedMemoryPerBlock = 8,
    cudaDevAttrWarpSize = 10,
    cudaDevAttrClockRate = 13,
    cudaDevAttrMultiProcessorCount = 16,
    cudaDevAttrIntegrated = 18,
    cudaDevAttrComputeMode = 20,
    cudaDevAttrEccEnabled = 32,
    cudaDevAttrPciBusId = 33,
    cudaDevAttrPciDeviceId = 34,
    cudaDevAttrMemoryClockRate = 36,
    cudaDevAttrGlobalMemoryBusWidth = 37,
    cudaDevAttrL2CacheSize = 38,
    cudaDevAttrMaxThreadsPerMultiProcessor = 39,
    cudaDevAttrAsyncEngineCount = 40,
    cudaDevAttrUnifiedAddressing = 41,
    cudaDevAttrPciDomainId = 50,
    cudaDevAttrComputeCapabilityMajor = 75,
    cudaDevAttrComputeCapabilityMinor = 76,
    cudaDevAttrMaxSharedMemoryPerMultiprocessor = 81,
    cudaDevAttrMaxSharedMemoryPerBlockOptin = 97
};
enum cudaDeviceP2PAttr {
    cudaDevP2PAttrPerformanceRank = 1,
    cudaDevP2PAttrAccessSupported = 2,
    cudaDevP2PAttrNativeAtomicSupported = 3
};

#define cudaHostAllocDefault 0x00
#define cudaHostAllocPortable 0x01
#define cudaHostAllocMapped 0x02
#define cudaHostAllocWriteCombined 0x04
#define cudaHostRegisterPortable 0x01
#define cudaStreamDefault 0x00
#define cudaStreamNonBlocking 0x01
#define cudaStreamLegacy ((cudaStream_t)0x1)
#define cudaEventDefault 0x00
#define cudaEventBlockingSync 0x01
#define cudaEventDisableTiming 0x02
#define cudaEventInterprocess 0x04
#define cudaEventRecordDefault 0x00
#define cudaEventRecordExternal 0x01
#define cudaEventWaitDefault 0x00
#define cudaEventWaitExternal 0x01

typedef struct CUuuid_st {
    char bytes[16];
} cudaUUID_t;

/* Not CUDA's layout: only what is read here. */
struct cudaDeviceProp {
    char name[256];
    cudaUUID_t uuid;
    size_t totalGlobalMem, sharedMemPerBlock;
    int regsPerBlock, warpSize, maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3];
    int major, minor, multiProcessorCount, integrated, concurrentKernels, ECCEnabled;
    int pciBusID, pciDeviceID, pciDomainID, asyncEngineCount, unifiedAddressing;
    int memoryBusWidth, l2CacheSize, maxThreadsPerMultiProcessor;
    size_t sharedMemPerMultiprocessor, sharedMemPerBlockOptin;
};

struct cudaPointerAttributes {
    enum cudaMemoryType type;
    int device;
    void *devicePointer, *hostPointer;
};

typedef void (*cudaHostFn_t)(void *data);

/* errors */
CUDA_EMULATED_API cudaError_t cudaGetLastError(void);
CUDA_EMULATED_API cudaError_t cudaPeekAtLastError(void);
CUDA_EMULATED_API const char *cudaGetErrorString(cudaError_t error);
CUDA_EMULATED_API const char *cudaGetErrorName(cudaError_t error);

/* devices */
CUDA_EMULATED_API cudaError_t cudaDriverGetVersion(int *version);
CUDA_EMULATED_API cudaError_t cudaRuntimeGetVersion(int *version);
CUDA_EMULATED_API cudaError_t cudaGetDeviceCount(int *count);
CUDA_EMULATED_API cudaError_t cudaSetDevice(int device);
CUDA_EMULATED_API cudaError_t cudaGetDevice(int *device);
CUDA_EMULATED_API cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device);
CUDA_EMULATED_API cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device);
CUDA_EMULATED_API cudaError_t cudaDeviceGetPCIBusId(char *text, int bytes, int device);
CUDA_EMULATED_API cudaError_t cudaDeviceGetP2PAttribute(int *value, enum cudaDeviceP2PAttr attribute, int from, int to);
CUDA_EMULATED_API cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest);
CUDA_EMULATED_API cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer);
CUDA_EMULATED_API cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags);
CUDA_EMULATED_API cudaError_t cudaDeviceDisablePeerAccess(int peer);
CUDA_EMULATED_API cudaError_t cudaDeviceSynchronize(void);
CUDA_EMULATED_API cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total);

/* memory */
CUDA_EMULATED_API cudaError_t cudaMalloc(void **out, size_t bytes);
CUDA_EMULATED_API cudaError_t cudaFree(void *pointer);
CUDA_EMULATED_API cudaError_t cudaMallocHost(void **out, size_t bytes);
CUDA_EMULATED_API cudaError_t cudaHostAlloc(void **out, size_t bytes, unsigned flags);
CUDA_EMULATED_API cudaError_t cudaFreeHost(void *pointer);
CUDA_EMULATED_API cudaError_t cudaHostRegister(void *pointer, size_t bytes, unsigned flags);
CUDA_EMULATED_API cudaError_t cudaHostUnregister(void *pointer);
CUDA_EMULATED_API cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *out, const void *pointer);
CUDA_EMULATED_API cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind);
CUDA_EMULATED_API cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                                              cudaStream_t stream CUDA_EMULATED_DEFAULT(0));
CUDA_EMULATED_API cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device,
                                                  size_t bytes, cudaStream_t stream CUDA_EMULATED_DEFAULT(0));
CUDA_EMULATED_API cudaError_t cudaMemset(void *to, int byte, size_t bytes);
CUDA_EMULATED_API cudaError_t cudaMemsetAsync(void *to, int byte, size_t bytes,
                                              cudaStream_t stream CUDA_EMULATED_DEFAULT(0));

/* streams and events */
CUDA_EMULATED_API cudaError_t cudaStreamCreate(cudaStream_t *out);
CUDA_EMULATED_API cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags);
CUDA_EMULATED_API cudaError_t cudaStreamCreateWithPriority(cudaStream_t *out, unsigned flags, int priority);
CUDA_EMULATED_API cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority);
CUDA_EMULATED_API cudaError_t cudaStreamDestroy(cudaStream_t stream);
CUDA_EMULATED_API cudaError_t cudaStreamSynchronize(cudaStream_t stream);
CUDA_EMULATED_API cudaError_t cudaStreamQuery(cudaStream_t stream);
CUDA_EMULATED_API cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
                                                  unsigned flags CUDA_EMULATED_DEFAULT(0));
CUDA_EMULATED_API cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *data);
CUDA_EMULATED_API cudaError_t cudaEventCreate(cudaEvent_t *out);
CUDA_EMULATED_API cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags);
CUDA_EMULATED_API cudaError_t cudaEventDestroy(cudaEvent_t event);
CUDA_EMULATED_API cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream CUDA_EMULATED_DEFAULT(0));
CUDA_EMULATED_API cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream CUDA_EMULATED_DEFAULT(0),
                                                       unsigned flags CUDA_EMULATED_DEFAULT(0));
CUDA_EMULATED_API cudaError_t cudaEventQuery(cudaEvent_t event);
CUDA_EMULATED_API cudaError_t cudaEventSynchronize(cudaEvent_t event);
CUDA_EMULATED_API cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end);

/* capture and graphs */
CUDA_EMULATED_API cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode);
CUDA_EMULATED_API cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *out);
CUDA_EMULATED_API cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *out);
CUDA_EMULATED_API cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode);
CUDA_EMULATED_API cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count);
CUDA_EMULATED_API cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t graph,
                                                   unsigned long long flags CUDA_EMULATED_DEFAULT(0));
CUDA_EMULATED_API cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream);
CUDA_EMULATED_API cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream);
CUDA_EMULATED_API cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec);
CUDA_EMULATED_API cudaError_t cudaGraphDestroy(cudaGraph_t graph);

#ifdef __cplusplus
}
#endif
#endif
