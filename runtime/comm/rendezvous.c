/* Ranks that an external launcher has started meet at a local socket. Rank 0 listens there and sends each of the others
 * the descriptor of the shared memory.
 *
 * An abstract socket has no file and ends with its process. Its name holds the user id and a hash of what identifies
 * the job (port, run number). Both ends check the other's user, so that no other user can join or listen (door.c). */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/system/clock.h"
#include "runtime/base/log.h"
#include "runtime/base/memory.h"
#include "runtime/base/call/sized.h"
#include "runtime/base/call/extra.h"
#include "runtime/base/status.h"
#include "runtime/comm/door.h"
#include "runtime/comm/greeting.h"
#include "runtime/comm/missing.h"
#include "runtime/comm/rendezvous.h"
#include "runtime/comm/shm/shm.h"

/* REPORT_MS: how long a rank that has failed waits to report that to the others, which start at about the same time. */
enum { RETRY_MS = 20, LOOK_MS = 100, HELLO_MS = 1000, REPORT_MS = 3000 };

typedef struct rendezvous {
    const tdm_launch_facts *facts;
    tdm_door door;
    const tdm_host *host;
    int64_t timeout_ms, heartbeat_ms;
    int64_t now_ns, deadline_ns; /* time of the last look; both without the time that this process stood still */
    tdm_reminder reminder;       /* from here on: for ranks that wait for rank 0 */
    int listener; /* pid of the process that listens; 0: its pid is not visible here; -1: no process listens */
    int64_t looked_ns, silent_ns; /* time of the last check; how long the listener has not answered */
} rendezvous;

/* ---- sockets ---- */

/* Looks at the clock after something that takes at most `most_ms`. If it took longer, this process or the machine stood
 * still, and the deadline moves by that time. Only here is the clock compared with it: a standstill at any place counts
 * as none. */
static void look(rendezvous *r, int most_ms) {
    const int64_t before = r->now_ns, most = (int64_t)(most_ms + LOOK_MS) * 1000000;
    r->now_ns = tdm__now_ns();
    if (r->now_ns - before > most) r->deadline_ns += r->now_ns - before - most;
}

static bool is_over(const rendezvous *r) {
    return r->now_ns >= r->deadline_ns;
}

static int ms_left(const rendezvous *r, int most) {
    int64_t ms = (r->deadline_ns - r->now_ns + 999999) / 1000000;
    return ms < 0 ? 0 : ms < most ? (int)ms : most;
}

/* Readable within `ms`? A signal may end this poll early; the caller polls again. */
static bool readable(int fd, int ms) {
    struct pollfd entry = {.fd = fd, .events = POLLIN};
    return poll(&entry, 1, ms) == 1;
}

/* ---- rank 0 ---- */

/* Which ranks have come, and why the rendezvous has failed. After a failure every rank that comes gets the reason. */
typedef struct attendance {
    bool heard[TDM_COMM_WORLD_MAX];
    int left;       /* ranks that have not come yet */
    int fd;         /* the shared memory; -1: rank 0 has failed before it made any */
    tdm_site *site; /* its mapping in this process; NULL: none */
    tdm_status status;
    char failure[TDM_REASON_TEXT];
} attendance;

/* `rank` is the rank that has failed; 0: the rendezvous itself has. */
static void fail(rendezvous *r, attendance *g, tdm_status status, int rank, const char *why) {
    const int64_t latest = r->now_ns + (int64_t)REPORT_MS * 1000000;
    if (g->status != TDM_OK) return;
    g->status = status;
    if (rank > 0)
        snprintf(g->failure, sizeof(g->failure), "rank %d has failed: %.320s", rank, why);
    else
        snprintf(g->failure, sizeof(g->failure), "%s", why);
    if (r->deadline_ns > latest) r->deadline_ns = latest;
    /* Ranks that were admitted already wait for the others in the shared memory. */
    if (g->fd >= 0) tdm_launch_abort(g->fd, rank, why);
}

/* The answer to one rank: a refusal, or "" if it is admitted. */
static void make_answer(const rendezvous *r, const tdm_hello *who, const attendance *g, tdm_answer *out) {
    *out = (tdm_answer){.status = TDM_E_USAGE};
    int world = r->facts->world;
    if (who->job != r->door.job) {
        snprintf(out->refusal, sizeof(out->refusal), "another job is meeting there");
    } else if (g->status != TDM_OK) {
        out->status = (int32_t)g->status;
        memcpy(out->refusal, g->failure, sizeof(out->refusal));
    } else if (who->rank < 1 || who->rank >= world) {
        snprintf(out->refusal, sizeof(out->refusal), "no such rank: %d of %d", who->rank, world);
    } else if (g->heard[who->rank]) {
        snprintf(out->refusal, sizeof(out->refusal), "rank %d has come twice", who->rank);
    }
}

