/* The thread of the hub, and how a job ends. See hub.h. */
#include "runtime/comm/hub/hub.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/base/system/clock.h"
#include "runtime/base/system/thread.h"
#include "runtime/comm/hub/hub_private.h"

/* SETTLE_MS: how long the hub may take to say why the job has ended. DRAIN_MS: how long a connection stays open for its
 * other end to read what was sent last, unless that was silent for SILENT_MS. */
enum { SETTLE_MS = 1000, DRAIN_MS = 1000, SILENT_MS = 5 * TDM_BEAT_MS, EARLY_SHARE = 10 };

static const int64_t beat_ns = (int64_t)TDM_BEAT_MS * 1000000;

static bool is_hub(const tdm_hub *hub) {
    return hub->rank == 0;
}

static int rank_of(const tdm_hub *hub, int connection) {
    return is_hub(hub) ? connection : 0;
}

static void kick(const tdm_hub *hub) {
    const uint64_t one = 1;
    (void)!write(hub->wake, &one, sizeof(one));
}

/* ---- the end of a job; with the mutex held ---- */

static tdm_hub_cause make_cause(const char *why) {
    tdm_hub_cause cause = {.status = TDM_E_COMM};
    snprintf(cause.why, sizeof(cause.why), "%s", why);
    return cause;
}

static void end_now(tdm_hub *hub, const tdm_hub_cause *cause) {
    if (hub->has_ended) return;
    hub->cause = *cause;
    hub->has_ended = true;
    pthread_cond_broadcast(&hub->changed);
}

static void propose_cause(tdm_hub *hub, const tdm_hub_cause *cause) {
    if (hub->is_proposed || hub->has_ended) return;
    hub->proposal = *cause;
    hub->is_proposed = true;
    hub->proposed_ns = tdm__now_ns();
    if (is_hub(hub)) end_now(hub, &hub->proposal);
    kick(hub);
}

static void propose(tdm_hub *hub, const char *why) {
    const tdm_hub_cause cause = make_cause(why);
    propose_cause(hub, &cause);
}

/* This rank ends whatever the hub does. The hub is told, too: if it was only stopped, it learns so why the others left. */
static void end_because(tdm_hub *hub, const char *why) {
    const tdm_hub_cause cause = make_cause(why);
    propose_cause(hub, &cause);
    end_now(hub, &cause);
}

/* ---- frames ---- */

static void note_left(tdm_hub *hub, int rank) {
    if (hub->left_ns[rank] != 0) return;
    hub->left_ns[rank] = tdm__now_ns();
    hub->present--;
    if (is_hub(hub)) {
        const uint32_t number = (uint32_t)rank;
        for (int i = 1; i < hub->connections; i++)
            (void)tdm__connection_send(&hub->connection[i], TDM_FRAME_LEFT, &number, sizeof(number));
    }
}

static void on_beat(tdm_hub *hub, int from, const void *data, size_t bytes) {
    const size_t count = is_hub(hub) ? 1 : (size_t)hub->world;
    uint64_t last;
    if (bytes != count * sizeof(last)) return;
    for (size_t i = 0; i < count; i++) {
        const int rank = is_hub(hub) ? from : (int)i;
        memcpy(&last, (const char *)data + i * sizeof(last), sizeof(last));
        if (rank != hub->rank) atomic_store(&hub->last_call[rank], last);
    }
}

static void on_frame(tdm_hub *hub, int from, tdm_frame frame, const void *data) {
    uint32_t number = (uint32_t)from;
    tdm_hub_cause cause;
    switch (frame.kind) {
    case TDM_FRAME_BEAT:
        on_beat(hub, from, data, frame.bytes);
        break;
    case TDM_FRAME_END:
        if (frame.bytes != sizeof(cause)) break;
        memcpy(&cause, data, sizeof(cause));
        cause.why[TDM_CAUSE_TEXT - 1] = '\0';
        end_now(hub, &cause);
        break;
    case TDM_FRAME_LEFT:
        if (!is_hub(hub) && frame.bytes == sizeof(number)) memcpy(&number, data, sizeof(number));
        if (number < (uint32_t)hub->world) note_left(hub, (int)number);
        break;
    case TDM_FRAME_BYE:
        hub->may_go = true;
        pthread_cond_broadcast(&hub->changed);
        break;
    case TDM_FRAME_READY:
        hub->unready--;
        break;
    case TDM_FRAME_START:
        hub->may_start = true;
        pthread_cond_broadcast(&hub->changed);
        break;
    default:
        break;
    }
}

