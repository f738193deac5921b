/* All replicas at once. On the CPU work is done when it is put, so threads and their end are all there is. On discrete
 * devices it is queued: between two phases the queues wait for each other by events, and the host for nothing. */
#include <stdio.h>

#include "modes/data_parallel.h"
#include "runtime/base/memory.h"
#include "runtime/base/status.h"

static tdm_status open_events(dp *d) {
    const tdm_mode_params *params = &d->base.params;
    TDM_TRY(tdm__new(params->host, &d->event, (size_t)d->count, sizeof(tdm_device_event *), "events"));
    d->reaches = true;
    for (int i = 0; i < d->count; i++) {
        tdm_device *device = d->replica[i]->device;
        TDM_TRY(device->ops->event_open(device, TDM_ORDERS, &d->event[i]));
        for (int k = 0; k < d->count; k++)
            d->reaches = d->reaches && device->ops->reaches(device, d->replica[k]->device);
    }
    /* Copies between devices that do not reach each other go through the host, which CUDA does not promise to capture.
     */
    d->replica[0]->captures = d->replica[0]->captures && d->reaches;
    return TDM_OK;
}

tdm_status tdm__dp_open_devices(dp *d) {
    const tdm_mode_params *params = &d->base.params;
    if (d->count == 1) return TDM_OK;
    TDM_TRY(tdm__new(params->host, &d->worker, (size_t)d->count, sizeof(tdm_worker *), "threads"));
    for (int i = 0; i < d->count; i++) {
        char name[16];
        snprintf(name, sizeof(name), "dp %d", i);
        TDM_TRY(tdm__worker_open(&d->worker[i], params->host, name));
    }
    return params->device->discrete ? open_events(d) : TDM_OK;
}

void tdm__dp_close_devices(dp *d) {
    const tdm_host *host = d->base.params.host;
    for (int i = 0; d->worker != NULL && i < d->count; i++) tdm__worker_close(d->worker[i]);
    for (int i = 0; d->event != NULL && i < d->count; i++)
        if (d->event[i] != NULL) d->replica[i]->device->ops->event_close(d->replica[i]->device, d->event[i]);
    tdm__delete(host, d->worker);
    tdm__delete(host, d->event);
}

/* ---- queues ---- */

static tdm_status wait_for(dp *d, int queue, int other) {
    tdm_device *device = d->replica[queue]->device;
    return device->ops->event_wait(device, d->event[other], NULL);
}

static tdm_status record(dp *d, int queue) {
    tdm_device *device = d->replica[queue]->device;
    return device->ops->event_record(device, d->event[queue], NULL);
}

tdm_status tdm__dp_join(dp *d) {
    for (int i = 1; d->event != NULL && i < d->count; i++) {
        TDM_TRY(record(d, i));
        TDM_TRY(wait_for(d, 0, i));
    }
    return TDM_OK;
}

tdm_status tdm__dp_fork(dp *d) {
    if (d->event == NULL) return TDM_OK;
    TDM_TRY(record(d, 0));
    for (int i = 1; i < d->count; i++) TDM_TRY(wait_for(d, i, 0));
    return TDM_OK;
}

tdm_status tdm__dp_meet(dp *d) {
    TDM_TRY(tdm__dp_join(d));
    return tdm__dp_fork(d);
}

/* ---- everyone ---- */

static tdm_status run_task(void *argument) {
    dp_task *task = argument;
    return task->fn(task);
}

/* Which replica it was stands in front of the message. */
static void name_replica(const dp *d, int i, tdm_error *error) {
    char prefix[48];
    snprintf(prefix, sizeof(prefix), "replica %d (%s): ", i, d->replica[i]->device->name);
    tdm__error_save(error);
    tdm__error_restore(error, prefix);
    tdm__error_save(error);
}

static tdm_status each_in_its_thread(dp *d, tdm_worker_fn fn) {
    tdm_status first = TDM_OK;
    tdm_error error;
    for (int i = 0; i < d->count; i++) {
        d->task[i].fn = fn;
        tdm_status status = tdm__worker_start(d->worker[i], run_task, &d->task[i]);
        if (status != TDM_OK && first == TDM_OK) first = status, tdm__error_save(&error);
    }
    for (int i = 0; i < d->count; i++) {
        tdm_status status = tdm__worker_wait(d->worker[i], -1);
        if (status == TDM_OK || first != TDM_OK) continue;
        name_replica(d, i, &error);
        first = status;
    }
    return first == TDM_OK ? TDM_OK : tdm__error_restore(&error, NULL);
}

tdm_status tdm__dp_in_turn(dp *d, tdm_worker_fn fn) {
    for (int i = 0; i < d->count; i++) {
        tdm_error error;
        if (fn(&d->task[i]) == TDM_OK) continue;
        name_replica(d, i, &error);
        return tdm__error_restore(&error, NULL);
    }
    return TDM_OK;
}

tdm_status tdm__dp_each(dp *d, tdm_worker_fn fn) {
    if (d->count == 1) return fn(&d->task[0]);
    TDM_TRY(d->replica[0]->capturing ? tdm__dp_in_turn(d, fn) : each_in_its_thread(d, fn));
    return tdm__dp_meet(d);
}
