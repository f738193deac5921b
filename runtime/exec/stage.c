/* A place holds what differs from step to step: rows, values, outcome. There are several, used in turn. While the work
 * of a step runs on the device's queue, the batches of the next steps are copied and ingested, and their values copied,
 * on a queue that leads up, each behind the work that last used its place; and outcomes come back on one that leads
 * down. So from one step's work to the next there is nothing on the device's own queue. */
#include "runtime/exec/stage.h"

#include <string.h>

#include "runtime/base/memory.h"
#include "runtime/base/round.h"
#include "runtime/base/status.h"
#include "runtime/exec/resident.h"

enum { NO_TICKET = -1 };

typedef struct place {
    char *packed;      /* `parts` blocks as the loader makes them */
    int64_t *position; /* where kernels read them: [parts][rows] */
    char *target, *x;
    tdm_device_event *arrived; /* on the queue that leads up: all of this step's is here */
    tdm_device_event *left;    /* on the device's own: its work is done */
    bool used;                 /* `left` has been recorded */
    int64_t ticket;            /* of the batch that is there or on its way; NO_TICKET */
} place;

struct tdm_stage {
    int64_t rows; /* at most, of a part */
    int parts;
    size_t target_bytes;
    size_t bytes; /* of all this on the device */
    tdm_queue *up, *down;

    /* Samples in host memory that no step is made of: evaluation and predictions. */
    size_t sample_at, sample_bytes;
    char *sample_host, *sample_packed, *sample_x;
    int64_t *sample_position;

    /* The batches of steps; nothing before tdm__replica_feed. */
    tdm_packing packing;
    place place[TDM_PLACES];
    int current;
    tdm_resident resident;
    tdm_ingest ingest; /* what that of every batch has in common */
};

static tdm_status allocate(tdm_stage *s, tdm_device *device, size_t bytes, void *out, const char *what) {
    void *memory = NULL;
    TDM_TRY(device->ops->allocate(device, &memory, bytes, what));
    memcpy(out, &memory, sizeof(memory)); /* any T *: they have one representation on the platforms tandem runs on */
    s->bytes += bytes;
    return TDM_OK;
}

/* ---- opening ---- */

/* What every ingest of this replica has in common. */
static tdm_ingest new_ingest(const tdm_replica *replica) {
    const tdm_plan *plan = replica->plan;
    const tdm_shape *sample = &plan->graph->values[plan->graph->input].shape;
    const tdm_plan_value *batch = &plan->values[plan->input];
    return (tdm_ingest){.channels = sample->dim[0],
                        .points = tdm__shape_count(sample) / sample->dim[0],
                        .precision = plan->options.precision,
                        .layout = batch->layout,
                        .x_channels = batch->channels > 0 ? batch->channels : sample->dim[0]};
}

static tdm_status open_samples(tdm_stage *s, tdm_replica *replica) {
    tdm_device *device = replica->device;
    const tdm_plan *plan = replica->plan;
    size_t rows = (size_t)plan->options.rows;
    s->sample_at = tdm__round_up(rows * sizeof(int64_t), TDM_ALIGN);
    s->sample_bytes = (size_t)tdm__shape_count(&plan->graph->values[plan->graph->input].shape) * sizeof(float);
    size_t bytes = s->sample_at + rows * s->sample_bytes;
    void *host = NULL;
    TDM_TRY(device->ops->allocate_host(device, &host, bytes, "samples to evaluate"));
    s->sample_host = host;
    memset(s->sample_host, 0, s->sample_at);
    TDM_TRY(allocate(s, device, bytes, &s->sample_packed, "samples to evaluate"));
    TDM_TRY(allocate(s, device, rows * sizeof(int64_t), &s->sample_position, "samples to evaluate"));
    return allocate(s, device, rows * plan->input_row_bytes, &s->sample_x, "samples to evaluate");
}

tdm_status tdm__stage_open(tdm_stage **out, tdm_replica *replica, int64_t rows, int parts, size_t target_bytes) {
    tdm_device *device = replica->device;
    *out = NULL;
    TDM_TRY(tdm__new(replica->host, out, 1, sizeof(**out), "stage"));
    (*out)->rows = rows;
    (*out)->parts = parts;
    (*out)->target_bytes = target_bytes;
    TDM_TRY(open_samples(*out, replica));
    TDM_TRY(device->ops->queue_open(device, TDM_COPIES, &(*out)->up));
    return device->ops->queue_open(device, TDM_COPIES, &(*out)->down);
}

