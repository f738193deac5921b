/* Rank 0's side of the meeting. It waits for all visitors at once, so that none can hold up the others. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/base/log.h"
#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/base/system/clock.h"
#include "runtime/comm/comm.h"
#include "runtime/comm/meeting/hello.h"
#include "runtime/comm/missing.h"

/* HELLO_MS: how long a visitor may take to say who it is. REPORT_MS: how long rank 0 waits, after a failure, for ranks
 * that have not come yet, to tell them: one that finds nobody waits for its whole timeout. QUIET_MS: how long nobody
 * comes before those who have are told who is missing. */
enum { HELLO_MS = 5000, REPORT_MS = 3000, LOOK_MS = 100, QUIET_MS = 300, SEND_MS = 2000, VISITORS = 512 };

typedef struct visitor {
    int fd;
    int64_t until_ns;
    size_t got; /* bytes of the hello */
    tdm_challenge challenge;
    tdm_hosts_hello hello;
} visitor;

typedef struct hall {
    tdm_meeting *m;
    char where[TDM_HOST_TEXT + 16];
    visitor *visitor; /* who have not said yet who they are */
    int visitors;
    tdm_hosts_hello *hello; /* of each rank that has come */
    bool *is_known;         /* of each rank: it has come, or said that it will not */
    struct pollfd *entry;   /* the listener, the visitors, the ranks that have come */
    int missing;            /* ranks that are not known */
    int told;               /* `missing`, as those who have come know it */
    int64_t last_ns;        /* when the last one has come */
    int64_t deadline_ns;
    tdm_status status;
    char failure[TDM_MEETING_TEXT];
} hall;

/* ---- how the meeting ends ---- */

static void answer(const hall *h, int fd, const tdm_hosts_hello *hello, tdm_status status, const char *text) {
    tdm_hosts_answer reply = {.status = (int32_t)status};
    snprintf(reply.text, sizeof(reply.text), "%s", text);
    tdm__answer_sign(&reply, hello, &h->m->secret);
    (void)tdm__socket_write(fd, &reply, sizeof(reply), tdm__now_ns() + (int64_t)SEND_MS * 1000000);
}

static void dismiss(const hall *h) {
    const tdm_meeting *m = h->m;
    const size_t bytes = (size_t)m->world * sizeof(*m->peer);
    for (int r = 1; r < m->world; r++) {
        answer(h, m->fd[r], &h->hello[r], TDM_OK, "");
        (void)tdm__socket_write(m->fd[r], m->peer, bytes, tdm__now_ns() + (int64_t)SEND_MS * 1000000);
    }
}

/* Only the first reason counts. Those who have come are told at once: this process may be about to be ended, too. */
static void fail(hall *h, tdm_status status, const char *why) {
    tdm_meeting *m = h->m;
    if (h->status != TDM_OK) return;
    const int64_t latest = tdm__now_ns() + (int64_t)REPORT_MS * 1000000;
    h->status = status;
    snprintf(h->failure, sizeof(h->failure), "%s", why);
    if (h->deadline_ns > latest) h->deadline_ns = latest;
    for (int r = 1; r < m->world; r++) {
        if (m->fd[r] < 0) continue;
        answer(h, m->fd[r], &h->hello[r], status, why);
        close(m->fd[r]);
        m->fd[r] = -1;
    }
}

/* ---- visitors ---- */

static void know(hall *h, int rank) {
    if (!h->is_known[rank]) h->missing--;
    h->is_known[rank] = true;
    h->last_ns = tdm__now_ns();
}

