/* tandem/sys/comm.h - collectives between ranks. For writers of backends.
 *
 * Every rank makes the same calls in the same order. Each call has the communicator's timeout as its deadline; a peer
 * that is gone or an abort makes it return TDM_E_COMM. After a failure the communicator can only be closed. A
 * communicator is used by one thread at a time; `abort` may come from any thread or signal handler. Sums are formed in
 * rank order by every backend whose `deterministic` is true: ((r0 + r1) + r2) + ... */
#ifndef TANDEM_SYS_COMM_H
#define TANDEM_SYS_COMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tandem/comm.h>
#include <tandem/host.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tdm_device;
struct tdm_device_event;

typedef struct tdm_comm_ops {
    uint32_t size;
    const char *name; /* "local", "shm" */
    bool deterministic;
    tdm_status (*all_reduce)(tdm_comm *comm, tdm_span io, tdm_reduce_op op);
    tdm_status (*broadcast)(tdm_comm *comm, tdm_span io, int root);
    tdm_status (*reduce)(tdm_comm *comm, tdm_span io, int root, tdm_reduce_op op); /* others' io is unchanged */
    tdm_status (*gather)(tdm_comm *comm, tdm_span in, tdm_span out, int root);     /* out: world * in.count at root */
    tdm_status (*all_gather)(tdm_comm *comm, tdm_span in, tdm_span out);
    tdm_status (*scatter)(tdm_comm *comm, tdm_span in, tdm_span out, int root);
    tdm_status (*send)(tdm_comm *comm, tdm_span in, int to);
    tdm_status (*receive)(tdm_comm *comm, tdm_span out, int from);
    tdm_status (*barrier)(tdm_comm *comm);
    /* Memory that peers can reach directly: an all_reduce within it copies nothing. Optional: NULL where there is none.
     * Collective; *out is zeroed, TDM_ALIGN-aligned, and lives as long as the communicator. */
    tdm_status (*allocate)(tdm_comm *comm, size_t bytes, void **out);
    /* A communicator of the ranks listed, in that order; *out is NULL for ranks not listed. Collective over `comm`. */
    tdm_status (*split)(tdm_comm *comm, const int *ranks, int count, tdm_comm **out);
    void (*abort)(tdm_comm *comm); /* wakes every rank: their calls fail */
    void (*close)(tdm_comm *comm);
    /* As abort, and every rank is told `why`. Any thread, but no signal handler. Optional. */
    void (*abort_because)(tdm_comm *comm, const char *why);

    /* ---- communicators of a device's memory (NCCL); NULL for those of the host's ---- */

    /* Spans lie in `device`'s memory. Calls return at once: their work goes on a queue of the communicator's own,
     * behind what the device's own queue holds at that time. `control` is a communicator in host memory of the same
     * ranks, by which they meet; it is borrowed and outlives this one. Collective over it; every rank gets the same
     * verdict. */
    tdm_status (*open)(tdm_comm **out, struct tdm_device *device, tdm_comm *control, int64_t timeout_ms);
    /* What is put on the device's own queue from now on runs behind all calls so far. */
    tdm_status (*join)(tdm_comm *comm);
    /* Waits for `until`, an event of the device's behind which calls of this communicator lie; NULL: until all calls so
     * far are done, and what the device's own queue holds, since calls in captured work run there. A peer that failed,
     * or the deadline, is TDM_E_COMM and aborts: the device's queue then ends by itself, over garbage. Captured work is
     * freed before `close`, after a failure, too: an abort is complete only then. */
    tdm_status (*wait)(tdm_comm *comm, struct tdm_device_event *until);

    /* ---- of host memory ---- */

    /* Has the job ended, on any rank and for whatever reason, or has a peer's process? Then the first cause is put into
     * `why`. Does not wait; any thread, also while another is in a call. Optional. */
    bool (*ended)(tdm_comm *comm, char *why, size_t bytes);
} tdm_comm_ops;

/* Backends begin their own struct with this one. */
struct tdm_comm {
    const tdm_comm_ops *ops;
    const tdm_host *host;
    int rank, world;
    int64_t timeout_ms;
    uint64_t sequence;            /* collective calls made so far; every rank has the same number */
    struct tdm_comm_queue *queue; /* the core's: the thread behind asynchronous calls, NULL until the first */
};

#ifdef __cplusplus
}
#endif
#endif
