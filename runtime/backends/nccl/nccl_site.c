/* A rank's site: it counts the threads inside NCCL, and its keeper thread aborts when the job ends. */
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#include "runtime/backends/nccl/nccl_comm.h"

enum {
    WATCH_MS = 10,        /* how often the keeper checks the control plane */
    ABORT_MS = 10 * 1000, /* without graphs ncclCommAbort takes less time than this, or hangs (NVIDIA/nccl#1777) */
    QUIET_MS = 1000       /* time for kernels to end after ncclCommRevoke */
};

static struct timespec in_ms(int64_t ms) {
    return tdm__timespec(tdm__now_ns() + ms * 1000000);
}

/* A sleep takes 70 us or more, however short it is meant to be, and a step on a GPU often takes less than a
 * millisecond. So the first 2 ms are spent spinning. Then come sleeps of a sixteenth of the wait so far: the end of the
 * wait is seen only a little late. */
void tdm__nccl_pause(tdm_nccl_pause *pause) {
    enum { BUSY_NS = 2000 * 1000, MOST_NS = 500 * 1000, PART = 16 };
    int64_t now = tdm__now_ns();
    if (pause->start_ns == 0) pause->start_ns = now;
    int64_t waited = now - pause->start_ns, nap = waited / PART;
    if (waited < BUSY_NS) {
        sched_yield();
        return;
    }
    nanosleep(&(struct timespec){.tv_nsec = (long)(nap < MOST_NS ? nap : MOST_NS)}, NULL);
}

/* ---- threads inside NCCL ---- */

bool tdm__nccl_enter(tdm_nccl_site *site) {
    pthread_mutex_lock(&site->mutex);
    bool live = site->state == TDM_NCCL_LIVE && !atomic_load(&site->abort_wanted);
    site->inside += live;
    pthread_mutex_unlock(&site->mutex);
    return live;
}

void tdm__nccl_leave(tdm_nccl_site *site) {
    pthread_mutex_lock(&site->mutex);
    site->inside--;
    if (site->inside == 0) pthread_cond_broadcast(&site->changed);
    pthread_mutex_unlock(&site->mutex);
}

/* Whether the job has ended, here or for all ranks. */
static bool over(tdm_nccl_site *site) {
    char why[TDM_NCCL_WHY];
    return atomic_load(&site->abort_wanted) || site->control->ops->ended(site->control, why, sizeof(why));
}

void tdm__nccl_want_abort(tdm_nccl_site *site) {
    atomic_store(&site->abort_wanted, true);
    sem_post(&site->wake);
}

/* ---- aborting ---- */

/* Stops the kernels first, if this NCCL can: ncclCommAbort frees memory that kernels of other ranks may be reading.
 * Failures here are left to ncclCommAbort. */
static void revoke_all(tdm_nccl_site *site) {
    const tdm_nccl_library *nccl = site->nccl;
    int64_t deadline = tdm__now_ns() + (int64_t)QUIET_MS * 1000000;
    if (nccl->CommRevoke == NULL || nccl->version < TDM_NCCL_VERSION_REVOKE) return;
    for (tdm_nccl_comm *c = site->comms; c != NULL; c = c->next) {
        if (c->handle != NULL) (void)nccl->CommRevoke(c->handle, 0);
    }
    for (tdm_nccl_comm *c = site->comms; c != NULL; c = c->next) {
        ncclResult_t state = ncclInProgress;
        tdm_nccl_pause pause = {0};
        while (c->handle != NULL && state == ncclInProgress && tdm__now_ns() < deadline) {
            if (nccl->CommGetAsyncError(c->handle, &state) != ncclSuccess) break;
            if (state == ncclInProgress) tdm__nccl_pause(&pause);
        }
    }
}

/* Waits until no thread is inside NCCL, which aborting requires. NCCL's calls are non-blocking. If one does not return
 * all the same, the rank hangs until someone ends the process, and the log says so. The lock is held. */
static void wait_until_outside(tdm_nccl_site *site) {
    struct timespec deadline = in_ms(ABORT_MS);
    int error = 0;
    while (site->inside > 0 && error == 0) error = pthread_cond_timedwait(&site->changed, &site->mutex, &deadline);
    if (site->inside > 0 && site->host->log != NULL)
        site->host->log(site->host->user, TDM_LOG_ERROR, "nccl",
                        "the job has ended, but a call of NCCL on this rank does not return; end the process");
    while (site->inside > 0) pthread_cond_wait(&site->changed, &site->mutex);
}

