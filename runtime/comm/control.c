/* The bell that wakes waiting ranks, the wait itself, and the first cause of a job's end. */
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/system/clock.h"
#include "runtime/base/system/thread.h"
#include "runtime/base/log.h"
#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/comm/group.h"

enum {
    SPIN_NS = 20 * 1000, /* a round takes less if all ranks are running */
    LOOKS_PER_CLOCK = 32
};

int64_t tdm__spin_ns(int ranks) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof(set), &set) != 0) return 0;
    return CPU_COUNT(&set) >= ranks ? SPIN_NS : 0;
}

/* ---- the bell ---- */

void tdm__control_ring(tdm_control *control, bool one_process) {
    atomic_fetch_add(&control->bell, 1);
    if (atomic_load(&control->sleepers) == 0) return;
    syscall(SYS_futex, &control->bell, one_process ? FUTEX_WAKE_PRIVATE : FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

void tdm__site_ring(tdm_site *site) {
    tdm__control_ring(site->control, site->process == NULL);
}

/* Sleeps while the bell's count is `bell`, at most `ns`. May wake up early for no reason. */
static void sleep_for_bell(tdm_site *site, uint32_t bell, int64_t ns) {
    const struct timespec time = tdm__timespec(ns);
    int wait = site->process == NULL ? FUTEX_WAIT_PRIVATE : FUTEX_WAIT;
    atomic_fetch_add(&site->control->sleepers, 1);
    syscall(SYS_futex, &site->control->bell, wait, bell, &time, NULL, 0);
    atomic_fetch_sub(&site->control->sleepers, 1);
}

/* ---- the end of a job ---- */

void tdm__control_end(tdm_control *control, bool one_process, const char *cause) {
    uint32_t not_ended = 0;
    if (!atomic_compare_exchange_strong(&control->ended, &not_ended, 1)) return;
    size_t length = strnlen(cause, TDM_CAUSE_TEXT - 1);
    memcpy(control->cause, cause, length);
    control->cause[length] = '\0';
    atomic_store(&control->ended, 2);
    tdm__control_ring(control, one_process);
}

bool tdm__site_ended(const tdm_site *site) {
    return atomic_load(&site->control->ended) != 0;
}

static const char *cause_of(const tdm_control *control) {
    /* The rank that writes the cause may have been killed half-way: wait for it, but not for ever. */
    for (int i = 0; i < 100 && atomic_load(&control->ended) != 2; i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    return atomic_load(&control->ended) == 2 ? control->cause : "the job has ended; the cause was lost";
}

bool tdm__site_has_ended(const tdm_site *site, char *why, size_t bytes) {
    if (!tdm__site_ended(site)) return false;
    snprintf(why, bytes, "%s", cause_of(site->control));
    return true;
}

tdm_status tdm__group_ended(tdm_group *group) {
    char call[TDM_CALL_TEXT];
    tdm__call_print(call, &group->call, group->job_rank);
    TDM_FAIL(TDM_E_COMM, "%s: %s", call, cause_of(group->site->control));
}

/* ---- the site's memory ---- */

tdm_status tdm__site_add_mapping(tdm_site *site, void *base, size_t bytes) {
    tdm_mapping *mapping;
    TDM_TRY(tdm__new(site->host, &mapping, 1, sizeof(*mapping), "shared memory"));
    mapping->base = base;
    mapping->bytes = bytes;
    mapping->next = atomic_load(&site->mappings);
    while (!atomic_compare_exchange_weak(&site->mappings, &mapping->next, mapping)) continue;
    return TDM_OK;
}

void tdm__site_release(tdm_site *site) {
    if (atomic_fetch_sub(&site->users, 1) > 1) return;
    tdm_mapping *mapping = atomic_load(&site->mappings);
    while (mapping != NULL) {
        tdm_mapping *next = mapping->next;
        site->ops->unmap(site, mapping->base, mapping->bytes);
        tdm__delete(site->host, mapping);
        mapping = next;
    }
    site->ops->free(site);
}

/* ---- waiting ---- */

/* "rank 1 (pid 1234)" */
static void append_rank(char text[TDM_CAUSE_TEXT], const tdm_group *group, int r) {
    const int rank = group->job_rank[r];
    const tdm_process *process = group->site->process != NULL ? &group->site->process[rank] : NULL;
    tdm__cause_add(text, "rank %d", rank);
    if (process != NULL && atomic_load(&process->state) >= TDM_PROCESS_MEETING)
        tdm__cause_add(text, " (pid %d)", process->pid);
}

static tdm_status end(tdm_group *group, const char *cause) {
    tdm__control_end(group->site->control, group->site->process == NULL, cause);
    return tdm__group_ended(group);
}

/* TDM_E_COMM if a missing member has closed its end. The member may have arrived just before it closed, so `missing` is
 * asked again after `left`. A member that died or was stopped is found by shm_watch.c. */
static tdm_status check_for_left(tdm_group *group, tdm_missing_fn missing) {
    char cause[TDM_CAUSE_TEXT] = "";
    for (int r = 0; group->seat != NULL && r < group->comm.world; r++) {
        if (!missing(group, r) || atomic_load(&group->seat[r].left) == 0 || !missing(group, r)) continue;
        append_rank(cause, group, r);
        tdm__cause_add(cause, " has left: it closed its communicator");
        return end(group, cause);
    }
    return TDM_OK;
}

bool tdm__group_has_ended(tdm_comm *comm, char *why, size_t bytes) {
    return tdm__site_has_ended(((const tdm_group *)comm)->site, why, bytes);
}

/* The last call of a missing rank. */
static void append_last_call(char text[TDM_CAUSE_TEXT], const tdm_group *group, int r) {
    uint64_t last = atomic_load(&group->seat[r].last_call);
    if (last == 0 || last >> 8 == group->call.sequence) return;
    tdm__cause_add(text, ", whose last call was %s %llu", tdm_comm_kind_name((tdm_comm_kind)(last & 0xFF)),
                   (unsigned long long)(last >> 8));
}

/* "rank 1 (pid 12), rank 3 (pid 14)" */
static void append_missing(char text[TDM_CAUSE_TEXT], const tdm_group *group, tdm_missing_fn missing) {
    enum { NAMED = 8 };
    int count = 0;
    for (int r = 0; r < group->comm.world; r++) {
        if (!missing(group, r) || count++ >= NAMED) continue;
        if (count > 1) tdm__cause_add(text, ", ");
        append_rank(text, group, r);
        if (group->seat != NULL && count <= 2) append_last_call(text, group, r);
    }
    if (count > NAMED) tdm__cause_add(text, " and %d more", count - NAMED);
}

static bool is_absent(const tdm_group *group, int r) {
    return atomic_load(&group->site->process[r].state) < TDM_PROCESS_MEETING;
}

/* Which members does a message name? While ranks join, the absent ones: ranks that have come but not joined wait for
 * them, too. */
static tdm_missing_fn choose_named(const tdm_group *group, tdm_missing_fn missing) {
    for (int r = 0; group->call.kind == TDM_COMM_JOIN && r < group->comm.world; r++) {
        if (is_absent(group, r)) return is_absent;
    }
    return missing;
}

/* "rank 0 waited 500 ms for rank 1 (pid 12), rank 3 (pid 14)" */
static tdm_status give_up(tdm_group *group, tdm_missing_fn missing) {
    char cause[TDM_CAUSE_TEXT] = "";
    append_rank(cause, group, group->comm.rank);
    tdm__cause_add(cause, " waited %lld ms for ", (long long)group->comm.timeout_ms);
    append_missing(cause, group, choose_named(group, missing));
    return end(group, cause);
}

/* Only the lowest rank that has arrived warns. During the rendezvous rank 0 warns itself (rendezvous.c). */
static void remind(tdm_group *group, tdm_missing_fn missing, int seconds) {
    char text[TDM_CAUSE_TEXT] = "";
    missing = choose_named(group, missing);
    for (int r = 0; r < group->comm.rank; r++) {
        if (!missing(group, r)) return;
    }
    append_missing(text, group, missing);
    TDM_WARN(group->comm.host, "comm", "rank %d has waited %d s for %s to join", group->comm.rank, seconds, text);
}

tdm_status tdm__group_wait(tdm_group *group, tdm_missing_fn missing) {
    tdm_site *site = group->site;
    int first = 0; /* no member before this one is missing, and that stays true */
    int64_t start = tdm__now_ns(), now = start;
    tdm_reminder reminder = tdm__reminder_start();
    bool joins = group->call.kind == TDM_COMM_JOIN;
    for (unsigned look = 0;; look++) {
        /* Read both before asking `missing`: a round that was complete when the job ended succeeds on every rank. */
        uint32_t bell = atomic_load(&site->control->bell);
        bool ended = tdm__site_ended(site);
        while (first < group->comm.world && !missing(group, first)) first++;
        if (first == group->comm.world) return TDM_OK;
        if (ended) return tdm__group_ended(group);
        if (now - start < site->spin_ns) {
            tdm__pause();
            if (look % LOOKS_PER_CLOCK == 0) now = tdm__now_ns();
            continue;
        }
        now = tdm__now_ns();
        TDM_TRY(check_for_left(group, missing));
        if (now >= group->deadline_ns) return give_up(group, missing);
        int64_t until = group->deadline_ns;
        if (joins) {
            int seconds;
            if (tdm__reminder_is_due(&reminder, now, &seconds)) remind(group, missing, seconds);
            if (reminder.next_ns < until) until = reminder.next_ns;
        }
        sleep_for_bell(site, bell, until - now);
    }
}
