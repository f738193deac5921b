/* The data of reductions and broadcasts, straight from memory to memory.
 *
 * all_reduce and reduce cut the data into chunks, and a chunk into a segment for each rank. Rank r gets segment r of all
 * ranks, adds in the order of every backend (reduce.h), and sends the sum to the ranks that get the result. While a chunk's
 * sums travel, so does the next chunk's data: the network is never idle. Each rank sends 2 (n - 1) / n of the data, the
 * least possible. */
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

/* Every member's copy of this rank's segment comes into the scratch memory, one behind the other. */
static int add_contributions(tdm_hosts_comm *c, int count, const chunk *whole, size_t width) {
    const size_t own = segment(c, whole, c->comm.rank, width).count * width;
    for (int r = 0; r < c->comm.world; r++) {
        const chunk theirs = segment(c, whole, r, width);
        if (r == c->comm.rank) continue;
        if (theirs.count > 0)
            c->message[count++] = tdm__hosts_send(c, r, TDM_USE_DATA, theirs.data, theirs.count * width);
        if (own > 0) c->message[count++] = tdm__hosts_receive(c, r, TDM_USE_DATA, c->scratch + (size_t)r * own, own);
    }
    return count;
}

static int add_results(tdm_hosts_comm *c, int count, const chunk *whole, const tdm_reduction *how, size_t width,
                       const void *own_sum) {
    const size_t own = segment(c, whole, c->comm.rank, width).count * width;
    for (int r = 0; r < c->comm.world; r++) {
        const chunk theirs = segment(c, whole, r, width);
        if (r == c->comm.rank) continue;
        if (tdm__gets_result(how, r) && own > 0)
            c->message[count++] = tdm__hosts_send(c, r, TDM_USE_DATA, own_sum, own);
        if (tdm__gets_result(how, c->comm.rank) && theirs.count > 0)
            c->message[count++] = tdm__hosts_receive(c, r, TDM_USE_DATA, theirs.data, theirs.count * width);
    }
    return count;
}

/* Sums this rank's segment. Returns where the sum is: in its place if this rank gets the result, else in `room`. */
static const void *reduce_own(const tdm_hosts_comm *c, const chunk *whole, const tdm_reduction *how, size_t width,
                              void *room) {
    const void *source[TDM_COMM_WORLD_MAX];
    const chunk own = segment(c, whole, c->comm.rank, width);
    for (int r = 0; r < c->comm.world; r++)
        source[r] = r == c->comm.rank ? own.data : c->scratch + (size_t)r * own.count * width;
    void *sum = tdm__gets_result(how, c->comm.rank) ? own.data : room;
    tdm__reduce_sources(sum, source, c->comm.world, own.count, how->dtype, how->op);
    return sum;
}

tdm_status tdm__hosts_reduce_data(tdm_hosts_comm *c, tdm_span io, const tdm_reduction *how) {
    const size_t width = tdm_dtype_bytes(io.dtype), most = TDM_HOSTS_CHUNK_BYTES / width;
    const size_t world = (size_t)c->comm.world, part = ((io.count < most ? io.count : most) / world + 1) * width;
    /* Contributions, then the sums of two chunks: one travels while the next is made. */
    TDM_TRY(tdm__hosts_scratch(c, (world + 2) * part));
    chunk before = {NULL, 0};
    const void *sum = NULL; /* of this rank's segment of `before` */
    for (size_t done = 0, n = 0;; n++) {
        const size_t left = io.count - done;
        const chunk now = {tdm__bytes_at(io.data, done * width), left < most ? left : most};
        int count = now.count > 0 ? add_contributions(c, 0, &now, width) : 0;
        if (before.count > 0) count = add_results(c, count, &before, how, width, sum);
        TDM_TRY(tdm__hosts_exchange(c, count));
        if (now.count == 0) return TDM_OK;
        sum = reduce_own(c, &now, how, width, c->scratch + (world + n % 2) * part);
        before = now;
        done += now.count;
    }
}

/* ---- broadcast ---- */

/* Of two members the root sends everything. Of more, two steps, so that none sends more than twice the data: member r gets
 * part r from the root, then all give their parts to all. */
tdm_status tdm__hosts_broadcast_data(tdm_hosts_comm *c, void *data, size_t bytes, int root) {
    const chunk whole = {data, bytes};
    int count = 0;
    if (c->comm.world == 2) {
        c->message[0] = c->comm.rank == root ? tdm__hosts_send(c, 1 - root, TDM_USE_DATA, data, bytes)
                                             : tdm__hosts_receive(c, root, TDM_USE_DATA, data, bytes);
        return tdm__hosts_exchange(c, 1);
    }
    for (int r = 0; r < c->comm.world; r++) {
        const chunk part = segment(c, &whole, r, 1);
        if (r == root || part.count == 0) continue;
        if (c->comm.rank == root)
            c->message[count++] = tdm__hosts_send(c, r, TDM_USE_DATA, part.data, part.count);
        else if (r == c->comm.rank)
            c->message[count++] = tdm__hosts_receive(c, root, TDM_USE_DATA, part.data, part.count);
    }
    TDM_TRY(tdm__hosts_exchange(c, count));
    const chunk own = segment(c, &whole, c->comm.rank, 1);
    count = 0;
    for (int r = 0; r < c->comm.world; r++) {
        const chunk part = segment(c, &whole, r, 1);
        if (r == c->comm.rank) continue;
        if (r != root && own.count > 0) c->message[count++] = tdm__hosts_send(c, r, TDM_USE_DATA, own.data, own.count);
        if (c->comm.rank != root && part.count > 0)
            c->message[count++] = tdm__hosts_receive(c, r, TDM_USE_DATA, part.data, part.count);
    }
    return tdm__hosts_exchange(c, count);
}
