/* See levels.h. */
#include "runtime/comm/hosts/levels.h"

#include <string.h>

#include "runtime/base/status.h"
#include "runtime/comm/reduce.h"

enum { CHUNK_BYTES = 16 * 1024 * 1024 }; /* of the data that goes through the levels at a time */

/* ---- calls ---- */

/* Before and after a call among the ranks of this host. The hub knows of the wait, and ends it when it is in vain. */
static tdm_status enter_inside(tdm_hosts_comm *c, tdm_hub_wait *wait) {
    *wait = tdm__hosts_wait_of(c);
    TDM_TRY(tdm__hosts_check(c));
    tdm__hub_wait_begin(c->job->hub, wait);
    return TDM_OK;
}

static tdm_status leave_inside(tdm_hosts_comm *c, tdm_hub_wait *wait, tdm_status status) {
    tdm__hub_wait_end(c->job->hub, wait);
    return status == TDM_OK ? TDM_OK : tdm__hosts_settle(c);
}

static tdm_status call_inside(tdm_hosts_comm *c, const tdm_comm_call *call) {
    tdm_hub_wait wait;
    TDM_TRY(enter_inside(c, &wait));
    return leave_inside(c, &wait, tdm__comm_call(c->job->inside, call));
}

static tdm_status reduce_inside(tdm_hosts_comm *c, tdm_span in, tdm_span out, const tdm_lanes *lanes,
                                tdm_reduce_op op) {
    tdm_hub_wait wait;
    TDM_TRY(enter_inside(c, &wait));
    return leave_inside(c, &wait, tdm__group_reduce_lanes(c->job->inside, in, out, lanes, op));
}

static tdm_status broadcast_inside(tdm_hosts_comm *c, tdm_span io, int local) {
    return call_inside(c, &(tdm_comm_call){.kind = TDM_COMM_BROADCAST, .rank = local, .in = io});
}

/* The column takes part in the call of `c`: its waits have the same deadline and the same name. */
static tdm_hosts_comm *column_in_call(tdm_hosts_comm *c, int root) {
    tdm_hosts_comm *column = c->levels->column;
    column->call = c->call;
    column->call.root = root;
    column->start_ns = c->start_ns;
    return column;
}

static tdm_span bytes_at(void *data, size_t bytes) {
    return (tdm_span){data, bytes, TDM_DTYPE_U8};
}

/* ---- entries ---- */

/* The first rank of each host exchanges the entries of its host with the others. */
static tdm_status exchange_between(tdm_hosts_comm *c) {
    const tdm_levels *l = c->levels;
    const size_t bytes = sizeof(*c->entry), most = (size_t)l->most;
    memcpy(l->padded + (size_t)l->host * most, c->entry + l->first[l->host], (size_t)l->locals * bytes);
    TDM_TRY(tdm__hosts_exchange_blocks(column_in_call(c, -1), l->padded, most * bytes));
    for (int h = 0; h < l->hosts; h++)
        memcpy(c->entry + l->first[h], l->padded + (size_t)h * most, (size_t)(l->first[h + 1] - l->first[h]) * bytes);
    return TDM_OK;
}

tdm_status tdm__levels_exchange_entries(tdm_hosts_comm *c) {
    const tdm_levels *l = c->levels;
    const size_t bytes = sizeof(*c->entry);
    TDM_TRY(call_inside(c, &(tdm_comm_call){.kind = TDM_COMM_ALL_GATHER,
                                            .rank = -1,
                                            .in = bytes_at(&c->entry[c->comm.rank], bytes),
                                            .out = bytes_at(&c->entry[l->first[l->host]], bytes * (size_t)l->locals)}));
    if (l->local == 0) TDM_TRY(exchange_between(c));
    return broadcast_inside(c, bytes_at(c->entry, bytes * (size_t)c->comm.world), 0);
}

/* ---- all_reduce ---- */

bool tdm__levels_can_reduce(const tdm_hosts_comm *c, const tdm_reduction *how) {
    return c->levels != NULL && how->root < 0;
}

