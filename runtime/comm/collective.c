/* The collectives. Each has three paths:
 *
 *   entries    data of at most TDM_ENTRY_BYTES travels in the entries of one round;
 *   in place   if all ranks can reach the spans they need, they read and write one another's spans directly;
 *   staged     otherwise the data goes through staging memory, one chunk at a time.
 *
 * All ranks see the same entries, so all choose the same path. The bits of the result do not depend on the path.
 *
 * Two units divide the data:
 *
 *   chunk      the staging memory of a rank has two halves of TDM_STAGING_BYTES each, and a span may be longer than
 *              one. A staged collective cuts the span into chunks that fit in a half and handles one chunk after
 *              another. While some ranks still read chunk n from one half, others may already write chunk n + 1 to the
 *              other.
 *   segment    all_reduce and reduce divide the additions among the ranks. The data (in place: the whole span; staged:
 *              one chunk) is cut into `world` segments of about equal size. Rank r reduces segment r: it reads that
 *              segment from every rank, adds in rank order, and hands the result to the ranks that get it. So every
 *              element is reduced exactly once, by one rank, and all ranks work at the same time.
 */
#include <string.h>

#include "runtime/base/status.h"
#include "runtime/comm/group.h"
#include "runtime/comm/reduce.h"

/* The first element of segment r. Segments are about equal and begin on cache lines, so two ranks never write the same
 * line. */
static size_t segment_start(size_t count, size_t width, int r, int world) {
    size_t line = TDM_LINE / width, lines = (count + line - 1) / line, start;
    start = (lines / (size_t)world * (size_t)r + lines % (size_t)world * (size_t)r / (size_t)world) * line;
    return start < count ? start : count;
}

/* ---- all_reduce and reduce ---- */

_Static_assert(TDM_IN_PLACE_SPANS * sizeof(tdm_peer_address) <= TDM_ENTRY_BYTES, "addresses are an entry's data");

static void reduce_entries(const tdm_group *group, const tdm_reduction *how) {
    const void *source[TDM_COMM_WORLD_MAX];
    const size_t width = tdm_dtype_bytes(how->dtype);
    for (size_t i = 0, first = 0; i < how->span_count; first += how->spans[i++].count) {
        for (int r = 0; r < group->comm.world; r++) source[r] = tdm__group_entry(group, r)->data + first * width;
        tdm__reduce_sources(how->spans[i].data, source, group->comm.world, how->spans[i].count, how->dtype, how->op);
    }
}

/* Reduces `count` elements of every rank's span and copies the result to `tos` targets, block by block. A block fits in
 * the cache. So a target may be one of the spans. */
static void reduce_blocks(const void *const *span, int world, size_t count, unsigned char *const *to, int tos,
                          const tdm_reduction *how) {
    _Alignas(TDM_LINE) unsigned char block[TDM_REDUCE_BLOCK];
    const void *source[TDM_COMM_WORLD_MAX];
    size_t width = tdm_dtype_bytes(how->dtype);
    for (size_t i = 0; i < count;) {
        size_t n = count - i < TDM_REDUCE_BLOCK / width ? count - i : TDM_REDUCE_BLOCK / width;
        for (int r = 0; r < world; r++) source[r] = (const unsigned char *)span[r] + i * width;
        tdm__reduce_sources(block, source, world, n, how->dtype, how->op);
        for (int t = 0; t < tos; t++) memcpy(to[t] + i * width, block, n * width);
        i += n;
    }
}

/* Reduces `count` elements of span number i of all ranks, into those of the ranks that get the result. */
static void reduce_piece(const tdm_group *group, size_t i, size_t first, size_t count, const tdm_reduction *how) {
    const void *piece[TDM_COMM_WORLD_MAX];
    unsigned char *to[TDM_COMM_WORLD_MAX];
    const int world = group->comm.world;
    for (int r = 0; r < world; r++)
        piece[r] = to[r] = tdm__bytes_at(tdm__group_peer_span_at(group, r, i), first * tdm_dtype_bytes(how->dtype));
    reduce_blocks(piece, world, count, how->root < 0 ? to : &to[how->root], how->root < 0 ? world : 1, how);
}

/* Reduces this rank's segment of the whole. */
static tdm_status reduce_in_place(tdm_group *group, const tdm_reduction *how) {
    const size_t width = tdm_dtype_bytes(how->dtype);
    const int world = group->comm.world, rank = group->comm.rank;
    const size_t start = segment_start(how->count, width, rank, world);
    const size_t end = segment_start(how->count, width, rank + 1, world);
    TDM_TRY(tdm__group_touch(group));
    for (size_t i = 0, first = 0; i < how->span_count; first += how->spans[i++].count) {
        const size_t behind = first + how->spans[i].count;
        const size_t from = start > first ? start : first, to = end < behind ? end : behind;
        if (from < to) reduce_piece(group, i, from - first, to - from, how);
    }
    tdm__group_untouch(group);
    return tdm__group_round(group);
}

