/* The collectives that only move data. See collective.c. */
#include <string.h>

#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/comm/group.h"

/* ---- broadcast ---- */

/* All ranks copy as much: each receiver reads, and the root writes the last n-th of each receiver's span, n being the
 * number of ranks. Where the root does not reach every receiver, they read it all. */
static tdm_status broadcast_in_place(tdm_group *group, tdm_span io, int root) {
    const size_t bytes = tdm__span_bytes(io), world = (size_t)group->comm.world;
    const size_t rest = tdm__group_reaches(group, 0, group->comm.world) ? bytes / world / TDM_LINE * TDM_LINE : 0;
    const size_t own = bytes - rest;
    TDM_TRY(tdm__group_touch(group));
    if (group->comm.rank != root) memcpy(io.data, tdm__group_peer_span(group, root), own);
    for (int r = 0; group->comm.rank == root && rest > 0 && r < group->comm.world; r++)
        if (r != root) memcpy(tdm__bytes_at(tdm__group_peer_span(group, r), own), tdm__bytes_at(io.data, own), rest);
    tdm__group_untouch(group);
    return tdm__group_round(group);
}

tdm_status tdm__group_broadcast(tdm_comm *comm, tdm_span io, int root) {
    tdm_group *group = (tdm_group *)comm;
    size_t bytes = tdm__span_bytes(io);
    bool is_root = group->comm.rank == root;
    TDM_TRY(tdm__group_meet(group, io, is_root ? io.data : NULL, bytes));
    if (bytes <= TDM_ENTRY_BYTES) {
        if (!is_root && bytes > 0) memcpy(io.data, tdm__group_entry(group, root)->data, bytes);
        return TDM_OK;
    }
    if (tdm__group_entry(group, root)->address.region != 0) return broadcast_in_place(group, io, root);
    TDM_TRY(tdm__group_open_staging(group));
    for (size_t done = 0; done < bytes;) {
        size_t n = bytes - done < TDM_STAGING_BYTES ? bytes - done : TDM_STAGING_BYTES;
        if (is_root) memcpy(tdm__group_own_staging(group), tdm__bytes_at(io.data, done), n);
        TDM_TRY(tdm__group_round(group));
        if (!is_root) memcpy(tdm__bytes_at(io.data, done), tdm__group_peer_staging(group, root), n);
        done += n;
    }
    return TDM_OK;
}

/* ---- gather and all_gather ---- */

static tdm_status gather_in_place(tdm_group *group, const tdm_pairs *what, bool gets) {
    TDM_TRY(tdm__group_touch(group));
    for (int r = 0; gets && r < group->comm.world; r++) {
        for (size_t i = 0; i < what->span_count; i++) {
            const size_t bytes = tdm__span_bytes(what->part[i]);
            if (bytes == 0) continue;
            unsigned char *to = tdm__bytes_at(what->whole[i].data, (size_t)r * bytes);
            const unsigned char *from = tdm__group_peer_span_at(group, r, i);
            if (to != from) memcpy(to, from, bytes);
        }
    }
    tdm__group_untouch(group);
    return tdm__group_round(group);
}

static tdm_status gather_staged(tdm_group *group, const tdm_pairs *what, bool gets) {
    const size_t most = TDM_STAGING_BYTES / tdm_dtype_bytes(what->dtype);
    const int world = group->comm.world;
    TDM_TRY(tdm__group_open_staging(group));
    for (size_t done = 0; done < what->count;) {
        const size_t n = what->count - done < most ? what->count - done : most;
        tdm__spans_read(what->part, done, n, tdm__group_own_staging(group));
        TDM_TRY(tdm__group_round(group));
        for (int r = 0; gets && r < world; r++)
            tdm__spans_write_part(what->whole, r, world, done, n, tdm__group_peer_staging(group, r));
        done += n;
    }
    return TDM_OK;
}

