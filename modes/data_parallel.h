/* What the parts of dp share: its replicas, and how they all do one thing. */
#ifndef TDM_MODES_DATA_PARALLEL_H
#define TDM_MODES_DATA_PARALLEL_H

#include "modes/parts.h"
#include "runtime/base/sync.h"

struct dp;
typedef struct dp_task { /* what one thread works on */
    struct dp *dp;
    int index;
    tdm_worker_fn fn;
    const tdm_shard *shard; /* in host memory */
    const float *output;    /* evaluation: in host memory */
    tdm_rows all, rows;     /* of this step, and the micro-batch of it, where the replica sees them; rows 0: idle */
    bool first;
    int64_t output_first; /* row of the gathered outputs */
} dp_task;

typedef struct dp {
    tdm_mode base;
    int count;
    tdm_replica **replica;
    tdm_worker **worker; /* NULL with one replica: it runs on the caller's thread */
    dp_task *task;
    tdm_replica *output_replica;    /* whose device gathers */
    char *output, *output_gradient; /* gathered, [rows of all, width]; NULL with loss: replica */
    char *target;                   /* discrete devices: the other replicas' targets, beside the outputs */
    float *peer_gradient;           /* discrete devices: another replica's gradients, on replica 0's */
    const tdm_batch *batch;
    const tdm_update *update;
    tdm_step_values values; /* of this step */
    tdm_pendings pending;
    tdm_times *times;         /* of the step under way */
    int64_t at;               /* the clock at the last lap */
    tdm_device_event **event; /* of each device; NULL where there are no queues to order */
    bool reaches;             /* kernels of every device read and write the memory of every other */
} dp;

/* ---- data_parallel_devices.c: all replicas at once ---- */

/* Threads, and on discrete devices events, for the replicas that are open. */
tdm_status tdm__dp_open_devices(dp *d);
void tdm__dp_close_devices(dp *d);
/* fn for every task, each in its thread; what comes behind it runs when all are done. Work that is being captured is
 * put by the calling thread, which owns the capture. The first failing replica, in their order, is told. */
tdm_status tdm__dp_each(dp *d, tdm_worker_fn fn);
/* fn for every task, one after the other: for work that the calling thread puts in no time. Nothing waits. */
tdm_status tdm__dp_in_turn(dp *d, tdm_worker_fn fn);
/* What is put on any device's queue from now on runs behind what they all hold. Nothing to do with one device, and
 * where work is done when it is put. */
tdm_status tdm__dp_meet(dp *d);
/* Half of that: replica 0's queue waits for the others; the others for replica 0's. */
tdm_status tdm__dp_join(dp *d);
tdm_status tdm__dp_fork(dp *d);

#endif