/* Two hellos of this job end the rendezvous: one with another number of ranks, because the ranks could never be
 * complete, and one that reports a failure. */
static void note_hello(rendezvous *r, const tdm_hello *who, attendance *g) {
    char why[TDM_REASON_TEXT];
    if (who->job != r->door.job) return;
    if (who->failure[0] == '\0' && who->world != r->facts->world) {
        g->left = TDM_COMM_WORLD_MAX; /* the number of ranks is unknown: serve until REPORT_MS is over */
        snprintf(why, sizeof(why), "rank 0 was started for %d ranks, rank %d for %d; start all with one world size",
                 r->facts->world, who->rank, who->world);
        fail(r, g, TDM_E_USAGE, 0, why);
    } else if (who->failure[0] != '\0' && who->rank >= 1 && who->rank < r->facts->world) {
        fail(r, g, TDM_E_COMM, who->rank, who->failure);
    } else if (who->failure[0] != '\0') { /* its rank may be what is wrong with it */
        char one[16] = "a rank";
        if (who->rank >= 0) snprintf(one, sizeof(one), "rank %d", who->rank);
        snprintf(why, sizeof(why), "%s has failed: %.320s", one, who->failure);
        fail(r, g, TDM_E_COMM, 0, why);
    } else if (who->rank >= 1 && who->rank < r->facts->world && g->heard[who->rank] && g->status == TDM_OK) {
        TDM_WARN(r->host, "comm", "rendezvous at %s: rank %d has come twice; the second one was refused", r->door.where,
                 who->rank);
    }
}

/* Answers one visitor. One that does not belong to the job is refused, and the rendezvous goes on. */
static void serve_one(rendezvous *r, int visitor, attendance *g) {
    tdm_hello who;
    tdm_answer reply;
    if (!tdm__door_is_same_user(visitor) || !readable(visitor, ms_left(r, HELLO_MS))) return;
    if (!tdm__hello_receive(visitor, &who)) return;
    note_hello(r, &who, g);
    make_answer(r, &who, g, &reply);
    bool welcome = reply.refusal[0] == '\0';
    if (!tdm__answer_send(visitor, &reply, welcome ? g->fd : -1)) return;
    if (who.job != r->door.job || who.rank < 1 || who.rank >= r->facts->world || g->heard[who.rank]) return;
    g->heard[who.rank] = true;
    g->left--;
}

static bool has_come(const void *attended, int rank) {
    return ((const attendance *)attended)->heard[rank];
}

static void serve(rendezvous *r, int listener, attendance *g) {
    char list[TDM_MISSING_TEXT], why[TDM_REASON_TEXT];
    int seconds;
    tdm_reminder reminder = tdm__reminder_start();
    while (g->left > 0) {
        /* Checked before the deadline: if the job has ended, its cause is the better message. */
        bool ended = g->site != NULL && tdm__site_has_ended(g->site, why, sizeof(why));
        tdm__print_missing(list, r->facts->world, g->left, has_come, g);
        if (is_over(r) && g->status != TDM_OK) return;
        if (is_over(r)) {
            snprintf(why, sizeof(why), "rank 0 waited %lld ms for rank%s; start all ranks on this host",
                     (long long)r->timeout_ms, list);
            fail(r, g, TDM_E_COMM, 0, why);
            return;
        }
        if (ended) fail(r, g, TDM_E_COMM, 0, why);
        if (tdm__reminder_is_due(&reminder, r->now_ns, &seconds))
            TDM_WARN(r->host, "comm",
                     "rendezvous at %s: rank 0 has waited %d s for rank%s; start all ranks on this host, with the same "
                     "MASTER_PORT or init_method",
                     r->door.where, seconds, list);
        const bool is_visited = readable(listener, ms_left(r, LOOK_MS));
        look(r, LOOK_MS);
        if (!is_visited) continue;
        int visitor = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (visitor < 0) continue;
        serve_one(r, visitor, g);
        close(visitor);
        look(r, HELLO_MS);
    }
}

static tdm_status hold(rendezvous *r, attendance *g) {
    int listener;
    g->left = r->facts->world > 0 ? r->facts->world - 1 : TDM_COMM_WORLD_MAX;
    tdm_status status = tdm__door_listen(&r->door, &listener);
    if (status != TDM_OK) {
        if (g->fd >= 0) tdm_launch_abort(g->fd, 0, tdm_error_message());
        return status;
    }
    serve(r, listener, g);
    tdm__door_leave(&r->door, listener);
    if (g->status != TDM_OK) TDM_FAIL(g->status, "rendezvous at %s: %s", r->door.where, g->failure);
    return TDM_OK;
}