tdm_status tdm__group_gather(tdm_comm *comm, const tdm_pairs *what, int root) {
    tdm_group *group = (tdm_group *)comm;
    const bool gets = root < 0 || root == comm->rank, few = what->span_count <= TDM_IN_PLACE_SPANS;
    const bool small = what->count * tdm_dtype_bytes(what->dtype) <= TDM_ENTRY_BYTES;
    tdm_span named = what->part[0];
    if (small)
        tdm__spans_read(what->part, 0, what->count, tdm__group_next_entry(group)->data);
    else if (few)
        named = tdm__group_publish(group, what->part, what->span_count);
    TDM_TRY(tdm__group_meet(group, named, NULL, 0));
    for (int r = 0; small && gets && r < comm->world; r++)
        tdm__spans_write_part(what->whole, r, comm->world, 0, what->count, tdm__group_entry(group, r)->data);
    if (small) return TDM_OK;
    return few && tdm__group_reaches(group, 0, comm->world) ? gather_in_place(group, what, gets)
                                                            : gather_staged(group, what, gets);
}

/* ---- scatter and all_to_all ---- */

/* The ranks whose `in` is distributed: the root, or (root < 0) all. */
typedef struct senders {
    int first, count;
} senders;

/* A chunk is the same range of every part, one range after another. */
static tdm_status distribute_staged(tdm_group *group, const void *in, unsigned char *out, size_t bytes, senders from) {
    const size_t world = (size_t)group->comm.world, rank = (size_t)group->comm.rank;
    const size_t most = TDM_STAGING_BYTES / world / TDM_LINE * TDM_LINE;
    TDM_TRY(tdm__group_open_staging(group));
    for (size_t done = 0; done < bytes;) {
        const size_t n = bytes - done < most ? bytes - done : most;
        for (size_t r = 0; in != NULL && r < world; r++)
            memcpy(tdm__group_own_staging(group) + r * n, (const unsigned char *)in + r * bytes + done, n);
        TDM_TRY(tdm__group_round(group));
        for (int i = 0; i < from.count; i++)
            memcpy(out + (size_t)i * bytes + done, tdm__group_peer_staging(group, from.first + i) + rank * n, n);
        done += n;
    }
    return TDM_OK;
}

tdm_status tdm__group_distribute(tdm_comm *comm, tdm_span in, tdm_span out, size_t bytes, int root) {
    tdm_group *group = (tdm_group *)comm;
    const size_t world = (size_t)group->comm.world, own = (size_t)group->comm.rank * bytes;
    const senders from = root < 0 ? (senders){0, group->comm.world} : (senders){root, 1};
    const bool sends = root < 0 || root == group->comm.rank;
    TDM_TRY(tdm__group_meet(group, sends ? in : out, sends ? in.data : NULL, bytes * world));
    if (bytes * world <= TDM_ENTRY_BYTES) {
        for (int i = 0; bytes > 0 && i < from.count; i++)
            memcpy(tdm__bytes_at(out.data, (size_t)i * bytes), tdm__group_entry(group, from.first + i)->data + own,
                   bytes);
        return TDM_OK;
    }
    if (!tdm__group_reaches(group, from.first, from.count))
        return distribute_staged(group, sends ? in.data : NULL, out.data, bytes, from);
    TDM_TRY(tdm__group_touch(group));
    for (int i = 0; i < from.count; i++)
        memcpy(tdm__bytes_at(out.data, (size_t)i * bytes),
               tdm__bytes_at(tdm__group_peer_span(group, from.first + i), own), bytes);
    tdm__group_untouch(group);
    return tdm__group_round(group);
}

/* ---- all_to_all_v: the counts of all ranks go round first ---- */

/* A row of group->parts: the address of a rank's `in`, then its counts (call.h). */
enum { ROW_HEAD = 2 };

static size_t row_length(const tdm_group *group) {
    return ROW_HEAD + 2 * (size_t)group->comm.world;
}

static const uint64_t *row_of(const tdm_group *group, int r) {
    return group->parts + (size_t)(r + 1) * row_length(group);
}