/* Aborts all communicators of the rank in one group: all flags are raised before the memory of any is freed, and that
 * waits for the kernels of all. It also waits for graphs with NCCL's calls, because kernels of a graph that have not
 * started yet need the memory. So the group ends when the rank's owner, who may have to learn of the failure first, has
 * freed the graphs. */
static void abort_all(tdm_nccl_site *site) {
    pthread_mutex_lock(&site->mutex);
    atomic_store(&site->abort_wanted, true);
    site->state = TDM_NCCL_ABORTING;
    wait_until_outside(site);
    pthread_mutex_unlock(&site->mutex);
    /* From here on only this thread reads or changes the handles in the list. */
    revoke_all(site);
    (void)site->nccl->GroupStart();
    for (tdm_nccl_comm *c = site->comms; c != NULL; c = c->next) {
        if (c->handle != NULL) (void)site->nccl->CommAbort(c->handle);
    }
    (void)site->nccl->GroupEnd();
    pthread_mutex_lock(&site->mutex);
    for (tdm_nccl_comm *c = site->comms; c != NULL; c = c->next) c->handle = NULL;
    site->state = TDM_NCCL_DEAD;
    pthread_cond_broadcast(&site->changed);
    pthread_mutex_unlock(&site->mutex);
}

bool tdm__nccl_wait_dead(tdm_nccl_site *site) {
    struct timespec deadline = in_ms(ABORT_MS);
    int error = 0;
    pthread_mutex_lock(&site->mutex);
    while (site->state != TDM_NCCL_DEAD && error == 0)
        error = pthread_cond_timedwait(&site->changed, &site->mutex, &deadline);
    bool dead = site->state == TDM_NCCL_DEAD;
    pthread_mutex_unlock(&site->mutex);
    return dead;
}

static void run_keeper(void *argument) {
    tdm_nccl_site *site = argument;
    for (;;) {
        struct timespec next = in_ms(WATCH_MS);
        while (sem_clockwait(&site->wake, CLOCK_MONOTONIC, &next) != 0 && errno == EINTR) continue;
        pthread_mutex_lock(&site->mutex);
        bool closing = site->closing, live = site->state == TDM_NCCL_LIVE;
        pthread_mutex_unlock(&site->mutex);
        if (closing) return;
        if (live && over(site)) abort_all(site);
    }
}

/* ---- making and ending ---- */

static int start(tdm_nccl_site *site) {
    if (sem_init(&site->wake, 0, 0) != 0) return errno;
    int error = pthread_mutex_init(&site->mutex, NULL);
    if (error != 0) goto no_mutex;
    error = tdm__condition_init(&site->changed);
    if (error != 0) goto no_condition;
    error = tdm__thread_start(&site->keeper, site->host, TDM_THREAD_NCCL, 0, site->device->index, run_keeper, site);
    if (error == 0) return 0;
    pthread_cond_destroy(&site->changed);
no_condition:
    pthread_mutex_destroy(&site->mutex);
no_mutex:
    sem_destroy(&site->wake);
    return error;
}

tdm_status tdm__nccl_site_open(tdm_nccl_site **out, const tdm_nccl_library *nccl, tdm_device *device, tdm_comm *control,
                               int64_t timeout_ms) {
    const tdm_host *host = control->host;
    tdm_nccl_site *site = tdm__module_new(host, sizeof(*site));
    *out = NULL;
    if (site == NULL)
        TDM_MODULE_FAIL(TDM_E_MEMORY, "nccl: communicator: out of memory, needed %zu bytes", sizeof(*site));
    site->host = site->keeper.host = host;
    site->nccl = nccl;
    site->device = device;
    site->control = control;
    site->rank = control->rank;
    site->timeout_ms = timeout_ms;
    site->users = 1;
    int error = start(site);
    if (error != 0) {
        char why[160];
        (void)tdm__thread_why(&site->keeper, error, why);
        tdm__module_delete(site);
        TDM_MODULE_FAIL(TDM_E_MEMORY, "nccl: thread '%s' cannot be started: %s", tdm__thread_name(TDM_THREAD_NCCL),
                        why);
    }
    *out = site;
    return TDM_OK;
}

void tdm__nccl_site_release(tdm_nccl_site *site) {
    pthread_mutex_lock(&site->mutex);
    bool last = --site->users == 0;
    if (last) site->closing = true;
    pthread_mutex_unlock(&site->mutex);
    if (!last) return;
    sem_post(&site->wake);
    tdm__thread_join(&site->keeper);
    pthread_cond_destroy(&site->changed);
    pthread_mutex_destroy(&site->mutex);
    sem_destroy(&site->wake);
    tdm__module_delete(site);
}