static tdm_status open_door(rendezvous *r, int *fd) {
    attendance g = {.fd = -1};
    TDM_TRY(tdm__shm_create_file(&g.fd, r->facts->world, false));
    tdm_status status = tdm__shm_host_open(&g.site, g.fd, r->facts->world, r->host);
    if (status == TDM_OK) status = hold(r, &g);
    tdm__shm_host_close(g.site);
    if (status == TDM_OK)
        *fd = g.fd;
    else
        close(g.fd);
    return status;
}

/* ---- the others ---- */

typedef struct absence {
    char who[40], why[120];
} absence;

/* The rank that is waited for, and what to do about it. */
static absence describe_absence(const rendezvous *r) {
    absence a = {"rank 0", "; start all ranks on this host, with the same MASTER_PORT or init_method"};
    if (r->listener > 0) snprintf(a.who, sizeof(a.who), "rank 0 (pid %d)", r->listener);
    if (r->listener >= 0)
        snprintf(
            a.why, sizeof(a.why),
            ", which listens but does not answer; it is stopped or frozen, or another program: continue or end it");
    return a;
}

/* Fails if rank 0 has been silent for too long. Silence is measured as in shm_watch.c: only while this process runs. */
static tdm_status check_silence(rendezvous *r) {
    const int64_t now = tdm__now_ns(), since = now - r->looked_ns, most = (int64_t)LOOK_MS * 1000000;
    int seconds;
    r->looked_ns = now;
    if (r->listener >= 0) r->silent_ns += since < most ? since : most;
    const absence a = describe_absence(r);
    const long long tenths = (long long)(r->silent_ns / 100000000);
    if (r->heartbeat_ms > 0 && r->silent_ns / 1000000 >= r->heartbeat_ms)
        TDM_FAIL(TDM_E_COMM,
                 "rendezvous at %s: %s has not been heard of for %lld.%lld s; it is stopped or frozen (a debugger does "
                 "that, too; see parallel.ddp.heartbeat), or another program: continue or end it",
                 r->door.where, a.who, tenths / 10, tenths % 10);
    if (tdm__reminder_is_due(&r->reminder, now, &seconds))
        TDM_WARN(r->host, "comm", "rendezvous at %s: rank %d has waited %d s for %s%s", r->door.where, r->facts->rank,
                 seconds, a.who, a.why);
    return TDM_OK;
}

/* *heard stays false if no answer came in time, or the listener has closed the connection. */
static tdm_status await_answer(rendezvous *r, int visitor, tdm_answer *reply, int *fd, bool *heard) {
    while (!is_over(r)) {
        const bool is_there = readable(visitor, ms_left(r, LOOK_MS));
        look(r, LOOK_MS);
        if (is_there) break;
        TDM_TRY(check_silence(r));
    }
    *heard = tdm__answer_receive(visitor, reply, fd);
    return TDM_OK;
}

/* Connects once, to get the descriptor or to report that this rank has failed. *heard: rank 0 has answered. */
static tdm_status visit(rendezvous *r, const char *failure, int *fd, bool *heard) {
    int visitor;
    tdm_hello self = {.job = r->door.job, .rank = r->facts->rank, .world = r->facts->world};
    tdm_answer reply;
    *heard = false;
    snprintf(self.failure, sizeof(self.failure), "%s", failure);
    TDM_TRY(tdm__door_visit(&r->door, &visitor));
    const int listener = visitor >= 0 ? tdm__door_pid(visitor) : -1;
    if (listener != r->listener) r->silent_ns = 0;
    r->listener = listener;
    if (visitor < 0) return TDM_OK;
    tdm_status status = TDM_OK;
    if (tdm__hello_send(visitor, &self)) status = await_answer(r, visitor, &reply, fd, heard);
    close(visitor);
    TDM_TRY(status);
    if (*heard && reply.refusal[0] != '\0')
        TDM_FAIL(reply.status == TDM_E_USAGE ? TDM_E_USAGE : TDM_E_COMM, "rendezvous at %s: %s", r->door.where,
                 reply.refusal);
    return TDM_OK;
}

static void wait_to_retry(rendezvous *r) {
    nanosleep(&(struct timespec){.tv_nsec = (long)ms_left(r, RETRY_MS) * 1000000}, NULL);
    look(r, RETRY_MS);
}

