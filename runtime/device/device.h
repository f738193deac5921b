/* The device that is built in. */
#ifndef TDM_DEVICE_DEVICE_H
#define TDM_DEVICE_DEVICE_H

#include <tandem/sys/device.h>

/* The CPU. Its devices are virtual: cpu:0, cpu:1, ... are the threads that use them. */
extern const tdm_device_ops tdm_cpu_device;

#endif
