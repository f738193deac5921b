/* Rows on their way to the device. Where its memory is the host's they stay where they are. */
#include <string.h>

#include "runtime/base/round.h"
#include "runtime/base/status.h"
#include "runtime/exec/slots.h"

/* ---- where batches come from ---- */

/* What every ingest of this replica has in common. */
static tdm_ingest new_ingest(const tdm_replica *replica) {
    const tdm_plan *plan = replica->plan;
    const tdm_shape *sample = &plan->graph->sample;
    const tdm_plan_value *batch = &plan->values[plan->input];
    return (tdm_ingest){.channels = sample->dim[0],
                        .points = tdm__shape_count(sample) / sample->dim[0],
                        .precision = plan->options.precision,
                        .layout = batch->layout,
                        .x_channels = batch->channels > 0 ? batch->channels : sample->dim[0]};
}

static tdm_status open_rows(tdm_replica *replica, tdm_slot *slot, size_t rows, size_t target_bytes, size_t packed_bytes,
                            const char *what) {
    TDM_TRY(tdm__replica_allocate(replica, packed_bytes, &slot->packed, what));
    TDM_TRY(tdm__replica_allocate(replica, rows * sizeof(int64_t), &slot->position, what));
    TDM_TRY(tdm__replica_allocate(replica, rows * target_bytes, &slot->target, what));
    return tdm__replica_allocate(replica, rows * replica->plan->input_row_bytes, &slot->x, what);
}

static void close_rows(tdm_replica *replica, tdm_slot *slot) {
    const tdm_device_ops *ops = replica->device->ops;
    ops->release(replica->device, slot->packed);
    ops->release(replica->device, slot->position);
    ops->release(replica->device, slot->target);
    ops->release(replica->device, slot->x);
    slot->packed = slot->target = slot->x = NULL;
    slot->position = NULL;
    slot->used = false;
}

void tdm__feed_end(tdm_replica *replica) {
    tdm_slots *s = replica->slots;
    const tdm_device_ops *ops = replica->device->ops;
    if (s->up != NULL) (void)ops->queues->finish(replica->device, s->up);
    tdm__replica_forget(replica); /* captured work reads the slots; a failure was reported before */
    for (int i = 0; i < TDM_SLOTS; i++) close_rows(replica, &s->slot[i]);
    tdm__resident_close(&s->resident, replica->device);
    s->prefetched = false;
    replica->memory_bytes -= s->fed_bytes;
    s->fed_bytes = 0;
}

static tdm_status feed_stage(tdm_replica *replica, const tdm_feed *feed) {
    tdm_slots *s = replica->slots;
    tdm_device *device = replica->device;
    tdm__feed_end(replica);
    if (feed == NULL || tdm__replica_in_host(replica)) return TDM_OK;
    const size_t before = replica->memory_bytes;
    s->packing = *feed->packing;
    TDM_TRY(tdm__resident_open(&s->resident, replica, feed));
    for (int i = 0; i < TDM_SLOTS; i++)
        TDM_TRY(open_rows(replica, &s->slot[i], (size_t)s->rows * (size_t)s->parts, s->target_bytes,
                          s->packing.bytes * (size_t)s->parts, "batch slots"));
    TDM_TRY(device->ops->queues->finish(device, NULL)); /* allocation zeroes the slots here, and `up` writes them */
    s->current = 0;
    s->ingest = new_ingest(replica);
    s->ingest.target_at = s->packing.target_at;
    s->ingest.x_at = s->packing.x_at;
    s->ingest.target_bytes = s->packing.target_bytes;
    s->ingest.samples = s->resident.samples;
    s->ingest.targets = s->resident.targets;
    s->ingest.table = s->resident.table;
    s->ingest.bytes = s->resident.table != NULL;
    s->ingest.table_channels = s->resident.table_channels;
    s->fed_bytes = replica->memory_bytes - before;
    return TDM_OK;
}

tdm_status tdm__replica_feed(tdm_replica *replica, const tdm_feed *feed) {
    for (int k = 0; k < replica->plan->stage_count; k++) TDM_TRY(feed_stage(replica->stages[k], feed));
    return TDM_OK;
}

/* ---- the batches of steps ---- */

static tdm_status send_part(const tdm_replica *replica, const tdm_slot *slot, int part, const tdm_shard *shard) {
    const tdm_slots *s = replica->slots;
    tdm_device *device = replica->device;
    size_t first = (size_t)part * (size_t)s->rows;
    tdm_ingest ingest = s->ingest;
    char *packed = slot->packed + (size_t)part * s->packing.bytes;
    if (shard->rows == 0) return TDM_OK;
    if (part >= s->parts || shard->rows > s->rows)
        TDM_FAIL(TDM_E_INTERNAL, "exec: %lld rows in part %d of a batch, there is room for %lld in each of %d",
                 (long long)shard->rows, part, (long long)s->rows, s->parts);
    TDM_TRY(
        device->ops->queues->copy(device, s->up, packed, shard->block, tdm__packing_used(&s->packing, shard->rows)));
    ingest.packed = packed;
    ingest.rows = shard->rows;
    ingest.x = slot->x + first * replica->plan->input_row_bytes;
    ingest.target = slot->target + first * s->target_bytes;
    ingest.position = slot->position + first;
    return device->ops->arenas->ingest(device, s->up, &ingest);
}

