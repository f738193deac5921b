/* See levels.h. */
#include "runtime/comm/hosts/levels.h"

#include "runtime/base/status.h"

enum { CHUNK_BYTES = 16 * 1024 * 1024 }; /* of the data that goes through the levels at a time */

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

/* The column takes part in the call of `c`: its waits have the same deadline and the same name. */
static tdm_hosts_comm *column_in_call(tdm_hosts_comm *c, int root) {
    c->column->call = c->call;
    c->column->call.root = root;
    c->column->start_ns = c->start_ns;
    return c->column;
}

static tdm_span bytes_at(void *data, size_t bytes) {
    return (tdm_span){data, bytes, TDM_DTYPE_U8};
}

tdm_status tdm__levels_exchange_entries(tdm_hosts_comm *c) {
    const size_t bytes = sizeof(*c->entry), first = (size_t)(c->comm.rank - c->local);
    TDM_TRY(call_inside(c, &(tdm_comm_call){.kind = TDM_COMM_ALL_GATHER,
                                            .rank = -1,
                                            .in = bytes_at(&c->entry[c->comm.rank], bytes),
                                            .out = bytes_at(&c->entry[first], bytes * (size_t)c->locals)}));
    /* The first rank of each host exchanges the entries of its host with the others. */
    if (c->local == 0) TDM_TRY(tdm__hosts_exchange_blocks(column_in_call(c, -1), c->entry, (size_t)c->locals * bytes));
    return call_inside(
        c, &(tdm_comm_call){.kind = TDM_COMM_BROADCAST, .in = bytes_at(c->entry, bytes * (size_t)c->comm.world)});
}

bool tdm__levels_can_reduce(const tdm_hosts_comm *c, const tdm_reduction *how) {
    return c->column != NULL && how->root < 0 && tdm__hosts_has_partial_sums(how);
}

/* `whole` divides among the ranks of a host. */
static tdm_status reduce_through_levels(tdm_hosts_comm *c, tdm_span whole, const tdm_reduction *how) {
    const size_t part = whole.count / (size_t)c->locals, width = tdm_dtype_bytes(whole.dtype);
    const tdm_span own = {(char *)whole.data + (size_t)c->local * part * width, part, whole.dtype};
    TDM_TRY(tdm__hosts_begin_reduction(column_in_call(c, -1), own, how));
    TDM_TRY(call_inside(
        c, &(tdm_comm_call){.kind = TDM_COMM_REDUCE_SCATTER, .rank = -1, .in = whole, .out = own, .op = how->op}));
    TDM_TRY(tdm__hosts_reduce_data(column_in_call(c, -1), own, how));
    return call_inside(c, &(tdm_comm_call){.kind = TDM_COMM_ALL_GATHER, .rank = -1, .in = own, .out = whole});
}

tdm_status tdm__levels_all_reduce(tdm_hosts_comm *c, tdm_span io, const tdm_reduction *how) {
    const size_t width = tdm_dtype_bytes(io.dtype), locals = (size_t)c->locals;
    const size_t most = CHUNK_BYTES / width / locals * locals, even = io.count / locals * locals;
    for (size_t done = 0; done < even;) {
        const size_t n = even - done < most ? even - done : most;
        TDM_TRY(reduce_through_levels(c, (tdm_span){(char *)io.data + done * width, n, io.dtype}, how));
        done += n;
    }
    /* The few that do not divide go between all ranks. */
    if (even == io.count) return TDM_OK;
    const tdm_span rest = {(char *)io.data + even * width, io.count - even, io.dtype};
    TDM_TRY(tdm__hosts_begin_reduction(c, rest, how));
    return tdm__hosts_reduce_data(c, rest, how);
}

tdm_status tdm__levels_broadcast(tdm_hosts_comm *c, tdm_span io, int root) {
    const int local = root % c->locals, host = root / c->locals;
    if (c->local == local)
        TDM_TRY(tdm__hosts_broadcast_data(column_in_call(c, host), io.data, tdm__span_bytes(io), host));
    return call_inside(c, &(tdm_comm_call){.kind = TDM_COMM_BROADCAST, .rank = local, .in = io});
}
