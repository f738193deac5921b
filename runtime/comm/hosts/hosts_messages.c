/* Messages between the ranks of a communicator, and send and receive. */
#include <string.h>

#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/base/system/clock.h"
#include "runtime/comm/hosts/hosts.h"

enum { USES = 8 };

static uint32_t tag_of(const tdm_hosts_comm *c, tdm_hosts_use use) {
    return (uint32_t)c->group * USES + (uint32_t)use;
}

tdm_message tdm__hosts_send(const tdm_hosts_comm *c, int member, tdm_hosts_use use, const void *data, size_t bytes) {
    return (tdm_message){.sends = true,
                         .peer = c->job_rank[member],
                         .tag = tag_of(c, use),
                         .data = (void *)(uintptr_t)data,
                         .bytes = bytes};
}

tdm_message tdm__hosts_receive(const tdm_hosts_comm *c, int member, tdm_hosts_use use, void *data, size_t bytes) {
    return (tdm_message){.peer = c->job_rank[member], .tag = tag_of(c, use), .data = data, .bytes = bytes};
}

/* ---- carrying them out ---- */

static tdm_status ended(const tdm_hosts_comm *c, const tdm_hub_cause *cause) {
    char call[TDM_CALL_TEXT];
    if (cause->status != TDM_E_COMM) TDM_FAIL((tdm_status)cause->status, "%s", cause->why);
    tdm__call_print(call, &c->call, c->job_rank);
    TDM_FAIL(TDM_E_COMM, "%s: %s", call, cause->why);
}

tdm_status tdm__hosts_check(const tdm_hosts_comm *c) {
    tdm_hub_cause cause;
    return tdm__hub_has_ended(c->job->hub, &cause) ? ended(c, &cause) : TDM_OK;
}

tdm_hub_wait tdm__hosts_wait_of(const tdm_hosts_comm *c) {
    return (tdm_hub_wait){.call = &c->call,
                          .job_rank = c->job_rank,
                          .world = c->comm.world,
                          .rank = c->comm.rank,
                          .start_ns = c->start_ns,
                          .timeout_ms = c->comm.timeout_ms};
}

tdm_status tdm__hosts_settle(const tdm_hosts_comm *c) {
    tdm_hub_cause cause;
    tdm__hub_settle(c->job->hub, tdm_error_message(), &cause);
    return ended(c, &cause);
}

/* Asks the hub which rank is dead or has stopped. If it knows of none, the last error is the cause. */
static tdm_status settle_for(const tdm_hosts_comm *c, int lost) {
    char own[TDM_NAME_TEXT], theirs[TDM_NAME_TEXT];
    tdm_error error;
    if (lost >= 0) {
        tdm__error_save(&error);
        tdm__hub_name(c->job->hub, c->job_rank[c->comm.rank], own);
        tdm__hub_name(c->job->hub, lost, theirs);
        (void)tdm__fail(
            error.status, __FILE__, __LINE__, NULL,
            "%s has lost its connection to %s; the network between their hosts is cut, or refuses them (%.100s)", own,
            theirs, error.message);
    }
    return tdm__hosts_settle(c);
}

tdm_status tdm__hosts_exchange(tdm_hosts_comm *c, int count) {
    int lost;
    tdm_transport *transport = c->job->transport;
    tdm_hub_wait wait = tdm__hosts_wait_of(c);
    TDM_TRY(tdm__hosts_check(c));
    if (count == 0) return TDM_OK;
    tdm__hub_wait_begin(c->job->hub, &wait);
    const tdm_status status = transport->ops->exchange(transport, c->message, count, &lost);
    tdm__hub_wait_end(c->job->hub, &wait);
    return status == TDM_OK ? TDM_OK : settle_for(c, status == TDM_E_COMM ? lost : -1);
}

void tdm__hosts_begin(tdm_hosts_comm *c, int count, int which) {
    tdm_transport *transport = c->job->transport;
    int chosen = 0;
    if (transport->ops->begin == NULL) return;
    for (int i = 0; i < count; i++)
        if ((which & (c->message[i].sends ? TDM_SENDS : TDM_RECEIVES)) != 0) c->message[chosen++] = c->message[i];
    if (chosen > 0) transport->ops->begin(transport, c->message, chosen);
}

