/* Point to point. A sender offers one message at a time to each receiver, and waits until the receiver has taken it. If
 * the receiver can reach the sender's span, it reads the message in place. Otherwise the message goes through the two
 * halves of the sender's mailbox, one message after another: the sender fills one half while the receiver empties the
 * other.
 *
 * A rank moves all messages of its batch at the same time: of those that wait for the same peer the first, of the
 * others each. So none waits for a rank that waits for another one. The mailbox is only for messages whose receivers
 * have accepted them, for these empty it whatever else they wait for. */
#include <string.h>

#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/comm/group.h"

enum { HALVES = 2, FEW = 8 };

/* A message under way. */
typedef struct flow {
    const tdm_transfer *transfer;
    struct flow *next; /* of the same direction, with the same peer: it waits for this one */
    size_t done;       /* bytes that went through the mailbox */
    bool has_begun;
} flow;

struct tdm_batch {
    flow *active[2 * TDM_COMM_WORLD_MAX];
    int count;          /* of the active ones */
    size_t sends;       /* that are not done */
    const flow *in_box; /* NULL: the mailbox is free */
};

static unsigned char *box_half(const tdm_group *group, int r, uint64_t half) {
    return group->box + ((size_t)r * HALVES + (size_t)(half % HALVES)) * TDM_MAIL_BYTES;
}

static tdm_offer *offer_of(const tdm_group *group, int from, int to) {
    return &group->offer[(size_t)from * (size_t)group->comm.world + (size_t)to];
}

static tdm_offer *offer_for(const tdm_group *group, const flow *f) {
    const int own = group->comm.rank, peer = f->transfer->peer;
    return f->transfer->sends ? offer_of(group, own, peer) : offer_of(group, peer, own);
}

static bool has_message(const tdm_offer *offer) {
    return atomic_load(&offer->number) != atomic_load(&offer->taken);
}

static bool is_in_place(const tdm_offer *offer) {
    return offer->address.region != 0;
}

/* ---- what can go on ---- */

static bool may_use_box(const tdm_batch *batch, const flow *f, const tdm_offer *offer) {
    if (batch->in_box != NULL) return batch->in_box == f;
    return batch->sends == 1 || atomic_load(&offer->accepted) == atomic_load(&offer->number);
}

static bool can_send(const tdm_group *group, const flow *f) {
    const tdm_offer *offer = offer_for(group, f);
    if (!has_message(offer)) return true;
    if (is_in_place(offer) || f->done == tdm__span_bytes(f->transfer->span)) return false;
    return may_use_box(group->batch, f, offer) && atomic_load(&offer->filled) - atomic_load(&offer->drained) < HALVES;
}

static bool can_receive(const tdm_group *group, const flow *f) {
    const tdm_offer *offer = offer_for(group, f);
    return f->has_begun ? atomic_load(&offer->filled) != atomic_load(&offer->drained) : has_message(offer);
}

static bool can_go_on(const tdm_group *group, const flow *f) {
    return f->transfer->sends ? can_send(group, f) : can_receive(group, f);
}

/* For tdm__group_wait: is member r waited for, and nothing can go on? */
static bool nothing_moves(const tdm_group *group, int r) {
    const tdm_batch *batch = group->batch;
    bool is_peer = false;
    for (int i = 0; i < batch->count; i++) {
        if (can_go_on(group, batch->active[i])) return false;
        is_peer = is_peer || batch->active[i]->transfer->peer == r;
    }
    return is_peer;
}

/* No message from anyone. A rank that has left sends none, and is missing only if all have left. */
static bool no_message_from_any(const tdm_group *group, int r) {
    bool others = false, is_r_here = false; /* read once: a rank may leave at any time */
    if (r == group->comm.rank) return false;
    for (int from = 0; from < group->comm.world; from++) {
        if (from == group->comm.rank) continue;
        if (has_message(offer_of(group, from, group->comm.rank))) return false;
        const bool is_here = atomic_load(&group->seat[from].left) == 0;
        others = others || is_here;
        if (from == r) is_r_here = is_here;
    }
    return !others || is_r_here;
}

/* ---- one message ---- */

static void begin_send(tdm_group *group, flow *f) {
    const tdm_span span = f->transfer->span;
    tdm_offer *offer = offer_for(group, f);
    offer->count = span.count;
    offer->dtype = (int32_t)span.dtype;
    offer->address = tdm__group_address(group, span.data, tdm__span_bytes(span));
    f->has_begun = true;
    atomic_fetch_add(&offer->number, 1);
    tdm__site_ring(group->site);
}

/* Fills one half. */
static void go_on_sending(tdm_group *group, flow *f) {
    const size_t left = tdm__span_bytes(f->transfer->span) - f->done, n = left < TDM_MAIL_BYTES ? left : TDM_MAIL_BYTES;
    tdm_offer *offer = offer_for(group, f);
    group->batch->in_box = f;
    memcpy(box_half(group, group->comm.rank, atomic_load(&offer->filled)),
           tdm__bytes_at(f->transfer->span.data, f->done), n);
    f->done += n;
    atomic_fetch_add(&offer->filled, 1);
    tdm__site_ring(group->site);
}

static bool send_part(tdm_group *group, flow *f) {
    if (has_message(offer_for(group, f))) {
        go_on_sending(group, f);
        return false;
    }
    group->batch->sends--;
    if (group->batch->in_box == f) group->batch->in_box = NULL;
    return true;
}

