/* Messages between the ranks of a communicator, and send and receive. */
#include <string.h>

#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/base/system/clock.h"
#include "runtime/comm/hosts/hosts.h"
#include "runtime/comm/hosts/levels.h"

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

/* The collective in flight. A column takes part in that of all ranks. */
static tdm_hub_call this_call(const tdm_hosts_comm *c) {
    const bool is_column = c->group == TDM_GROUP_COLUMNS;
    return (tdm_hub_call){.group = is_column ? TDM_GROUP_ALL : c->group,
                          .first = is_column ? 0 : c->job_rank[0],
                          .sequence = c->call.sequence};
}

tdm_status tdm__hosts_judge(const tdm_hosts_comm *c, tdm_status status) {
    if (status != TDM_OK) tdm__hub_judge(c->job->hub, status, this_call(c), tdm_error_message());
    return status;
}

/* Is the verdict on the call in flight? A message has the number of the collective before it. */
static bool judges_this(const tdm_hosts_comm *c, const tdm_hub_cause *cause) {
    const tdm_hub_call own = this_call(c), judged = cause->judged;
    return cause->status != TDM_E_COMM && !tdm_comm_kind_is_message((tdm_comm_kind)c->call.kind) &&
           own.group == judged.group && own.first == judged.first && own.sequence == judged.sequence;
}

/* A verdict on the ranks' calls is the status of these alone: all other calls meet a job that has ended. */
static tdm_status ended(const tdm_hosts_comm *c, const tdm_hub_cause *cause) {
    char call[TDM_CALL_TEXT];
    if (judges_this(c, cause)) TDM_FAIL((tdm_status)cause->status, "%s", cause->why);
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
                          .peers = c->peers,
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
    for (int i = 0; i < count; i++)
        if ((which & (c->message[i].sends ? TDM_SENDS : TDM_RECEIVES)) != 0) c->message[chosen++] = c->message[i];
    if (chosen > 0) transport->ops->begin(transport, c->message, chosen);
}

void tdm__hosts_forget(tdm_hosts_comm *c) {
    tdm_transport *transport = c->job->transport;
    for (tdm_hosts_use use = TDM_USE_DATA; use <= TDM_USE_TAKEN; use++)
        transport->ops->forget(transport, tag_of(c, use));
    if (c->levels != NULL && c->levels->column != NULL) tdm__hosts_forget(c->levels->column);
}

tdm_status tdm__hosts_message_room(tdm_hosts_comm *c, size_t count) {
    return tdm__grow(c->comm.host, &c->message, &c->message_room, count, sizeof(*c->message), "communicator");
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
