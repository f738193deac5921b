/* The device that is built in. */
#ifndef TDM_DEVICE_DEVICE_H
#define TDM_DEVICE_DEVICE_H

#include <string.h>

#include <tandem/sys/device.h>

#include "runtime/base/memory.h"

/* The CPU. Its devices are virtual: cpu:0, cpu:1, ... are the threads that use them. */
extern const tdm_device_ops tdm_cpu_device;

/* Is its memory the host's? Then work is done when the call that queues it returns, ranks can share the memory, and
 * kernels run on the host's threads. */
static inline bool tdm__device_on_host(const tdm_device_ops *ops) {
    return ops->arenas->ingest == NULL;
}

/* *out, a pointer of any type, = memory of the device, or of the host that the device copies from and to. On failure
 * *out stays. */
#define tdm__device_new(device, out, bytes, what) \
    tdm__device_new_at(device, (device)->ops->allocate, TDM_POINTER_AT(out), bytes, what)
#define tdm__device_new_host(device, out, bytes, what) \
    tdm__device_new_at(device, (device)->ops->allocate_host, TDM_POINTER_AT(out), bytes, what)
static inline tdm_status tdm__device_new_at(tdm_device *device,
                                            tdm_status (*allocate)(tdm_device *, void **, size_t, const char *),
                                            void *out, size_t bytes, const char *what) {
    void *memory = NULL;
    const tdm_status status = allocate(device, &memory, bytes, what);
    if (status == TDM_OK) memcpy(out, &memory, sizeof(memory)); /* all pointers have one representation */
    return status;
}

#endif
