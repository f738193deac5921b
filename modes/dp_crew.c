#include "modes/dp_crew.h"

#include <stdio.h>

#include "runtime/base/memory.h"
#include "runtime/base/status.h"

static tdm_status open_member(dp_crew *crew, int i) {
    tdm_device *device = crew->replica[i]->device;
    char name[16];
    snprintf(name, sizeof(name), "dp %d", i);
    TDM_TRY(tdm__worker_open(&crew->member[i].worker, crew->host, name));
    TDM_TRY(device->ops->event_open(device, TDM_ORDERS, &crew->member[i].event));
    for (int k = 0; k < crew->count && device->ops->reaches != NULL; k++)
        crew->reaches = crew->reaches && device->ops->reaches(device, crew->replica[k]->device);
    return TDM_OK;
}

tdm_status tdm__crew_open(dp_crew *crew, const tdm_host *host, tdm_replica *const *replica, int count) {
    *crew = (dp_crew){.host = host, .count = count, .replica = replica, .reaches = true};
    TDM_TRY(tdm__new(host, &crew->member, (size_t)count, sizeof(*crew->member), "threads"));
    for (int i = 0; i < count; i++) crew->member[i].index = i;
    for (int i = 0; count > 1 && i < count; i++) TDM_TRY(open_member(crew, i));
    /* Copies between devices that do not reach each other go through the host, which CUDA does not promise to capture.
     */
    if (!crew->reaches) tdm__replica_set_captures(replica[0], TDM_CAPTURES_NEVER);
    return TDM_OK;
}

void tdm__crew_close(dp_crew *crew) {
    if (crew->member == NULL) return;
    for (int i = 0; i < crew->count; i++) {
        const dp_member *member = &crew->member[i];
        tdm_device *device = crew->replica[i]->device;
        tdm__worker_close(member->worker);
        if (member->event != NULL) device->ops->event_close(device, member->event);
    }
    tdm__delete(crew->host, crew->member);
    crew->member = NULL;
}

/* ---- queues ---- */

static tdm_status wait_for(dp_crew *crew, int queue, int other) {
    tdm_device *device = crew->replica[queue]->device;
    return device->ops->event_wait(device, crew->member[other].event, NULL);
}

static tdm_status record(dp_crew *crew, int queue) {
    tdm_device *device = crew->replica[queue]->device;
    return device->ops->event_record(device, crew->member[queue].event, NULL);
}

tdm_status tdm__crew_join(dp_crew *crew) {
    for (int i = 1; i < crew->count; i++) {
        TDM_TRY(record(crew, i));
        TDM_TRY(wait_for(crew, 0, i));
    }
    return TDM_OK;
}

tdm_status tdm__crew_fork(dp_crew *crew) {
    if (crew->count == 1) return TDM_OK;
    TDM_TRY(record(crew, 0));
    for (int i = 1; i < crew->count; i++) TDM_TRY(wait_for(crew, i, 0));
    return TDM_OK;
}

tdm_status tdm__crew_meet(dp_crew *crew) {
    TDM_TRY(tdm__crew_join(crew));
    return tdm__crew_fork(crew);
}

/* ---- everyone ---- */

static tdm_status run_member(void *argument) {
    const dp_member *member = argument;
    return member->fn(member->user, member->index);
}

/* The message begins with the replica that failed. */
static void name_replica(const dp_crew *crew, int i, tdm_error *error) {
    char prefix[48];
    snprintf(prefix, sizeof(prefix), "replica %d (%s): ", i, crew->replica[i]->device->name);
    tdm__error_save(error);
    tdm__error_restore(error, prefix);
    tdm__error_save(error);
}

static tdm_status each_in_its_thread(dp_crew *crew, dp_fn fn, void *user) {
    tdm_status first = TDM_OK;
    tdm_error error;
    for (int i = 0; i < crew->count; i++) {
        dp_member *member = &crew->member[i];
        member->fn = fn;
        member->user = user;
        tdm_status status = tdm__worker_start(member->worker, run_member, member);
        if (status != TDM_OK && first == TDM_OK) first = status, tdm__error_save(&error);
    }
    for (int i = 0; i < crew->count; i++) {
        tdm_status status = tdm__worker_wait(crew->member[i].worker, -1);
        if (status == TDM_OK || first != TDM_OK) continue;
        name_replica(crew, i, &error);
        first = status;
    }
    return first == TDM_OK ? TDM_OK : tdm__error_restore(&error, NULL);
}

tdm_status tdm__crew_in_turn(dp_crew *crew, dp_fn fn, void *user) {
    for (int i = 0; i < crew->count; i++) {
        tdm_error error;
        if (fn(user, i) == TDM_OK) continue;
        name_replica(crew, i, &error);
        return tdm__error_restore(&error, NULL);
    }
    return TDM_OK;
}

tdm_status tdm__crew_each(dp_crew *crew, dp_fn fn, void *user) {
    if (crew->count == 1) return fn(user, 0);
    const bool in_turn = tdm__replica_is_capturing(crew->replica[0]);
    TDM_TRY(in_turn ? tdm__crew_in_turn(crew, fn, user) : each_in_its_thread(crew, fn, user));
    return tdm__crew_meet(crew);
}