/* One chunk, in two rounds. Every rank copies its chunk into its staging half. After the first round it reduces its
 * segment over all ranks' halves and writes the result into its other half. After the second round the ranks that get
 * the result collect segment r from rank r. */
static tdm_status reduce_chunk(tdm_group *group, size_t first, size_t count, const tdm_reduction *how) {
    const void *source[TDM_COMM_WORLD_MAX];
    int world = group->comm.world, rank = group->comm.rank;
    size_t width = tdm_dtype_bytes(how->dtype);
    tdm__spans_read(how->spans, first, count, tdm__group_own_staging(group));
    TDM_TRY(tdm__group_round(group));
    size_t start = segment_start(count, width, rank, world), end = segment_start(count, width, rank + 1, world);
    for (int r = 0; r < world; r++) source[r] = tdm__group_peer_staging(group, r) + start * width;
    tdm__reduce_sources(tdm__group_own_staging(group) + start * width, source, world, end - start, how->dtype, how->op);
    TDM_TRY(tdm__group_round(group));
    if (!tdm__gets_result(how, rank)) return TDM_OK;
    for (int r = 0; r < world; r++) {
        start = segment_start(count, width, r, world), end = segment_start(count, width, r + 1, world);
        tdm__spans_write(how->spans, first + start, end - start, tdm__group_peer_staging(group, r) + start * width);
    }
    return TDM_OK;
}

static tdm_status reduce_staged(tdm_group *group, const tdm_reduction *how) {
    const size_t most = TDM_STAGING_BYTES / tdm_dtype_bytes(how->dtype);
    TDM_TRY(tdm__group_open_staging(group));
    for (size_t done = 0; done < how->count;) {
        size_t n = how->count - done < most ? how->count - done : most;
        TDM_TRY(reduce_chunk(group, done, n, how));
        done += n;
    }
    return TDM_OK;
}

static tdm_status reduce(tdm_comm *comm, const tdm_reduction *how) {
    tdm_group *group = (tdm_group *)comm;
    const size_t bytes = how->count * tdm_dtype_bytes(how->dtype);
    const bool small = bytes <= TDM_ENTRY_BYTES, few = how->span_count <= TDM_IN_PLACE_SPANS;
    tdm_span named = how->spans[0]; /* peers reach all spans if they reach this one */
    if (small)
        tdm__spans_read(how->spans, 0, how->count, tdm__group_next_entry(group)->data);
    else if (few)
        named = tdm__group_publish(group, how->spans, how->span_count);
    TDM_TRY(tdm__group_meet(group, named, NULL, 0));
    if (small && tdm__gets_result(how, group->comm.rank)) reduce_entries(group, how);
    if (small) return TDM_OK;
    return few && tdm__group_reaches(group, 0, group->comm.world) ? reduce_in_place(group, how)
                                                                  : reduce_staged(group, how);
}

/* ---- reduce_scatter ---- */

typedef struct scattering {
    const tdm_pairs *what;
    const tdm_lanes *lanes;
    tdm_reduction how; /* of elements */
} scattering;

static bool gets_part(const scattering *s, const tdm_group *group) {
    return group->comm.rank < s->lanes->parts;
}

/* Reduces what `ranks` ranks have at `source`, into spans from element `first` on. */
static void reduce_to_spans(const void *const *source, int ranks, const tdm_span *to, size_t first, size_t count,
                            const tdm_reduction *how) {
    const void *from[TDM_COMM_WORLD_MAX];
    for (size_t done = 0; done < count;) {
        const tdm_span piece = tdm__spans_next(&to, &first, count - done);
        unsigned char *data = piece.data;
        for (int r = 0; r < ranks; r++)
            from[r] = (const unsigned char *)source[r] + done * tdm_dtype_bytes(piece.dtype);
        reduce_blocks(from, ranks, piece.count, &data, 1, how);
        done += piece.count;
    }
}

/* The value of each block of ranks. The span has room for all. */
static void reduce_lane_to_values(const scattering *s, const void *const *source, tdm_span to, size_t first,
                                  size_t count) {
    const size_t width = tdm_dtype_bytes(to.dtype);
    for (int i = 0; i < s->lanes->blocks && count > 0; i++) {
        const int begin = s->lanes->first[i], end = s->lanes->first[i + 1];
        tdm__reduce_partials(tdm__bytes_at(to.data, ((size_t)i * to.count + first) * width), source + begin,
                             end - begin, count, s->how.dtype, s->how.op);
    }
}

static void reduce_lane(const scattering *s, const void *const *source, const tdm_span *to, size_t first,
                        size_t count) {
    if (s->lanes->keeps_values)
        reduce_lane_to_values(s, source, *to, first, count);
    else
        reduce_to_spans(source, s->lanes->first[1], to, first, count, &s->how);
}

/* The same range of every part, one behind another. */
static void read_parts(const scattering *s, size_t first, size_t count, unsigned char *to) {
    const int parts = s->lanes->parts;
    for (int r = 0; r < parts; r++)
        tdm__spans_read_part(s->what->whole, r, parts, first, count,
                             to + (size_t)r * count * tdm_dtype_bytes(s->what->dtype));
}

