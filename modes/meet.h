/* Where the gradients of ddp's ranks meet, and how rank 0's arenas reach all ranks. One way each in
 *
 *   meet_shared.c   the CPU: the gradient arenas lie in memory that the ranks share, a thread of each rank reduces them
 *   meet_device.c   a communicator for the device's memory (NCCL): on its queue, a part of the step's work
 *   meet_host.c     a device without one: the gradients come to host memory behind backward, and go back
 *
 * A bucket is a range of the gradient arena, reduced by one collective call. It begins as soon as backward has written
 * its last gradient, while backward goes on with the layers below. */
#ifndef TDM_MODES_MEET_H
#define TDM_MODES_MEET_H

#include "modes/parts.h"

typedef struct tdm_meet tdm_meet;
typedef struct tdm_meet_ops {
    /* Its calls go on the replica's queue and may be captured; the host learns nothing of the time they take. */
    bool is_queued;
    /* Rank 0's arena to all ranks. Where it is queued, what is put from here on runs behind it. */
    tdm_status (*spread)(tdm_meet *meet, tdm_arena_kind kind);
    /* Within backward: all gradients of the bucket are written, or will be by what the queue holds. NULL where all meet
     * in `exchange`. */
    tdm_status (*begin_bucket)(tdm_meet *meet, int bucket);
    /* Behind backward: what is put from here on runs behind the sums. NULL where begin_bucket is. */
    tdm_status (*join)(tdm_meet *meet);
    /* Between backward, which is done, and the update: all gradients become sums. NULL: they are. */
    tdm_status (*exchange)(tdm_meet *meet);
    /* Before the host waits for `until`, for which a device has no deadline (NULL: for all that was put): waits with
     * the communicator's. NULL where nothing is queued. */
    tdm_status (*wait)(tdm_meet *meet, tdm_device_event *until);
    /* After a failure, which the other ranks learn. Nothing of it touches the replica any more. */
    void (*abort)(tdm_meet *meet, const char *why);
    void (*close)(tdm_meet *meet); /* before the replica is */
} tdm_meet_ops;

struct tdm_meet {
    const tdm_meet_ops *ops;
    const tdm_mode_params *params;
    tdm_replica *replica;
    const char *backend; /* "shm", "nccl" */
    double ms;           /* that collectives took in this step */
};

/* Collective. What was opened before a failure is in *out too. The first opens this rank's replica as well, since the
 * gradient arena is the meeting's. */
tdm_status tdm__meet_open_shared(tdm_meet **out, tdm_replica **replica, const tdm_mode_params *params);
/* *out is NULL where the job may go on without: two ranks on one GPU, say, with `backend: auto`. */
tdm_status tdm__meet_open_device(tdm_meet **out, tdm_replica *replica, const tdm_mode_params *params);
tdm_status tdm__meet_open_host(tdm_meet **out, tdm_replica *replica, const tdm_mode_params *params);
void tdm__meet_close(tdm_meet *meet); /* NULL is fine */

/* ---- for those three ---- */

tdm_status tdm__meet_new(tdm_meet **out, size_t bytes, const tdm_meet_ops *ops, const tdm_mode_params *params);
tdm_status tdm__meet_open_replica(const tdm_mode_params *params, float *grad, tdm_replica **out);
/* The bucket's range of a gradient arena. */
tdm_span tdm__bucket_span(const tdm_meet *meet, float *grad, int bucket);
/* By way of host memory: the arena is fetched, broadcast and put back. */
tdm_status tdm__meet_spread_host(tdm_meet *meet, tdm_arena_kind kind);

#endif