static void lose(tdm_hub *hub, int connection) {
    char name[TDM_NAME_TEXT], text[TDM_CAUSE_TEXT];
    const int rank = rank_of(hub, connection);
    close(hub->connection[connection].fd);
    hub->connection[connection].fd = -1;
    if (hub->left_ns[rank] != 0 || hub->may_go) return;
    tdm__hub_name(hub, rank, name);
    snprintf(text, sizeof(text), "%s is gone", name);
    end_because(hub, text);
}

/* ---- one look of the thread; with the mutex held ---- */

static void check_silence(tdm_hub *hub, int connection, int64_t since_ns) {
    char name[TDM_NAME_TEXT], text[TDM_CAUSE_TEXT];
    tdm_connection *c = &hub->connection[connection];
    c->silent_ns += since_ns;
    if (hub->silence_ms == 0 || c->silent_ns / 1000000 < hub->silence_ms) return;
    tdm__hub_name(hub, rank_of(hub, connection), name);
    snprintf(text, sizeof(text),
             "%s has not been heard of for %lld.%lld s; it is stopped or frozen (a debugger does that, too; see "
             "parallel.ddp.heartbeat), or its network is cut",
             name, (long long)(c->silent_ns / 1000000000), (long long)(c->silent_ns / 100000000 % 10));
    end_because(hub, text);
}

static void send_beats(tdm_hub *hub) {
    uint64_t last[TDM_COMM_WORLD_MAX];
    for (int r = 0; r < hub->world; r++) last[r] = atomic_load(&hub->last_call[r]);
    for (int i = 0; i < hub->connections; i++) {
        const bool ok =
            is_hub(hub)
                ? tdm__connection_send(&hub->connection[i], TDM_FRAME_BEAT, last, (size_t)hub->world * sizeof(*last))
                : tdm__connection_send(&hub->connection[i], TDM_FRAME_BEAT, &last[hub->rank], sizeof(*last));
        if (!ok) lose(hub, i);
    }
}

/* The hub sends its decision, another rank its proposal. */
static void send_end(tdm_hub *hub, int64_t now_ns) {
    char text[64];
    if (atomic_load(&hub->is_aborted)) {
        snprintf(text, sizeof(text), "rank %d called abort", hub->rank);
        propose(hub, text);
    }
    const tdm_hub_cause *cause = is_hub(hub) ? &hub->cause : &hub->proposal;
    if (!hub->is_sent && (is_hub(hub) ? hub->has_ended : hub->is_proposed)) {
        for (int i = 0; i < hub->connections; i++)
            (void)tdm__connection_send(&hub->connection[i], TDM_FRAME_END, cause, sizeof(*cause));
        hub->is_sent = true;
    }
    if (hub->is_proposed && now_ns - hub->proposed_ns >= (int64_t)SETTLE_MS * 1000000) end_now(hub, &hub->proposal);
}

static void send_ready(tdm_hub *hub) {
    if (atomic_load(&hub->is_ready) && !hub->told_ready) {
        hub->told_ready = true;
        hub->unready--;
        if (!is_hub(hub)) (void)tdm__connection_send(&hub->connection[0], TDM_FRAME_READY, NULL, 0);
    }
    if (!is_hub(hub) || hub->unready > 0 || hub->may_start || hub->has_ended) return;
    for (int i = 1; i < hub->connections; i++)
        (void)tdm__connection_send(&hub->connection[i], TDM_FRAME_START, NULL, 0);
    hub->may_start = true;
    pthread_cond_broadcast(&hub->changed);
}

