/* A GPU as a device: opening and closing, what it is, and which GPUs reach each other. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <tandem/job.h>

#include "runtime/backends/cuda/cuda_private.h"

/* Devices of each index that are open in this process. Peer access is a property of the process too; it is given to
 * open devices only, because giving it starts CUDA on both sides, which takes time and memory. */
static atomic_int open_count[TDM_CUDA_MOST_DEVICES];

static tdm_status check_index(int index) {
    int devices = 0;
    TDM_MODULE_TRY(tdm__cuda_count(&devices));
    if (index >= 0 && index < devices) return TDM_OK;
    TDM_MODULE_FAIL(TDM_E_DEVICE,
                    "cuda:%d is asked for, but CUDA shows %d device%s to this process; see parallel.device_ids "
                    "and CUDA_VISIBLE_DEVICES",
                    index, devices, devices == 1 ? "" : "s");
}

static tdm_status info(int index, tdm_device_info *out) {
    struct cudaDeviceProp properties;
    size_t available = 0, total = 0;
    memset(out, 0, sizeof *out);
    TDM_MODULE_TRY(check_index(index));
    TDM_CUDA(cudaGetDeviceProperties(&properties, index));
    snprintf(out->name, sizeof out->name, "%.95s", properties.name);
    snprintf(out->capability, sizeof out->capability, "%d.%d", properties.major, properties.minor);
    memcpy(out->identity, properties.uuid.bytes, sizeof out->identity);
    out->memory_bytes = (int64_t)properties.totalGlobalMem;
    /* A device that others hold exclusively, or that is broken, still has a name. */
    if (cudaSetDevice(index) == cudaSuccess && cudaMemGetInfo(&available, &total) == cudaSuccess) {
        out->memory_free = (int64_t)available;
    } else {
        (void)cudaGetLastError();
    }
    return TDM_OK;
}

/* ---- peers ---- */

static void give_access(int from, int to) {
    int possible = 0;
    if (cudaDeviceCanAccessPeer(&possible, from, to) == cudaSuccess && possible && cudaSetDevice(from) == cudaSuccess)
        (void)cudaDeviceEnablePeerAccess(to, 0);
    /* Refused or already given: copies go another way, or as they did. */
    (void)cudaGetLastError();
}

static bool reaches(tdm_device *device, tdm_device *peer) {
    if (device->index == peer->index) return true;
    if (cudaSetDevice(device->index) != cudaSuccess) return false;
    const cudaError_t error = cudaDeviceEnablePeerAccess(peer->index, 0);
    (void)cudaGetLastError(); /* "already" is an answer, too */
    return error == cudaSuccess || error == cudaErrorPeerAccessAlreadyEnabled;
}

static void meet_peers(int index) {
    atomic_fetch_add(&open_count[index], 1);
    for (int peer = 0; peer < TDM_CUDA_MOST_DEVICES; peer++) {
        if (peer == index || atomic_load(&open_count[peer]) == 0) continue;
        give_access(index, peer);
        give_access(peer, index);
    }
    (void)cudaSetDevice(index);
}

/* ---- opening ---- */

/* What this GPU and this build can compute with. */
static tdm_status check_ability(const tdm_cuda_full_device *full, const struct cudaDeviceProp *properties) {
    const char *name = full->device.base.name;
    if (properties->major * 10 + properties->minor < TDM_CUDA_LEAST_CAPABILITY)
        TDM_MODULE_FAIL(TDM_E_DEVICE, "%s, %s: compute capability 7.5 or newer is needed, it has %d.%d", name,
                        full->model, properties->major, properties->minor);
    if (full->device.precision != TDM_F32 && properties->major < 8)
        TDM_MODULE_FAIL(TDM_E_UNSUPPORTED,
                        "%s, %s: train.precision %s needs compute capability 8.0 or newer, it has %d.%d; use f32", name,
                        full->model, full->device.precision == TDM_BF16 ? "bf16" : "tf32", properties->major,
                        properties->minor);
    return TDM_OK;
}

