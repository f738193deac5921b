/* Memory of a device and pinned memory of the host; copies. */
#include <stdio.h>
#include <string.h>

#include "runtime/backends/cuda/cuda_private.h"

static double gib(size_t bytes) {
    return (double)bytes / (1024.0 * 1024 * 1024);
}

static tdm_status no_memory(const tdm_cuda_full_device *full, size_t bytes, const char *what) {
    size_t available = 0, total = 0;
    (void)cudaGetLastError();
    if (cudaMemGetInfo(&available, &total) != cudaSuccess) (void)cudaGetLastError();
    TDM_MODULE_FAIL(
        TDM_E_MEMORY,
        "%s, %s: %s: out of memory, needed %.3f GiB beside the %.3f GiB held already, but only %.3f of %.3f "
        "GiB are free; make train.batch.per_device smaller, or train.accumulate larger, or the model smaller",
        full->device.base.name, full->model, what, gib(bytes), gib(full->device.base.bytes_now), gib(available),
        gib(total));
}

/* Makes room for one more element of an array in the host's memory. */
static tdm_status grow(const tdm_host *host, void **array, size_t *room, size_t count, size_t element) {
    if (count < *room) return TDM_OK;
    const size_t capacity = *room > 0 ? *room * 2 : 16;
    void *larger = tdm__module_new(host, capacity * element);
    if (larger == NULL)
        TDM_MODULE_FAIL(TDM_E_MEMORY, "out of memory for %zu bytes, the list of a device's allocations",
                        capacity * element);
    if (count > 0) memcpy(larger, *array, count * element);
    tdm__module_delete(*array);
    *array = larger;
    *room = capacity;
    return TDM_OK;
}

static void count_in(tdm_device *device, size_t bytes) {
    device->bytes_now += bytes;
    if (device->bytes_now > device->bytes_peak) device->bytes_peak = device->bytes_now;
}

tdm_status tdm__cuda_allocate(tdm_device *device, void **out, size_t bytes, const char *what) {
    tdm_cuda_full_device *full = tdm__cuda_full(device);
    void *pointer = NULL, *blocks = full->blocks;
    *out = NULL;
    TDM_CUDA_ENTER(device);
    TDM_MODULE_TRY(grow(device->host, &blocks, &full->block_room, full->block_count, sizeof *full->blocks));
    full->blocks = blocks;
    cudaError_t error = cudaMalloc(&pointer, bytes > 0 ? bytes : 1);
    if (error == cudaErrorMemoryAllocation) return no_memory(full, bytes, what);
    TDM_CUDA_RESULT(error, "cudaMalloc");
    /* The host waits for the zeros: from now on other queues may write there. */
    error = cudaMemsetAsync(pointer, 0, bytes, full->device.stream);
    if (error == cudaSuccess) error = cudaStreamSynchronize(full->device.stream);
    if (error != cudaSuccess) {
        (void)cudaFree(pointer);
        TDM_CUDA_RESULT(error, "cudaMemsetAsync");
    }
    full->blocks[full->block_count++] = (tdm_cuda_block){pointer, bytes};
    count_in(device, bytes);
    *out = pointer;
    return TDM_OK;
}

/* After a failure the device may still be working with the memory that is freed now. */
static void wait_for_users(tdm_device *device) {
    (void)tdm__cuda_enter(device);
    if (cudaStreamSynchronize(tdm__cuda_device(device)->stream) != cudaSuccess) (void)cudaGetLastError();
}

void tdm__cuda_release(tdm_device *device, void *pointer) {
    tdm_cuda_full_device *full = tdm__cuda_full(device);
    if (pointer == NULL) return;
    for (size_t i = 0; i < full->block_count; i++) {
        if (full->blocks[i].pointer != pointer) continue;
        device->bytes_now -= full->blocks[i].bytes;
        full->blocks[i] = full->blocks[--full->block_count];
        break;
    }
    wait_for_users(device);
    if (cudaFree(pointer) != cudaSuccess) (void)cudaGetLastError();
}

tdm_status tdm__cuda_allocate_host(tdm_device *device, void **out, size_t bytes, const char *what) {
    void *pointer = NULL;
    *out = NULL;
    TDM_CUDA_ENTER(device);
    const cudaError_t error = cudaHostAlloc(&pointer, bytes > 0 ? bytes : 1, cudaHostAllocPortable);
    if (error == cudaErrorMemoryAllocation) {
        (void)cudaGetLastError();
        TDM_MODULE_FAIL(TDM_E_MEMORY,
                        "%s: %s: out of pinned host memory, needed %.3f GiB; make train.batch.per_device smaller, or "
                        "raise the memory limit of this process",
                        device->name, what, gib(bytes));
    }
    TDM_CUDA_RESULT(error, "cudaHostAlloc");
    *out = pointer;
    return TDM_OK;
}

void tdm__cuda_release_host(tdm_device *device, void *pointer) {
    if (pointer == NULL) return;
    wait_for_users(device);
    if (cudaFreeHost(pointer) != cudaSuccess) (void)cudaGetLastError();
}

tdm_status tdm__cuda_pin(tdm_device *device, void *memory, size_t bytes) {
    TDM_CUDA_ENTER(device);
    TDM_CUDA(cudaHostRegister(memory, bytes, cudaHostRegisterPortable));
    return TDM_OK;
}

void tdm__cuda_unpin(tdm_device *device, void *memory) {
    if (memory == NULL) return;
    wait_for_users(device);
    if (cudaHostUnregister(memory) != cudaSuccess) (void)cudaGetLastError();
}

/* CUDA sees from the addresses which memory they belong to. */
tdm_status tdm__cuda_copy(tdm_device *device, tdm_queue *queue, void *to, const void *from, size_t bytes) {
    TDM_CUDA_ENTER(device);
    if (bytes > 0) TDM_CUDA(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, tdm__cuda_stream(device, queue)));
    return TDM_OK;
}

/* Captured work holds the address of the workspace at that time, so that workspace is kept. */
static tdm_status retire_workspace(tdm_cuda_full_device *full) {
    const tdm_host *host = full->device.base.host;
    void *retired = full->retired;
    if (!full->captured || full->device.workspace == NULL) {
        TDM_CUDA(cudaStreamSynchronize(full->device.stream));
        tdm__cuda_release(&full->device.base, full->device.workspace);
    } else {
        TDM_MODULE_TRY(grow(host, &retired, &full->retired_room, full->retired_count, sizeof *full->retired));
        full->retired = retired;
        full->retired[full->retired_count++] = full->device.workspace;
    }
    full->device.workspace = NULL;
    full->device.workspace_bytes = 0;
    return TDM_OK;
}

tdm_status tdm__cuda_workspace(tdm_cuda_device *device, size_t bytes) {
    if (bytes <= device->workspace_bytes) return TDM_OK;
    TDM_CUDA_ENTER(&device->base);
    TDM_MODULE_TRY(retire_workspace(tdm__cuda_full(&device->base)));
    TDM_MODULE_TRY(tdm__cuda_allocate(&device->base, &device->workspace, bytes,
                                      "the workspace of matrix products and convolutions"));
    device->workspace_bytes = bytes;
    return TDM_OK;
}

void tdm__cuda_memory_deinit(tdm_cuda_full_device *full) {
    tdm__cuda_release(&full->device.base, full->device.workspace);
    for (size_t i = 0; i < full->retired_count; i++) tdm__cuda_release(&full->device.base, full->retired[i]);
    tdm__module_delete(full->retired);
    tdm__module_delete(full->blocks);
}