static void close_place(place *p, tdm_device *device) {
    device->ops->release(device, p->packed);
    device->ops->release(device, p->position);
    device->ops->release(device, p->target);
    device->ops->release(device, p->x);
    if (p->arrived != NULL) device->ops->event_close(device, p->arrived);
    if (p->left != NULL) device->ops->event_close(device, p->left);
    *p = (place){.ticket = NO_TICKET};
}

static tdm_status open_place(tdm_stage *s, place *p, const tdm_replica *replica) {
    tdm_device *device = replica->device;
    size_t rows = (size_t)s->rows * (size_t)s->parts;
    p->ticket = NO_TICKET;
    TDM_TRY(allocate(s, device, s->packing.bytes * (size_t)s->parts, &p->packed, "a batch on its way"));
    TDM_TRY(allocate(s, device, rows * sizeof(int64_t), &p->position, "the batch's positions"));
    TDM_TRY(allocate(s, device, rows * s->target_bytes, &p->target, "the batch's targets"));
    TDM_TRY(allocate(s, device, rows * replica->plan->input_row_bytes, &p->x, "the batch"));
    TDM_TRY(device->ops->event_open(device, TDM_ORDERS, &p->arrived));
    return device->ops->event_open(device, TDM_ORDERS, &p->left);
}

static void leave_feed(tdm_stage *s, tdm_device *device) {
    if (s->up != NULL) (void)device->ops->finish(device, s->up);
    (void)device->ops->finish(device, NULL); /* a failure of either was told before */
    for (int i = 0; i < TDM_PLACES; i++) close_place(&s->place[i], device);
    tdm__resident_close(&s->resident, device);
}

void tdm__stage_close(tdm_stage *s, tdm_replica *replica) {
    if (s == NULL) return;
    tdm_device *device = replica->device;
    leave_feed(s, device);
    if (s->down != NULL) (void)device->ops->finish(device, s->down);
    device->ops->release(device, s->sample_packed);
    device->ops->release(device, s->sample_position);
    device->ops->release(device, s->sample_x);
    device->ops->release_host(device, s->sample_host);
    if (s->up != NULL) device->ops->queue_close(device, s->up);
    if (s->down != NULL) device->ops->queue_close(device, s->down);
    tdm__delete(replica->host, s);
}

size_t tdm__stage_bytes(const tdm_stage *stage) {
    return stage->bytes + stage->resident.bytes;
}

/* ---- where batches come from ---- */

tdm_status tdm__replica_feed(tdm_replica *replica, const tdm_feed *feed) {
    tdm_stage *s = replica->stage;
    tdm_device *device = replica->device;
    if (s == NULL) return TDM_OK;
    leave_feed(s, device);
    if (feed == NULL) return TDM_OK;
    size_t before = tdm__stage_bytes(s);
    s->packing = *feed->packing;
    TDM_TRY(tdm__resident_open(&s->resident, device, feed));
    for (int i = 0; i < TDM_PLACES; i++) TDM_TRY(open_place(s, &s->place[i], replica));
    TDM_TRY(device->ops->finish(device, NULL)); /* the zeroing of memory that another queue writes */
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
    replica->memory_bytes += tdm__stage_bytes(s) - before;
    return TDM_OK;
}

/* ---- a batch ---- */

static int next_place(const tdm_stage *s) {
    return (s->current + 1) % TDM_PLACES;
}

static tdm_status send_part(tdm_stage *s, const tdm_replica *replica, int index, int part, const tdm_shard *shard) {
    const place *p = &s->place[index];
    tdm_device *device = replica->device;
    size_t first = (size_t)part * (size_t)s->rows;
    tdm_ingest ingest = s->ingest;
    char *packed = p->packed + (size_t)part * s->packing.bytes;
    if (shard->rows == 0) return TDM_OK;
    if (part >= s->parts || shard->rows > s->rows)
        TDM_FAIL(TDM_E_INTERNAL, "exec: %lld rows in part %d of a batch, there is room for %lld in each of %d",
                 (long long)shard->rows, part, (long long)s->rows, s->parts);
    TDM_TRY(device->ops->copy(device, s->up, packed, shard->block, tdm__packing_used(&s->packing, shard->rows)));
    ingest.packed = packed;
    ingest.rows = shard->rows;
    ingest.x = p->x + first * replica->plan->input_row_bytes;
    ingest.target = p->target + first * s->target_bytes;
    ingest.position = p->position + first;
    return device->ops->ingest(device, s->up, &ingest);
}

static tdm_status send(tdm_stage *s, const tdm_replica *replica, int index, const tdm_shard *parts, int count,
                       int64_t ticket) {
    place *p = &s->place[index];
    tdm_device *device = replica->device;
    if (p->used) TDM_TRY(device->ops->event_wait(device, p->left, s->up));
    p->ticket = ticket;
    for (int i = 0; i < count; i++) TDM_TRY(send_part(s, replica, index, i, &parts[i]));
    return TDM_OK;
}

