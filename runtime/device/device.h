/* The device that is built in. */
#ifndef TDM_DEVICE_DEVICE_H
#define TDM_DEVICE_DEVICE_H

#include <tandem/sys/device.h>

/* The CPU. Its devices are virtual: cpu:0, cpu:1, ... are the threads that use them. */
extern const tdm_device_ops tdm_cpu_device;

/* Is its memory the host's? Then work is done when the call that queues it returns, ranks can share the memory, and
 * kernels run on the host's threads. */
static inline bool tdm__device_on_host(const tdm_device_ops *ops) {
    return !ops->discrete;
}

#endif
