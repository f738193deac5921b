/* Device memory filled with one byte, for tests. */
#ifndef TDM_TESTS_DEVICE_FILL_H
#define TDM_TESTS_DEVICE_FILL_H

#include <stdlib.h>
#include <string.h>

#include <tandem/sys/device.h>

/* Waits until it is done. */
static inline tdm_status tdm_test_fill(tdm_device *device, void *to, int byte, size_t bytes) {
    void *from = malloc(bytes);
    if (from == NULL) return TDM_E_MEMORY;
    memset(from, byte, bytes);
    tdm_status status = device->ops->queues->copy(device, NULL, to, from, bytes);
    if (status == TDM_OK) status = device->ops->queues->finish(device, NULL);
    free(from);
    return status;
}

#endif