/* After this all ranks have the rows of all, and know that they match. */
static tdm_status exchange_rows(tdm_group *group, const tdm_comm_call *call) {
    const size_t length = row_length(group), world = (size_t)group->comm.world;
    tdm_peer_address address = {.region = 1}; /* of nothing: it is never used */
    if (group->parts == NULL)
        TDM_TRY(tdm__new(group->comm.host, &group->parts, (world + 1) * length, sizeof(*group->parts),
                         "communicator's counts"));
    if (call->in.count > 0) address = tdm__group_address(group, call->in.data, tdm__span_bytes(call->in));
    group->parts[0] = address.region;
    group->parts[1] = address.offset;
    tdm__parts_write(group->parts + ROW_HEAD, call, group->comm.world);
    const tdm_span own = {group->parts, length, TDM_DTYPE_I64};
    const tdm_span all = {group->parts + length, world * length, TDM_DTYPE_I64};
    TDM_TRY(tdm__group_gather(&group->comm, &(tdm_pairs){&own, &all, 1, length, TDM_DTYPE_I64}, -1));
    return tdm__parts_compare(&group->call, row_of(group, 0) + ROW_HEAD, length, group->comm.world, group->job_rank);
}

static tdm_status exchange_in_place(tdm_group *group, tdm_span out) {
    const size_t width = tdm_dtype_bytes(out.dtype);
    size_t done = 0;
    TDM_TRY(tdm__group_touch(group));
    for (int r = 0; r < group->comm.world; r++) {
        const uint64_t *row = row_of(group, r), *counts = row + ROW_HEAD;
        const size_t bytes = counts[group->comm.rank] * width;
        size_t before = 0;
        if (bytes == 0) continue;
        for (int k = 0; k < group->comm.rank; k++) before += counts[k] * width;
        memcpy(tdm__bytes_at(out.data, done),
               tdm__bytes_at(tdm__group_reach(group, r, (tdm_peer_address){row[0], row[1]}), before), bytes);
        done += bytes;
    }
    tdm__group_untouch(group);
    return tdm__group_round(group);
}

/* What of a part of `bytes` is in the chunk that begins at `done`. */
static size_t in_chunk(size_t bytes, size_t done, size_t most) {
    return bytes <= done ? 0 : bytes - done < most ? bytes - done : most;
}

/* A chunk is the same range of every part; what a part does not have of it stays empty. */
static tdm_status exchange_staged(tdm_group *group, const tdm_comm_call *call) {
    const size_t width = tdm_dtype_bytes(call->in.dtype), world = (size_t)group->comm.world;
    const size_t most = TDM_STAGING_BYTES / world / TDM_LINE * TDM_LINE, own = (size_t)group->comm.rank * most;
    size_t largest = 0;
    for (size_t i = 0; i < world * world; i++) {
        const size_t bytes = row_of(group, (int)(i / world))[ROW_HEAD + i % world] * width;
        if (bytes > largest) largest = bytes;
    }
    TDM_TRY(tdm__group_open_staging(group));
    for (size_t done = 0; done < largest; done += most) {
        for (size_t r = 0, start = 0; r < world; start += call->in_counts[r++] * width) {
            const size_t n = in_chunk(call->in_counts[r] * width, done, most);
            if (n > 0) memcpy(tdm__group_own_staging(group) + r * most, tdm__bytes_at(call->in.data, start + done), n);
        }
        TDM_TRY(tdm__group_round(group));
        for (size_t r = 0, start = 0; r < world; start += call->out_counts[r++] * width) {
            const size_t n = in_chunk(call->out_counts[r] * width, done, most);
            if (n > 0)
                memcpy(tdm__bytes_at(call->out.data, start + done), tdm__group_peer_staging(group, (int)r) + own, n);
        }
    }
    return TDM_OK;
}

tdm_status tdm__group_all_to_all_v(tdm_comm *comm, const tdm_comm_call *call) {
    tdm_group *group = (tdm_group *)comm;
    bool reachable = true;
    TDM_TRY(exchange_rows(group, call));
    for (int r = 0; r < group->comm.world; r++) reachable = reachable && row_of(group, r)[0] != 0;
    return reachable ? exchange_in_place(group, call->out) : exchange_staged(group, call);
}
