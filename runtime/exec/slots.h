/* Slots: memory on the device for what differs from step to step: rows, values, outcome.
 *
 * There are several slots, used in turn. While the work of one step runs on the device's own queue, the next batch is
 * copied to another slot and unpacked there, on a queue of its own (`up`); outcomes come back on a third (`down`). A
 * slot is written again only after the work that read it. So the device's own queue holds nothing but work, and that
 * work never waits for the host.
 *
 * On a device whose memory is the host's, copies end within the call, and rows are not copied: the step reads
 * them where the loader made them. */
#ifndef TDM_EXEC_SLOTS_H
#define TDM_EXEC_SLOTS_H

#include "runtime/exec/record.h"
#include "runtime/exec/resident.h"

typedef struct tdm_slot {
    tdm_step_block *block; /* values and outcome of the step */
    char *packed;          /* [parts] blocks as the loader makes them; NULL, as the next, if rows are not copied */
    int64_t *position;     /* where kernels read them: [parts][rows] */
    char *target, *x;
    tdm_device_event *arrived; /* on `up`: the step's rows and values are here */
    tdm_device_event *ended;   /* on the device's own queue: the step's work is done */
    bool used;                 /* `ended` has been recorded */
} tdm_slot;

/* A step in flight, as the host sees it. */
typedef struct tdm_flight {
    tdm_step_block *host;   /* the values that are sent, and the outcome that comes back */
    tdm_device_event *done; /* the outcome is in host->outcome */
    tdm_record *record;     /* with this step's stamps; NULL: it was not timed */
    bool paused;            /* a part of its times is in the recorder's sample already */
} tdm_flight;

struct tdm_slots {
    int64_t rows; /* of a part of a step's batch, at most */
    int parts;    /* of a step's batch, at most */
    size_t target_bytes;
    tdm_queue *up, *down;
    tdm_slot slot[TDM_SLOTS];
    int current;          /* the slot of the step that began last */
    bool prefetched;      /* the next slot has the rows of the next step, or they are on their way */
    const char *expected; /* the block of that batch's first part */
    tdm_flight flight[TDM_IN_FLIGHT];
    uint64_t begun, waited; /* numbers of steps; the flight of the n-th is n modulo TDM_IN_FLIGHT */

    /* The rest: on devices with memory of their own. */
    tdm_packing packing; /* of the batches of this feed */
    tdm_resident resident;
    tdm_ingest ingest; /* what the ingests of this feed have in common */
    size_t fed_bytes;  /* on the device, for this feed */
    size_t sample_at, sample_bytes;
    tdm_slot samples; /* rows outside of steps: evaluation, predictions */
    char *sample_host;
};

tdm_status tdm__slots_open(tdm_replica *replica, const tdm_replica_options *options);
void tdm__slots_close(tdm_replica *replica);
/* feed.c: memory for samples outside of steps; the end of a feed, after which the loader's memory is not read. */
tdm_status tdm__samples_open(tdm_replica *replica);
void tdm__samples_close(tdm_replica *replica);
void tdm__feed_end(tdm_replica *replica);

#endif