static void send_leave(tdm_hub *hub) {
    if (!atomic_load(&hub->is_leaving)) return;
    if (hub->left_ns[hub->rank] == 0) {
        note_left(hub, hub->rank);
        if (!is_hub(hub)) (void)tdm__connection_send(&hub->connection[0], TDM_FRAME_LEFT, NULL, 0);
    }
    if (!is_hub(hub) || hub->present > 0 || hub->may_go) return;
    for (int i = 1; i < hub->connections; i++) (void)tdm__connection_send(&hub->connection[i], TDM_FRAME_BYE, NULL, 0);
    hub->may_go = true;
    pthread_cond_broadcast(&hub->changed);
}

static void look(tdm_hub *hub, int64_t now_ns, int64_t since_ns, bool beats) {
    char why[TDM_CAUSE_TEXT];
    const bool had_ended = hub->has_ended;
    for (int i = 0; i < hub->connections; i++) {
        tdm_connection *c = &hub->connection[i];
        if (c->fd < 0) continue;
        const short events = hub->entry[i].revents;
        if ((events & (POLLIN | POLLHUP | POLLERR)) != 0 &&
            !tdm__connection_receive(c, on_frame, hub, rank_of(hub, i))) {
            lose(hub, i);
            continue;
        }
        if (!tdm__connection_flush(c)) {
            lose(hub, i);
            continue;
        }
        if (!had_ended && !hub->may_go) check_silence(hub, i, since_ns);
    }
    if (!hub->has_ended && !hub->is_proposed && tdm__hub_find_vain_wait(hub, now_ns, why)) propose(hub, why);
    send_ready(hub);
    send_end(hub, now_ns);
    send_leave(hub);
    if (beats) send_beats(hub);
}

static void wait_for_events(tdm_hub *hub, int64_t until_ns) {
    uint64_t kicks;
    for (int i = 0; i < hub->connections; i++)
        hub->entry[i] = (struct pollfd){.fd = hub->connection[i].fd,
                                        .events = (short)(POLLIN | (hub->connection[i].out_bytes > 0 ? POLLOUT : 0))};
    hub->entry[hub->connections] = (struct pollfd){.fd = hub->wake, .events = POLLIN};
    const int64_t ms = (until_ns - tdm__now_ns()) / 1000000 + 1;
    if (poll(hub->entry, (nfds_t)hub->connections + 1, ms > 0 ? (int)ms : 0) <= 0) {
        for (int i = 0; i <= hub->connections; i++) hub->entry[i].revents = 0;
    }
    if (hub->entry[hub->connections].revents != 0) (void)!read(hub->wake, &kicks, sizeof(kicks));
}

static tdm_status serve(void *argument) {
    tdm_hub *hub = argument;
    bool has_reported = false, closes = false;
    int64_t before = tdm__now_ns(), next = before;
    while (!closes) {
        closes = atomic_load(&hub->is_closing); /* once more after that: to send what was decided last */
        const int64_t now = tdm__now_ns(), since = now - before;
        const bool beats = now >= next;
        before = now;
        if (beats) next = now + beat_ns;
        pthread_mutex_lock(&hub->mutex);
        look(hub, now, since < beat_ns ? since : beat_ns, beats);
        const bool reports = hub->has_ended && !has_reported;
        pthread_mutex_unlock(&hub->mutex);
        if (reports) hub->on_end(hub->user);
        has_reported = has_reported || reports;
        if (!closes) wait_for_events(hub, next);
    }
    return TDM_OK;
}

/* ---- opening ---- */