static tdm_status open_parts(tdm_cuda_full_device *full) {
    tdm_cuda_device *device = &full->device;
    struct cudaDeviceProp properties;
    char why[1024] = "";
    TDM_CUDA(cudaGetDeviceProperties(&properties, device->base.index));
    snprintf(full->model, sizeof full->model, "%.95s", properties.name);
    TDM_MODULE_TRY(check_ability(full, &properties));
    device->libraries = tdm__cuda_libraries(why, sizeof why);
    if (device->libraries == NULL) TDM_MODULE_FAIL(TDM_E_DEVICE, "%s: %s", device->base.name, why);
    TDM_CUDA_ENTER(&device->base);
    TDM_CUDA(cudaStreamCreateWithFlags(&device->stream, cudaStreamNonBlocking));
    TDM_CUDA(cudaEventCreateWithFlags(&full->waiter, cudaEventBlockingSync | cudaEventDisableTiming));
    TDM_CUBLAS(device->libraries, cublasLtCreate((cublasLtHandle_t *)&device->blas));
    TDM_MODULE_TRY(tdm__cuda_workspace(device, TDM_CUDA_WORKSPACE_LEAST));
    TDM_MODULE_TRY(tdm__cuda_allocate(&device->base, (void **)&device->turns, TDM_CUDA_TURNS * sizeof(unsigned),
                                      "turns of blocks"));
#ifndef TDM_CUDA_NO_CUDNN
    if (device->libraries->dnn.handle != NULL) {
        TDM_CUDNN(device->libraries, cudnnCreate((cudnnHandle_t *)&device->dnn));
        TDM_CUDNN(device->libraries, cudnnSetStream((cudnnHandle_t)device->dnn, device->stream));
    }
#endif
    return TDM_OK;
}

static void close_parts(tdm_cuda_full_device *full) {
    tdm_cuda_device *device = &full->device;
    (void)tdm__cuda_enter(&device->base);
    if (device->stream != NULL) (void)cudaStreamSynchronize(device->stream);
#ifndef TDM_CUDA_NO_CUDNN
    if (device->dnn != NULL) (void)device->libraries->dnn.cudnnDestroy((cudnnHandle_t)device->dnn);
#endif
    if (device->blas != NULL) (void)device->libraries->blas.cublasLtDestroy((cublasLtHandle_t)device->blas);
    tdm__cuda_release(&device->base, device->turns);
    tdm__cuda_memory_deinit(full);
    if (full->waiter != NULL) (void)cudaEventDestroy(full->waiter);
    if (device->stream != NULL) (void)cudaStreamDestroy(device->stream);
    (void)cudaGetLastError();
    tdm__module_delete(full);
}

static tdm_status open_device(tdm_device **out, const tdm_host *host, const tdm_device_options *options) {
    *out = NULL;
    TDM_MODULE_TRY(check_index(options->index));
    tdm_cuda_full_device *full = tdm__module_new(host, sizeof *full);
    if (full == NULL) TDM_MODULE_FAIL(TDM_E_MEMORY, "out of memory for %zu bytes, a device", sizeof *full);
    tdm_device *base = &full->device.base;
    base->ops = &tdm__cuda_device_ops;
    base->host = host;
    base->index = options->index;
    snprintf(base->name, sizeof base->name, "cuda:%d", options->index);
    full->device.precision = options->precision;
    full->device.deterministic = options->deterministic;
    const tdm_status status = open_parts(full);
    if (status != TDM_OK) {
        close_parts(full);
        return status;
    }
    meet_peers(base->index);
    *out = base;
    return TDM_OK;
}

static void close_device(tdm_device *device) {
    if (device == NULL) return;
    atomic_fetch_sub(&open_count[device->index], 1);
    close_parts(tdm__cuda_full(device));
}

/* ---- this thread's device ---- */

static tdm_status enter(tdm_device *device) {
    TDM_CUDA_ENTER(device);
    return TDM_OK;
}

static const tdm_arena_ops arena_ops = {
    .sum = tdm__cuda_sum,
    .clip = tdm__cuda_clip,
    .clamp = tdm__cuda_clamp,
    .average = tdm__cuda_average,
    .to_bf16 = tdm__cuda_to_bf16,
    .add_bf16 = tdm__cuda_add_bf16,
    .narrow = tdm__cuda_narrow,
    .widen = tdm__cuda_widen,
    .round = tdm__cuda_round,
    .ingest = tdm__cuda_ingest,
    .norms = tdm__cuda_norms,
    .scale = tdm__cuda_scale,
};

const tdm_device_ops tdm__cuda_device_ops = {
    .name = "cuda",
    .queues = &tdm__cuda_queue_ops,
    .events = &tdm__cuda_event_ops,
    .captures = &tdm__cuda_capture_ops,
    .arenas = &arena_ops,
    .count = tdm__cuda_count,
    .info = info,
    .open = open_device,
    .close = close_device,
    .enter = enter,
    .allocate = tdm__cuda_allocate,
    .release = tdm__cuda_release,
    .allocate_host = tdm__cuda_allocate_host,
    .release_host = tdm__cuda_release_host,
    .pin = tdm__cuda_pin,
    .unpin = tdm__cuda_unpin,
    .reaches = reaches,
    .report = tdm__cuda_report,
};