static tdm_status begin_receive(tdm_group *group, flow *f) {
    const tdm_span span = f->transfer->span;
    tdm_offer *offer = offer_for(group, f);
    f->has_begun = true;
    if (offer->count != span.count || offer->dtype != (int32_t)span.dtype)
        TDM_FAIL(TDM_E_USAGE, "receive from rank %d: expected %zu %s, but it sends %llu %s",
                 group->job_rank[f->transfer->peer], span.count, tdm_dtype_name(span.dtype),
                 (unsigned long long)offer->count, tdm_dtype_name((tdm_dtype)offer->dtype));
    if (is_in_place(offer)) {
        TDM_TRY(tdm__group_touch(group));
        f->done = tdm__span_bytes(span);
        if (f->done > 0) memcpy(span.data, tdm__group_reach(group, f->transfer->peer, offer->address), f->done);
        tdm__group_untouch(group);
    }
    atomic_store(&offer->accepted, atomic_load(&offer->number));
    tdm__site_ring(group->site);
    return TDM_OK;
}

/* Empties one half. */
static void go_on_receiving(tdm_group *group, flow *f) {
    const size_t left = tdm__span_bytes(f->transfer->span) - f->done, n = left < TDM_MAIL_BYTES ? left : TDM_MAIL_BYTES;
    tdm_offer *offer = offer_for(group, f);
    memcpy(tdm__bytes_at(f->transfer->span.data, f->done),
           box_half(group, f->transfer->peer, atomic_load(&offer->drained)), n);
    f->done += n;
    atomic_fetch_add(&offer->drained, 1);
    tdm__site_ring(group->site);
}

static tdm_status receive_part(tdm_group *group, flow *f, bool *done) {
    tdm_offer *offer = offer_for(group, f);
    if (f->has_begun)
        go_on_receiving(group, f);
    else
        TDM_TRY(begin_receive(group, f));
    *done = f->done == tdm__span_bytes(f->transfer->span);
    if (!*done) return TDM_OK;
    atomic_store(&offer->taken, atomic_load(&offer->number));
    tdm__site_ring(group->site);
    return TDM_OK;
}

/* ---- all messages ---- */

static void activate(tdm_group *group, flow *f) {
    if (f->transfer->sends) begin_send(group, f);
}

/* One part of each message that can go on. */
static tdm_status move_all(tdm_group *group) {
    tdm_batch *batch = group->batch;
    for (int i = 0; i < batch->count;) {
        flow *f = batch->active[i];
        bool done = false;
        if (can_go_on(group, f)) {
            if (f->transfer->sends)
                done = send_part(group, f);
            else
                TDM_TRY(receive_part(group, f, &done));
        }
        if (!done) {
            i++;
        } else if (f->next != NULL) {
            batch->active[i] = f->next;
            activate(group, f->next);
        } else {
            batch->active[i] = batch->active[--batch->count];
        }
    }
    return TDM_OK;
}

/* Messages of one direction with one peer are a list, of which the first is active. */
static void make_lists(tdm_batch *batch, flow *flows, const tdm_transfer *transfers, size_t count) {
    flow *last[2][TDM_COMM_WORLD_MAX] = {{NULL}};
    batch->count = 0;
    batch->sends = 0;
    batch->in_box = NULL;
    for (size_t i = 0; i < count; i++) {
        flow **before = &last[transfers[i].sends != 0][transfers[i].peer];
        flows[i] = (flow){.transfer = &transfers[i]};
        batch->sends += transfers[i].sends != 0;
        if (*before != NULL)
            (*before)->next = &flows[i];
        else
            batch->active[batch->count++] = &flows[i];
        *before = &flows[i];
    }
}

tdm_status tdm__group_batch(tdm_comm *comm, const tdm_transfer *transfers, size_t count) {
    tdm_group *group = (tdm_group *)comm;
    flow few[FEW], *flows = few;
    tdm_batch batch;
    if (count > FEW) TDM_TRY(tdm__new(comm->host, &flows, count, sizeof(*flows), "batch of messages"));
    make_lists(&batch, flows, transfers, count);
    group->batch = &batch;
    for (int i = 0; i < batch.count; i++) activate(group, batch.active[i]);
    tdm_status status = TDM_OK;
    while (status == TDM_OK && batch.count > 0) {
        status = tdm__group_wait(group, nothing_moves);
        if (status == TDM_OK) status = move_all(group);
    }
    group->batch = NULL;
    if (flows != few) tdm__delete(comm->host, flows);
    return status;
}

/* The lowest rank that has sent something becomes the peer of this call. */
tdm_status tdm__group_receive_any(tdm_comm *comm, tdm_span out, int *sender) {
    tdm_group *group = (tdm_group *)comm;
    TDM_TRY(tdm__group_wait(group, no_message_from_any));
    for (int from = 0; from < comm->world; from++) {
        if (from == comm->rank || !has_message(offer_of(group, from, comm->rank))) continue;
        group->call.root = from;
        if (sender != NULL) *sender = from;
        return tdm__group_batch(comm, &(tdm_transfer){.peer = from, .span = out}, 1);
    }
    TDM_FAIL(TDM_E_INTERNAL, "receive: the wait ended without a message");
}