/* Why this one is not admitted; "": it is. */
static void judge(hall *h, const tdm_hosts_hello *hello, char refusal[TDM_MEETING_TEXT], tdm_status *status) {
    const tdm_meeting *m = h->m;
    const bool is_rank = hello->rank >= 1 && hello->rank < m->world;
    *status = TDM_E_USAGE;
    refusal[0] = '\0';
    if (hello->job != m->job) {
        snprintf(refusal, TDM_MEETING_TEXT, "another job is meeting there; give each job a port of its own");
        return;
    }
    if (hello->failure[0] != '\0') {
        snprintf(refusal, TDM_MEETING_TEXT, "rank %d has failed: %.320s", hello->rank, hello->failure);
        fail(h, TDM_E_COMM, refusal);
    } else if (hello->world != m->world) {
        snprintf(refusal, TDM_MEETING_TEXT,
                 "rank 0 was started for %d ranks, rank %d for %d; start all with one world size", m->world,
                 hello->rank, hello->world);
        fail(h, TDM_E_USAGE, refusal);
    } else if (!is_rank) {
        snprintf(refusal, TDM_MEETING_TEXT, "no such rank: %d of %d", hello->rank, m->world);
    } else if (m->fd[hello->rank] >= 0) {
        snprintf(refusal, TDM_MEETING_TEXT, "rank %d has come twice", hello->rank);
        TDM_WARN(m->host, "comm", "meeting at %s: %s, now from host %s, pid %d; the second one was refused", h->where,
                 refusal, hello->self.name, hello->self.pid);
    }
    if (h->status == TDM_OK) return;
    if (refusal[0] == '\0') snprintf(refusal, TDM_MEETING_TEXT, "%s", h->failure);
    *status = h->status;
    if (is_rank) know(h, hello->rank);
}

static void hear(hall *h, visitor *v) {
    tdm_meeting *m = h->m;
    char refusal[TDM_MEETING_TEXT], address[TDM_ADDRESS_TEXT];
    tdm_status status;
    if (!tdm__hello_check(&v->hello, &v->challenge, &m->secret)) {
        tdm__socket_address(address, v->fd, true);
        TDM_WARN(m->host, "comm", "meeting at %s: refused a visitor from %s, which %s", h->where, address,
                 m->secret.bytes > 0 ? "does not know the job's secret" : "is not a rank of a tandem job");
        return;
    }
    judge(h, &v->hello, refusal, &status);
    answer(h, v->fd, &v->hello, refusal[0] != '\0' ? status : TDM_OK, refusal);
    if (refusal[0] != '\0') return;
    const int r = v->hello.rank;
    m->fd[r] = v->fd;
    m->peer[r] = v->hello.self;
    h->hello[r] = v->hello;
    know(h, r);
    v->fd = -1; /* it stays */
}

/* False: the visitor has nothing more to say. */
static bool listen_to(hall *h, visitor *v) {
    const ssize_t n = recv(v->fd, (char *)&v->hello + v->got, sizeof(v->hello) - v->got, 0);
    if (n < 0) return errno == EAGAIN || errno == EINTR;
    v->got += (size_t)n;
    if (n > 0 && v->got < sizeof(v->hello)) return true;
    if (n > 0) hear(h, v);
    return false;
}

static void admit(hall *h) {
    visitor *v = &h->visitor[h->visitors];
    *v = (visitor){.fd = tdm__socket_accept(h->m->listener), .until_ns = tdm__now_ns() + (int64_t)HELLO_MS * 1000000};
    if (v->fd < 0) return;
    const bool challenged = tdm__challenge_make(&v->challenge) == TDM_OK &&
                            tdm__socket_write(v->fd, &v->challenge, sizeof(v->challenge), tdm__now_ns());
    if (challenged)
        h->visitors++;
    else
        close(v->fd);
}

static void remove_visitor(hall *h, int i) {
    if (h->visitor[i].fd >= 0) close(h->visitor[i].fd);
    h->visitor[i] = h->visitor[--h->visitors];
}

/* ---- waiting ---- */

static bool is_known(const void *hall_of, int rank) {
    return ((const hall *)hall_of)->is_known[rank];
}

static void print_absent(const hall *h, char *out, size_t bytes, const char *before) {
    char list[TDM_MISSING_TEXT];
    tdm__print_missing(list, h->m->world, h->missing, is_known, h);
    snprintf(out, bytes, "%srank%s had not come", before, list);
}

/* Its launcher may end this process, too, because of a rank that died before it came: the others then know which. */
static void tell_who_is_missing(hall *h, int64_t now) {
    char why[TDM_MEETING_TEXT];
    if (h->told == h->missing || now - h->last_ns < (int64_t)QUIET_MS * 1000000) return;
    h->told = h->missing;
    print_absent(h, why, sizeof(why), "");
    for (int r = 1; r < h->m->world; r++)
        if (h->m->fd[r] >= 0) answer(h, h->m->fd[r], &h->hello[r], TDM_OK, why);
}

