/* The other ranks' side of the meeting. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/log.h"
#include "runtime/base/status.h"
#include "runtime/base/system/clock.h"
#include "runtime/comm/meeting/hello.h"
#include "runtime/comm/meeting/address.h"

enum { RETRY_MS = 50, CONNECT_MS = 3000, SILENCE_MS = 5000, WHY_TEXT = 160 };

typedef struct visit {
    tdm_meeting *m;
    char where[PATH_MAX];
    char why[WHY_TEXT]; /* of the last attempt */
    int64_t deadline_ns;
    tdm_hosts_hello hello;
} visit;

static void give_up(tdm_meeting *m) {
    close(m->fd[0]);
    m->fd[0] = -1;
}

/* One attempt to connect. m->fd[0] < 0: rank 0 is not there yet. */
static tdm_status call_on(visit *v) {
    tdm_meeting *m = v->m;
    tdm_challenge challenge;
    const int64_t left_ms = (v->deadline_ns - tdm__now_ns()) / 1000000 + 1;
    const int64_t silence = m->heartbeat_ms > 0 ? m->heartbeat_ms : SILENCE_MS;
    if (m->file != NULL && !tdm__address_read(m, v->why, sizeof(v->why))) return TDM_OK;
    tdm__endpoint_print(v->where, sizeof(v->where), &m->at);
    TDM_TRY(
        tdm__socket_connect(&m->fd[0], &m->at, left_ms < CONNECT_MS ? left_ms : CONNECT_MS, v->why, sizeof(v->why)));
    if (m->fd[0] < 0) return TDM_OK;
    /* A listener whose program is stopped accepts, too: the kernel does it. */
    if (!tdm__socket_readable(m->fd[0], tdm__sooner_ns(v->deadline_ns, silence)))
        TDM_FAIL(
            TDM_E_COMM,
            "meeting at %s: what listens there has said nothing for %lld ms; rank 0 is stopped or frozen, or it is "
            "another program: continue or end it",
            v->where, (long long)silence);
    if (!tdm__socket_read(m->fd[0], &challenge, sizeof(challenge), tdm__sooner_ns(v->deadline_ns, silence))) {
        snprintf(v->why, sizeof(v->why), "the connection was closed before rank 0 had greeted");
        give_up(m);
        return TDM_OK;
    }
    if (!tdm__challenge_is_ours(&challenge) && m->file != NULL) { /* of an old file: its port has a new owner */
        snprintf(v->why, sizeof(v->why), "another program listens at %.100s", v->where);
        give_up(m);
        return TDM_OK;
    }
    if (!tdm__challenge_is_ours(&challenge))
        TDM_FAIL(TDM_E_COMM,
                 "meeting at %s: what listens there is not rank 0 of a job of this version of tandem; check "
                 "the address and the port",
                 v->where);
    TDM_TRY(tdm__nonce(v->hello.nonce));
    tdm__hello_sign(&v->hello, &challenge, &m->secret);
    (void)tdm__socket_write(m->fd[0], &v->hello, sizeof(v->hello), v->deadline_ns);
    return TDM_OK;
}

static tdm_status connect_to_root(visit *v) {
    int seconds;
    const tdm_meeting *m = v->m;
    tdm_reminder reminder = tdm__reminder_start();
    for (;;) {
        TDM_TRY(call_on(v));
        if (m->fd[0] >= 0) return TDM_OK;
        const int64_t now = tdm__now_ns();
        if (now >= v->deadline_ns)
            TDM_FAIL(TDM_E_COMM, "meeting at %s: rank %d waited %lld ms for rank 0: %s", v->where, m->rank,
                     (long long)m->timeout_ms, v->why);
        if (tdm__reminder_is_due(&reminder, now, &seconds))
            TDM_WARN(m->host, "comm", "meeting at %s: rank %d has waited %d s for rank 0: %s", v->where, m->rank,
                     seconds, v->why);
        nanosleep(&(struct timespec){.tv_nsec = RETRY_MS * 1000000L}, NULL);
    }
}

static tdm_status read_answer(const visit *v, int64_t deadline_ns, const char *missing, tdm_hosts_answer *out) {
    const tdm_meeting *m = v->m;
    if (!tdm__socket_read(m->fd[0], out, sizeof(*out), deadline_ns))
        TDM_FAIL(TDM_E_COMM, "meeting at %s: %s", v->where, missing);
    if (!tdm__answer_check(out, &v->hello, &m->secret))
        TDM_FAIL(TDM_E_COMM,
                 "meeting at %s: rank 0 has another secret than rank %d; give all ranks the same TANDEM_SECRET_FILE or "
                 "TANDEM_SECRET",
                 v->where, m->rank);
    if (out->status != TDM_OK)
        TDM_FAIL(out->status == TDM_E_USAGE ? TDM_E_USAGE : TDM_E_COMM, "meeting at %s: %s", v->where, out->text);
    return TDM_OK;
}

/* Until all have come. Rank 0 knows which ranks are missing: it gives up first. */
static tdm_status wait_for_others(const visit *v, int64_t latest_ns) {
    tdm_hosts_answer answer;
    char why[TDM_MEETING_TEXT + 20] = "rank 0 is gone, or ranks are missing";
    for (;;) {
        TDM_TRY(read_answer(v, latest_ns, why, &answer));
        if (answer.text[0] == '\0') return TDM_OK;
        snprintf(why, sizeof(why), "rank 0 is gone; %s", answer.text);
    }
}

tdm_status tdm__meeting_join(tdm_meeting *m) {
    visit v = {.m = m,
               .why = "it has not answered",
               .deadline_ns = tdm__deadline_ns(tdm__now_ns(), m->timeout_ms),
               .hello = {.job = m->job, .rank = m->rank, .world = m->world, .self = m->peer[m->rank]}};
    if (m->failure != NULL) snprintf(v.hello.failure, sizeof(v.hello.failure), "%s", m->failure);
    if (m->file != NULL)
        snprintf(v.where, sizeof(v.where), "%s", m->file);
    else
        tdm__endpoint_print(v.where, sizeof(v.where), &m->at);
    tdm_hosts_answer admitted;
    TDM_TRY(connect_to_root(&v));
    TDM_TRY(read_answer(&v, tdm__sooner_ns(v.deadline_ns, SILENCE_MS),
                        m->secret.bytes > 0 ? "rank 0 refused this rank's secret, or is gone"
                                            : "rank 0 is gone, or has a secret, which this rank lacks: give all ranks "
                                              "the same TANDEM_SECRET_FILE or TANDEM_SECRET",
                        &admitted));
    const int64_t latest = tdm__deadline_ns(v.deadline_ns, SILENCE_MS);
    TDM_TRY(wait_for_others(&v, latest));
    if (!tdm__socket_read(m->fd[0], m->peer, (size_t)m->world * sizeof(*m->peer), latest))
        TDM_FAIL(TDM_E_COMM, "meeting at %s: rank 0 is gone", v.where);
    for (int r = 0; r < m->world; r++) m->peer[r].name[TDM_PEER_NAME - 1] = '\0';
    return TDM_OK;
}