static tdm_status make_parts(tdm_hub *hub, const tdm_meeting *meeting) {
    const size_t world = (size_t)hub->world;
    TDM_TRY(tdm__new(hub->host, &hub->peer, world, sizeof(*hub->peer), "communicator"));
    TDM_TRY(tdm__new(hub->host, &hub->entry, (size_t)hub->connections + 1, sizeof(*hub->entry), "communicator"));
    TDM_TRY(tdm__new(hub->host, &hub->last_call, world, sizeof(*hub->last_call), "communicator"));
    TDM_TRY(tdm__new(hub->host, &hub->left_ns, world, sizeof(*hub->left_ns), "communicator"));
    memcpy(hub->peer, meeting->peer, world * sizeof(*hub->peer));
    hub->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (hub->wake < 0)
        TDM_FAIL(TDM_E_COMM, "communicator: cannot make an event descriptor: %s", strerrordesc_np(errno));
    int error = pthread_mutex_init(&hub->mutex, NULL);
    if (error == 0) {
        error = tdm__condition_init(&hub->changed);
        if (error != 0) pthread_mutex_destroy(&hub->mutex);
    }
    if (error != 0) TDM_FAIL(TDM_E_MEMORY, "communicator: %s", strerrordesc_np(error));
    hub->owner = getpid();
    return TDM_OK;
}

static void close_connections(const tdm_meeting *meeting) {
    for (int r = 0; r < meeting->world; r++) {
        if (meeting->fd[r] >= 0) close(meeting->fd[r]);
        meeting->fd[r] = -1;
    }
}

int64_t tdm__hub_silence_ms(const tdm_meeting *meeting) {
    return meeting->heartbeat_ms - meeting->heartbeat_ms / EARLY_SHARE;
}

tdm_status tdm__hub_open(tdm_hub **out, const tdm_meeting *meeting) {
    tdm_hub *hub;
    *out = NULL;
    TDM_TRY_ELSE(tdm__new(meeting->host, &hub, 1, sizeof(*hub), "communicator"), close_connections(meeting));
    hub->host = meeting->host;
    hub->rank = meeting->rank;
    hub->world = hub->present = hub->unready = meeting->world;
    hub->silence_ms = tdm__hub_silence_ms(meeting);
    hub->connections = hub->rank == 0 ? hub->world : 1;
    hub->wake = -1;
    TDM_TRY_ELSE(
        tdm__new(hub->host, &hub->connection, (size_t)hub->connections, sizeof(*hub->connection), "communicator"),
        (close_connections(meeting), tdm__delete(hub->host, hub)));
    for (int i = 0; i < hub->connections; i++) {
        hub->connection[i].fd = meeting->fd[i];
        meeting->fd[i] = -1;
    }
    TDM_TRY_ELSE(make_parts(hub, meeting), tdm__hub_close(hub));
    *out = hub;
    return TDM_OK;
}

tdm_status tdm__hub_start(tdm_hub *hub, void (*on_end)(void *user), void *user) {
    hub->on_end = on_end;
    hub->user = user;
    TDM_TRY(tdm__worker_open(&hub->worker, hub->host, TDM_THREAD_HUB, 0, -1));
    return tdm__worker_start(hub->worker, serve, hub);
}

/* ---- ending and leaving ---- */

void tdm__hub_judge(tdm_hub *hub, tdm_status status, tdm_hub_call judged, const char *why) {
    tdm_hub_cause cause = make_cause(why);
    cause.status = (int32_t)status;
    cause.judged = judged;
    pthread_mutex_lock(&hub->mutex);
    propose_cause(hub, &cause);
    pthread_mutex_unlock(&hub->mutex);
}

void tdm__hub_end(tdm_hub *hub, const char *why) {
    tdm__hub_judge(hub, TDM_E_COMM, (tdm_hub_call){0}, why);
}

void tdm__hub_abort(tdm_hub *hub) {
    atomic_store(&hub->is_aborted, true);
    kick(hub);
}

bool tdm__hub_has_ended(tdm_hub *hub, tdm_hub_cause *cause) {
    pthread_mutex_lock(&hub->mutex);
    const bool ended = hub->has_ended;
    if (ended) *cause = hub->cause;
    pthread_mutex_unlock(&hub->mutex);
    return ended;
}