/* A rank that has come says nothing until the meeting ends: what arrives from it is its end. */
static void look_after(hall *h, int r) {
    char byte, why[TDM_MEETING_TEXT];
    tdm_meeting *m = h->m;
    const ssize_t n = recv(m->fd[r], &byte, 1, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    int used = snprintf(why, sizeof(why), "rank %d (host %s, pid %d) is gone", r, m->peer[r].name, m->peer[r].pid);
    if (h->missing > 0) print_absent(h, why + used, sizeof(why) - (size_t)used, "; ");
    close(m->fd[r]);
    m->fd[r] = -1;
    fail(h, TDM_E_COMM, why);
}

static int fill_entries(hall *h) {
    int count = 0;
    h->entry[count++] = (struct pollfd){.fd = h->visitors < VISITORS ? h->m->listener : -1, .events = POLLIN};
    for (int i = 0; i < h->visitors; i++) h->entry[count++] = (struct pollfd){.fd = h->visitor[i].fd, .events = POLLIN};
    for (int r = 1; r < h->m->world; r++) h->entry[count++] = (struct pollfd){.fd = h->m->fd[r], .events = POLLIN};
    return count;
}

static void look(hall *h) {
    const int visitors = h->visitors, count = fill_entries(h);
    if (poll(h->entry, (nfds_t)count, LOOK_MS) < 0) return;
    const int64_t now = tdm__now_ns();
    for (int r = 1; r < h->m->world; r++)
        if (h->m->fd[r] >= 0 && h->entry[visitors + r].revents != 0) look_after(h, r);
    for (int i = visitors - 1; i >= 0; i--) { /* from the end: the last one takes the place of a removed one */
        const bool talks = h->entry[1 + i].revents != 0;
        if (talks ? !listen_to(h, &h->visitor[i]) : now >= h->visitor[i].until_ns) remove_visitor(h, i);
    }
    if (h->entry[0].revents != 0) admit(h);
}

static void wait_for_all(hall *h) {
    char list[TDM_MISSING_TEXT], why[TDM_MEETING_TEXT];
    int seconds;
    tdm_reminder reminder = tdm__reminder_start();
    while (h->missing > 0) {
        const int64_t now = tdm__now_ns();
        if (now >= h->deadline_ns && h->status != TDM_OK) return;
        tdm__print_missing(list, h->m->world, h->missing, is_known, h);
        if (now >= h->deadline_ns) {
            snprintf(why, sizeof(why),
                     "rank 0 waited %lld ms for rank%s; start all ranks, and let them reach this port",
                     (long long)h->m->timeout_ms, list);
            fail(h, TDM_E_COMM, why);
            return;
        }
        if (tdm__reminder_is_due(&reminder, now, &seconds))
            TDM_WARN(h->m->host, "comm", "meeting at %s: rank 0 has waited %d s for rank%s", h->where, seconds, list);
        tell_who_is_missing(h, now);
        look(h);
    }
}

static tdm_status make_room(hall *h) {
    const tdm_host *host = h->m->host;
    const size_t world = (size_t)h->m->world;
    TDM_TRY(tdm__new(host, &h->visitor, VISITORS, sizeof(*h->visitor), "meeting"));
    TDM_TRY(tdm__new(host, &h->hello, world, sizeof(*h->hello), "meeting"));
    TDM_TRY(tdm__new(host, &h->is_known, world, sizeof(*h->is_known), "meeting"));
    return tdm__new(host, &h->entry, VISITORS + world + 1, sizeof(*h->entry), "meeting");
}

tdm_status tdm__meeting_hold(tdm_meeting *m) {
    hall h = {.m = m, .missing = m->world - 1, .deadline_ns = tdm__deadline_ns(tdm__now_ns(), m->timeout_ms)};
    tdm__endpoint_print(h.where, sizeof(h.where), &m->at);
    tdm_status status = make_room(&h);
    if (status == TDM_OK && m->failure != NULL) {
        char why[TDM_MEETING_TEXT];
        snprintf(why, sizeof(why), "rank 0 has failed: %.320s", m->failure);
        fail(&h, TDM_E_COMM, why);
    }
    if (status == TDM_OK) {
        wait_for_all(&h);
        if (h.status == TDM_OK) dismiss(&h);
    }
    while (h.visitors > 0) remove_visitor(&h, h.visitors - 1);
    tdm__delete(m->host, h.visitor);
    tdm__delete(m->host, h.hello);
    tdm__delete(m->host, h.is_known);
    tdm__delete(m->host, h.entry);
    TDM_TRY(status);
    if (h.status != TDM_OK) TDM_FAIL(h.status, "meeting at %s: %s", h.where, h.failure);
    return TDM_OK;
}
