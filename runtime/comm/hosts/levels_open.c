/* Which ranks share a host, and how they meet there. See levels.h. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/log.h"
#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/base/tree.h"
#include "runtime/base/system/clock.h"
#include "runtime/comm/hosts/levels.h"

/* SLACK_MS: calls within a host have a deadline of their own; the hub's comes first, because it names ranks by their
 * numbers in the job. */
enum { SLACK_MS = 30000, ATTEMPT_MS = 500 };

/* ---- which ranks are where ---- */

/* Notes the first rank of each host in `first`, which has room for one more than there are ranks. Returns how many
 * hosts there are; 0: they do not have their ranks one after another. */
static int find_hosts(const tdm_peer *peer, int world, int *first) {
    int hosts = 0;
    for (int r = 0; r < world; hosts++) {
        const int locals = peer[r].local_world;
        if (locals < 1 || locals > world - r) return 0;
        for (int i = 0; i < locals; i++)
            if (peer[r + i].local_rank != i || peer[r + i].local_world != locals || peer[r + i].host != peer[r].host)
                return 0;
        first[hosts] = r;
        r += locals;
    }
    first[hosts] = world;
    return hosts;
}

/* Which values each host has: of the largest subtrees within its ranks. */
static tdm_status find_blocks(tdm_levels *l, const tdm_host *host, int world) {
    int *of_host, *first, *own, count = 0;
    TDM_TRY(tdm__new(host, &of_host, (size_t)l->hosts + 1, sizeof(*of_host), "communicator"));
    l->all.of_member = of_host;
    TDM_TRY(tdm__new(host, &first, (size_t)world, sizeof(*first), "communicator"));
    l->all.first = first;
    TDM_TRY(tdm__new(host, &own, (size_t)l->locals + 1, sizeof(*own), "communicator"));
    l->blocks = (tdm_lanes){.parts = l->lanes, .first = own};
    for (int h = 0; h < l->hosts; h++) {
        of_host[h] = count;
        for (int r = l->first[h]; r < l->first[h + 1]; r = tdm__tree_block_end(r, l->first[h + 1], world)) {
            if (h == l->host) own[l->blocks.blocks++] = r - l->first[h];
            first[count++] = r;
        }
    }
    own[l->blocks.blocks] = l->locals;
    l->blocks.keeps_values = l->blocks.blocks > 1;
    of_host[l->hosts] = count;
    l->all.count = count;
    l->all.ranks = world;
    l->all.is_even = count == l->hosts && l->lanes == l->most;
    return TDM_OK;
}

/* ---- opening ---- */

/* One attempt. It fails if a rank of this host does not come soon. */
static tdm_status try_inside(tdm_hosts_comm *c, const tdm_launch_facts *facts, int64_t timeout_ms, tdm_comm **inside) {
    int fd;
    const int64_t longer = timeout_ms < INT64_MAX / 2 ? timeout_ms + SLACK_MS : timeout_ms;
    TDM_TRY(tdm_launch_meet(&fd, facts, c->comm.host, NULL, ATTEMPT_MS, 0));
    const tdm_status status =
        tdm__comm_open_shm(inside, fd, facts->local_rank, facts->local_world, c->comm.host, longer, 0);
    close(fd);
    return status;
}

/* A rank may die while the ranks of a host meet. So each attempt is short, and the hub is asked between two of them:
 * the others are to end within a second. */
static tdm_status open_inside(tdm_hosts_comm *c, const tdm_peer *peer, const char *job, int64_t timeout_ms) {
    tdm_comm *inside = NULL;
    tdm_status status;
    const int64_t deadline = tdm__deadline_ns(tdm__now_ns(), timeout_ms);
    tdm_launch_facts facts = {.size = sizeof(facts),
                              .source = TDM_LAUNCH_TORCHRUN,
                              .rank = c->levels->local,
                              .world = c->levels->locals,
                              .local_rank = c->levels->local,
                              .local_world = c->levels->locals,
                              .fd = -1};
    snprintf(facts.job, sizeof(facts.job), "%.100s, host %d, %016llx", job, c->levels->host,
             (unsigned long long)peer[0].token);
    do {
        status = try_inside(c, &facts, timeout_ms, &inside);
        if (status != TDM_OK) TDM_TRY(tdm__hosts_check(c));
    } while (status == TDM_E_COMM && tdm__now_ns() < deadline);
    TDM_TRY(status);
    atomic_store(&c->job->inside, inside);
    return TDM_OK;
}

static tdm_status open_column(tdm_hosts_comm *c) {
    tdm_levels *l = c->levels;
    int members[TDM_COMM_WORLD_MAX];
    if (l->local >= l->lanes) return TDM_OK;
    for (int h = 0; h < l->hosts; h++) members[h] = l->first[h] + l->local;
    TDM_TRY(tdm__hosts_comm_new(&l->column, c->job, l->host, l->hosts, TDM_GROUP_COLUMNS, members));
    l->column->blocks = &l->all;
    const int sent = (l->hosts - 1) * l->blocks.blocks, come = l->all.count, results = 2 * l->hosts;
    return tdm__hosts_message_room(l->column, (size_t)(sent + come + results));
}

static tdm_status make_levels(tdm_hosts_comm *c, const tdm_peer *peer) {
    int first[TDM_COMM_WORLD_MAX + 1];
    const int hosts = find_hosts(peer, c->comm.world, first);
    if (hosts < 2 || hosts == c->comm.world) return TDM_OK;
    TDM_TRY(tdm__new(c->comm.host, &c->levels, 1, sizeof(*c->levels), "communicator"));
    tdm_levels *l = c->levels;
    l->hosts = hosts;
    TDM_TRY(tdm__new(c->comm.host, &l->first, (size_t)hosts + 1, sizeof(*l->first), "communicator"));
    memcpy(l->first, first, ((size_t)hosts + 1) * sizeof(*first));
    l->lanes = c->comm.world;
    for (int h = 0; h < hosts; h++) {
        const int locals = first[h + 1] - first[h];
        l->lanes = locals < l->lanes ? locals : l->lanes;
        l->most = locals > l->most ? locals : l->most;
        if (c->comm.rank >= first[h]) l->host = h;
    }
    l->local = c->comm.rank - first[l->host];
    l->locals = first[l->host + 1] - first[l->host];
    if (l->local == 0)
        TDM_TRY(
            tdm__new(c->comm.host, &l->padded, (size_t)hosts * (size_t)l->most, sizeof(*l->padded), "communicator"));
    return find_blocks(l, c->comm.host, c->comm.world);
}

tdm_status tdm__levels_open(tdm_hosts_comm *c, const tdm_peer *peer, const char *job, int64_t timeout_ms) {
    void *entries;
    TDM_TRY(make_levels(c, peer));
    if (c->levels == NULL) return TDM_OK;
    TDM_TRY(open_inside(c, peer, job, timeout_ms));
    TDM_TRY(open_column(c));
    TDM_TRY(tdm_comm_allocate(c->job->inside, (size_t)c->comm.world * sizeof(*c->entry), &entries));
    tdm__delete(c->comm.host, c->entry);
    c->entry = entries;
    c->shares_entries = true;
    TDM_INFO(c->comm.host, "comm", "%d hosts: ranks of a host meet in shared memory first", c->levels->hosts);
    return TDM_OK;
}