void tdm__hosts_forget(tdm_hosts_comm *c) {
    tdm_transport *transport = c->job->transport;
    if (transport->ops->forget == NULL) return;
    transport->ops->forget(transport, tag_of(c, TDM_USE_DATA));
    transport->ops->forget(transport, tag_of(c, TDM_USE_RESULT));
    if (c->column != NULL) tdm__hosts_forget(c->column);
}

tdm_status tdm__hosts_scratch(tdm_hosts_comm *c, size_t bytes) {
    if (bytes <= c->scratch_bytes) return TDM_OK;
    tdm__delete(c->comm.host, c->scratch);
    c->scratch = NULL;
    c->scratch_bytes = 0;
    TDM_TRY(tdm__new(c->comm.host, &c->scratch, 1, bytes, "communicator's buffer"));
    c->scratch_bytes = bytes;
    return TDM_OK;
}

/* ---- send and receive: a head, which says what comes, the data, and the receiver's word that it has it ---- */

tdm_status tdm__hosts_send_call(tdm_comm *comm, tdm_span in) {
    tdm_hosts_comm *c = (tdm_hosts_comm *)comm;
    const int to = c->call.root;
    const size_t bytes = tdm__span_bytes(in);
    const tdm_call head = c->call;
    unsigned char taken = 0;
    int count = 0;
    c->message[count++] = tdm__hosts_send(c, to, TDM_USE_HEAD, &head, sizeof(head));
    if (bytes > 0) c->message[count++] = tdm__hosts_send(c, to, TDM_USE_BODY, in.data, bytes);
    c->message[count++] = tdm__hosts_receive(c, to, TDM_USE_TAKEN, &taken, sizeof(taken));
    return tdm__hosts_exchange(c, count);
}

/* Gets the head of the next message, and makes its sender the peer of this call. */
static tdm_status receive_head(tdm_hosts_comm *c, tdm_call *head) {
    int others[TDM_COMM_WORLD_MAX], count = 0, sender = 0;
    if (c->call.root != TDM_COMM_ANY) {
        c->message[0] = tdm__hosts_receive(c, c->call.root, TDM_USE_HEAD, head, sizeof(*head));
        return tdm__hosts_exchange(c, 1);
    }
    for (int i = 0; i < c->comm.world; i++)
        if (i != c->comm.rank) others[count++] = c->job_rank[i];
    if (count == 0) TDM_FAIL(TDM_E_USAGE, "receive: there is no other rank");
    c->message[0] = tdm__hosts_receive(c, c->comm.rank, TDM_USE_HEAD, head, sizeof(*head));
    c->message[0].any = others;
    c->message[0].any_count = count;
    c->message[0].from = &sender;
    TDM_TRY(tdm__hosts_exchange(c, 1));
    for (int i = 0; i < c->comm.world; i++)
        if (c->job_rank[i] == sender) c->call.root = i;
    return TDM_OK;
}

tdm_status tdm__hosts_receive_call(tdm_comm *comm, tdm_span out, int *from) {
    tdm_hosts_comm *c = (tdm_hosts_comm *)comm;
    tdm_call head;
    unsigned char taken = 1;
    int count = 0;
    const size_t bytes = tdm__span_bytes(out);
    TDM_TRY(receive_head(c, &head));
    const int sender = c->call.root;
    if (head.count != out.count || head.dtype != (int32_t)out.dtype)
        TDM_FAIL(TDM_E_USAGE, "receive from rank %d: expected %zu %s, but it sends %llu %s", c->job_rank[sender],
                 out.count, tdm_dtype_name(out.dtype), (unsigned long long)head.count,
                 tdm_dtype_name((tdm_dtype)head.dtype));
    if (bytes > 0) {
        c->message[0] = tdm__hosts_receive(c, sender, TDM_USE_BODY, out.data, bytes);
        TDM_TRY(tdm__hosts_exchange(c, 1));
    }
    c->message[count++] = tdm__hosts_send(c, sender, TDM_USE_TAKEN, &taken, sizeof(taken));
    if (from != NULL) *from = sender;
    return tdm__hosts_exchange(c, count);
}
