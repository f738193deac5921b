/* The values of a step go to the device, and its outcome comes back. feed.c moves the rows. */
#include "runtime/exec/slots.h"

#include <string.h>

#include "runtime/base/memory.h"
#include "runtime/base/status.h"

/* ---- opening ---- */

static tdm_status open_slot(tdm_replica *replica, tdm_slot *slot) {
    const tdm_device_ops *ops = replica->device->ops;
    TDM_TRY(tdm__replica_allocate(replica, sizeof(*slot->block), &slot->block, "step values"));
    TDM_TRY(ops->events->open(replica->device, TDM_ORDERS, &slot->arrived));
    return ops->events->open(replica->device, TDM_ORDERS, &slot->ended);
}

static tdm_status open_flight(tdm_replica *replica, tdm_flight *flight) {
    const tdm_device_ops *ops = replica->device->ops;
    TDM_TRY(tdm__device_new_host(replica->device, &flight->host, sizeof(*flight->host), "step values"));
    return ops->events->open(replica->device, TDM_WAKES, &flight->done);
}

tdm_status tdm__slots_open(tdm_replica *replica, const tdm_replica_options *options) {
    tdm_device *device = replica->device;
    TDM_TRY(tdm__new(replica->host, &replica->slots, 1, sizeof(*replica->slots), "slots"));
    tdm_slots *s = replica->slots;
    s->rows = options->rows;
    s->parts = options->parts;
    s->target_bytes = options->target_bytes;
    for (int i = 0; i < TDM_SLOTS; i++) TDM_TRY(open_slot(replica, &s->slot[i]));
    for (int i = 0; i < TDM_IN_FLIGHT; i++) TDM_TRY(open_flight(replica, &s->flight[i]));
    replica->block = s->slot[0].block;
    TDM_TRY(device->ops->queues->open(device, TDM_COPIES, &s->up));
    TDM_TRY(device->ops->queues->open(device, TDM_COPIES, &s->down));
    return tdm__samples_open(replica);
}

void tdm__slots_close(tdm_replica *replica) {
    tdm_slots *s = replica->slots;
    tdm_device *device = replica->device;
    const tdm_device_ops *ops = device->ops;
    if (s == NULL) return;
    tdm__feed_end(replica);
    tdm__samples_close(replica);
    if (s->down != NULL) (void)ops->queues->finish(device, s->down); /* a failure was reported before */
    for (int i = 0; i < TDM_SLOTS; i++) {
        ops->release(device, s->slot[i].block);
        ops->events->close(device, s->slot[i].arrived);
        ops->events->close(device, s->slot[i].ended);
    }
    for (int i = 0; i < TDM_IN_FLIGHT; i++) {
        ops->release_host(device, s->flight[i].host);
        ops->events->close(device, s->flight[i].done);
    }
    ops->queues->close(device, s->up);
    ops->queues->close(device, s->down);
    tdm__delete(replica->host, s);
    replica->slots = NULL;
}

/* ---- a step ---- */

static tdm_flight *latest(tdm_slots *s) {
    return &s->flight[(s->begun - 1) % TDM_IN_FLIGHT];
}

/* The step's work begins, with what it has told so far. */
static tdm_status begin(tdm_replica *replica, const tdm_values *values, tdm_outcome outcome) {
    tdm_slots *s = replica->slots;
    tdm_slot *slot = &s->slot[s->current];
    tdm_device *device = replica->device;
    const tdm_device_ops *ops = device->ops;
    s->begun++;
    tdm_flight *flight = latest(s);
    /* The flight is free: its last step has been waited for, because at most TDM_IN_FLIGHT steps are in flight. */
    _Static_assert(TDM_SLOTS > TDM_IN_FLIGHT, "a slot is taken again when its step has been waited for");
    flight->host->outcome = outcome;
    memcpy(flight->host->values, values->of, (size_t)values->count * sizeof(values->of[0]));
    flight->record = NULL;
    flight->paused = false;
    tdm__recorder_begin(replica, values->of[0].step);
    replica->block = slot->block;
    if (slot->used) TDM_TRY(ops->events->wait(device, slot->ended, s->up));
    TDM_TRY(ops->queues->copy(device, s->up, slot->block, flight->host, sizeof(*slot->block)));
    TDM_TRY(ops->events->record(device, slot->arrived, s->up));
    return ops->events->wait(device, slot->arrived, NULL);
}

tdm_status tdm__replica_begin(tdm_replica *replica, const tdm_values *values) {
    return begin(replica, values, (tdm_outcome){.correct = 0});
}

tdm_status tdm__replica_again(tdm_replica *replica, const tdm_values *values) {
    return begin(replica, values, latest(replica->slots)->host->outcome);
}

tdm_status tdm__replica_end(tdm_replica *replica) {
    tdm_slots *s = replica->slots;
    tdm_slot *slot = &s->slot[s->current];
    tdm_device *device = replica->device;
    const tdm_device_ops *ops = device->ops;
    tdm_flight *flight = latest(s);
    flight->record = tdm__recorder_timed(replica);
    slot->used = true;
    TDM_TRY(ops->events->record(device, slot->ended, NULL));
    TDM_TRY(ops->events->wait(device, slot->ended, s->down));
    TDM_TRY(ops->queues->copy(device, s->down, &flight->host->outcome, &slot->block->outcome,
                              sizeof(slot->block->outcome)));
    return ops->events->record(device, flight->done, s->down);
}

tdm_device_event *tdm__replica_awaited(const tdm_replica *replica) {
    const tdm_slots *s = replica->slots;
    return s->flight[s->waited % TDM_IN_FLIGHT].done;
}

tdm_status tdm__replica_wait(tdm_replica *replica, tdm_times *times, const tdm_outcome **outcome) {
    tdm_slots *s = replica->slots;
    const tdm_flight *flight = &s->flight[s->waited % TDM_IN_FLIGHT];
    *outcome = &flight->host->outcome;
    if (s->waited == s->begun) TDM_FAIL(TDM_E_INTERNAL, "exec: no step is in flight");
    s->waited++;
    TDM_TRY(replica->device->ops->events->finish(replica->device, flight->done));
    if (flight->record != NULL) TDM_TRY(tdm__recorder_sample(replica, flight->record, flight->paused));
    tdm__recorder_add_sample(replica, times);
    return TDM_OK;
}

tdm_status tdm__replica_wait_work(tdm_replica *replica) {
    tdm_flight *flight = latest(replica->slots);
    const tdm_record *record = tdm__recorder_timed(replica);
    TDM_TRY(replica->device->ops->queues->finish(replica->device, NULL));
    if (record == NULL) return TDM_OK;
    TDM_TRY(tdm__recorder_sample(replica, record, flight->paused));
    replica->recorder->record = NULL; /* its laps are in the sample, and the step may end here */
    flight->paused = true;
    return TDM_OK;
}

void tdm__replica_abandon(tdm_replica *replica) {
    for (int k = 0; k < replica->plan->stage_count; k++) {
        tdm_slots *s = replica->stages[k]->slots;
        s->waited = s->begun;
    }
}
