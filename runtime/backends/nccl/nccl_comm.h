/* What the parts of the NCCL module share.
 *
 * Each open() makes one `site`: the state that all communicators of one rank share, with a keeper thread that watches
 * the control plane. NCCL has no deadlines and, on one node, does not detect dead peers: its kernels wait for ever. So
 * communicators are non-blocking, every call is polled, and every wait has a deadline. When the job ends, for whatever
 * reason, the keeper calls ncclCommAbort, once, for all communicators of the rank, while no thread is inside NCCL. */
#ifndef TDM_BACKENDS_NCCL_COMM_H
#define TDM_BACKENDS_NCCL_COMM_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include <tandem/sys/comm.h>
#include <tandem/sys/device.h>

#include "runtime/backends/nccl/nccl_library.h"
#include "runtime/base/system/clock.h"
#include "runtime/base/system/thread.h"

enum { TDM_NCCL_CALL_TEXT = 128, TDM_NCCL_WHY = 400 };

typedef enum tdm_nccl_state {
    TDM_NCCL_LIVE,
    TDM_NCCL_ABORTING, /* no thread enters NCCL any more; lasts until all graphs with calls of NCCL are destroyed */
    TDM_NCCL_DEAD      /* ncclCommAbort has returned: all communicators are gone, and none of their kernels runs */
} tdm_nccl_state;

struct tdm_nccl_comm;

typedef struct tdm_nccl_site {
    const tdm_host *host;
    const tdm_nccl_library *nccl;
    tdm_device *device;
    tdm_comm *control; /* the job's communicator in host memory; borrowed */
    int rank;          /* rank in the job */
    int64_t timeout_ms;
    tdm_thread keeper;
    sem_t wake;                /* wakes the keeper; also posted from signal handlers */
    _Atomic bool abort_wanted; /* set by any thread; the keeper aborts */
    pthread_mutex_t mutex;     /* guards the members below */
    pthread_cond_t changed;    /* signals changes of `inside` and `state` */
    int users;                 /* number of communicators */
    int inside;                /* threads inside NCCL */
    tdm_nccl_state state;
    bool closing;
    struct tdm_nccl_comm *comms;
    char why[TDM_NCCL_WHY]; /* the first failure on this rank; "": none */
} tdm_nccl_site;

typedef struct tdm_nccl_comm {
    tdm_comm base; /* comes first */
    tdm_nccl_site *site;
    struct tdm_nccl_comm *next; /* the next communicator of the site */
    ncclComm_t handle;          /* read and changed only inside NCCL, or by the keeper while no thread is inside */
    ncclComm_t none;  /* receives nothing when this rank is not part of a split, possibly from a thread of NCCL's */
    tdm_queue *queue; /* the stream that its work runs on */
    tdm_device_event *ahead, *behind; /* on the device's own queue, and on this one */
    void *token;                      /* device memory that barriers reduce */
    int64_t deadline_ns;              /* of the call in progress */
    char call[TDM_NCCL_CALL_TEXT];    /* the call in progress, or the last one, for messages */
} tdm_nccl_comm;

/* ---- nccl_site.c ---- */

tdm_status tdm__nccl_site_open(tdm_nccl_site **out, const tdm_nccl_library *nccl, tdm_device *device, tdm_comm *control,
                               int64_t timeout_ms);
/* Makes a site with one user, the caller. It ends with its last user. */
void tdm__nccl_site_release(tdm_nccl_site *site);
/* Enclose every call of NCCL. Enter returns false if the job has ended: NCCL must not be called then. */
bool tdm__nccl_enter(tdm_nccl_site *site);
void tdm__nccl_leave(tdm_nccl_site *site);
/* Asks the keeper to abort. Async-signal-safe. */
void tdm__nccl_want_abort(tdm_nccl_site *site);
/* Waits until the communicators are gone. False: ncclCommAbort hangs, or a graph with their calls still exists; then
 * nothing of theirs may be freed. Only for a caller that closes: others may still have graphs to free. */
bool tdm__nccl_wait_dead(tdm_nccl_site *site);
/* The pause between two polls. Short waits spin, then the pauses grow. Zeroed at the beginning of a wait. */
typedef struct tdm_nccl_pause {
    int64_t start_ns;
} tdm_nccl_pause;
void tdm__nccl_pause(tdm_nccl_pause *pause);

/* ---- nccl_failure.c ---- */

/* Returns TDM_E_COMM with the job's first cause after the name of the call. When it returns, the kernels have ended and
 * the work behind them is done; the communicators go when the caller has freed its graphs. The same holds for the
 * functions below. */
tdm_status tdm__nccl_ended(tdm_nccl_comm *comm);
/* Ends the job and gives this sentence to every rank. */
tdm_status tdm__nccl_broken(tdm_nccl_comm *comm, tdm_status status, const char *format, ...) TDM_PRINTF(3, 4);
/* Ends the job for all ranks after a failure of this rank's device, because peers wait for what this rank will not
 * send. The device's message remains this thread's error. */
tdm_status tdm__nccl_device_failed(tdm_nccl_comm *comm, tdm_status status);
/* As tdm__nccl_broken, for an error that NCCL returned. */
tdm_status tdm__nccl_refused(tdm_nccl_comm *comm, ncclResult_t result);
/* Ends a call of NCCL that returned `result`: when this returns TDM_OK, NCCL has accepted the call. `state_of` has the
 * handle to poll. */
tdm_status tdm__nccl_settle(tdm_nccl_comm *comm, const tdm_nccl_comm *state_of, ncclResult_t result);
/* Sets the deadline of a call that begins now. */
void tdm__nccl_begin(tdm_nccl_comm *comm);

/* ---- nccl_comm.c: rows of tdm__nccl_ops ---- */

tdm_status tdm__nccl_run(tdm_comm *comm, const tdm_comm_call *call);
tdm_status tdm__nccl_join(tdm_comm *comm);
tdm_status tdm__nccl_wait(tdm_comm *comm, tdm_device_event *until);
void tdm__nccl_abort(tdm_comm *comm, const char *why);

/* ---- nccl_open.c ---- */

extern const tdm_comm_ops tdm__nccl_ops;

#endif
