/* Waits that are in vain: past their deadline, or for a rank that has left. */
#include <stdio.h>

#include "runtime/base/system/clock.h"
#include "runtime/comm/hub/hub_private.h"

/* Data that a rank has sent before it left may arrive after the news of that. */
enum { LEFT_MS = 1000, NAMED = 8 };

void tdm__hub_name(const tdm_hub *hub, int rank, char out[TDM_NAME_TEXT]) {
    const tdm_peer *peer = &hub->peer[rank];
    snprintf(out, TDM_NAME_TEXT, "rank %d (host %s, pid %d)", rank, peer->name, peer->pid);
}

void tdm__hub_note_call(tdm_hub *hub, const tdm_call *call) {
    atomic_store(&hub->last_call[hub->rank], call->sequence << 8 | (uint64_t)call->kind);
}

void tdm__hub_wait_begin(tdm_hub *hub, tdm_hub_wait *wait) {
    pthread_mutex_lock(&hub->mutex);
    wait->next = hub->waits;
    hub->waits = wait;
    pthread_mutex_unlock(&hub->mutex);
}

void tdm__hub_wait_end(tdm_hub *hub, tdm_hub_wait *wait) {
    pthread_mutex_lock(&hub->mutex);
    tdm_hub_wait **link = &hub->waits;
    while (*link != wait) link = &(*link)->next;
    *link = wait->next;
    pthread_mutex_unlock(&hub->mutex);
}

static void append_rank(char text[TDM_CAUSE_TEXT], const tdm_hub *hub, int rank) {
    char name[TDM_NAME_TEXT];
    tdm__hub_name(hub, rank, name);
    tdm__cause_add(text, "%s", name);
}

/* Is the wait for this member? Of a collective, for those that have not made the call. */
static bool is_waited_for(const tdm_hub *hub, const tdm_hub_wait *wait, int member) {
    if (member == wait->rank) return false;
    if (wait->peers != NULL) return wait->peers[member];
    if (wait->call->kind == TDM_COMM_RECEIVE) return true;
    return atomic_load(&hub->last_call[wait->job_rank[member]]) !=
           (wait->call->sequence << 8 | (uint64_t)wait->call->kind);
}

static void append_last_call(char text[TDM_CAUSE_TEXT], uint64_t last) {
    if (last == 0) return;
    tdm__cause_add(text, ", whose last call was %s %llu", tdm_comm_kind_name((tdm_comm_kind)(last & 0xFF)),
                   (unsigned long long)(last >> 8));
}

/* "rank 0 (...) waited 500 ms for rank 1 (...), whose last call was barrier 3" */
static void give_up(const tdm_hub *hub, const tdm_hub_wait *wait, char text[TDM_CAUSE_TEXT]) {
    int named = 0;
    append_rank(text, hub, hub->rank);
    tdm__cause_add(text, " waited %lld ms for ", (long long)wait->timeout_ms);
    for (int i = 0; i < wait->world && named < NAMED; i++) {
        if (!is_waited_for(hub, wait, i)) continue;
        if (named++ > 0) tdm__cause_add(text, ", ");
        append_rank(text, hub, wait->job_rank[i]);
        if (named <= 2) append_last_call(text, atomic_load(&hub->last_call[wait->job_rank[i]]));
    }
    if (named == 0)
        tdm__cause_add(text, "data of ranks that have made the same call: the link between them is slow or cut");
}

/* The member that has left too early for this wait, or -1. A receive from any rank is for all: it is in vain only when
 * all have left. */
static int who_left(const tdm_hub *hub, const tdm_hub_wait *wait, int64_t now_ns) {
    const bool any = wait->call->kind == TDM_COMM_RECEIVE && wait->call->root < 0;
    const int64_t before = now_ns - (int64_t)LEFT_MS * 1000000;
    int left = -1;
    if (wait->start_ns > before) return -1;
    for (int i = 0; i < wait->world; i++) {
        if (!is_waited_for(hub, wait, i)) continue;
        const int64_t at = hub->left_ns[wait->job_rank[i]];
        const bool is_gone = at != 0 && at <= before;
        if (any && !is_gone) return -1;
        if (is_gone && left < 0) left = wait->job_rank[i];
    }
    return left;
}

bool tdm__hub_find_vain_wait(const tdm_hub *hub, int64_t now_ns, char why[TDM_CAUSE_TEXT]) {
    why[0] = '\0';
    for (const tdm_hub_wait *wait = hub->waits; wait != NULL; wait = wait->next) {
        const int left = who_left(hub, wait, now_ns);
        if (left >= 0) {
            append_rank(why, hub, left);
            tdm__cause_add(why, " has left: it closed its communicator");
            return true;
        }
        if (now_ns < tdm__deadline_ns(wait->start_ns, wait->timeout_ms)) continue;
        give_up(hub, wait, why);
        return true;
    }
    return false;
}
