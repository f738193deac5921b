/* What the parts of the CUDA module share, apart from the kit. */
#ifndef TDM_CUDA_PRIVATE_H
#define TDM_CUDA_PRIVATE_H

#include "runtime/backends/cuda/cuda_passes.h"
#include "runtime/backends/cuda/kit/library.h"

/* One allocation, as release needs to know it. */
typedef struct tdm_cuda_block {
    void *pointer;
    size_t bytes;
} tdm_cuda_block;

typedef struct tdm_cuda_full_device {
    tdm_cuda_device device; /* comes first: the part that kernels see */
    char model[96];         /* "NVIDIA H200" */
    cudaEvent_t waiter;     /* for finish; the waiting thread sleeps instead of spinning */
    tdm_cuda_block *blocks;
    size_t block_count, block_room;
    bool captured;  /* work has been captured; it holds the workspace's address */
    void **retired; /* workspaces that captured work may still use */
    size_t retired_count, retired_room;
} tdm_cuda_full_device;

static inline tdm_cuda_full_device *tdm__cuda_full(tdm_device *device) {
    return (tdm_cuda_full_device *)device;
}

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
void tdm__cuda_memory_deinit(tdm_cuda_full_device *device);

/* cuda_queue.c */
extern const tdm_queue_ops tdm__cuda_queue_ops;
extern const tdm_event_ops tdm__cuda_event_ops;
extern const tdm_capture_ops tdm__cuda_capture_ops;

/* cuda_error.c */
enum { TDM_CUDA_MOST_DEVICES = 64 }; /* GPUs beyond this number are not used */
tdm_status tdm__cuda_count(int *out);

/* cuda_device.c */
extern const tdm_device_ops tdm__cuda_device_ops;
enum { TDM_CUDA_LEAST_CAPABILITY = 75 }; /* compute capability 7.5 */

/* cuda_report.c */
tdm_status tdm__cuda_report(void (*line)(void *user, const char *key, const char *value), void *user);

#endif
