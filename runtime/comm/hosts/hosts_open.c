/* Opening: where ranks meet, the meeting, the transport, and the thread that watches. */
#include "runtime/comm/hosts/hosts_open.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/hash.h"
#include "runtime/base/log.h"
#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/base/system/clock.h"
#include "runtime/base/system/process.h"
#include "runtime/comm/hosts/hosts.h"
#include "runtime/comm/hosts/levels.h"
#include "runtime/comm/meeting/address.h"

enum { FAIL_MS = 3000 };

typedef struct opening {
    const tdm_transport_ops *ops;
    const tdm_launch_facts *facts;
    const tdm_hosts_options *options;
    tdm_meeting meeting;
    tdm_transport *transport;
    tdm_hub *hub;
    tdm_hosts_job *job;   /* owns both, once it is there */
    tdm_hosts_comm *comm; /* holds the job, as `job` does */
} opening;

static tdm_status check(const tdm_launch_facts *facts, const tdm_hosts_options *options) {
    TDM_TRY(tdm__comm_check_times("meeting", options->timeout_ms, options->heartbeat_ms));
    if (facts->world < 1 || facts->rank < 0 || facts->rank >= facts->world)
        TDM_FAIL(TDM_E_USAGE, "meeting: needs a rank from 0 to world - 1, got rank %d of %d", facts->rank,
                 facts->world);
    if (facts->world > TDM_COMM_WORLD_MAX)
        TDM_FAIL(TDM_E_UNSUPPORTED, "the job has %d ranks; a job over several hosts can have at most %d", facts->world,
                 TDM_COMM_WORLD_MAX);
    return TDM_OK;
}

/* Ranks of one machine and one user can meet in shared memory. */
static uint64_t hash_of_host(void) {
    char machine[TDM_MACHINE_TEXT];
    tdm__machine_print(machine);
    return tdm__hash64(machine, strlen(machine), geteuid());
}

static tdm_status describe_self(tdm_peer *self, const tdm_launch_facts *facts) {
    unsigned char random[TDM_NONCE_BYTES];
    TDM_TRY(tdm__nonce(random));
    memcpy(&self->token, random, sizeof(self->token));
    self->local_rank = facts->local_rank;
    self->local_world = facts->local_world;
    if (gethostname(self->name, sizeof(self->name)) != 0) snprintf(self->name, sizeof(self->name), "?");
    self->name[sizeof(self->name) - 1] = '\0';
    self->pid = (int32_t)getpid();
    self->host = hash_of_host();
    return TDM_OK;
}

static tdm_status prepare(opening *o) {
    tdm_meeting *m = &o->meeting;
    const tdm_launch_facts *facts = o->facts;
    const size_t world = (size_t)facts->world;
    m->host = o->options->host;
    m->rank = facts->rank;
    m->world = facts->world;
    m->listener = -1;
    m->job = tdm__hash64(facts->job, strlen(facts->job), 0);
    m->timeout_ms = o->options->timeout_ms;
    m->heartbeat_ms = o->options->heartbeat_ms;
    TDM_TRY(tdm__secret_read(&m->secret));
    TDM_TRY(tdm__new(m->host, &m->fd, world, sizeof(*m->fd), "meeting"));
    for (int r = 0; r < m->world; r++) m->fd[r] = -1;
    TDM_TRY(tdm__new(m->host, &m->peer, world, sizeof(*m->peer), "meeting"));
    return describe_self(&m->peer[m->rank], facts);
}

static void finish(opening *o, tdm_status status) {
    tdm_meeting *m = &o->meeting;
    if (status != TDM_OK) tdm__hosts_comm_free(o->comm);
    tdm__hosts_job_release(o->job);
    if (o->job == NULL) tdm__hub_close(o->hub);
    if (o->job == NULL && o->transport != NULL) o->ops->close(o->transport);
    for (int r = 0; m->fd != NULL && r < m->world; r++)
        if (m->fd[r] >= 0) close(m->fd[r]);
    if (m->listener >= 0) close(m->listener);
    tdm__delete(m->host, m->fd);
    tdm__delete(m->host, m->peer);
}

