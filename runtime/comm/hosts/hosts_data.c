/* The data of reductions and broadcasts, straight from memory to memory.
 *
 * all_reduce and reduce cut the data into chunks, and a chunk into a segment for each rank. Rank r gets segment r of
 * all ranks, adds in the order of every backend (reduce.h), and sends the sum to the ranks that get the result. While a
 * chunk's sums are made and travel, so does the data of the next two chunks: the network is never idle. Each rank sends
 * 2 (n - 1) / n of the data, the least possible. */
#include <string.h>

#include "runtime/base/status.h"
#include "runtime/comm/hosts/hosts.h"
#include "runtime/comm/reduce.h"

/* ---- all_reduce and reduce ---- */

/* A range of elements that is reduced at a time. */
typedef struct chunk {
    unsigned char *data;
    size_t count;
} chunk;

static size_t segment_start(size_t count, int member, int world) {
    return count / (size_t)world * (size_t)member + count % (size_t)world * (size_t)member / (size_t)world;
}

/* A member's segment of a chunk. */
static chunk segment(const tdm_hosts_comm *c, const chunk *whole, int member, size_t width) {
    const size_t start = segment_start(whole->count, member, c->comm.world);
    const size_t end = segment_start(whole->count, member + 1, c->comm.world);
    return (chunk){tdm__bytes_at(whole->data, start * width), end - start};
}

/* A reduction under way. */
typedef struct reduction {
    tdm_hosts_comm *c;
    const tdm_reduction *how;
    tdm_span io;
    size_t width, wide, most,
        part; /* bytes of an element, and in a copy; elements of a chunk; bytes of a segment at most */
} reduction;

static chunk chunk_of(const reduction *r, size_t n) {
    const size_t chunks = (r->io.count + r->most - 1) / r->most, done = n * r->most;
    if (n >= chunks) return (chunk){NULL, 0};
    return (chunk){tdm__bytes_at(r->io.data, done * r->width),
                   r->io.count - done < r->most ? r->io.count - done : r->most};
}

/* A member has one copy of the data, or one for each of its blocks. The number of its first copy; of all: of `world`. */
static int first_copy(const tdm_hosts_comm *c, int member) {
    return c->blocks != NULL ? c->blocks->of_member[member] : member;
}

/* Copy k of this member's own, of chunk n. */
static chunk own_copy(const reduction *r, size_t n, int k) {
    chunk whole = chunk_of(r, n);
    const size_t before = (size_t)k * r->io.count + n * r->most;
    if (whole.count > 0 && r->c->sums != NULL) whole.data = r->c->sums + before * r->wide;
    return whole;
}

/* Every copy of this rank's segment comes into one of two rooms, in turn, one behind the other. */
static unsigned char *contribution(const reduction *r, size_t n, int copy, size_t own) {
    const size_t copies = (size_t)first_copy(r->c, r->c->comm.world);
    return r->c->scratch + (n % 2) * copies * r->part + (size_t)copy * own;
}

/* Adds the messages with which the members' copies of chunk n get to whoever sums them. */
static int add_contributions(const reduction *r, int count, size_t n) {
    tdm_hosts_comm *c = r->c;
    const chunk whole = chunk_of(r, n);
    const size_t own = segment(c, &whole, c->comm.rank, r->width).count * r->wide;
    const int copies = first_copy(c, c->comm.rank + 1) - first_copy(c, c->comm.rank);
    for (int i = 0; i < c->comm.world; i++) {
        if (i == c->comm.rank) continue;
        for (int k = 0; k < copies; k++) {
            const chunk copy = own_copy(r, n, k), theirs = segment(c, &copy, i, r->wide);
            if (theirs.count > 0)
                c->message[count++] = tdm__hosts_send(c, i, TDM_USE_DATA, theirs.data, theirs.count * r->wide);
        }
        for (int k = first_copy(c, i); k < first_copy(c, i + 1) && own > 0; k++)
            c->message[count++] = tdm__hosts_receive(c, i, TDM_USE_DATA, contribution(r, n, k, own), own);
    }
    return count;
}

/* And those with which the sums of chunk n get to whoever gets the result; `own_sum` NULL: only the receives. A sum
 * comes only after its sender has this rank's copy, so it may be waited for as soon as that is on its way. */
