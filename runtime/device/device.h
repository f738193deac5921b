/* Devices: memory, copies, flat passes. CPU devices are virtual: cpu:0, cpu:1, ... are the threads that use them. */
#ifndef TDM_DEVICE_DEVICE_H
#define TDM_DEVICE_DEVICE_H

#include <tandem/host.h>
#include <tandem/sys/op.h>

typedef struct tdm_device tdm_device;

typedef struct tdm_device_ops {
    uint32_t size;
    const char *name; /* "cpu" */
    tdm_status (*open)(tdm_device **out, const tdm_host *host, int index);
    void (*close)(tdm_device *device);
    tdm_status (*allocate)(tdm_device *device, void **out, size_t bytes, const char *what); /* zeroed */
    void (*release)(tdm_device *device, void *pointer);
    /* Ordered with the work queued on the device so far; complete when it returns. */
    tdm_status (*copy)(tdm_device *device, void *to, const void *from, size_t bytes);
    tdm_status (*fill)(tdm_device *device, void *to, uint8_t byte, size_t bytes);
    tdm_status (*finish)(tdm_device *device); /* waits until queued work is done */
} tdm_device_ops;

struct tdm_device {
    const tdm_device_ops *ops;
    const tdm_host *host;
    char name[16]; /* "cpu:1" */
    int index;
    const tdm_flat_kernels *flat;
    size_t bytes_now, bytes_peak;
};

extern const tdm_device_ops tdm_cpu_device;

#endif
