/* Point to point. A message is a head, which says what comes, the data, and the receiver's word that it has it. */
#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/comm/hosts/hosts.h"

enum { FEW = 8 };

/* What goes along with a message that is sent; of one that is received only is_done counts. */
typedef struct letter {
    tdm_call head;
    unsigned char taken;
    bool is_done;
} letter;

typedef struct mail {
    tdm_hosts_comm *c;
    const tdm_transfer *transfers;
    letter *letters; /* of each */
    size_t count, sends;
} mail;

/* ---- what is sent: all at once ---- */

static int add_sends(const mail *m, int to) {
    tdm_hosts_comm *c = m->c;
    int count = 0;
    for (size_t i = 0; i < m->count; i++) {
        const int peer = m->transfers[i].peer;
        const tdm_span span = m->transfers[i].span;
        letter *own = &m->letters[i];
        if (!m->transfers[i].sends || (to >= 0 && peer != to)) continue;
        c->message[count++] = tdm__hosts_send(c, peer, TDM_USE_HEAD, &own->head, sizeof(own->head));
        if (span.count > 0)
            c->message[count++] = tdm__hosts_send(c, peer, TDM_USE_BODY, span.data, tdm__span_bytes(span));
        c->message[count++] = tdm__hosts_receive(c, peer, TDM_USE_TAKEN, &own->taken, sizeof(own->taken));
    }
    return count;
}

/* ---- what is received: in the order in which it comes ---- */

/* The next head that comes from one of `count` members, and from which. */
static tdm_status receive_head(tdm_hosts_comm *c, const int *members, int count, tdm_call *head, int *sender) {
    int ranks[TDM_COMM_WORLD_MAX], from = -1;
    c->message[0] = tdm__hosts_receive(c, members[0], TDM_USE_HEAD, head, sizeof(*head));
    for (int i = 0; i < count; i++) ranks[i] = c->job_rank[members[i]];
    if (count > 1) {
        c->message[0].any = ranks;
        c->message[0].any_count = count;
        c->message[0].from = &from;
    }
    *sender = members[0];
    TDM_TRY(tdm__hosts_exchange(c, 1));
    for (int i = 0; i < count && count > 1; i++)
        if (ranks[i] == from) *sender = members[i];
    return TDM_OK;
}

static tdm_status receive_rest(tdm_hosts_comm *c, const tdm_call *head, int sender, tdm_span out) {
    static const unsigned char taken = 1;
    if (head->count != out.count || head->dtype != (int32_t)out.dtype)
        TDM_FAIL(TDM_E_USAGE, "receive from rank %d: expected %zu %s, but it sends %llu %s", c->job_rank[sender],
                 out.count, tdm_dtype_name(out.dtype), (unsigned long long)head->count,
                 tdm_dtype_name((tdm_dtype)head->dtype));
    if (out.count > 0) {
        c->message[0] = tdm__hosts_receive(c, sender, TDM_USE_BODY, out.data, tdm__span_bytes(out));
        TDM_TRY(tdm__hosts_exchange(c, 1));
    }
    c->message[0] = tdm__hosts_send(c, sender, TDM_USE_TAKEN, &taken, sizeof(taken));
    return tdm__hosts_exchange(c, 1);
}

/* The members that must still send something. Returns how many. */
static int note_senders(const mail *m, bool *is_peer, int *members) {
    int count = 0;
    for (int r = 0; r < m->c->comm.world; r++) is_peer[r] = false;
    for (size_t i = 0; i < m->count; i++)
        if (!m->letters[i].is_done && !m->transfers[i].sends) is_peer[m->transfers[i].peer] = true;
    for (int r = 0; r < m->c->comm.world; r++)
        if (is_peer[r]) members[count++] = r;
    return count;
}

static tdm_status receive_next(const mail *m, const int *members, int count) {
    tdm_call head;
    int sender;
    size_t i = 0;
    TDM_TRY(receive_head(m->c, members, count, &head, &sender));
    while (m->letters[i].is_done || m->transfers[i].sends || m->transfers[i].peer != sender) i++;
    m->letters[i].is_done = true;
    return receive_rest(m->c, &head, sender, m->transfers[i].span);
}

/* ---- the calls ---- */

/* Waits for what member r takes, and for no other one: who has taken all may leave. */
static tdm_status finish_sends(const mail *m, int r) {
    tdm_hosts_comm *c = m->c;
    bool is_peer[TDM_COMM_WORLD_MAX] = {false};
    const int count = add_sends(m, r);
    if (count == 0) return TDM_OK;
    is_peer[r] = true;
    c->peers = is_peer;
    const tdm_status status = tdm__hosts_exchange(c, count);
    c->peers = NULL;
    return status;
}

/* What is sent is on its way before anything is waited for: so no message of the batch waits for another one. */
static tdm_status exchange_mail(mail *m) {
    bool is_peer[TDM_COMM_WORLD_MAX];
    int members[TDM_COMM_WORLD_MAX];
    tdm_hosts_comm *c = m->c;
    tdm_status status = tdm__hosts_message_room(c, 3 * m->sends);
    if (status == TDM_OK && m->count > 1) tdm__hosts_begin(c, add_sends(m, -1), TDM_SENDS | TDM_RECEIVES);
    c->peers = is_peer;
    for (int count; status == TDM_OK && (count = note_senders(m, is_peer, members)) > 0;)
        status = receive_next(m, members, count);
    c->peers = NULL;
    for (int r = 0; r < c->comm.world && status == TDM_OK; r++) status = finish_sends(m, r);
    if (status != TDM_OK) tdm__hosts_forget(c); /* the letters are gone after this */
    return status;
}

tdm_status tdm__hosts_batch(tdm_comm *comm, const tdm_transfer *transfers, size_t count) {
    letter few[FEW];
    mail m = {.c = (tdm_hosts_comm *)comm, .transfers = transfers, .letters = few, .count = count};
    if (count > FEW) TDM_TRY(tdm__new(comm->host, &m.letters, count, sizeof(*m.letters), "batch of messages"));
    for (size_t i = 0; i < count; i++) {
        m.letters[i] = (letter){.head = m.c->call};
        m.letters[i].head.count = transfers[i].span.count;
        m.letters[i].head.dtype = (int32_t)transfers[i].span.dtype;
        m.sends += transfers[i].sends != 0;
    }
    const tdm_status status = exchange_mail(&m);
    if (m.letters != few) tdm__delete(comm->host, m.letters);
    return status;
}

tdm_status tdm__hosts_receive_any(tdm_comm *comm, tdm_span out, int *from) {
    tdm_hosts_comm *c = (tdm_hosts_comm *)comm;
    int others[TDM_COMM_WORLD_MAX], count = 0, sender;
    bool is_peer[TDM_COMM_WORLD_MAX] = {false};
    tdm_call head;
    for (int r = 0; r < comm->world; r++)
        if (r != comm->rank) others[count++] = r;
    if (count == 0) TDM_FAIL(TDM_E_USAGE, "receive: there is no other rank");
    TDM_TRY(receive_head(c, others, count, &head, &sender));
    c->call.root = sender;
    if (from != NULL) *from = sender;
    is_peer[sender] = true;
    c->peers = is_peer;
    const tdm_status status = receive_rest(c, &head, sender, out);
    c->peers = NULL;
    return status;
}