static int add_results(const reduction *r, int count, size_t n, const void *own_sum) {
    tdm_hosts_comm *c = r->c;
    const chunk whole = chunk_of(r, n);
    const size_t own = segment(c, &whole, c->comm.rank, r->width).count * r->width;
    for (int i = 0; i < c->comm.world; i++) {
        const chunk theirs = segment(c, &whole, i, r->width);
        if (i == c->comm.rank) continue;
        if (own_sum != NULL && tdm__gets_result(r->how, i) && own > 0)
            c->message[count++] = tdm__hosts_send(c, i, TDM_USE_RESULT, own_sum, own);
        if (tdm__gets_result(r->how, c->comm.rank) && theirs.count > 0)
            c->message[count++] = tdm__hosts_receive(c, i, TDM_USE_RESULT, theirs.data, theirs.count * r->width);
    }
    return count;
}

/* Sums this rank's segment of chunk n. Returns where the sum is: in its place if this rank gets the result, else in a
 * room behind the contributions. */
static const void *reduce_own(const reduction *r, size_t n) {
    const void *source[TDM_COMM_WORLD_MAX];
    const tdm_hosts_comm *c = r->c;
    const tdm_dtype dtype = r->how->dtype;
    const int copies = first_copy(c, c->comm.world), mine = first_copy(c, c->comm.rank);
    const chunk whole = chunk_of(r, n), own = segment(c, &whole, c->comm.rank, r->width);
    for (int i = 0; i < copies; i++) source[i] = contribution(r, n, i, own.count * r->wide);
    for (int i = mine; i < first_copy(c, c->comm.rank + 1); i++) {
        const chunk copy = own_copy(r, n, i - mine);
        source[i] = segment(c, &copy, c->comm.rank, r->wide).data;
    }
    void *sum = tdm__gets_result(r->how, c->comm.rank) ? own.data : c->scratch + (2 * (size_t)copies + n % 2) * r->part;
    if (c->blocks != NULL && (c->sums != NULL || !c->blocks->is_even || r->how->op == TDM_REDUCE_AVG))
        tdm__reduce_subtrees(sum, source, c->blocks->first, copies, c->blocks->ranks, own.count, dtype, r->how->op);
    else
        tdm__reduce_sources(sum, source, copies, own.count, dtype, r->how->op);
    return sum;
}

/* Contributions of two chunks, and the sums of two: one travels while the next is made. */
static size_t rooms(int copies, size_t part) {
    return (2 * (size_t)copies + 2) * part;
}

size_t tdm__hosts_reduction_bytes(int world, size_t count, size_t width) {
    const size_t most = TDM_HOSTS_CHUNK_BYTES / width;
    return rooms(world, ((count < most ? count : most) / (size_t)world + 1) * width);
}

static tdm_status prepare(reduction *r, tdm_hosts_comm *c, tdm_span io, const tdm_reduction *how) {
    const size_t world = (size_t)c->comm.world, width = tdm_dtype_bytes(io.dtype), most = TDM_HOSTS_CHUNK_BYTES / width;
    const size_t wide = c->sums != NULL ? tdm_dtype_bytes(tdm__partial_dtype(io.dtype)) : width;
    *r = (reduction){.c = c, .how = how, .io = io, .width = width, .wide = wide, .most = most};
    r->part = ((io.count < most ? io.count : most) / world + 1) * wide;
    return tdm__hosts_scratch(c, rooms(first_copy(c, c->comm.world), r->part));
}

/* Values of some members, to which those of others are added. Of 16 bits they would be rounded, and those of an average
 * divided, before they are whole. Members that bring blocks have no tree of their own. */
static bool goes_through_tree(const tdm_hosts_comm *c, tdm_span io, const tdm_reduction *how) {
    const bool is_narrow = how->dtype == TDM_DTYPE_BF16 || how->dtype == TDM_DTYPE_F16;
    return !is_narrow && how->op != TDM_REDUCE_AVG && c->sums == NULL && (c->blocks == NULL || c->blocks->is_even) &&
           tdm__hosts_prefers_tree(c, tdm__span_bytes(io));
}

