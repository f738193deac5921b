/* The CPU as a device. cpu:0, cpu:1, ... are virtual: each is the thread that uses it, with memory of its own, so that
 * data parallelism is the same on a laptop as on a node of GPUs. Work runs on the calling thread and is done when the
 * call returns. */
#include <stdio.h>
#include <string.h>

#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/device/device.h"
#include "runtime/graph/graph.h"

/* In front of each allocation, so that release knows its size. */
typedef struct block_head {
    size_t bytes;
    char pad[TDM_ALIGN - sizeof(size_t)];
} block_head;

static tdm_status cpu_open(tdm_device **out, const tdm_host *host, int index) {
    *out = NULL;
    tdm_device *device = NULL;
    TDM_TRY(tdm__new(host, &device, 1, sizeof(*device), "device"));
    device->ops = &tdm_cpu_device;
    device->host = host;
    device->index = index;
    device->flat = tdm_builtin_flat();
    snprintf(device->name, sizeof(device->name), "cpu:%d", index);
    *out = device;
    return TDM_OK;
}

static void cpu_close(tdm_device *device) {
    if (device != NULL) tdm__delete(device->host, device);
}

static tdm_status cpu_allocate(tdm_device *device, void **out, size_t bytes, const char *what) {
    *out = NULL;
    block_head *head = NULL;
    size_t total = 0;
    if (!tdm__add_fits(bytes, sizeof(*head), &total))
        TDM_FAIL(TDM_E_MEMORY, "%s: %s wants more bytes than can be counted", device->name, what);
    TDM_TRY(tdm__new_pages(device->host, &head, total, what));
    head->bytes = bytes;
    device->bytes_now += bytes;
    if (device->bytes_now > device->bytes_peak) device->bytes_peak = device->bytes_now;
    *out = head + 1;
    return TDM_OK;
}

static void cpu_release(tdm_device *device, void *pointer) {
    if (pointer == NULL) return;
    block_head *head = (block_head *)pointer - 1;
    device->bytes_now -= head->bytes;
    tdm__delete_pages(device->host, head);
}

static tdm_status cpu_copy(tdm_device *device, void *to, const void *from, size_t bytes) {
    (void)device;
    if (bytes > 0) memcpy(to, from, bytes);
    return TDM_OK;
}

static tdm_status cpu_fill(tdm_device *device, void *to, uint8_t byte, size_t bytes) {
    (void)device;
    if (bytes > 0) memset(to, byte, bytes);
    return TDM_OK;
}

static tdm_status cpu_finish(tdm_device *device) {
    (void)device;
    return TDM_OK;
}

const tdm_device_ops tdm_cpu_device = {
    .size = sizeof(tdm_device_ops),
    .name = "cpu",
    .open = cpu_open,
    .close = cpu_close,
    .allocate = cpu_allocate,
    .release = cpu_release,
    .copy = cpu_copy,
    .fill = cpu_fill,
    .finish = cpu_finish,
};
