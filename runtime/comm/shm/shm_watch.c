/* Each process of a job has one thread that sends heartbeats and watches the other ranks. If a rank has died, or has
 * been silent for too long, the thread ends the job. That wakes all waiting ranks, so no wait has to watch its peers.
 *
 * A heartbeat is a counter in shared memory. The watcher measures silence with its own clock, and only while it runs
 * itself: a late check adds at most one beat to a rank's silence, however late it is. So a busy machine, a job that is
 * stopped and continued as a whole, and a machine that was suspended raise no alarm. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "runtime/base/system/clock.h"
#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/base/system/sync.h"
#include "runtime/comm/shm/shm.h"

/* A rank counts as dead EARLY_MS before the limit, so that the time from its last heartbeat to the verdict rarely
 * exceeds the limit. For a short limit it is a tenth of it: a busy machine may delay a thread for that long. */
enum { BEAT_MS = 200, EARLY_MS = 2 * BEAT_MS, EARLY_SHARE = 10 };

static const int64_t beat_ns = (int64_t)BEAT_MS * 1000000;

typedef struct peer {
    bool opened, over; /* opened: its process descriptor was opened, if there is one; over: gone or left */
    uint64_t beat;     /* at the last check */
    int64_t silent_ns;
} peer;

struct tdm_watch {
    tdm_site *site;
    int rank;
    pid_t owner; /* the process that started the thread; a child of fork has no such thread */
    int64_t heartbeat_ms;
    const tdm_seat *seat; /* one for each rank */
    peer *peer;           /* one for each rank, then one for the launcher */
    struct pollfd *entry; /* their process descriptors (-1: none), then `wake` */
    int wake;
    atomic_bool closing;
    tdm_worker *worker;
};

/* ---- verdicts ---- */

static void end_job(tdm_watch *watch, const char *cause) {
    tdm__control_end(watch->site->control, false, cause);
}

static void end_because_gone(tdm_watch *watch, int r) {
    char cause[TDM_CAUSE_TEXT];
    const tdm_site *site = watch->site;
    if (r == site->world)
        snprintf(cause, sizeof(cause), "the launcher (pid %d) is gone", site->control->parent.pid);
    else
        snprintf(cause, sizeof(cause), "rank %d (pid %d) is gone", r, site->process[r].pid);
    end_job(watch, cause);
}

static void end_because_silent(tdm_watch *watch, int r) {
    char cause[TDM_CAUSE_TEXT], call[64] = "";
    uint64_t last = atomic_load(&watch->seat[r].last_call);
    long long tenths = (long long)(watch->peer[r].silent_ns / 100000000);
    if (last != 0)
        snprintf(call, sizeof(call), ", whose last call was %s %llu,", tdm_comm_kind_name((tdm_comm_kind)(last & 0xFF)),
                 (unsigned long long)(last >> 8));
    snprintf(cause, sizeof(cause),
             "rank %d (pid %d)%s has not been heard of for %lld.%lld s; it is stopped or frozen (a debugger does that, "
             "too; see parallel.ddp.heartbeat)",
             r, watch->site->process[r].pid, call, tenths / 10, tenths % 10);
    end_job(watch, cause);
}

/* ---- checking ---- */

static void stop_watching(tdm_watch *watch, int r) {
    if (watch->entry[r].fd >= 0) close(watch->entry[r].fd);
    watch->entry[r].fd = -1;
    watch->peer[r].over = true;
}

/* Is this process gone? Opens its process descriptor at the first check; without one, asks /proc. */
static bool is_gone(tdm_watch *watch, int r, const tdm_process *process) {
    struct pollfd *entry = &watch->entry[r];
    if (!watch->peer[r].opened) {
        entry->fd = tdm__process_watch(process);
        entry->revents = 0;
        watch->peer[r].opened = true;
    }
    return entry->fd >= 0 ? (entry->revents & POLLIN) != 0 : tdm__process_gone(process, -1);
}

static void check_heartbeat(tdm_watch *watch, int r, int64_t since_ns) {
    peer *p = &watch->peer[r];
    uint64_t beat = atomic_load(&watch->site->process[r].beat);
    /* Between the rendezvous and joining, rank 0 has no thread that sends heartbeats. */
    bool beats = beat != 0 || atomic_load(&watch->site->process[r].state) >= TDM_PROCESS_JOINED;
    p->silent_ns = beat == p->beat && beats ? p->silent_ns + since_ns : 0;
    p->beat = beat;
    const int64_t share = watch->heartbeat_ms / EARLY_SHARE, early = share < EARLY_MS ? share : EARLY_MS;
    if (watch->heartbeat_ms > 0 && p->silent_ns / 1000000 >= watch->heartbeat_ms - early) end_because_silent(watch, r);
}

