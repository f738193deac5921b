/* How ddp sums gradients over its ranks, and how rank 0's arenas are broadcast. One file for each way:
 *
 *   reducer_alone.c   one rank: there is nothing to do
 *   reducer_cpu.c     the CPU: a thread of each rank reduces gradients where they lie; the ranks share that memory if the
 *                     communicator has some
 *   reducer_device.c  a device with a communicator for its memory (NCCL), or one for each stage: its calls are work on the
 *                     replica's queue
 *   reducer_host.c    a device without one, and PowerSGD on a device: after backward the gradients are copied to host
 *                     memory, reduced there and copied back
 *
 * A bucket is a range of the gradient arena that is reduced together. Its reduction starts when backward has written
 * the bucket's last gradient, and runs while backward goes on with the layers below.
 *
 * With parallel.ddp.compress less is sent (compress/, reducer_compress.c): in host memory the same bits by every
 * reducer; NCCL rounds sums of 16 bits as it goes. */
#ifndef TDM_MODES_REDUCER_H
#define TDM_MODES_REDUCER_H

#include "modes/common.h"
#include "modes/compress/powersgd.h"

typedef struct tdm_reducer tdm_reducer;
typedef struct tdm_reducer_ops {
    bool is_queued; /* its calls are work on the replica's queue: they may be captured, and the host cannot time them */
    bool is_after_backward; /* the host reduces all buckets, in reduce_all: a step is two captures */
    /* Copies rank 0's arena to all ranks. Work that is queued later runs after it. */
    tdm_status (*broadcast)(tdm_reducer *reducer, tdm_arena_kind kind);
    /* Called within backward: the bucket's gradients are written, or work that writes them is queued. */
    tdm_status (*start_bucket)(tdm_reducer *reducer, int bucket);
    /* Called after backward, within the step's work: work that is queued later sees the sums, unless is_after_backward. */
    tdm_status (*finish)(tdm_reducer *reducer);
    /* Called by the host when a step's backward has ended, before its update. */
    tdm_status (*reduce_all)(tdm_reducer *reducer);
    /* Exchanges the statistics of a stage in place: `blocks`, in the stage's device memory, has a block of `bytes` for
     * each rank, and this rank has written its own. Work that is queued later sees all. Stages call it at the same
     * time. */
    tdm_status (*exchange)(tdm_reducer *reducer, int stage, char *blocks, size_t bytes);
    /* Waits for `until` (NULL: for all queued work) with the communicator's deadline, which a device's own wait does
     * not have. */
    tdm_status (*wait)(tdm_reducer *reducer, tdm_device_event *until);
    /* After a failure: tells the other ranks `why`. Nothing here touches the replica afterwards. */
    void (*abort)(tdm_reducer *reducer, const char *why);
    void (*close)(tdm_reducer *reducer); /* before the replica is closed */
} tdm_reducer_ops;

struct tdm_reducer {
    const tdm_reducer_ops *ops;
    const tdm_mode_params *params;
    tdm_replica *replica;
    const char *backend; /* "shm", "nccl"; "here": one rank */
    double ms;        /* of this step's collectives that were hidden behind backward; not in TDM_PHASE_COMM_EXPOSED */
    int64_t step;     /* that is submitted, from 1 */
    uint16_t *narrow; /* gradients of 16 bits, with the arena's offsets, in the memory that is reduced; NULL: none */
    tdm_powersgd *powersgd; /* NULL: none */
    float *minus_zeros;     /* for devices to copy, where this rank has no rows; NULL: the host writes them */
};

tdm_status tdm__reducer_open_alone(tdm_reducer **out, const tdm_mode_params *params);
/* The others are collective. After a failure, close *out unless it is NULL. tdm__reducer_open_cpu also opens this
 * rank's replica, whose gradient arena is the reducer's memory. */
tdm_status tdm__reducer_open_cpu(tdm_reducer **out, tdm_replica **replica, const tdm_mode_params *params);
/* *out is NULL if the communicator cannot be opened and the job may run without it, as `backend: auto` with two ranks
 * on one GPU. */
tdm_status tdm__reducer_open_device(tdm_reducer **out, tdm_replica *replica, const tdm_mode_params *params);
tdm_status tdm__reducer_open_host(tdm_reducer **out, tdm_replica *replica, const tdm_mode_params *params);
void tdm__reducer_close(tdm_reducer *reducer); /* NULL is fine */
/* Within the work of a step in which this rank has no rows: its gradients become numbers that change no sum. */
tdm_status tdm__reducer_add_nothing(const tdm_reducer *reducer);

/* ---- for these files ---- */

/* Members of tdm_reducer_ops that do nothing. */
tdm_status tdm__reducer_skip_bucket(tdm_reducer *reducer, int bucket);
tdm_status tdm__reducer_skip(tdm_reducer *reducer);
tdm_status tdm__reducer_skip_wait(tdm_reducer *reducer, tdm_device_event *until);
tdm_status tdm__reducer_new(tdm_reducer **out, size_t bytes, const tdm_reducer_ops *ops, const tdm_mode_params *params);
/* This rank's replica. grad NULL: the replica allocates its gradient arena. */
tdm_status tdm__rank_open_replica(const tdm_mode_params *params, float *grad, tdm_replica **out);
/* Host memory that ranks reduce: the communicator's, where it has some, else this rank's. Opening is collective. */
tdm_status tdm__reduced_memory(const tdm_mode_params *params, size_t bytes, const char *what, void **out);
void tdm__reduced_memory_release(const tdm_mode_params *params, void *memory); /* NULL is fine */
/* The bucket's range of the gradient arena `grad`. */
tdm_span tdm__bucket_span(const tdm_reducer *reducer, float *grad, int bucket);
/* The same in the gradients of the replica's stage that has the bucket. */
tdm_span tdm__bucket_here(const tdm_reducer *reducer, int bucket);
/* Communicators of all ranks, one for the statistics of each stage that has some, beside the one for gradients; the
 * others are NULL. *out is NULL if the plan has no statistics. Collective; after a failure, close what there is. */
tdm_status tdm__exchange_open(tdm_comm ***out, const tdm_mode_params *params);
void tdm__exchange_close(tdm_comm **exchange, const tdm_mode_params *params); /* NULL is fine */
/* Gathers the ranks' blocks, in host memory. */
tdm_status tdm__reducer_gather(tdm_comm *comm, char *blocks, size_t bytes);
/* Opens what compression needs in host memory. Collective. */
tdm_status tdm__compression_open(tdm_reducer *reducer);
void tdm__compression_close(tdm_reducer *reducer);
/* Sums a bucket's span, in host memory, over ranks, compressed as the job says. */
tdm_status tdm__reduce_in_host(tdm_reducer *reducer, tdm_span span, int bucket);
/* What tdm__reducer_add_nothing needs where gradients are not in host memory; the caller's close releases it. */
tdm_status tdm__reducer_open_minus_zeros(tdm_reducer *reducer);
/* Broadcasts through host memory. */
tdm_status tdm__reducer_broadcast_host(tdm_reducer *reducer, tdm_arena_kind kind);

#endif
