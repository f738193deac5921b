/* Which ranks share a host, and how they meet there. See levels.h. */
#include <stdio.h>
#include <unistd.h>

#include "runtime/base/log.h"
#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/base/system/clock.h"
#include "runtime/comm/hosts/levels.h"

/* SLACK_MS: calls within a host have a deadline of their own; the hub's comes first, because it names ranks by their
 * numbers in the job. */
enum { SLACK_MS = 30000, ATTEMPT_MS = 2000 };

/* ---- which ranks are where ---- */

static bool is_power_of_two(int n) {
    return n > 0 && (n & (n - 1)) == 0;
}

/* The number of ranks on each host; 1: no levels. */
static int ranks_of_a_host(const tdm_peer *peer, int world) {
    const int locals = peer[0].local_world;
    if (!is_power_of_two(locals) || locals == 1 || locals >= world || world % locals != 0) return 1;
    for (int r = 0; r < world; r++) {
        const bool is_in_order = peer[r].local_rank == r % locals && peer[r].local_world == locals;
        if (!is_in_order || peer[r].host != peer[r - r % locals].host) return 1;
    }
    return locals;
}

/* ---- opening ---- */

/* One attempt. It fails if a rank of this host does not come soon. */
static tdm_status try_inside(tdm_hosts_comm *c, const tdm_launch_facts *facts, int64_t timeout_ms, tdm_comm **inside) {
    int fd;
    const int64_t longer = timeout_ms < INT64_MAX / 2 ? timeout_ms + SLACK_MS : timeout_ms;
    TDM_TRY(tdm_launch_meet(&fd, facts, c->comm.host, NULL, ATTEMPT_MS, 0));
    const tdm_status status = tdm__comm_open_shm(inside, fd, c->local, c->locals, c->comm.host, longer, 0);
    close(fd);
    return status;
}

/* A rank may die while the ranks of a host meet. So each attempt is short, and the hub is asked between two of them. */
static tdm_status open_inside(tdm_hosts_comm *c, const tdm_peer *peer, const char *job, int64_t timeout_ms) {
    tdm_comm *inside = NULL;
    tdm_status status;
    const int64_t deadline = tdm__deadline_ns(tdm__now_ns(), timeout_ms);
    tdm_launch_facts facts = {.size = sizeof(facts),
                              .source = TDM_LAUNCH_TORCHRUN,
                              .rank = c->local,
                              .world = c->locals,
                              .local_rank = c->local,
                              .local_world = c->locals,
                              .fd = -1};
    snprintf(facts.job, sizeof(facts.job), "%.100s, host %d, %016llx", job, c->comm.rank / c->locals,
             (unsigned long long)peer[0].token);
    do {
        status = try_inside(c, &facts, timeout_ms, &inside);
        if (status != TDM_OK) TDM_TRY(tdm__hosts_check(c));
    } while (status == TDM_E_COMM && tdm__now_ns() < deadline);
    TDM_TRY(status);
    atomic_store(&c->job->inside, inside);
    return TDM_OK;
}

static tdm_status open_lane(tdm_hosts_comm *c) {
    int members[TDM_COMM_WORLD_MAX], hosts = c->comm.world / c->locals;
    for (int h = 0; h < hosts; h++) members[h] = h * c->locals + c->local;
    return tdm__hosts_comm_new(&c->column, c->job, c->comm.rank / c->locals, hosts, TDM_GROUP_COLUMNS, members);
}

tdm_status tdm__levels_open(tdm_hosts_comm *c, const tdm_peer *peer, const char *job, int64_t timeout_ms) {
    void *entries;
    c->locals = ranks_of_a_host(peer, c->comm.world);
    c->local = c->comm.rank % c->locals;
    if (c->locals == 1) return TDM_OK;
    TDM_TRY(open_inside(c, peer, job, timeout_ms));
    TDM_TRY(tdm_comm_allocate(c->job->inside, (size_t)c->comm.world * sizeof(*c->entry), &entries));
    TDM_TRY(open_lane(c));
    tdm__delete(c->comm.host, c->entry);
    c->entry = entries;
    TDM_INFO(c->comm.host, "comm", "%d hosts with %d ranks each: ranks of a host meet in shared memory first",
             c->comm.world / c->locals, c->locals);
    return TDM_OK;
}
