/* Small data among many members: each sends and receives about log2(world) messages, where hosts_data.c has two for
 * each member. The tree is that of the sums (reduce.h): member r is the root of the members from r on, as many as the
 * largest power of two that divides r (member 0: all), and its branches are r + 1, r + 2, r + 4, ... */
#include <string.h>

#include "runtime/base/status.h"
#include "runtime/comm/hosts/hosts.h"
#include "runtime/comm/reduce.h"

bool tdm__hosts_prefers_tree(const tdm_hosts_comm *c, size_t bytes) {
    return c->comm.world > TDM_HOSTS_FEW && bytes <= TDM_HOSTS_TREE_BYTES;
}

/* Brings the sum of all to member 0. `sum` is this member's data, `room` is for another one's. */
static tdm_status reduce_to_first(tdm_hosts_comm *c, tdm_span sum, void *room, const tdm_reduction *how) {
    const int rank = c->comm.rank;
    const size_t bytes = tdm__span_bytes(sum);
    for (int step = 1; step < c->comm.world; step *= 2) {
        if ((rank & step) != 0) {
            c->message[0] = tdm__hosts_send(c, rank - step, TDM_USE_DATA, sum.data, bytes);
            return tdm__hosts_exchange(c, 1);
        }
        if (rank + step >= c->comm.world) continue;
        const void *source[2] = {sum.data, room};
        c->message[0] = tdm__hosts_receive(c, rank + step, TDM_USE_DATA, room, bytes);
        TDM_TRY(tdm__hosts_exchange(c, 1));
        tdm__reduce_sources(sum.data, source, 2, sum.count, how->dtype, how->op);
    }
    return TDM_OK;
}

tdm_status tdm__hosts_reduce_in_tree(tdm_hosts_comm *c, tdm_span io, const tdm_reduction *how) {
    const size_t bytes = tdm__span_bytes(io);
    const int rank = c->comm.rank;
    TDM_TRY(tdm__hosts_scratch(c, 2 * bytes));
    memcpy(c->scratch, io.data, bytes);
    TDM_TRY(reduce_to_first(c, (tdm_span){c->scratch, io.count, io.dtype}, c->scratch + bytes, how));
    if (rank == 0 && how->root <= 0) memcpy(io.data, c->scratch, bytes);
    if (how->root < 0) return tdm__hosts_broadcast_in_tree(c, io.data, bytes, 0);
    if (how->root == 0 || (rank != 0 && rank != how->root)) return TDM_OK;
    c->message[0] = rank == 0 ? tdm__hosts_send(c, how->root, TDM_USE_DATA, c->scratch, bytes)
                              : tdm__hosts_receive(c, 0, TDM_USE_DATA, io.data, bytes);
    return tdm__hosts_exchange(c, 1);
}

/* from_root: the members are counted from the root on. */
tdm_status tdm__hosts_broadcast_in_tree(tdm_hosts_comm *c, void *data, size_t bytes, int root) {
    const int world = c->comm.world, from_root = (c->comm.rank - root + world) % world;
    int step = 1, count = 0;
    while (step < world && (from_root & step) == 0) step *= 2;
    if (from_root != 0) {
        c->message[0] = tdm__hosts_receive(c, (from_root - step + root) % world, TDM_USE_DATA, data, bytes);
        TDM_TRY(tdm__hosts_exchange(c, 1));
    }
    for (step /= 2; step > 0; step /= 2)
        if (from_root + step < world)
            c->message[count++] = tdm__hosts_send(c, (from_root + step + root) % world, TDM_USE_DATA, data, bytes);
    return tdm__hosts_exchange(c, count);
}
