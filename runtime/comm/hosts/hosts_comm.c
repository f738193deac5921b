/* Making, splitting and closing communicators over several hosts. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/hash.h"
#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/comm/hosts/hosts.h"
#include "runtime/comm/hosts/levels.h"

/* ---- the job ---- */

void tdm__hosts_job_release(tdm_hosts_job *job) {
    if (job == NULL || atomic_fetch_sub(&job->users, 1) > 1) return;
    const tdm_host *host = job->host;
    tdm__hub_leave(job->hub, job->timeout_ms);
    tdm__hub_close(job->hub); /* first: its thread uses the transport */
    job->transport->ops->close(job->transport);
    tdm_comm_close(atomic_load(&job->inside));
    tdm__hosts_memory_delete(job); /* messages could come into it until now */
    tdm__delete(host, job);
}

static void free_levels(tdm_levels *levels, const tdm_host *host) {
    if (levels == NULL) return;
    tdm__hosts_comm_free(levels->column);
    tdm__delete(host, levels->first);
    tdm__delete(host, (void *)(uintptr_t)levels->all.of_member);
    tdm__delete(host, (void *)(uintptr_t)levels->all.first);
    tdm__delete(host, (void *)(uintptr_t)levels->blocks.first);
    tdm__delete(host, levels->padded);
    tdm__delete(host, levels);
}

void tdm__hosts_comm_free(tdm_hosts_comm *c) {
    if (c == NULL) return;
    tdm_hosts_job *job = c->job;
    const tdm_host *host = c->comm.host;
    tdm__delete(host, c->job_rank);
    if (!c->shares_entries) tdm__delete(host, c->entry);
    free_levels(c->levels, host);
    tdm__delete(host, c->message);
    tdm__delete(host, c->scratch);
    tdm__delete(host, c);
    tdm__hosts_job_release(job);
}

static void close_comm(tdm_comm *comm) {
    tdm__hosts_comm_free((tdm_hosts_comm *)comm);
}

/* ---- what a communicator can do ---- */

/* All ranks get their memory or none does: then the job has ended. */
static tdm_status allocate_block(tdm_hosts_comm *c, size_t bytes, void **out) {
    void *block;
    tdm_hosts_job *job = c->job;
    const tdm_status own = tdm__hosts_memory_new(job, bytes, &block);
    tdm_status status = tdm__hosts_agree_on_call(c, &own, sizeof(own));
    for (int r = 0; r < c->comm.world && status == TDM_OK; r++) {
        tdm_status theirs;
        memcpy(&theirs, c->entry[r].data, sizeof(theirs));
        if (theirs == TDM_OK) continue;
        status = tdm__fail(TDM_E_MEMORY, __FILE__, __LINE__, NULL, "allocate: rank %d has no %zu bytes", c->job_rank[r],
                           bytes);
        (void)tdm__hosts_judge(c, status);
    }
    if (status == TDM_OK) *out = block;
    return status;
}

static tdm_status allocate(tdm_comm *comm, size_t bytes, void **out) {
    tdm_hosts_comm *c = (tdm_hosts_comm *)comm;
    *out = NULL;
    tdm__hosts_enter(
        c, &(tdm_call){.kind = TDM_COMM_ALLOCATE, .dtype = TDM_DTYPE_U8, .op = -1, .root = -1, .count = bytes});
    return tdm__hosts_leave(c, allocate_block(c, bytes, out));
}

static tdm_status split_group(tdm_hosts_comm *c, const int *ranks, int count, tdm_hosts_comm **out) {
    int members[TDM_COMM_WORLD_MAX], next = atomic_load(&c->job->next_group), rank = 0;
    TDM_TRY(tdm__hosts_agree_on_call(c, &next, sizeof(next)));
    /* The first number that is free on all members. */
    for (int r = 0; r < c->comm.world; r++) {
        int theirs;
        memcpy(&theirs, c->entry[r].data, sizeof(theirs));
        if (theirs > next) next = theirs;
    }
    if (next >= TDM_HOSTS_GROUPS)
        return tdm__hosts_judge(c, tdm__fail(TDM_E_USAGE, __FILE__, __LINE__, NULL,
                                             "split: a job over several hosts can make at most %d groups",
                                             TDM_HOSTS_GROUPS - 1));
    atomic_store(&c->job->next_group, next + 1);
    while (rank < count && ranks[rank] != c->comm.rank) rank++;
    if (rank == count) return TDM_OK;
    for (int r = 0; r < count; r++) members[r] = c->job_rank[ranks[r]];
    return tdm__hosts_comm_new(out, c->job, rank, count, next, members);
}

