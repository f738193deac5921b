/* Several places on the device, used in turn: while the work of a step runs, the batches of the next ones are copied to
 * the others, each behind the work that last read its place. Work reads rows where they were ingested, which is the
 * same memory in every step, so that one captured graph serves them all. */
#include "runtime/exec/stage.h"

#include <string.h>

#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/data/transform.h"
#include "runtime/exec/resident.h"

typedef struct place {
    char *device;        /* `parts` blocks */
    tdm_event *arrived;  /* on the stage's queue */
    tdm_event *ingested; /* on the device's */
    bool used;           /* `ingested` has been recorded */
    int64_t ticket;      /* of what is there or on its way; TDM_NO_TICKET */
} place;

struct tdm_stage {
    int64_t rows; /* at most, of a part */
    int parts;
    size_t target_bytes;
    int64_t *position; /* where kernels read them: [parts][rows] */
    char *target, *x;
    size_t bytes; /* of all this on the device */

    /* Samples in host memory that no step is made of: evaluation and predictions. */
    size_t sample_at, sample_bytes;
    char *sample_host, *sample_place;
    tdm_ingest sample_ingest;

    /* The batches of steps; nothing before tdm__replica_feed. */
    tdm_queue *queue;
    tdm_packing packing;
    place place[TDM_PLACES];
    int current;
    tdm_resident resident;
    tdm_ingest ingest;
};

static size_t round_up(size_t bytes) {
    return (bytes + TDM_ALIGN - 1) / TDM_ALIGN * TDM_ALIGN;
}

static tdm_status allocate(tdm_stage *s, tdm_device *device, size_t bytes, void *out, const char *what) {
    void *memory = NULL;
    TDM_TRY(device->ops->allocate(device, &memory, bytes, what));
    memcpy(out, &memory, sizeof(memory)); /* any T *: they have one representation on the platforms tandem runs on */
    s->bytes += bytes;
    return TDM_OK;
}

/* ---- opening ---- */

/* What every ingest of this replica has in common. */
static tdm_ingest ingest_into(const tdm_stage *s, const tdm_replica *replica) {
    const tdm_plan *plan = replica->plan;
    const tdm_shape *sample = &plan->graph->values[plan->graph->input].shape;
    tdm_ingest ingest = {.values = &replica->block->values,
                         .channels = sample->dim[0],
                         .points = tdm__shape_count(sample) / sample->dim[0],
                         .precision = plan->options.precision,
                         .layout = plan->values[plan->input].layout,
                         .x = s->x,
                         .target = s->target,
                         .position = s->position};
    return ingest;
}

static tdm_status open_samples(tdm_stage *s, tdm_replica *replica) {
    tdm_device *device = replica->device;
    const tdm_plan *plan = replica->plan;
    s->sample_at = round_up((size_t)plan->options.rows * sizeof(int64_t));
    s->sample_bytes = (size_t)tdm__shape_count(&plan->graph->values[plan->graph->input].shape) * sizeof(float);
    size_t bytes = s->sample_at + (size_t)plan->options.rows * s->sample_bytes;
    void *host = NULL;
    TDM_TRY(allocate(s, device, bytes, &s->sample_place, "samples to evaluate"));
    TDM_TRY(device->ops->allocate_host(device, &host, bytes, "samples to evaluate"));
    s->sample_host = host;
    memset(s->sample_host, 0, s->sample_at);
    s->sample_ingest = ingest_into(s, replica);
    s->sample_ingest.x_at = s->sample_at;
    for (int i = 0; i < TDM_PLACES; i++) s->sample_ingest.place[i] = s->sample_place;
    return TDM_OK;
}

static tdm_status open_rows(tdm_stage *s, tdm_replica *replica) {
    tdm_device *device = replica->device;
    size_t rows = (size_t)s->rows * (size_t)s->parts;
    TDM_TRY(allocate(s, device, rows * sizeof(int64_t), &s->position, "the batch's positions"));
    TDM_TRY(allocate(s, device, rows * s->target_bytes, &s->target, "the batch's targets"));
    TDM_TRY(allocate(s, device, rows * replica->plan->input_row_bytes, &s->x, "the batch"));
    TDM_TRY(open_samples(s, replica));
    return device->ops->queue_open(device, &s->queue);
}

tdm_status tdm__stage_open(tdm_stage **out, tdm_replica *replica, int64_t rows, int parts, size_t target_bytes) {
    *out = NULL;
    TDM_TRY(tdm__new(replica->host, out, 1, sizeof(**out), "stage"));
    (*out)->rows = rows;
    (*out)->parts = parts;
    (*out)->target_bytes = target_bytes;
    return open_rows(*out, replica);
}

static void close_place(place *p, tdm_device *device) {
    device->ops->release(device, p->device);
    if (p->arrived != NULL) device->ops->event_close(device, p->arrived);
    if (p->ingested != NULL) device->ops->event_close(device, p->ingested);
    *p = (place){.ticket = TDM_NO_TICKET};
}

static tdm_status open_place(tdm_stage *s, place *p, tdm_device *device) {
    p->ticket = TDM_NO_TICKET;
    TDM_TRY(allocate(s, device, s->packing.bytes * (size_t)s->parts, &p->device, "a batch on its way"));
    TDM_TRY(device->ops->event_open(device, &p->arrived));
    return device->ops->event_open(device, &p->ingested);
}

static void leave_feed(tdm_stage *s, tdm_device *device) {
    if (s->queue != NULL) (void)device->ops->finish(device, s->queue);
    (void)device->ops->finish(device, NULL); /* a failure of either was told before */
    for (int i = 0; i < TDM_PLACES; i++) close_place(&s->place[i], device);
    tdm__resident_close(&s->resident, device);
}

