#include "modes/parallel_apply.h"

#include <stdio.h>

#include "runtime/base/memory.h"
#include "runtime/base/status.h"

static tdm_status open_member(tdm_team *team, int i) {
    tdm_device *device = team->replica[i]->device;
    TDM_TRY(tdm__worker_open(&team->member[i].worker, team->host, TDM_THREAD_REPLICA, i, device->index));
    TDM_TRY(device->ops->events->open(device, TDM_ORDERS, &team->member[i].event));
    for (int k = 0; k < team->count && device->ops->reaches != NULL; k++)
        team->reaches = team->reaches && device->ops->reaches(device, team->replica[k]->device);
    return TDM_OK;
}

tdm_status tdm__team_open(tdm_team *team, const tdm_host *host, tdm_replica *const *replica, int count) {
    *team = (tdm_team){.host = host, .count = count, .replica = replica, .reaches = true};
    TDM_TRY(tdm__new(host, &team->member, (size_t)count, sizeof(*team->member), "threads"));
    for (int i = 0; count > 1 && i < count; i++) TDM_TRY(open_member(team, i));
    /* Copies between devices that do not reach each other go through the host; CUDA does not promise to capture them.
     */
    if (!team->reaches) tdm__replica_set_captures(replica[0], TDM_CAPTURES_NEVER);
    return TDM_OK;
}

void tdm__team_close(tdm_team *team) {
    if (team->member == NULL) return;
    for (int i = 0; i < team->count; i++) {
        const tdm_team_member *member = &team->member[i];
        tdm_device *device = team->replica[i]->device;
        tdm__worker_close(member->worker);
        if (member->event != NULL) device->ops->events->close(device, member->event);
    }
    tdm__delete(team->host, team->member);
    team->member = NULL;
}

/* ---- queues ---- */

static tdm_status wait_for(tdm_team *team, int queue, int other) {
    tdm_device *device = team->replica[queue]->device;
    return device->ops->events->wait(device, team->member[other].event, NULL);
}

static tdm_status record(tdm_team *team, int queue) {
    tdm_device *device = team->replica[queue]->device;
    return device->ops->events->record(device, team->member[queue].event, NULL);
}

tdm_status tdm__queues_join(tdm_team *team) {
    for (int i = 1; i < team->count; i++) {
        TDM_TRY(record(team, i));
        TDM_TRY(wait_for(team, 0, i));
    }
    return TDM_OK;
}

tdm_status tdm__queues_fork(tdm_team *team) {
    if (team->count == 1) return TDM_OK;
    TDM_TRY(record(team, 0));
    for (int i = 1; i < team->count; i++) TDM_TRY(wait_for(team, i, 0));
    return TDM_OK;
}

tdm_status tdm__queues_sync(tdm_team *team) {
    TDM_TRY(tdm__queues_join(team));
    return tdm__queues_fork(team);
}

/* ---- all replicas ---- */

typedef struct replica_call {
    tdm_replica_fn fn;
    void *user;
    int replica;
} replica_call;

static tdm_status run_call(void *argument) {
    const replica_call *call = argument;
    return call->fn(call->user, call->replica);
}

/* The message begins with the replica that failed. */
static void name_replica(const tdm_team *team, int i, tdm_error *error) {
    char prefix[48];
    snprintf(prefix, sizeof(prefix), "replica %d (%s): ", i, team->replica[i]->device->name);
    tdm__error_save(error);
    tdm__error_restore(error, prefix);
    tdm__error_save(error);
}

static tdm_status in_parallel(tdm_team *team, tdm_replica_fn fn, void *user) {
    replica_call call[TDM_REPLICAS_MAX];
    tdm_status first = TDM_OK;
    tdm_error error;
    for (int i = 0; i < team->count; i++) {
        call[i] = (replica_call){fn, user, i};
        tdm_status status = tdm__worker_start(team->member[i].worker, run_call, &call[i]);
        if (status != TDM_OK && first == TDM_OK) first = status, tdm__error_save(&error);
    }
    for (int i = 0; i < team->count; i++) {
        tdm_status status = tdm__worker_wait(team->member[i].worker);
        if (status == TDM_OK || first != TDM_OK) continue;
        name_replica(team, i, &error);
        first = status;
    }
    return first == TDM_OK ? TDM_OK : tdm__error_restore(&error, NULL);
}

tdm_status tdm__apply_in_turn(tdm_team *team, tdm_replica_fn fn, void *user) {
    for (int i = 0; i < team->count; i++) {
        tdm_error error;
        if (fn(user, i) == TDM_OK) continue;
        name_replica(team, i, &error);
        return tdm__error_restore(&error, NULL);
    }
    return TDM_OK;
}

tdm_status tdm__parallel_apply(tdm_team *team, tdm_replica_fn fn, void *user) {
    if (team->count == 1) return fn(user, 0);
    const bool in_turn = tdm__replica_is_capturing(team->replica[0]);
    TDM_TRY(in_turn ? tdm__apply_in_turn(team, fn, user) : in_parallel(team, fn, user));
    return tdm__queues_sync(team);
}