static tdm_status split(tdm_comm *comm, const int *ranks, int count, tdm_comm **out) {
    tdm_hosts_comm *c = (tdm_hosts_comm *)comm, *made = NULL;
    *out = NULL;
    tdm__hosts_enter(c, &(tdm_call){.kind = TDM_COMM_SPLIT,
                                    .dtype = TDM_DTYPE_I32,
                                    .op = -1,
                                    .root = -1,
                                    .count = (uint64_t)count,
                                    .extra = tdm__hash64(ranks, (size_t)count * sizeof(*ranks), 0)});
    const tdm_status status = split_group(c, ranks, count, &made);
    if (made != NULL) *out = &made->comm;
    return tdm__hosts_leave(c, status);
}

static void abort_job(tdm_comm *comm, const char *why) {
    const tdm_hosts_comm *c = (const tdm_hosts_comm *)comm;
    char cause[TDM_CAUSE_TEXT];
    if (why == NULL) {
        tdm__hub_abort(c->job->hub);
        return;
    }
    snprintf(cause, sizeof(cause), "rank %d: %s", c->job_rank[comm->rank], why);
    tdm__hub_end(c->job->hub, cause);
}

static bool has_ended(tdm_comm *comm, char *why, size_t bytes) {
    tdm_hub_cause cause;
    if (!tdm__hub_has_ended(((const tdm_hosts_comm *)comm)->job->hub, &cause)) return false;
    snprintf(why, bytes, "%s", cause.why);
    return true;
}

/* ---- making one ---- */

static tdm_status make_parts(tdm_hosts_comm *c, size_t world) {
    TDM_TRY(tdm__new(c->comm.host, &c->job_rank, world, sizeof(*c->job_rank), "communicator"));
    TDM_TRY(tdm__new(c->comm.host, &c->entry, world, sizeof(*c->entry), "communicator"));
    return tdm__hosts_message_room(c, world * 4);
}

tdm_status tdm__hosts_comm_new(tdm_hosts_comm **out, tdm_hosts_job *job, int rank, int world, int group,
                               const int *job_rank) {
    tdm_hosts_comm *c;
    *out = NULL;
    TDM_TRY(tdm__new(job->host, &c, 1, sizeof(*c), "communicator"));
    atomic_fetch_add(&job->users, 1);
    c->job = job;
    c->comm = (tdm_comm){.ops = &job->ops,
                         .host = job->host,
                         .rank = rank,
                         .world = world,
                         .timeout_ms = job->timeout_ms,
                         .process = getpid()};
    c->group = group;
    TDM_TRY_ELSE(make_parts(c, (size_t)world), tdm__hosts_comm_free(c));
    for (int r = 0; r < world; r++) c->job_rank[r] = job_rank != NULL ? job_rank[r] : r;
    *out = c;
    return TDM_OK;
}

tdm_status tdm__hosts_job_new(tdm_hosts_job **out, const tdm_host *host, tdm_hub *hub, tdm_transport *transport,
                              int64_t timeout_ms) {
    tdm_hosts_job *job;
    TDM_TRY(tdm__new(host, &job, 1, sizeof(*job), "communicator"));
    job->host = host;
    job->ops = (tdm_comm_ops){.name = transport->ops->name,
                              .deterministic = true,
                              .run = tdm__hosts_run,
                              .allocate = allocate,
                              .split = split,
                              .abort = abort_job,
                              .close = close_comm,
                              .ended = has_ended};
    job->hub = hub;
    job->transport = transport;
    job->timeout_ms = timeout_ms;
    atomic_store(&job->users, 1);
    atomic_store(&job->next_group, TDM_GROUP_FIRST);
    *out = job;
    return TDM_OK;
}