static tdm_rows host_rows(const tdm_shard *shard) {
    return (tdm_rows){.rows = shard->rows, .x = shard->x, .target = shard->target, .position = shard->position};
}

/* A batch is looked for only where the last prefetch has put it, so that places are taken in one order, whatever comes:
 * what is captured belongs to a place. */
tdm_status tdm__replica_place(tdm_replica *replica, const tdm_shard *parts, int count, int64_t ticket, tdm_rows *out) {
    tdm_stage *s = replica->stage;
    for (int i = 0; s == NULL && i < count; i++) out[i] = host_rows(&parts[i]);
    if (s == NULL) return TDM_OK;
    int index = next_place(s);
    if (s->place[index].ticket != ticket) TDM_TRY(send(s, replica, index, parts, count, ticket));
    s->current = index;
    s->place[index].ticket = NO_TICKET; /* from here on it is this step's */
    for (int i = 0; i < count; i++) {
        size_t first = (size_t)i * (size_t)s->rows;
        out[i] = (tdm_rows){.rows = parts[i].rows,
                            .x = s->place[index].x + first * replica->plan->input_row_bytes,
                            .target = s->place[index].target + first * s->target_bytes,
                            .position = s->place[index].position + first};
    }
    return TDM_OK;
}

tdm_status tdm__replica_prefetch(tdm_replica *replica, const tdm_shard *parts, int count, int64_t ticket) {
    tdm_stage *s = replica->stage;
    return s != NULL ? send(s, replica, next_place(s), parts, count, ticket) : TDM_OK;
}

tdm_status tdm__replica_drop_prefetched(tdm_replica *replica) {
    tdm_stage *s = replica->stage;
    if (s == NULL) return TDM_OK;
    for (int i = 0; i < TDM_PLACES; i++) s->place[i].ticket = NO_TICKET;
    return replica->device->ops->finish(replica->device, s->up);
}

int tdm__stage_place(const tdm_stage *stage) {
    return stage->current;
}

tdm_status tdm__stage_begin(tdm_stage *s, tdm_replica *replica, const tdm_flight *flight) {
    tdm_device *device = replica->device;
    place *p = &s->place[s->current];
    /* Its last outcome has come back: the step that left it there was settled before another could begin. */
    _Static_assert(TDM_PLACES > TDM_FLIGHTS, "a place is taken again when its step is settled");
    if (p->used) TDM_TRY(device->ops->event_wait(device, p->left, s->up));
    TDM_TRY(device->ops->copy(device, s->up, replica->block, flight->host, sizeof(*replica->block)));
    TDM_TRY(device->ops->event_record(device, p->arrived, s->up));
    return device->ops->event_wait(device, p->arrived, NULL);
}

tdm_status tdm__stage_leave(tdm_stage *s, tdm_replica *replica, const tdm_flight *flight) {
    tdm_device *device = replica->device;
    place *p = &s->place[s->current];
    p->used = true;
    TDM_TRY(device->ops->event_record(device, p->left, NULL));
    TDM_TRY(device->ops->event_wait(device, p->left, s->down));
    TDM_TRY(device->ops->copy(device, s->down, &flight->host->outcome, &replica->block->outcome,
                              sizeof(replica->block->outcome)));
    return device->ops->event_record(device, flight->done, s->down);
}

/* ---- samples that no step is made of ---- */

tdm_status tdm__replica_place_samples(tdm_replica *replica, const tdm_shard *shard, tdm_rows *out) {
    tdm_device *device = replica->device;
    tdm_stage *s = replica->stage;
    *out = host_rows(shard);
    if (s == NULL || shard->rows == 0) return TDM_OK;
    if (shard->rows > replica->plan->options.rows)
        TDM_FAIL(TDM_E_INTERNAL, "exec: %lld samples, there is room for %lld", (long long)shard->rows,
                 (long long)replica->plan->options.rows);
    size_t bytes = (size_t)shard->rows * s->sample_bytes;
    memcpy(s->sample_host + s->sample_at, shard->x, bytes);
    TDM_TRY(device->ops->copy(device, NULL, s->sample_packed, s->sample_host, s->sample_at + bytes));
    tdm_ingest ingest = new_ingest(replica);
    ingest.packed = s->sample_packed;
    ingest.x_at = s->sample_at;
    ingest.rows = shard->rows;
    ingest.x = s->sample_x;
    ingest.position = s->sample_position;
    *out = (tdm_rows){.rows = shard->rows, .x = s->sample_x, .position = s->sample_position};
    return device->ops->ingest(device, NULL, &ingest);
}
