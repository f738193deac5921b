/* What of a dataset a device keeps: its samples whole, so that a batch is a list of numbers, and the table that makes
 * floats of bytes. */
#ifndef TDM_EXEC_RESIDENT_H
#define TDM_EXEC_RESIDENT_H

#include "runtime/exec/replica.h"

typedef struct tdm_resident { /* all in the device's memory; NULL: there is none */
    void *samples, *targets;
    float *table;
    int64_t table_channels;
} tdm_resident;

/* Zeroed or closed before. */
tdm_status tdm__resident_open(tdm_resident *resident, tdm_replica *replica, const tdm_feed *feed);
void tdm__resident_close(tdm_resident *resident, tdm_device *device);

#endif