tdm_status tdm__replica_prefetch(tdm_replica *replica, const tdm_shard *parts, int count) {
    tdm_slots *s = replica->slots;
    const tdm_slot *slot = &s->slot[(s->current + 1) % TDM_SLOTS];
    if (s->prefetched || slot->packed == NULL) return TDM_OK;
    if (slot->used) TDM_TRY(replica->device->ops->events->wait(replica->device, slot->ended, s->up));
    for (int i = 0; i < count; i++) TDM_TRY(send_part(replica, slot, i, &parts[i]));
    s->prefetched = true;
    s->expected = parts[0].block;
    return TDM_OK;
}

tdm_status tdm__replica_drop_prefetched(tdm_replica *replica) {
    for (int k = 0; k < replica->plan->stage_count; k++) {
        const tdm_replica *stage = replica->stages[k];
        stage->slots->prefetched = false;
        TDM_TRY(stage->device->ops->queues->finish(stage->device, stage->slots->up));
    }
    return TDM_OK;
}

static tdm_rows host_rows(const tdm_shard *shard) {
    return (tdm_rows){.rows = shard->rows, .x = shard->x, .target = shard->target, .position = shard->position};
}

static tdm_rows slot_rows(const tdm_replica *replica, const tdm_slot *slot, int part, int64_t rows) {
    size_t first = (size_t)part * (size_t)replica->slots->rows;
    return (tdm_rows){.rows = rows,
                      .x = slot->x + first * replica->plan->input_row_bytes,
                      .target = slot->target + first * replica->slots->target_bytes,
                      .position = slot->position + first};
}

/* Slots are always taken in the same order, because captured work belongs to a slot. */
tdm_status tdm__replica_take(tdm_replica *replica, const tdm_shard *parts, int count, tdm_rows *out) {
    tdm_slots *s = replica->slots;
    if (s->prefetched && s->expected != parts[0].block)
        TDM_FAIL(TDM_E_INTERNAL, "exec: the step's batch is not the one that was prefetched");
    TDM_TRY(tdm__replica_prefetch(replica, parts, count));
    s->prefetched = false;
    s->current = (s->current + 1) % TDM_SLOTS;
    tdm__replica_rows(replica, parts, count, out);
    return TDM_OK;
}

void tdm__replica_rows(const tdm_replica *replica, const tdm_shard *parts, int count, tdm_rows *out) {
    const tdm_slot *slot = &replica->slots->slot[replica->slots->current];
    for (int i = 0; i < count; i++)
        out[i] = slot->packed == NULL ? host_rows(&parts[i]) : slot_rows(replica, slot, i, parts[i].rows);
}

/* ---- samples outside of steps ---- */

tdm_status tdm__samples_open(tdm_replica *replica) {
    tdm_slots *s = replica->slots;
    tdm_device *device = replica->device;
    const tdm_plan *plan = replica->plan;
    size_t rows = (size_t)plan->options.rows;
    if (tdm__replica_in_host(replica)) return TDM_OK;
    s->sample_at = tdm__round_up(rows * sizeof(int64_t), TDM_ALIGN);
    s->sample_bytes = (size_t)tdm__shape_count(&plan->graph->sample) * sizeof(float);
    size_t bytes = s->sample_at + rows * s->sample_bytes;
    void *host = NULL;
    TDM_TRY(device->ops->allocate_host(device, &host, bytes, "samples to evaluate"));
    s->sample_host = host;
    memset(s->sample_host, 0, s->sample_at);
    return open_rows(replica, &s->samples, rows, 0, bytes, "samples to evaluate");
}

void tdm__samples_close(tdm_replica *replica) {
    close_rows(replica, &replica->slots->samples);
    replica->device->ops->release_host(replica->device, replica->slots->sample_host);
}

tdm_status tdm__replica_take_samples(tdm_replica *replica, const tdm_shard *shard, tdm_rows *out) {
    tdm_device *device = replica->device;
    const tdm_slots *s = replica->slots;
    *out = host_rows(shard);
    if (s->sample_host == NULL || shard->rows == 0) return TDM_OK;
    if (shard->rows > replica->plan->options.rows)
        TDM_FAIL(TDM_E_INTERNAL, "exec: %lld samples, there is room for %lld", (long long)shard->rows,
                 (long long)replica->plan->options.rows);
    size_t bytes = (size_t)shard->rows * s->sample_bytes;
    memcpy(s->sample_host + s->sample_at, shard->x, bytes);
    TDM_TRY(device->ops->queues->copy(device, NULL, s->samples.packed, s->sample_host, s->sample_at + bytes));
    tdm_ingest ingest = new_ingest(replica);
    ingest.packed = s->samples.packed;
    ingest.x_at = s->sample_at;
    ingest.rows = shard->rows;
    ingest.x = s->samples.x;
    ingest.position = s->samples.position;
    *out = (tdm_rows){.rows = shard->rows, .x = s->samples.x, .position = s->samples.position};
    return device->ops->arenas->ingest(device, NULL, &ingest);
}