/* Ranks of tandem's own launcher are on one host, and already share a descriptor. */
static tdm_status share_address_on_host(opening *o) {
    tdm_comm *local;
    tdm_meeting *m = &o->meeting;
    tdm_endpoint *at = &m->at;
    const char *interface = o->options->interface != NULL ? o->options->interface : "lo";
    TDM_TRY(tdm__comm_open_shm(&local, o->facts->fd, m->rank, m->world, m->host, m->timeout_ms, m->heartbeat_ms));
    tdm_status status = m->rank == 0 ? tdm__address_listen(&m->listener, at, interface) : TDM_OK;
    if (status == TDM_OK)
        status = tdm_comm_broadcast(local, (tdm_span){at, sizeof(*at), TDM_DTYPE_U8}, 0);
    else
        tdm_comm_abort(local, tdm_error_message());
    if (status == TDM_OK) status = tdm_comm_barrier(local); /* nobody leaves while another still reads */
    tdm_comm_close(local);
    return status;
}

/* Ranks that their transport's launcher has connected learn from rank 0 where to meet. */
static tdm_status share_address(opening *o) {
    tdm_message message[TDM_COMM_WORLD_MAX];
    tdm_endpoint *at = &o->meeting.at;
    int count = 0, lost;
    if (o->meeting.rank == 0) TDM_TRY(tdm__address_listen(&o->meeting.listener, at, o->options->interface));
    for (int r = 1; r < o->meeting.world; r++) {
        const bool is_root = o->meeting.rank == 0;
        if (!is_root && r != o->meeting.rank) continue;
        message[count++] = (tdm_message){.sends = is_root, .peer = is_root ? r : 0, .data = at, .bytes = sizeof(*at)};
    }
    TDM_TRY(o->ops->exchange(o->transport, message, count, &lost));
    at->host[TDM_HOST_TEXT - 1] = '\0';
    return TDM_OK;
}

static tdm_status attend(tdm_meeting *m) {
    if (m->rank != 0) return tdm__meeting_join(m);
    const tdm_status status = tdm__meeting_hold(m);
    if (m->file != NULL) tdm__address_withdraw(m);
    return status;
}

static tdm_status meet(opening *o) {
    tdm_meeting *m = &o->meeting;
    if (o->ops->address_bytes == 0) {
        TDM_TRY(
            o->ops->open(&o->transport, m->host, m->rank, m->world, "", m->timeout_ms, tdm__hub_silence_ms(m), NULL));
        TDM_TRY(share_address(o));
    } else if (o->facts->fd >= 0 && o->facts->local_world == o->facts->world) {
        TDM_TRY(share_address_on_host(o));
    } else {
        TDM_TRY(tdm__address_find(m, o->facts, o->options->init_method, o->options->interface));
    }
    return attend(m);
}

/* The address at which the others reach this host: that of the interface asked for, or the one that is used between
 * this rank and rank 0. */
static tdm_status own_address(const opening *o, char out[TDM_ADDRESS_TEXT]) {
    const tdm_meeting *m = &o->meeting;
    if (o->options->interface != NULL) return tdm__interface_address(out, o->options->interface);
    if (m->world == 1) return tdm__first_address(out);
    tdm__socket_address(out, m->rank == 0 ? m->fd[1] : m->fd[0], false);
    if (out[0] == '\0') TDM_FAIL(TDM_E_COMM, "meeting: this host's address cannot be told; set parallel.ddp.interface");
    return TDM_OK;
}

static void on_end(void *user) {
    tdm_hosts_job *job = user;
    tdm_comm *inside = atomic_load(&job->inside);
    job->transport->ops->abort(job->transport);
    if (inside != NULL) tdm_comm_abort(inside, "the job has ended");
}

/* From here on the job owns the hub and the transport. */
static tdm_status start_watching(opening *o) {
    TDM_TRY(tdm__hosts_job_new(&o->job, o->meeting.host, o->hub, o->transport, o->meeting.timeout_ms));
    return tdm__hub_start(o->hub, on_end, o->job);
}

