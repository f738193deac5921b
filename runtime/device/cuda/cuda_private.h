/* What the parts of the CUDA device share, and the library calls of the kernels: errors of cublasLt and cuDNN. */
#ifndef TDM_CUDA_PRIVATE_H
#define TDM_CUDA_PRIVATE_H

#include "ops/cuda_module/cuda_module.h"
#include "runtime/device/cuda/cuda_libraries.h"

/* What release must know of a pointer. */
typedef struct tdm_cuda_block {
    void *pointer;
    size_t bytes;
} tdm_cuda_block;

typedef struct tdm_cuda_full_device {
    tdm_cuda_device device; /* first: what kernels see */
    char model[96];         /* "NVIDIA H200" */
    cudaEvent_t waiter;     /* of finish; wakes the thread instead of keeping it busy */
    tdm_cuda_block *blocks;
    size_t block_count, block_room;
    bool captured;  /* work has been captured, with the workspace's address in it */
    void **retired; /* workspaces that captured work may still use */
    size_t retired_count, retired_room;
} tdm_cuda_full_device;

static inline tdm_cuda_full_device *tdm__cuda_full(tdm_device *device) {
    return (tdm_cuda_full_device *)device;
}

/* For calls whose answer was looked at first. */
#define TDM_CUDA_RESULT(error, call)                                                             \
    do {                                                                                         \
        if ((error) != cudaSuccess) return tdm__cuda_error((error), (call), __FILE__, __LINE__); \
    } while (0)

/* Every entry of the device begins with it: CUDA's current device belongs to the thread, and a device changes threads.
 */
#define TDM_CUDA_ENTER(device)                              \
    do {                                                    \
        const cudaError_t enter_ = tdm__cuda_enter(device); \
        TDM_CUDA_RESULT(enter_, "cudaSetDevice");           \
    } while (0)
cudaError_t tdm__cuda_enter(const tdm_device *device);

static inline cudaStream_t tdm__cuda_stream(tdm_device *device, tdm_queue *queue) {
    return queue != NULL ? (cudaStream_t)queue : tdm__cuda_device(device)->stream;
}

/* cuda_memory.c */
tdm_status tdm__cuda_allocate(tdm_device *device, void **out, size_t bytes, const char *what);
void tdm__cuda_release(tdm_device *device, void *pointer);
tdm_status tdm__cuda_allocate_host(tdm_device *device, void **out, size_t bytes, const char *what);
void tdm__cuda_release_host(tdm_device *device, void *pointer);
tdm_status tdm__cuda_pin(tdm_device *device, void *memory, size_t bytes);
void tdm__cuda_unpin(tdm_device *device, void *memory);
tdm_status tdm__cuda_copy(tdm_device *device, tdm_queue *queue, void *to, const void *from, size_t bytes);
tdm_status tdm__cuda_fill(tdm_device *device, tdm_queue *queue, void *to, uint8_t byte, size_t bytes);
void tdm__cuda_memory_deinit(tdm_cuda_full_device *device);

/* cuda_queue.c */
tdm_status tdm__cuda_finish(tdm_device *device, tdm_queue *queue);
tdm_status tdm__cuda_queue_open(tdm_device *device, tdm_queue_use use, tdm_queue **out);
void tdm__cuda_queue_close(tdm_device *device, tdm_queue *queue);
tdm_status tdm__cuda_event_open(tdm_device *device, tdm_event_use use, tdm_device_event **out);
void tdm__cuda_event_close(tdm_device *device, tdm_device_event *event);
tdm_status tdm__cuda_event_record(tdm_device *device, tdm_device_event *event, tdm_queue *queue);
tdm_status tdm__cuda_event_stamp(tdm_device *device, tdm_device_event *event, tdm_queue *queue);
tdm_status tdm__cuda_event_wait(tdm_device *device, tdm_device_event *event, tdm_queue *queue);
tdm_status tdm__cuda_event_done(tdm_device *device, tdm_device_event *event, bool *done);
tdm_status tdm__cuda_event_finish(tdm_device *device, tdm_device_event *event);
tdm_status tdm__cuda_event_ms(tdm_device *device, tdm_device_event *from, tdm_device_event *to, double *ms);
tdm_status tdm__cuda_capture_begin(tdm_device *device);
tdm_status tdm__cuda_capture_end(tdm_device *device, tdm_capture **out);
tdm_status tdm__cuda_capture_run(tdm_device *device, tdm_capture *capture);
void tdm__cuda_capture_free(tdm_device *device, tdm_capture *capture);
void *tdm__cuda_queue_handle(tdm_device *device, tdm_queue *queue);

/* cuda_trial.c: memory on which an algorithm of a library is run once before it is chosen. All that it reads is NaN, so
 * all that it writes must be. */
typedef struct tdm_cuda_trial {
    tdm_cuda_device *device;
    char *in, *out; /* NULL: there was no room, and nothing can be tried */
    size_t in_bytes, out_bytes;
} tdm_cuda_trial;
void tdm__cuda_trial_open(tdm_cuda_trial *trial, tdm_cuda_device *device, size_t in_bytes, size_t out_bytes);
void tdm__cuda_trial_close(tdm_cuda_trial *trial);
tdm_status tdm__cuda_trial_begin(const tdm_cuda_trial *trial);
/* Waits. `refused`: the library did not start it. *passes_nan: the first `count` numbers from `out` on are NaN. */
tdm_status tdm__cuda_trial_end(const tdm_cuda_trial *trial, bool refused, const void *out, tdm_cuda_number number,
                               size_t count, bool *passes_nan);

/* cuda_matmul.c: what was chosen for operands at whole places. */
void tdm__cuda_matmul_algorithm(const tdm_cuda_matmul *matmul, const char *pass, tdm_algorithms *out);
/* bytes at the start of the workspace that `run` may use. NULL: 0. */
size_t tdm__cuda_matmul_workspace(const tdm_cuda_matmul *matmul);

/* "f32", "tf32", "bf16": what products of this device round these numbers to. */
const char *tdm__cuda_math(const tdm_cuda_device *device, tdm_cuda_number number);

/* cuda_device.c */
extern const tdm_device_ops tdm__cuda_device_ops;
enum { TDM_CUDA_LEAST_CAPABILITY = 75 }; /* compute capability 7.5 */

/* cuda_report.c */
tdm_status tdm__cuda_report(void (*line)(void *user, const char *key, const char *value), void *user);

/* A call of cublasLt or cuDNN that failed, as a status with a message; `call` is the source text of the call. */
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
