/* Entries on their way: how a block of each member gets to all others. */
#include <string.h>

#include "runtime/base/status.h"
#include "runtime/comm/hosts/hosts.h"

/* There are two rooms for arrivals, used in turn. The receives of a call begin when the call before the last one has
 * what it needs: so the others know of them even if they make one call right after another. */
static unsigned char *arrivals(const tdm_hosts_comm *c, int turn) {
    return c->arrivals + (size_t)turn * (size_t)c->comm.world * c->arrival_bytes;
}

/* Each block from whose it is to all others; it comes in among the arrivals. */
static int add_all(tdm_hosts_comm *c, int turn, const unsigned char *own) {
    const size_t bytes = c->arrival_bytes;
    const int world = c->comm.world, rank = c->comm.rank;
    int count = 0;
    for (int i = 1; i < world; i++) {
        const int to = (rank + i) % world, from = (rank + world - i) % world;
        if (own != NULL) c->message[count++] = tdm__hosts_send(c, to, TDM_USE_ENTRY, own, bytes);
        c->message[count++] =
            tdm__hosts_receive(c, from, TDM_USE_ENTRY, arrivals(c, turn) + (size_t)from * bytes, bytes);
    }
    return count;
}

/* Adds the message or two of `n` blocks from `first` on, which go round from the last member's to the first one's. */
static int add_blocks(tdm_hosts_comm *c, int count, int turn, bool sends, int peer, int first, int n) {
    const int before_end = n < c->comm.world - first ? n : c->comm.world - first;
    for (int part = 0; part < 2; part++) {
        unsigned char *at = arrivals(c, turn) + (part == 0 ? (size_t)first * c->arrival_bytes : 0);
        const size_t length = (size_t)(part == 0 ? before_end : n - before_end) * c->arrival_bytes;
        if (length == 0) continue;
        c->message[count++] = sends ? tdm__hosts_send(c, peer, TDM_USE_ENTRY, at, length)
                                    : tdm__hosts_receive(c, peer, TDM_USE_ENTRY, at, length);
    }
    return count;
}

/* In each round a member gets as many blocks as it has, those that follow its own: log2(world) messages, not world. */
static int add_round(tdm_hosts_comm *c, int count, int turn, int have, bool sends) {
    const int world = c->comm.world, rank = c->comm.rank, n = have < world - have ? have : world - have;
    const int from = (rank + have) % world;
    if (sends) count = add_blocks(c, count, turn, true, (rank + world - have) % world, rank, n);
    return add_blocks(c, count, turn, false, from, from, n);
}

static tdm_status give_in_rounds(tdm_hosts_comm *c, const unsigned char *own) {
    memcpy(arrivals(c, c->turn) + (size_t)c->comm.rank * c->arrival_bytes, own, c->arrival_bytes);
    for (int have = 1; have < c->comm.world; have *= 2)
        TDM_TRY(tdm__hosts_exchange(c, add_round(c, 0, c->turn, have, true)));
    return TDM_OK;
}

static void begin_arrivals(tdm_hosts_comm *c, int turn) {
    int count = 0;
    if (c->comm.world <= TDM_HOSTS_FEW) count = add_all(c, turn, NULL);
    for (int have = 1; have < c->comm.world && c->comm.world > TDM_HOSTS_FEW; have *= 2)
        count = add_round(c, count, turn, have, false);
    tdm__hosts_begin(c, count, TDM_RECEIVES);
}

static tdm_status make_arrivals(tdm_hosts_comm *c, size_t bytes) {
    void *made;
    if (c->arrivals != NULL) return TDM_OK;
    TDM_TRY(tdm__hosts_memory_new(c->job, 2 * (size_t)c->comm.world * bytes, &made));
    c->arrivals = made;
    c->arrival_bytes = bytes;
    for (int turn = 0; turn < 2; turn++) begin_arrivals(c, turn);
    return TDM_OK;
}

tdm_status tdm__hosts_exchange_blocks(tdm_hosts_comm *c, void *blocks, size_t bytes) {
    const size_t before = (size_t)c->comm.rank * bytes, after = (size_t)c->comm.world * bytes - before - bytes;
    TDM_TRY(make_arrivals(c, bytes));
    unsigned char *own = (unsigned char *)blocks + before, *come = arrivals(c, c->turn);
    TDM_TRY(c->comm.world > TDM_HOSTS_FEW ? give_in_rounds(c, own) : tdm__hosts_exchange(c, add_all(c, c->turn, own)));
    memcpy(blocks, come, before);
    memcpy(own + bytes, come + before + bytes, after);
    begin_arrivals(c, c->turn);
    c->turn = 1 - c->turn;
    return TDM_OK;
}
