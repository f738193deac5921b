/* The part of NCCL that tandem uses, as of 2.19, the oldest it takes: for the fake library of tests/fake/nccl. */
#ifndef CUDA_EMULATED_NCCL_H
#define CUDA_EMULATED_NCCL_H

#include <limits.h>
#include <stddef.h>

#include <cuda_runtime_api.h>

#define NCCL_MAJOR 2
#define NCCL_MINOR 19
#define NCCL_PATCH 0
#define NCCL_VERSION(major, minor, patch) ((major)*10000 + (minor)*100 + (patch)) /* from 2.9 on */
#define NCCL_VERSION_CODE NCCL_VERSION(NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH)

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ncclComm *ncclComm_t;

#define NCCL_UNIQUE_ID_BYTES 128
typedef struct {
    char internal[NCCL_UNIQUE_ID_BYTES];
} ncclUniqueId;

typedef enum {
    ncclSuccess = 0,
    ncclUnhandledCudaError = 1,
    ncclSystemError = 2,
    ncclInternalError = 3,
    ncclInvalidArgument = 4,
    ncclInvalidUsage = 5,
    ncclRemoteError = 6,
    ncclInProgress = 7,
    ncclNumResults = 8
} ncclResult_t;

typedef enum { ncclSum = 0, ncclProd = 1, ncclMax = 2, ncclMin = 3, ncclAvg = 4, ncclNumOps = 5 } ncclRedOp_t;

typedef enum {
    ncclInt8 = 0,
    ncclChar = 0,
    ncclUint8 = 1,
    ncclInt32 = 2,
    ncclInt = 2,
    ncclUint32 = 3,
    ncclInt64 = 4,
    ncclUint64 = 5,
    ncclFloat16 = 6,
    ncclHalf = 6,
    ncclFloat32 = 7,
    ncclFloat = 7,
    ncclFloat64 = 8,
    ncclDouble = 8,
    ncclBfloat16 = 9,
    ncclNumTypes = 10
} ncclDataType_t;

#define NCCL_CONFIG_UNDEF_INT INT_MIN
#define NCCL_CONFIG_UNDEF_PTR NULL
#define NCCL_SPLIT_NOCOLOR -1

typedef struct ncclConfig_v21700 {
    size_t size;
    unsigned int magic;
    unsigned int version;
    int blocking;
    int cgaClusterSize;
    int minCTAs;
    int maxCTAs;
    const char *netName;
    int splitShare;
} ncclConfig_t;

#define NCCL_CONFIG_INITIALIZER                                                                            \
    {                                                                                                      \
        sizeof(ncclConfig_t), 0xcafebeef, NCCL_VERSION_CODE, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, \
            NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_INT, NCCL_CONFIG_UNDEF_PTR, NCCL_CONFIG_UNDEF_INT     \
    }

CUDA_EMULATED_API ncclResult_t ncclGetVersion(int *version);
CUDA_EMULATED_API ncclResult_t ncclGetUniqueId(ncclUniqueId *id);
CUDA_EMULATED_API ncclResult_t ncclCommInitRank(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank);
CUDA_EMULATED_API ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank,
                                                      ncclConfig_t *config);
CUDA_EMULATED_API ncclResult_t ncclCommInitAll(ncclComm_t *comms, int count, const int *devices);
CUDA_EMULATED_API ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *out,
                                             ncclConfig_t *config);
CUDA_EMULATED_API ncclResult_t ncclCommFinalize(ncclComm_t comm);
CUDA_EMULATED_API ncclResult_t ncclCommDestroy(ncclComm_t comm);
CUDA_EMULATED_API ncclResult_t ncclCommAbort(ncclComm_t comm);
CUDA_EMULATED_API ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error);
CUDA_EMULATED_API const char *ncclGetErrorString(ncclResult_t result);
CUDA_EMULATED_API const char *ncclGetLastError(ncclComm_t comm);
CUDA_EMULATED_API ncclResult_t ncclCommCount(const ncclComm_t comm, int *count);
CUDA_EMULATED_API ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int *device);
CUDA_EMULATED_API ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank);
CUDA_EMULATED_API ncclResult_t ncclCommRegister(const ncclComm_t comm, void *buffer, size_t bytes, void **handle);
CUDA_EMULATED_API ncclResult_t ncclCommDeregister(const ncclComm_t comm, void *handle);
CUDA_EMULATED_API ncclResult_t ncclReduce(const void *send, void *receive, size_t count, ncclDataType_t type,
                                          ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream);
CUDA_EMULATED_API ncclResult_t ncclBroadcast(const void *send, void *receive, size_t count, ncclDataType_t type,
                                             int root, ncclComm_t comm, cudaStream_t stream);
CUDA_EMULATED_API ncclResult_t ncclAllReduce(const void *send, void *receive, size_t count, ncclDataType_t type,
                                             ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream);
CUDA_EMULATED_API ncclResult_t ncclReduceScatter(const void *send, void *receive, size_t receive_count,
                                                 ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                                                 cudaStream_t stream);
CUDA_EMULATED_API ncclResult_t ncclAllGather(const void *send, void *receive, size_t send_count, ncclDataType_t type,
                                             ncclComm_t comm, cudaStream_t stream);
CUDA_EMULATED_API ncclResult_t ncclReduceScatter(const void *send, void *receive, size_t receive_count,
                                                 ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                                                 cudaStream_t stream);
CUDA_EMULATED_API ncclResult_t ncclSend(const void *send, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                                        cudaStream_t stream);
CUDA_EMULATED_API ncclResult_t ncclRecv(void *receive, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                                        cudaStream_t stream);
CUDA_EMULATED_API ncclResult_t ncclGroupStart(void);
CUDA_EMULATED_API ncclResult_t ncclGroupEnd(void);

#ifdef __cplusplus
}
#endif
#endif
