/* See levels.h. */
#include "runtime/comm/hosts/levels.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/log.h"
#include "runtime/base/memory.h"
#include "runtime/base/status.h"

/* CHUNK_BYTES: of the data that goes through the levels at a time. SLACK_MS: calls within a host have a deadline of their
 * own; the hub's comes first, because it names ranks by their numbers in the job. */
enum { CHUNK_BYTES = 16 * 1024 * 1024, SLACK_MS = 30000, LANE_GROUP = 1 };

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

static tdm_status open_inside(tdm_hosts_comm *c, const tdm_peer *peer, const char *job, int64_t timeout_ms) {
    int fd;
    tdm_comm *inside = NULL;
    const int64_t longer = timeout_ms < INT64_MAX / 2 ? timeout_ms + SLACK_MS : timeout_ms;
    tdm_launch_facts facts = {.source = TDM_LAUNCH_TORCHRUN,
                              .rank = c->local,
                              .world = c->locals,
                              .local_rank = c->local,
                              .local_world = c->locals,
                              .fd = -1};
    snprintf(facts.job, sizeof(facts.job), "%.100s, host %d, %016llx", job, c->comm.rank / c->locals,
             (unsigned long long)peer[0].token);
    TDM_TRY(tdm_launch_meet(&fd, &facts, c->comm.host, NULL, timeout_ms, 0));
    const tdm_status status = tdm__comm_open_shm(&inside, fd, c->local, c->locals, c->comm.host, longer, 0);
    close(fd);
    TDM_TRY(status);
    atomic_store(&c->job->inside, inside);
    return TDM_OK;
}

static tdm_status open_lane(tdm_hosts_comm *c) {
    int members[TDM_COMM_WORLD_MAX], hosts = c->comm.world / c->locals;
    for (int h = 0; h < hosts; h++) members[h] = h * c->locals + c->local;
    return tdm__hosts_comm_new(&c->lane, c->job, c->comm.rank / c->locals, hosts, LANE_GROUP, members);
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

/* ---- calls ---- */

/* A call among the ranks of this host. The hub knows of the wait, and ends it when it is in vain. */
static tdm_status call_inside(tdm_hosts_comm *c, const tdm_comm_call *call) {
    tdm_hub_wait wait = tdm__hosts_wait_of(c);
    TDM_TRY(tdm__hosts_check(c));
    tdm__hub_wait_begin(c->job->hub, &wait);
    const tdm_status status = tdm__comm_call(c->job->inside, call);
    tdm__hub_wait_end(c->job->hub, &wait);
    return status == TDM_OK ? TDM_OK : tdm__hosts_settle(c);
}

/* The lane takes part in the call of `c`: its waits have the same deadline and the same name. */
static tdm_hosts_comm *lane_in_call(tdm_hosts_comm *c, int root) {
    c->lane->call = c->call;
    c->lane->call.root = root;
    c->lane->start_ns = c->start_ns;
    return c->lane;
}

static tdm_span bytes_at(void *data, size_t bytes) {
    return (tdm_span){data, bytes, TDM_DTYPE_U8};
}

/* The first rank of each host exchanges the entries of its host with the others. */
static tdm_status exchange_between_hosts(tdm_hosts_comm *c) {
    tdm_hosts_comm *lane = lane_in_call(c, -1);
    const size_t block = (size_t)c->locals * sizeof(*c->entry);
    int count = 0;
    for (int h = 0; h < lane->comm.world; h++) {
        if (h == lane->comm.rank) continue;
        lane->message[count++] = tdm__hosts_send(lane, h, TDM_USE_ENTRY, &c->entry[lane->comm.rank * c->locals], block);
        lane->message[count++] = tdm__hosts_receive(lane, h, TDM_USE_ENTRY, &c->entry[h * c->locals], block);
    }
    return tdm__hosts_exchange(lane, count);
}

tdm_status tdm__levels_exchange_entries(tdm_hosts_comm *c) {
    const size_t bytes = sizeof(*c->entry), first = (size_t)(c->comm.rank - c->local);
    TDM_TRY(call_inside(c, &(tdm_comm_call){.kind = TDM_COMM_ALL_GATHER,
                                            .rank = -1,
                                            .in = bytes_at(&c->entry[c->comm.rank], bytes),
                                            .out = bytes_at(&c->entry[first], bytes * (size_t)c->locals)}));
    if (c->local == 0) TDM_TRY(exchange_between_hosts(c));
    return call_inside(
        c, &(tdm_comm_call){.kind = TDM_COMM_BROADCAST, .in = bytes_at(c->entry, bytes * (size_t)c->comm.world)});
}

/* Partial sums of 16 bits would be rounded, and those of an average divided, before they are whole. */
bool tdm__levels_can_reduce(const tdm_hosts_comm *c, const tdm_hosts_reduction *how) {
    const bool is_narrow = how->dtype == TDM_DTYPE_BF16 || how->dtype == TDM_DTYPE_F16;
    return c->lane != NULL && how->root < 0 && !is_narrow && how->op != TDM_REDUCE_AVG;
}

/* `whole` divides among the ranks of a host. */
static tdm_status reduce_through_levels(tdm_hosts_comm *c, tdm_span whole, const tdm_hosts_reduction *how) {
    const size_t part = whole.count / (size_t)c->locals, width = tdm_dtype_bytes(whole.dtype);
    const tdm_span own = {(char *)whole.data + (size_t)c->local * part * width, part, whole.dtype};
    TDM_TRY(call_inside(
        c, &(tdm_comm_call){.kind = TDM_COMM_REDUCE_SCATTER, .rank = -1, .in = whole, .out = own, .op = how->op}));
    TDM_TRY(tdm__hosts_reduce_data(lane_in_call(c, -1), own, how));
    return call_inside(c, &(tdm_comm_call){.kind = TDM_COMM_ALL_GATHER, .rank = -1, .in = own, .out = whole});
}

tdm_status tdm__levels_all_reduce(tdm_hosts_comm *c, tdm_span io, const tdm_hosts_reduction *how) {
    const size_t width = tdm_dtype_bytes(io.dtype), locals = (size_t)c->locals;
    const size_t most = CHUNK_BYTES / width / locals * locals, even = io.count / locals * locals;
    for (size_t done = 0; done < even;) {
        const size_t n = even - done < most ? even - done : most;
        TDM_TRY(reduce_through_levels(c, (tdm_span){(char *)io.data + done * width, n, io.dtype}, how));
        done += n;
    }
    /* The few that do not divide go between all ranks. */
    if (even == io.count) return TDM_OK;
    return tdm__hosts_reduce_data(c, (tdm_span){(char *)io.data + even * width, io.count - even, io.dtype}, how);
}

tdm_status tdm__levels_broadcast(tdm_hosts_comm *c, tdm_span io, int root) {
    const int local = root % c->locals, host = root / c->locals;
    if (c->local == local)
        TDM_TRY(tdm__hosts_broadcast_data(lane_in_call(c, host), io.data, io.count * tdm_dtype_bytes(io.dtype), host));
    return call_inside(c, &(tdm_comm_call){.kind = TDM_COMM_BROADCAST, .rank = local, .in = io});
}