static tdm_status exchange_addresses(opening *o, const char *own, unsigned char **addresses) {
    const tdm_meeting *m = &o->meeting;
    const size_t world = (size_t)m->world, bytes = o->ops->address_bytes;
    const int64_t deadline = tdm__deadline_ns(tdm__now_ns(), m->timeout_ms);
    unsigned char *to;
    TDM_TRY(tdm__new(m->host, &to, world, bytes, "addresses of ranks"));
    tdm_status status =
        o->ops->open(&o->transport, m->host, m->rank, m->world, own, m->timeout_ms, tdm__hub_silence_ms(m), to);
    if (status == TDM_OK) status = tdm__new(m->host, addresses, world, bytes, "addresses of ranks");
    if (status == TDM_OK) status = tdm__hub_all_to_all(o->hub, to, *addresses, bytes, deadline);
    tdm__delete(m->host, to);
    return status;
}

static tdm_status connect_transport(opening *o, const char *own) {
    unsigned char *addresses = NULL;
    if (o->ops->address_bytes == 0) return start_watching(o);
    tdm_status status = exchange_addresses(o, own, &addresses);
    if (status == TDM_OK) status = start_watching(o);
    if (status == TDM_OK) status = o->transport->ops->connect(o->transport, addresses);
    tdm__delete(o->meeting.host, addresses);
    return status;
}

static tdm_status connect_all(opening *o) {
    char own[TDM_ADDRESS_TEXT] = "";
    const tdm_meeting *m = &o->meeting;
    if (o->ops->address_bytes > 0) TDM_TRY(own_address(o, own));
    TDM_TRY(tdm__hub_open(&o->hub, m));
    TDM_TRY(connect_transport(o, own));
    TDM_TRY(tdm__hosts_comm_new(&o->comm, o->job, m->rank, m->world, TDM_GROUP_ALL, NULL));
    TDM_TRY(tdm__levels_open(o->comm, m->peer, o->facts->job, m->timeout_ms));
    return tdm__hub_await_all(o->hub, m->timeout_ms);
}

/* If a rank is gone, the hub says what went wrong while connecting. A connection that is refused may be known before
 * its rank is. */
static tdm_status explain(opening *o, tdm_status status) {
    tdm_error error;
    tdm_hub_cause cause;
    tdm__error_save(&error);
    if (o->job != NULL && status == TDM_E_COMM) tdm__hub_settle(o->hub, error.message, &cause);
    const bool has_ended = o->hub != NULL && tdm__hub_has_ended(o->hub, &cause);
    if (has_ended && strncmp(cause.why, error.message, sizeof(cause.why) - 1) != 0)
        TDM_FAIL(TDM_E_COMM, "join: %s", cause.why);
    if (o->hub != NULL) tdm__hub_end(o->hub, error.message);
    (void)tdm__error_restore(&error, NULL);
    return status;
}

tdm_status tdm__hosts_open(tdm_comm **out, const tdm_transport_ops *ops, const tdm_launch_facts *facts,
                           const tdm_hosts_options *options) {
    opening o = {.ops = ops, .facts = facts, .options = options};
    *out = NULL;
    TDM_TRY(check(facts, options));
    tdm_status status = prepare(&o);
    if (status == TDM_OK) status = meet(&o);
    if (status == TDM_OK) status = connect_all(&o);
    if (status != TDM_OK)
        status = explain(&o, status);
    else
        *out = &o.comm->comm;
    finish(&o, status);
    return status;
}

void tdm__hosts_fail(const tdm_launch_facts *facts, const tdm_host *host, const char *init_method, const char *why) {
    const tdm_hosts_options options = {
        .host = host, .init_method = init_method, .timeout_ms = FAIL_MS, .heartbeat_ms = FAIL_MS};
    opening o = {.facts = facts, .options = &options, .meeting = {.failure = why}};
    tdm_error before;
    if (check(facts, &options) != TDM_OK) return;
    tdm__error_save(&before);
    if (prepare(&o) == TDM_OK && tdm__address_find(&o.meeting, facts, init_method, NULL) == TDM_OK)
        (void)attend(&o.meeting);
    finish(&o, TDM_OK);
    (void)tdm__error_restore(&before, NULL);
}