static void check_rank(tdm_watch *watch, int r, int64_t since_ns) {
    const tdm_process *process = &watch->site->process[r];
    if (r == watch->rank || watch->peer[r].over || atomic_load(&process->state) < TDM_PROCESS_MEETING) return;
    bool gone = is_gone(watch, r, process);
    /* Read after `gone`: a rank that leaves sets its state before its process ends. */
    bool left = atomic_load(&process->state) == TDM_PROCESS_LEFT;
    if (gone && !left) end_because_gone(watch, r);
    if (gone || left)
        stop_watching(watch, r);
    else
        check_heartbeat(watch, r, since_ns);
}

static void check_all(tdm_watch *watch, int64_t since_ns) {
    int parent = watch->site->world;
    for (int r = 0; r < parent; r++) check_rank(watch, r, since_ns);
    if (watch->peer[parent].over || !is_gone(watch, parent, &watch->site->control->parent)) return;
    end_because_gone(watch, parent);
    stop_watching(watch, parent);
}

static tdm_status keep_watch(void *argument) {
    tdm_watch *watch = argument;
    tdm_process *self = &watch->site->process[watch->rank];
    nfds_t entries = (nfds_t)watch->site->world + 2;
    int64_t before = tdm__now_ns(), next = before;
    while (!atomic_load(&watch->closing) && !tdm__site_ended(watch->site)) {
        int64_t now = tdm__now_ns(), since = now - before;
        before = now;
        if (now >= next) {
            atomic_fetch_add(&self->beat, 1);
            next = now + beat_ns;
        }
        check_all(watch, since < beat_ns ? since : beat_ns);
        uint64_t kicks;
        if (poll(watch->entry, entries, (int)((next - now) / 1000000) + 1) > 0 &&
            (watch->entry[entries - 1].revents & POLLIN) != 0)
            (void)!read(watch->wake, &kicks, sizeof(kicks));
    }
    return TDM_OK;
}

/* ---- beginning and ending ---- */

static tdm_status open_parts(tdm_watch *watch) {
    tdm_site *site = watch->site;
    size_t count = (size_t)site->world + 1;
    TDM_TRY(tdm__new(site->host, &watch->peer, count, sizeof(*watch->peer), "communicator"));
    TDM_TRY(tdm__new(site->host, &watch->entry, count + 1, sizeof(*watch->entry), "communicator"));
    for (size_t i = 0; i < count; i++) watch->entry[i] = (struct pollfd){.fd = -1, .events = POLLIN};
    watch->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (watch->wake < 0)
        TDM_FAIL(errno == EMFILE || errno == ENFILE || errno == ENOMEM ? TDM_E_MEMORY : TDM_E_COMM,
                 "communicator: cannot make an event descriptor: %s", strerrordesc_np(errno));
    watch->entry[count] = (struct pollfd){.fd = watch->wake, .events = POLLIN};
    TDM_TRY(tdm__worker_open(&watch->worker, site->host, TDM_THREAD_WATCH, 0, -1));
    return tdm__worker_start(watch->worker, keep_watch, watch);
}

tdm_status tdm__watch_open(tdm_watch **out, tdm_site *site, int rank, const tdm_seat *seat, int64_t heartbeat_ms) {
    tdm_watch *watch;
    *out = NULL;
    TDM_TRY(tdm__new(site->host, &watch, 1, sizeof(*watch), "communicator"));
    watch->site = site;
    watch->rank = rank;
    watch->owner = getpid();
    watch->heartbeat_ms = heartbeat_ms;
    watch->seat = seat;
    watch->wake = -1;
    TDM_TRY_ELSE(open_parts(watch), tdm__watch_close(watch));
    *out = watch;
    return TDM_OK;
}

void tdm__watch_look(tdm_watch *watch) {
    uint64_t one = 1;
    (void)!write(watch->wake, &one, sizeof(one));
}

void tdm__watch_close(tdm_watch *watch) {
    if (watch == NULL) return;
    const tdm_host *host = watch->site->host;
    tdm_process *self = &watch->site->process[watch->rank];
    if (watch->worker != NULL && watch->owner == getpid()) {
        uint32_t joined = TDM_PROCESS_JOINED;
        bool left = atomic_compare_exchange_strong(&self->state, &joined, TDM_PROCESS_LEFT);
        atomic_store(&watch->closing, true);
        tdm__watch_look(watch);
        tdm__worker_close(watch->worker);
        if (!left) atomic_store(&self->beat, 0);
    }
    for (int r = 0; watch->entry != NULL && r <= watch->site->world; r++) stop_watching(watch, r);
    if (watch->wake >= 0) close(watch->wake);
    tdm__delete(host, watch->entry);
    tdm__delete(host, watch->peer);
    tdm__delete(host, watch);
}