/* With the mutex held. False at the deadline. */
static bool wait_for_change(tdm_hub *hub, int64_t deadline_ns) {
    const struct timespec until = tdm__timespec(deadline_ns);
    return pthread_cond_timedwait(&hub->changed, &hub->mutex, &until) != ETIMEDOUT;
}

tdm_status tdm__hub_await_all(tdm_hub *hub, int64_t timeout_ms) {
    const int64_t deadline = tdm__deadline_ns(tdm__now_ns(), timeout_ms);
    tdm_hub_cause cause;
    atomic_store(&hub->is_ready, true);
    kick(hub);
    pthread_mutex_lock(&hub->mutex);
    while (!hub->may_start && !hub->has_ended && wait_for_change(hub, deadline)) continue;
    const bool starts = hub->may_start, has_ended = hub->has_ended;
    cause = hub->cause;
    pthread_mutex_unlock(&hub->mutex);
    if (starts) return TDM_OK;
    if (has_ended) TDM_FAIL(TDM_E_COMM, "join: %s", cause.why);
    TDM_FAIL(TDM_E_COMM, "join: waited %lld ms for all ranks to connect to one another", (long long)timeout_ms);
}

void tdm__hub_settle(tdm_hub *hub, const char *why, tdm_hub_cause *cause) {
    const int64_t settled = tdm__now_ns() + (int64_t)SETTLE_MS * 1000000;
    const int64_t latest = settled + 2 * (int64_t)SETTLE_MS * 1000000;
    pthread_mutex_lock(&hub->mutex);
    while (!hub->has_ended && wait_for_change(hub, settled)) continue;
    propose(hub, why);
    while (!hub->has_ended && wait_for_change(hub, latest)) continue;
    end_because(hub, why);
    *cause = hub->cause;
    pthread_mutex_unlock(&hub->mutex);
}

void tdm__hub_leave(tdm_hub *hub, int64_t timeout_ms) {
    const int64_t deadline = tdm__deadline_ns(tdm__now_ns(), timeout_ms);
    if (hub->worker == NULL || hub->owner != getpid()) return;
    atomic_store(&hub->is_leaving, true);
    kick(hub);
    pthread_mutex_lock(&hub->mutex);
    while (!hub->may_go && !hub->has_ended && wait_for_change(hub, deadline)) continue;
    pthread_mutex_unlock(&hub->mutex);
}

/* Closes a connection so that what was sent last arrives: one that is closed with unread data would lose it. */
static void close_gently(int fd, int64_t deadline_ns) {
    char rest[1024];
    (void)shutdown(fd, SHUT_WR);
    while (tdm__socket_readable(fd, deadline_ns)) {
        const ssize_t n = recv(fd, rest, sizeof(rest), 0);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) break;
    }
    close(fd);
}

void tdm__hub_close(tdm_hub *hub) {
    if (hub == NULL) return;
    const bool is_own = hub->owner == getpid();
    if (hub->worker != NULL && is_own) {
        atomic_store(&hub->is_closing, true);
        kick(hub);
        tdm__worker_close(hub->worker);
    }
    const int64_t deadline = tdm__now_ns() + (int64_t)DRAIN_MS * 1000000;
    for (int i = 0; i < hub->connections; i++) {
        const bool is_silent = hub->connection[i].silent_ns > (int64_t)SILENT_MS * 1000000;
        if (hub->connection[i].fd < 0) continue;
        if (is_own && hub->worker != NULL && !is_silent)
            close_gently(hub->connection[i].fd, deadline);
        else
            close(hub->connection[i].fd);
    }
    if (hub->wake >= 0) close(hub->wake);
    if (hub->owner != 0) {
        pthread_mutex_destroy(&hub->mutex);
        pthread_cond_destroy(&hub->changed);
    }
    tdm__delete(hub->host, hub->peer);
    tdm__delete(hub->host, hub->connection);
    tdm__delete(hub->host, hub->entry);
    tdm__delete(hub->host, (void *)(uintptr_t)hub->last_call);
    tdm__delete(hub->host, hub->left_ns);
    tdm__delete(hub->host, hub);
}
