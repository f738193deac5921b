/* What the parts of the NCCL module share.
 *
 * One `site` per open(): what the communicators of one rank have in common, with a keeper thread that watches the
 * control plane. NCCL knows no deadline and, on one node, no dead peer either: its kernels wait for ever. So every call
 * is made on non-blocking communicators and polled, every wait has a deadline, and when the job ends, for whatever
 * reason, the keeper calls ncclCommAbort, once, for all communicators of the rank, when nobody is inside NCCL. */
#ifndef TDM_COMM_NCCL_COMM_H
#define TDM_COMM_NCCL_COMM_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include <tandem/sys/comm.h>
#include <tandem/sys/device.h>

#include "runtime/backends/nccl/nccl_library.h"

enum { TDM_NCCL_CALL_TEXT = 128, TDM_NCCL_WHY = 400, TDM_NCCL_WORLD_MAX = 256 };

typedef enum tdm_nccl_state {
    TDM_NCCL_LIVE,
    TDM_NCCL_ABORTING, /* nobody enters NCCL any more; lasts until all graphs with calls of NCCL are destroyed */
    TDM_NCCL_DEAD      /* ncclCommAbort has returned: no communicator is left, no kernel of theirs runs */
} tdm_nccl_state;

struct tdm_nccl_comm;

typedef struct tdm_nccl_site {
    const tdm_host *host;
    const tdm_nccl_library *nccl;
    tdm_device *device;
    tdm_comm *control; /* of the job; borrowed */
    int rank;          /* in the job */
    int64_t timeout_ms;
    pthread_t keeper;
    sem_t wake;                /* of the keeper; also posted from signal handlers */
    _Atomic bool abort_wanted; /* by anybody; the keeper does it */
    pthread_mutex_t mutex;     /* guards all below */
    pthread_cond_t changed;    /* inside, state */
    int users;                 /* communicators */
    int inside;                /* threads in NCCL */
    tdm_nccl_state state;
    bool closing;
    struct tdm_nccl_comm *comms;
    char why[TDM_NCCL_WHY]; /* what broke here first; "" */
} tdm_nccl_site;

typedef struct tdm_nccl_comm {
    tdm_comm base; /* first */
    tdm_nccl_site *site;
    struct tdm_nccl_comm *next; /* of the site */
    ncclComm_t handle;          /* read and changed inside NCCL only, or by the keeper when nobody is */
    ncclComm_t none;            /* where a split without this rank puts nothing, perhaps from a thread of NCCL's */
    tdm_queue *queue;           /* its work goes here */
    tdm_device_event *ahead, *behind; /* of the device's queue, and of this one */
    void *token;                      /* device memory that barriers reduce */
    int64_t deadline_ns;              /* of the call under way */
    char call[TDM_NCCL_CALL_TEXT];    /* the call under way, or the last: for messages */
} tdm_nccl_comm;

extern const tdm_comm_ops tdm__nccl_ops;

/* ---- nccl_site.c ---- */

tdm_status tdm__nccl_site_open(tdm_nccl_site **out, const tdm_nccl_library *nccl, tdm_device *device, tdm_comm *control,
                               int64_t timeout_ms);
/* With one user, the caller. It ends with its last user. */
void tdm__nccl_site_release(tdm_nccl_site *site);
/* Around every call of NCCL. False: the job has ended, NCCL may not be called. */
bool tdm__nccl_enter(tdm_nccl_site *site);
void tdm__nccl_leave(tdm_nccl_site *site);
/* The keeper is asked to abort. Async-signal-safe. */
void tdm__nccl_want_abort(tdm_nccl_site *site);
/* Until the communicators are gone. False: ncclCommAbort hangs, or a graph with their calls is left; nothing of them
 * may be freed. Only for who is closing: others may still have to free graphs. */
bool tdm__nccl_wait_dead(tdm_nccl_site *site);
int64_t tdm__nccl_now_ns(void);
/* Between two looks. A short wait is a busy one, then come naps that grow; zero at the beginning of a wait. */
typedef struct tdm_nccl_pause {
    int64_t start_ns;
} tdm_nccl_pause;
void tdm__nccl_pause(tdm_nccl_pause *pause);

/* ---- nccl_failure.c ---- */

/* TDM_E_COMM with the job's first cause, behind the name of the call. When it returns, the kernels have left and what
 * was behind them is done; the communicators go when the caller has freed his graphs. So does `broken`. */
tdm_status tdm__nccl_ended(tdm_nccl_comm *comm);
/* Ends the job, with this sentence for every rank. */
tdm_status tdm__nccl_broken(tdm_nccl_comm *comm, tdm_status status, const char *format, ...) TDM_PRINTF(3, 4);
/* Ends the job for all after a failure of this rank's device, whose message stays this thread's: peers wait for what
 * this rank does not send. */
tdm_status tdm__nccl_device_failed(tdm_nccl_comm *comm, tdm_status status);
/* As broken, for what NCCL answered. */
tdm_status tdm__nccl_refused(tdm_nccl_comm *comm, ncclResult_t result);
/* The end of a call of NCCL that answered `result`: NCCL has taken it when this returns TDM_OK. `state_of` has the
 * handle that is asked. */
tdm_status tdm__nccl_settle(tdm_nccl_comm *comm, const tdm_nccl_comm *state_of, ncclResult_t result);
/* Sets the deadline of the call that begins. */
void tdm__nccl_begin(tdm_nccl_comm *comm);

/* ---- nccl_open.c ---- */

tdm_status tdm__nccl_open(tdm_comm **out, tdm_device *device, tdm_comm *control, int64_t timeout_ms);
tdm_status tdm__nccl_split(tdm_comm *comm, const int *ranks, int count, tdm_comm **out);
void tdm__nccl_close(tdm_comm *comm);

#endif
