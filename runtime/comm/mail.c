/* Point to point. A sender offers one message at a time in its mailbox and waits until the receiver has taken it. If
 * the receiver can reach the sender's span, it reads the message in place. Otherwise the message goes through the two
 * halves of the mailbox: the sender fills one half while the receiver empties the other. */
#include <string.h>

#include "runtime/base/status.h"
#include "runtime/comm/group.h"

enum { NUMBER_SHIFT = 16, HALVES = 2 };

static unsigned char *box_half(const tdm_group *group, int r, uint64_t half) {
    return group->box + ((size_t)r * HALVES + (size_t)(half % HALVES)) * TDM_MAIL_BYTES;
}

static tdm_mail *mail_of(const tdm_group *group, int r) {
    return &group->seat[r].mail;
}

static uint64_t message_number(uint64_t offer) {
    return offer >> NUMBER_SHIFT;
}

/* ---- what sender and receiver wait for; the peer is in call.root ---- */

static bool not_taken(const tdm_group *group, int r) {
    const tdm_mail *own = mail_of(group, group->comm.rank);
    return r == group->call.root && atomic_load(&own->taken) != message_number(atomic_load(&own->offer));
}

static bool no_free_half(const tdm_group *group, int r) {
    const tdm_mail *own = mail_of(group, group->comm.rank);
    return r == group->call.root && atomic_load(&own->filled) - atomic_load(&own->drained) >= HALVES;
}

static bool has_message(const tdm_group *group, int from) {
    const tdm_mail *mail = mail_of(group, from);
    uint64_t offer = atomic_load(&mail->offer);
    return (int)(offer & ((1u << NUMBER_SHIFT) - 1)) == group->comm.rank &&
           message_number(offer) != atomic_load(&mail->taken);
}

static bool no_message(const tdm_group *group, int r) {
    return r == group->call.root && !has_message(group, r);
}

/* No message from anyone. A rank that has left sends none, and is missing only if all have left. */
static bool no_message_from_any(const tdm_group *group, int r) {
    bool others = false, is_r_here = false; /* read once: a rank may leave at any time */
    if (r == group->comm.rank) return false;
    for (int from = 0; from < group->comm.world; from++) {
        if (from == group->comm.rank) continue;
        if (has_message(group, from)) return false;
        const bool is_here = atomic_load(&group->seat[from].left) == 0;
        others = others || is_here;
        if (from == r) is_r_here = is_here;
    }
    return !others || is_r_here;
}

static bool no_full_half(const tdm_group *group, int r) {
    if (r != group->call.root) return false;
    return atomic_load(&mail_of(group, r)->filled) == atomic_load(&mail_of(group, r)->drained);
}

/* ---- the two ends ---- */

tdm_status tdm__group_send(tdm_comm *comm, tdm_span in) {
    tdm_group *group = (tdm_group *)comm;
    tdm_mail *mail = mail_of(group, group->comm.rank);
    size_t bytes = tdm__span_bytes(in);
    uint64_t number = message_number(atomic_load(&mail->offer)) + 1;
    mail->count = in.count;
    mail->dtype = (int32_t)in.dtype;
    mail->address = tdm__group_address(group, in.data, bytes);
    bool in_place = mail->address.region != 0;
    atomic_store(&mail->offer, number << NUMBER_SHIFT | (uint64_t)group->call.root);
    tdm__site_ring(group->site);
    for (size_t done = 0; !in_place && done < bytes;) {
        TDM_TRY(tdm__group_wait(group, no_free_half));
        size_t n = bytes - done < TDM_MAIL_BYTES ? bytes - done : TDM_MAIL_BYTES;
        memcpy(box_half(group, group->comm.rank, atomic_load(&mail->filled)), (const char *)in.data + done, n);
        atomic_fetch_add(&mail->filled, 1);
        tdm__site_ring(group->site);
        done += n;
    }
    return tdm__group_wait(group, not_taken);
}

/* Makes the lowest rank that has sent something the peer of this call. */
static tdm_status choose_sender(tdm_group *group) {
    TDM_TRY(tdm__group_wait(group, no_message_from_any));
    for (int from = 0; from < group->comm.world; from++) {
        group->call.root = from;
        if (from != group->comm.rank && has_message(group, from)) return TDM_OK;
    }
    TDM_FAIL(TDM_E_INTERNAL, "receive: the wait ended without a message");
}

tdm_status tdm__group_receive(tdm_comm *comm, tdm_span out, int *sender) {
    tdm_group *group = (tdm_group *)comm;
    if (group->call.root == TDM_COMM_ANY) TDM_TRY(choose_sender(group));
    const int from = group->call.root;
    tdm_mail *mail = mail_of(group, from);
    if (sender != NULL) *sender = from;
    TDM_TRY(tdm__group_wait(group, no_message));
    if (mail->count != out.count || mail->dtype != (int32_t)out.dtype)
        TDM_FAIL(TDM_E_USAGE, "receive from rank %d: expected %zu %s, but it sends %llu %s", group->job_rank[from],
                 out.count, tdm_dtype_name(out.dtype), (unsigned long long)mail->count,
                 tdm_dtype_name((tdm_dtype)mail->dtype));
    size_t bytes = tdm__span_bytes(out);
    if (mail->address.region != 0) {
        TDM_TRY(tdm__group_touch(group));
        if (bytes > 0) memcpy(out.data, tdm__group_reach(group, from, mail->address), bytes);
        tdm__group_untouch(group);
    } else {
        for (size_t done = 0; done < bytes;) {
            TDM_TRY(tdm__group_wait(group, no_full_half));
            size_t n = bytes - done < TDM_MAIL_BYTES ? bytes - done : TDM_MAIL_BYTES;
            memcpy((char *)out.data + done, box_half(group, from, atomic_load(&mail->drained)), n);
            atomic_fetch_add(&mail->drained, 1);
            tdm__site_ring(group->site);
            done += n;
        }
    }
    atomic_store(&mail->taken, message_number(atomic_load(&mail->offer)));
    tdm__site_ring(group->site);
    return TDM_OK;
}