static tdm_status join(rendezvous *r, int *fd) {
    bool heard;
    for (; !is_over(r); wait_to_retry(r)) {
        TDM_TRY(visit(r, "", fd, &heard));
        if (*fd >= 0) return TDM_OK;
        TDM_TRY(check_silence(r));
    }
    const absence a = describe_absence(r);
    TDM_FAIL(TDM_E_COMM, "rendezvous at %s: rank %d waited %lld ms for %s%s", r->door.where, r->facts->rank,
             (long long)r->timeout_ms, a.who, a.why);
}

static tdm_status prepare(rendezvous *r, const char *init_method) {
    r->looked_ns = r->now_ns = tdm__now_ns();
    r->deadline_ns = tdm__deadline_ns(r->now_ns, r->timeout_ms);
    r->reminder = tdm__reminder_start();
    r->listener = -1;
    return tdm__door_find(&r->door, r->facts, init_method);
}

/* ---- a rank that has failed before the rendezvous ---- */

static void host_failure(rendezvous *r, const char *why) {
    attendance g = {.fd = -1};
    char failure[TDM_REASON_TEXT];
    snprintf(failure, sizeof(failure), "rank 0 has failed: %.320s", why);
    fail(r, &g, TDM_E_COMM, 0, failure);
    (void)hold(r, &g);
}

static void bring_failure(rendezvous *r, const char *why) {
    int fd = -1;
    bool heard = false;
    while (!is_over(r) && visit(r, why, &fd, &heard) == TDM_OK && !heard) wait_to_retry(r);
}

void tdm__rendezvous_fail(const tdm_launch_facts *facts, const char *init_method, const char *why) {
    rendezvous r = {.facts = facts, .host = tdm_host_default(), .timeout_ms = REPORT_MS};
    tdm_error before;
    if (facts->world > TDM_COMM_WORLD_MAX) return;
    tdm__error_save(&before);
    if (prepare(&r, init_method) == TDM_OK) {
        if (facts->rank == 0)
            host_failure(&r, why);
        else
            bring_failure(&r, why);
    }
    (void)tdm__error_restore(&before, NULL);
}

/* ---- the call ---- */

static tdm_status check_facts(const tdm_launch_facts *facts) {
    if (facts->world < 1 || facts->rank < 0 || facts->rank >= facts->world)
        TDM_FAIL(TDM_E_USAGE, "rendezvous: needs a rank from 0 to world - 1, got rank %d of %d", facts->rank,
                 facts->world);
    if (facts->local_world != facts->world)
        TDM_FAIL(
            TDM_E_UNSUPPORTED,
            "the job has %d ranks, %d of them on this host: they cannot all share memory; open a communicator over "
            "several hosts (tdm_comm_open_hosts; parallel.ddp.backend: auto), or start all ranks on one "
            "host",
            facts->world, facts->local_world);
    if (facts->world > TDM_COMM_WORLD_MAX)
        TDM_FAIL(TDM_E_UNSUPPORTED, "the job has %d ranks; one host can run at most %d", facts->world,
                 TDM_COMM_WORLD_MAX);
    return TDM_OK;
}

tdm_status tdm_launch_meet(int *fd, const tdm_launch_facts *facts, const tdm_host *host, const char *init_method,
                           int64_t timeout_ms, int64_t heartbeat_ms) {
    if (fd == NULL || facts == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_launch_meet: fd or facts is NULL");
    TDM_TRY(tdm__sized_check("tdm_launch_meet: tdm_launch_facts", facts, sizeof(*facts), sizeof(*facts)));
    TDM_TRY(tdm__host_take(&host));
    *fd = -1;
    TDM_EXTRA(RANKS);
    if (facts->fd >= 0) {
        *fd = fcntl(facts->fd, F_DUPFD_CLOEXEC, 0);
        if (*fd < 0)
            TDM_FAIL(TDM_E_USAGE,
                     "environment variable TANDEM_LAUNCH_FD is %d: %s; start the ranks through the launcher", facts->fd,
                     strerrordesc_np(errno));
        return TDM_OK;
    }
    TDM_TRY(tdm__comm_check_times("rendezvous", timeout_ms, heartbeat_ms));
    rendezvous r = {.facts = facts, .host = host, .timeout_ms = timeout_ms, .heartbeat_ms = heartbeat_ms};
    tdm_status status = check_facts(facts);
    if (status != TDM_OK) {
        tdm__rendezvous_fail(facts, init_method, tdm_error_message());
        return status;
    }
    TDM_TRY(prepare(&r, init_method));
    return facts->rank == 0 ? open_door(&r, fd) : join(&r, fd);
}
