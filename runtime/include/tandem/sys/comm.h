/* tandem/sys/comm.h - the call table of a communicator. For writers of backends; tandem/comm.h describes the calls.
 *
 * Every rank makes the same calls in the same order. The communicator's timeout is the deadline of each call. A lost
 * peer or an abort makes a call return TDM_E_COMM. After a failure the communicator can only be closed.
 *
 * Threads: one thread at a time uses a communicator. `abort` may be called from any thread and from a signal handler.
 *
 * Numbers: a backend whose `deterministic` is true adds in rank order: ((r0 + r1) + r2) + ... */
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
    uint32_t size;    /* sizeof(tdm_comm_ops) of the backend's build */
    const char *name; /* "local", "shm" */
    bool deterministic;
    tdm_status (*all_reduce)(tdm_comm *comm, tdm_span io, tdm_reduce_op op);
    tdm_status (*broadcast)(tdm_comm *comm, tdm_span io, int root);
    tdm_status (*reduce)(tdm_comm *comm, tdm_span io, int root,
                         tdm_reduce_op op); /* the io of the other ranks is unchanged */
    tdm_status (*gather)(tdm_comm *comm, tdm_span in, tdm_span out,
                         int root); /* out: world * in.count elements, at the root */
    tdm_status (*all_gather)(tdm_comm *comm, tdm_span in, tdm_span out);
    tdm_status (*scatter)(tdm_comm *comm, tdm_span in, tdm_span out, int root);
    tdm_status (*send)(tdm_comm *comm, tdm_span in, int to);
    tdm_status (*receive)(tdm_comm *comm, tdm_span out, int from);
    tdm_status (*barrier)(tdm_comm *comm);
    /* Allocates memory that peers can access directly: an all_reduce within it makes no copy. Collective. *out is
     * zeroed, aligned to TDM_ALIGN, and lives as long as the communicator. Optional: may be NULL. */
    tdm_status (*allocate)(tdm_comm *comm, size_t bytes, void **out);
    /* Makes a communicator of the ranks listed, in that order; *out is NULL on ranks that are not listed. Collective
     * over `comm`. */
    tdm_status (*split)(tdm_comm *comm, const int *ranks, int count, tdm_comm **out);
    void (*abort)(tdm_comm *comm); /* wakes every rank; all their calls fail */
    void (*close)(tdm_comm *comm);
    /* As abort, and every rank's message gives `why`. Any thread, but not from a signal handler. Optional: may be NULL.
     */
    void (*abort_because)(tdm_comm *comm, const char *why);

    /* ---- communicators for a device's memory (NCCL); NULL in those for the host's ---- */

    /* Opens a communicator whose spans lie in the memory of `device`. Its calls return at once: their work runs on a
     * queue of the communicator's own, behind what is on the device's own queue at the time. `control` is a
     * communicator in host memory of the same ranks, through which they meet; it is borrowed and must outlive this one.
     * Collective over `control`; every rank gets the same result. */
    tdm_status (*open)(tdm_comm **out, struct tdm_device *device, tdm_comm *control, int64_t timeout_ms);
    /* Makes the device's own queue wait for all calls so far: work that is queued there from now on runs after them. */
    tdm_status (*join)(tdm_comm *comm);
    /* Waits until the device has reached `until`, an event that was recorded behind calls of this communicator. NULL:
     * waits for all calls so far and for everything on the device's own queue, because calls in captured work run
     * there. A failed peer or the deadline is TDM_E_COMM and aborts: the device's queue then drains by itself, and its
     * results are garbage. Captured work must be freed before `close`, after a failure too: only then can an abort
     * complete. */
    tdm_status (*wait)(tdm_comm *comm, struct tdm_device_event *until);

    /* ---- communicators for the host's memory ---- */

    /* Returns true if the job has ended, on any rank and for whatever reason, or a peer's process has; `why` then gets
     * the first cause. Never waits. Any thread, also while another thread is in a call. Optional: may be NULL. */
    bool (*ended)(tdm_comm *comm, char *why, size_t bytes);
} tdm_comm_ops;

/* A backend's own struct begins with this one. */
struct tdm_comm {
    const tdm_comm_ops *ops;
    const tdm_host *host;
    int rank, world;
    int64_t timeout_ms;
    uint64_t sequence;            /* collective calls made so far; every rank has the same number */
    struct tdm_comm_queue *queue; /* owned by the core: the thread for asynchronous calls; NULL until the first one */
};

#ifdef __cplusplus
}
#endif
#endif