/* A chunk is the same range of every part. */
static tdm_status reduce_scatter_staged(tdm_group *group, const scattering *s) {
    const void *source[TDM_COMM_WORLD_MAX];
    const size_t width = tdm_dtype_bytes(s->what->dtype), rank = (size_t)group->comm.rank, all = s->what->count;
    const size_t most = TDM_STAGING_BYTES / (size_t)s->lanes->parts / TDM_LINE * TDM_LINE / width;
    TDM_TRY(tdm__group_open_staging(group));
    for (size_t done = 0; done < all;) {
        const size_t n = all - done < most ? all - done : most;
        read_parts(s, done, n, tdm__group_own_staging(group));
        TDM_TRY(tdm__group_round(group));
        for (int r = 0; r < group->comm.world && gets_part(s, group); r++)
            source[r] = tdm__group_peer_staging(group, r) + rank * n * width;
        if (gets_part(s, group)) reduce_lane(s, source, s->what->part, done, n);
        done += n;
    }
    return TDM_OK;
}

static tdm_status reduce_scatter_in_place(tdm_group *group, const scattering *s) {
    const void *source[TDM_COMM_WORLD_MAX];
    TDM_TRY(tdm__group_touch(group));
    for (size_t i = 0; i < s->what->span_count && gets_part(s, group); i++) {
        const tdm_span part = s->what->part[i];
        for (int r = 0; r < group->comm.world && part.count > 0; r++)
            source[r] = tdm__bytes_at(tdm__group_peer_span_at(group, r, i),
                                      (size_t)group->comm.rank * part.count * tdm_dtype_bytes(s->what->dtype));
        reduce_lane(s, source, &part, 0, part.count);
    }
    tdm__group_untouch(group);
    return tdm__group_round(group);
}

static tdm_status scatter(tdm_group *group, const scattering *s) {
    const void *source[TDM_COMM_WORLD_MAX];
    const tdm_pairs *what = s->what;
    const size_t bytes = what->count * tdm_dtype_bytes(what->dtype), own = (size_t)group->comm.rank * bytes;
    const int world = group->comm.world;
    const bool small = bytes * (size_t)s->lanes->parts <= TDM_ENTRY_BYTES, few = what->span_count <= TDM_IN_PLACE_SPANS;
    tdm_span named = what->whole[0];
    if (small)
        read_parts(s, 0, what->count, tdm__group_next_entry(group)->data);
    else if (few)
        named = tdm__group_publish(group, what->whole, what->span_count);
    TDM_TRY(tdm__group_meet(group, named, NULL, 0));
    for (int r = 0; r < world && small && gets_part(s, group); r++) source[r] = tdm__group_entry(group, r)->data + own;
    if (small && gets_part(s, group)) reduce_lane(s, source, what->part, 0, what->count);
    if (small) return TDM_OK;
    return few && tdm__group_reaches(group, 0, world) ? reduce_scatter_in_place(group, s)
                                                      : reduce_scatter_staged(group, s);
}

static tdm_status reduce_scatter(tdm_comm *comm, const tdm_pairs *what, tdm_reduce_op op) {
    const int all[] = {0, comm->world};
    const tdm_lanes lanes = {.parts = comm->world, .blocks = 1, .first = all};
    return scatter((tdm_group *)comm, &(scattering){what, &lanes, {.dtype = what->dtype, .op = op, .root = -1}});
}

tdm_status tdm__group_reduce_lanes(tdm_comm *comm, tdm_span in, tdm_span out, const tdm_lanes *lanes,
                                   tdm_reduce_op op) {
    tdm_group *group = (tdm_group *)comm;
    const tdm_pairs what = {&out, &in, 1, out.count, in.dtype};
    const scattering s = {&what, lanes, {.dtype = in.dtype, .op = op, .root = -1}};
    const tdm_call noted =
        tdm__call_of(&(tdm_comm_call){.kind = TDM_COMM_REDUCE_SCATTER, .rank = -1, .in = in, .out = out, .op = op});
    comm->sequence++;
    tdm_status status = tdm__group_enter(group, &noted);
    if (status == TDM_OK) status = scatter(group, &s);
    return tdm__group_leave(group, status);
}

/* ---- the call ---- */

static const tdm_call_table table = {reduce,
                                     reduce_scatter,
                                     tdm__group_broadcast,
                                     tdm__group_gather,
                                     tdm__group_distribute,
                                     tdm__group_all_to_all_v,
                                     tdm__group_receive_any,
                                     tdm__group_batch};

tdm_status tdm__group_run(tdm_comm *comm, const tdm_comm_call *call) {
    tdm_group *group = (tdm_group *)comm;
    const tdm_call noted = tdm__call_of(call);
    tdm_status status = tdm__group_enter(group, &noted);
    if (status == TDM_OK) status = tdm__call_make(&table, comm, call);
    return tdm__group_leave(group, status);
}