tdm_status tdm__hosts_begin_reduction(tdm_hosts_comm *c, tdm_span io, const tdm_reduction *how) {
    reduction r;
    if (goes_through_tree(c, io, how)) return TDM_OK;
    TDM_TRY(prepare(&r, c, io, how));
    tdm__hosts_begin(c, add_contributions(&r, 0, 0), TDM_RECEIVES);
    return TDM_OK;
}

/* The contributions of chunk n, of which the first one's receives have begun before; and the waits for its sums. */
static void begin_chunk(const reduction *r, size_t n) {
    tdm__hosts_begin(r->c, add_contributions(r, 0, n), n == 0 ? TDM_SENDS : TDM_SENDS | TDM_RECEIVES);
    tdm__hosts_begin(r->c, add_results(r, 0, n, NULL), TDM_RECEIVES);
}

tdm_status tdm__hosts_reduce_data(tdm_hosts_comm *c, tdm_span io, const tdm_reduction *how) {
    reduction r;
    const void *sum = NULL; /* of this rank's segment of the chunk before */
    if (goes_through_tree(c, io, how)) return tdm__hosts_reduce_in_tree(c, io, how);
    TDM_TRY(prepare(&r, c, io, how));
    begin_chunk(&r, 0);
    begin_chunk(&r, 1);
    for (size_t n = 0;; n++) {
        const int contributions = add_contributions(&r, 0, n);
        TDM_TRY(tdm__hosts_exchange(c, n > 0 ? add_results(&r, contributions, n - 1, sum) : contributions));
        if (chunk_of(&r, n).count == 0) return TDM_OK;
        sum = reduce_own(&r, n);
        tdm__hosts_begin(c, add_results(&r, 0, n, sum), TDM_SENDS);
        begin_chunk(&r, n + 2);
    }
}

/* ---- broadcast ---- */

/* Of two members the root sends everything. Of more, two steps, so that none sends more than twice the data: member r
 * gets part r from the root, then all give their parts to all. */
static int add_from_root(tdm_hosts_comm *c, const chunk *whole, int root) {
    int count = 0;
    for (int r = 0; r < c->comm.world; r++) {
        const chunk part = c->comm.world == 2 ? *whole : segment(c, whole, r, 1);
        if (r == root || part.count == 0) continue;
        if (c->comm.rank == root)
            c->message[count++] = tdm__hosts_send(c, r, TDM_USE_DATA, part.data, part.count);
        else if (r == c->comm.rank)
            c->message[count++] = tdm__hosts_receive(c, root, TDM_USE_DATA, part.data, part.count);
    }
    return count;
}

static int add_from_all(tdm_hosts_comm *c, const chunk *whole, int root) {
    const chunk own = segment(c, whole, c->comm.rank, 1);
    int count = 0;
    for (int r = 0; c->comm.world > 2 && r < c->comm.world; r++) {
        const chunk part = segment(c, whole, r, 1);
        if (r == c->comm.rank) continue;
        if (r != root && own.count > 0)
            c->message[count++] = tdm__hosts_send(c, r, TDM_USE_RESULT, own.data, own.count);
        if (c->comm.rank != root && part.count > 0)
            c->message[count++] = tdm__hosts_receive(c, r, TDM_USE_RESULT, part.data, part.count);
    }
    return count;
}

void tdm__hosts_begin_broadcast(tdm_hosts_comm *c, void *data, size_t bytes, int root) {
    const chunk whole = {data, bytes};
    if (tdm__hosts_prefers_tree(c, bytes)) return;
    tdm__hosts_begin(c, add_from_root(c, &whole, root), TDM_RECEIVES);
    tdm__hosts_begin(c, add_from_all(c, &whole, root), TDM_RECEIVES);
}

tdm_status tdm__hosts_broadcast_data(tdm_hosts_comm *c, void *data, size_t bytes, int root) {
    const chunk whole = {data, bytes};
    if (tdm__hosts_prefers_tree(c, bytes)) return tdm__hosts_broadcast_in_tree(c, data, bytes, root);
    TDM_TRY(tdm__hosts_exchange(c, add_from_root(c, &whole, root)));
    return tdm__hosts_exchange(c, add_from_all(c, &whole, root));
}