/* Every rank of a host has its lane's segment; then all have all. */
static tdm_status share_segments(tdm_hosts_comm *c, tdm_span whole) {
    const tdm_levels *l = c->levels;
    const size_t part = whole.count / (size_t)l->lanes;
    tdm_span segment = {whole.data, part, whole.dtype};
    if (l->lanes == l->locals) {
        segment.data = tdm__bytes_at(whole.data, (size_t)l->local * tdm__span_bytes(segment));
        return call_inside(c, &(tdm_comm_call){.kind = TDM_COMM_ALL_GATHER, .rank = -1, .in = segment, .out = whole});
    }
    for (int lane = 0; lane < l->lanes; lane++) {
        TDM_TRY(broadcast_inside(c, segment, lane));
        segment.data = tdm__bytes_at(segment.data, tdm__span_bytes(segment));
    }
    return TDM_OK;
}

/* Where this host's values come: in the place of the result if there is one of its type, else in a room of their own. */
static tdm_status find_room(tdm_hosts_comm *c, tdm_span *values) {
    const tdm_levels *l = c->levels;
    const tdm_dtype dtype = tdm__partial_dtype(values->dtype);
    if (l->column != NULL) l->column->sums = NULL;
    if (!l->blocks.keeps_values && dtype == values->dtype) return TDM_OK;
    values->dtype = dtype;
    values->data = NULL;
    if (l->column == NULL) return TDM_OK;
    TDM_TRY(tdm__hosts_scratch(c, (size_t)l->blocks.blocks * tdm__span_bytes(*values)));
    values->data = l->column->sums = c->scratch;
    return TDM_OK;
}

/* `whole` divides among the lanes. */
static tdm_status reduce_through_levels(tdm_hosts_comm *c, tdm_span whole, const tdm_reduction *how) {
    const tdm_levels *l = c->levels;
    const size_t part = whole.count / (size_t)l->lanes;
    const tdm_reduce_op op = how->op == TDM_REDUCE_AVG ? TDM_REDUCE_SUM : how->op; /* divided once, at the end */
    const tdm_span own = {tdm__bytes_at(whole.data, (size_t)l->local * part * tdm_dtype_bytes(whole.dtype)), part,
                          whole.dtype};
    tdm_span values = own;
    TDM_TRY(find_room(c, &values));
    tdm_lanes lanes = l->blocks;
    lanes.keeps_values = values.data != own.data;
    if (l->column == NULL) {
        TDM_TRY(reduce_inside(c, whole, values, &lanes, op));
        return share_segments(c, whole);
    }
    TDM_TRY(tdm__hosts_begin_reduction(column_in_call(c, -1), own, how));
    TDM_TRY(reduce_inside(c, whole, values, &lanes, op));
    TDM_TRY(tdm__hosts_reduce_data(column_in_call(c, -1), own, how));
    return share_segments(c, whole);
}

tdm_status tdm__levels_all_reduce(tdm_hosts_comm *c, tdm_span io, const tdm_reduction *how) {
    const size_t width = tdm_dtype_bytes(io.dtype), lanes = (size_t)c->levels->lanes;
    const size_t most = CHUNK_BYTES / width / lanes * lanes, even = io.count / lanes * lanes;
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

/* ---- broadcast ---- */

/* Through the root's column, or, if it is in none, through the first one of its host. */
tdm_status tdm__levels_broadcast(tdm_hosts_comm *c, tdm_span io, int root) {
    const tdm_levels *l = c->levels;
    int host = 0;
    while (root >= l->first[host + 1]) host++;
    const int local = root - l->first[host], lane = local < l->lanes ? local : 0;
    const bool is_done = host == l->host && lane != local;
    if (is_done) TDM_TRY(broadcast_inside(c, io, local));
    if (l->local == lane)
        TDM_TRY(tdm__hosts_broadcast_data(column_in_call(c, host), io.data, tdm__span_bytes(io), host));
    return is_done ? TDM_OK : broadcast_inside(c, io, lane);
}
