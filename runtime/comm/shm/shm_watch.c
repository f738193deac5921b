/* Each process of a job has one thread that says "alive" and looks after the others. A rank that dies, or that has not
 * been heard of for too long, ends the job, which wakes whoever waits: nobody else has to look around.
 *
 * A sign of life is a count in shared memory. Silence is measured by the watcher's own clock, and only while the
 * watcher itself runs: a look that comes late, however late, adds one beat to anybody's silence. So neither a busy
 * machine, nor a job that is stopped and continued as a whole, nor a machine that was asleep is an alarm. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/base/sync.h"
#include "runtime/comm/shm/shm.h"

/* A verdict falls this much before the limit, so that from the last sign to the verdict is hardly ever longer; of a
 * short limit it is a tenth, for a busy machine may keep a thread waiting for as long. */
enum { BEAT_MS = 200, EARLY_MS = 2 * BEAT_MS, EARLY_SHARE = 10 };

static const int64_t beat_ns = (int64_t)BEAT_MS * 1000000;

typedef struct peer {
    bool found, over; /* over: it has gone or left, and there is nothing more to see */
    uint64_t beat;    /* as last seen */
    int64_t silent_ns;
} peer;

struct tdm_watch {
    tdm_site *site;
    int rank;
    pid_t owner; /* a child of fork has no such thread */
    int64_t heartbeat_ms;
    const tdm_seat *seat; /* of all ranks */
    peer *peer;           /* of all ranks, then the parent */
    struct pollfd *entry; /* their process descriptors, -1: none; then `wake` */
    int wake;
    atomic_bool closing;
    tdm_worker *worker;
};

/* ---- verdicts ---- */

static void end_job(tdm_watch *watch, const char *cause) {
    tdm__control_end(watch->site->control, false, cause);
}

static void tell_gone(tdm_watch *watch, int r) {
    char cause[TDM_CAUSE_TEXT];
    const tdm_site *site = watch->site;
    if (r == site->world)
        snprintf(cause, sizeof(cause), "the launcher (pid %d) is gone", site->control->parent.pid);
    else
        snprintf(cause, sizeof(cause), "rank %d (pid %d) is gone", r, site->process[r].pid);
    end_job(watch, cause);
}

static void tell_silent(tdm_watch *watch, int r) {
    char cause[TDM_CAUSE_TEXT], call[64] = "";
    uint64_t last = atomic_load(&watch->seat[r].last_call);
    long long tenths = (long long)(watch->peer[r].silent_ns / 100000000);
    if (last != 0)
        snprintf(call, sizeof(call), ", whose last call was %s %llu,", tdm__call_name((tdm_call_kind)(last & 0xFF)),
                 (unsigned long long)(last >> 8));
    snprintf(cause, sizeof(cause),
             "rank %d (pid %d)%s has not been heard of for %lld.%lld s; it is stopped or frozen (a debugger does that, "
             "too; see parallel.ddp.heartbeat)",
             r, watch->site->process[r].pid, call, tenths / 10, tenths % 10);
    end_job(watch, cause);
}

/* ---- looking ---- */

static void forget(tdm_watch *watch, int r) {
    if (watch->entry[r].fd >= 0) close(watch->entry[r].fd);
    watch->entry[r].fd = -1;
    watch->peer[r].over = true;
}

/* Is this process gone for good? Without a descriptor it is looked for. */
static bool is_gone(tdm_watch *watch, int r, const tdm_process *process) {
    struct pollfd *entry = &watch->entry[r];
    if (!watch->peer[r].found) {
        entry->fd = tdm__process_watch(process);
        entry->revents = 0;
        watch->peer[r].found = true;
    }
    return entry->fd >= 0 ? (entry->revents & POLLIN) != 0 : tdm__process_gone(process, -1);
}

static void listen_to(tdm_watch *watch, int r, int64_t since_ns) {
    peer *p = &watch->peer[r];
    uint64_t beat = atomic_load(&watch->site->process[r].beat);
    /* Between the meeting and joining rank 0 has no thread that gives signs. */
    bool gives_signs = beat != 0 || atomic_load(&watch->site->process[r].state) >= TDM_PROCESS_JOINED;
    p->silent_ns = beat == p->beat && gives_signs ? p->silent_ns + since_ns : 0;
    p->beat = beat;
    const int64_t share = watch->heartbeat_ms / EARLY_SHARE, early = share < EARLY_MS ? share : EARLY_MS;
    if (watch->heartbeat_ms > 0 && p->silent_ns / 1000000 >= watch->heartbeat_ms - early) tell_silent(watch, r);
}

static void look_at(tdm_watch *watch, int r, int64_t since_ns) {
    const tdm_process *process = &watch->site->process[r];
    if (r == watch->rank || watch->peer[r].over || atomic_load(&process->state) < TDM_PROCESS_MEETING) return;
    bool gone = is_gone(watch, r, process);
    /* Asked after that: who leaves says so before he goes. */
    bool left = atomic_load(&process->state) == TDM_PROCESS_LEFT;
    if (gone && !left) tell_gone(watch, r);
    if (gone || left)
        forget(watch, r);
    else
        listen_to(watch, r, since_ns);
}

static void look_around(tdm_watch *watch, int64_t since_ns) {
    int parent = watch->site->world;
    for (int r = 0; r < parent; r++) look_at(watch, r, since_ns);
    if (watch->peer[parent].over || !is_gone(watch, parent, &watch->site->control->parent)) return;
    tell_gone(watch, parent);
    forget(watch, parent);
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
        look_around(watch, since < beat_ns ? since : beat_ns);
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
    TDM_TRY(tdm__worker_open(&watch->worker, site->host, "tandem-watch"));
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
    tdm_status status = open_parts(watch);
    if (status != TDM_OK) {
        tdm__watch_close(watch);
        return tdm__frame(status, __FILE__, __LINE__);
    }
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
    for (int r = 0; watch->entry != NULL && r <= watch->site->world; r++) forget(watch, r);
    if (watch->wake >= 0) close(watch->wake);
    tdm__delete(host, watch->entry);
    tdm__delete(host, watch->peer);
    tdm__delete(host, watch);
}