void tdm__stage_close(tdm_stage *s, tdm_replica *replica) {
    if (s == NULL) return;
    tdm_device *device = replica->device;
    leave_feed(s, device);
    device->ops->release(device, s->position);
    device->ops->release(device, s->target);
    device->ops->release(device, s->x);
    device->ops->release(device, s->sample_place);
    device->ops->release_host(device, s->sample_host);
    if (s->queue != NULL) device->ops->queue_close(device, s->queue);
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
    for (int i = 0; i < TDM_PLACES; i++) TDM_TRY(open_place(s, &s->place[i], device));
    TDM_TRY(device->ops->finish(device, NULL)); /* the zeroing of memory that another queue writes */
    s->current = 0;
    s->ingest = ingest_into(s, replica);
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

static bool is_free(const tdm_stage *s, int index) {
    return s->place[index].ticket == TDM_NO_TICKET && index != s->current;
}

/* A place whose batch is not still to come. */
static int next_place(const tdm_stage *s) {
    int index = (s->current + 1) % TDM_PLACES;
    while (!is_free(s, index) && index != s->current) index = (index + 1) % TDM_PLACES;
    return index != s->current ? index : (s->current + 1) % TDM_PLACES;
}

static int find_place(const tdm_stage *s, int64_t ticket) {
    for (int i = 0; ticket != TDM_NO_TICKET && i < TDM_PLACES; i++)
        if (s->place[i].ticket == ticket) return i;
    return -1;
}

static tdm_status send(tdm_stage *s, tdm_device *device, int index, const tdm_shard *parts, int count, int64_t ticket) {
    place *p = &s->place[index];
    if (count > s->parts) TDM_FAIL(TDM_E_INTERNAL, "exec: %d parts of a batch, there is room for %d", count, s->parts);
    if (p->used) TDM_TRY(device->ops->event_wait(device, p->ingested, s->queue));
    for (int i = 0; i < count; i++) {
        if (parts[i].rows > s->rows)
            TDM_FAIL(TDM_E_INTERNAL, "exec: a batch of %lld rows, there is room for %lld", (long long)parts[i].rows,
                     (long long)s->rows);
        TDM_TRY(device->ops->copy(device, s->queue, p->device + (size_t)i * s->packing.bytes, parts[i].block,
                                  tdm__packing_used(&s->packing, parts[i].rows)));
    }
    p->ticket = ticket;
    return device->ops->event_record(device, p->arrived, s->queue);
}

static void locate(const tdm_stage *s, const tdm_plan *plan, const tdm_shard *parts, int count, tdm_rows *out) {
    for (int i = 0; i < count; i++) {
        size_t first = (size_t)i * (size_t)s->rows;
        out[i] = (tdm_rows){.rows = parts[i].rows,
                            .x = s->x + first * plan->input_row_bytes,
                            .target = s->target + first * s->target_bytes,
                            .position = s->position + first};
    }
}

static tdm_rows host_rows(const tdm_shard *shard) {
    return (tdm_rows){.rows = shard->rows, .x = shard->x, .target = shard->target, .position = shard->position};
}

tdm_status tdm__replica_place(tdm_replica *replica, const tdm_shard *parts, int count, int64_t ticket, tdm_rows *out) {
    tdm_device *device = replica->device;
    tdm_stage *s = replica->stage;
    if (s == NULL) {
        for (int i = 0; i < count; i++) out[i] = host_rows(&parts[i]);
        return TDM_OK;
    }
    int index = find_place(s, ticket);
    if (index < 0) {
        index = next_place(s);
        TDM_TRY(send(s, device, index, parts, count, ticket));
    }
    s->current = index;
    s->place[index].ticket = TDM_NO_TICKET; /* from here on it is this step's */
    locate(s, replica->plan, parts, count, out);
    return device->ops->event_wait(device, s->place[index].arrived, NULL);
}

tdm_status tdm__replica_prefetch(tdm_replica *replica, const tdm_shard *parts, int count, int64_t ticket) {
    tdm_stage *s = replica->stage;
    if (s == NULL || find_place(s, ticket) >= 0) return TDM_OK;
    return send(s, replica->device, next_place(s), parts, count, ticket);
}

tdm_status tdm__replica_ingest(tdm_replica *replica, const tdm_rows *rows, int count) {
    const tdm_stage *s = replica->stage;
    tdm_device *device = replica->device;
    for (int i = 0; s != NULL && i < count; i++) {
        size_t first = (size_t)i * (size_t)s->rows;
        tdm_ingest part = s->ingest;
        if (rows[i].rows == 0) continue;
        for (int k = 0; k < TDM_PLACES; k++) part.place[k] = s->place[k].device + (size_t)i * s->packing.bytes;
        part.rows = rows[i].rows;
        part.x = s->x + first * replica->plan->input_row_bytes;
        part.target = s->target + first * s->target_bytes;
        part.position = s->position + first;
        TDM_TRY(device->ops->ingest(device, &part));
    }
    return TDM_OK;
}

uint32_t tdm__stage_place(const tdm_stage *stage) {
    return (uint32_t)stage->current;
}

tdm_status tdm__stage_release_place(tdm_stage *stage, tdm_replica *replica) {
    place *p = &stage->place[stage->current];
    p->used = true;
    return replica->device->ops->event_record(replica->device, p->ingested, NULL);
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
    TDM_TRY(device->ops->copy(device, NULL, s->sample_place, s->sample_host, s->sample_at + bytes));
    tdm_ingest ingest = s->sample_ingest;
    ingest.rows = shard->rows;
    locate(s, replica->plan, shard, 1, out);
    return device->ops->ingest(device, &ingest);
}
