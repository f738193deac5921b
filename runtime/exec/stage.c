/* Two places on the device, used in turn: the work of a step reads one while the next batch is copied to the other. A
 * step has ended when the next but one is staged, so nothing is overwritten that is still read. */
#include "runtime/exec/stage.h"

#include <string.h>

#include "runtime/base/memory.h"
#include "runtime/base/status.h"

typedef struct place {
    char *device, *host; /* positions, targets, x: what is copied ends with the last row */
    tdm_event *arrived;
    int64_t ticket; /* of what is there or on its way; TDM_NO_TICKET */
} place;

struct tdm_stage {
    int64_t rows; /* at most, of all parts */
    size_t row_bytes, target_bytes;
    size_t target_at, x_at, bytes; /* in a place */
    tdm_queue *queue;
    place place[2];
    int current;
};

static size_t round_up(size_t bytes) {
    return (bytes + TDM_ALIGN - 1) / TDM_ALIGN * TDM_ALIGN;
}

static tdm_status open_places(tdm_stage *s, tdm_device *device) {
    TDM_TRY(device->ops->queue_open(device, &s->queue));
    for (int i = 0; i < 2; i++) {
        void *memory = NULL;
        TDM_TRY(device->ops->allocate(device, &memory, s->bytes, "the batch"));
        s->place[i].device = memory;
        TDM_TRY(device->ops->allocate_host(device, &memory, s->bytes, "the batch on its way"));
        s->place[i].host = memory;
        TDM_TRY(device->ops->event_open(device, &s->place[i].arrived));
        s->place[i].ticket = TDM_NO_TICKET;
    }
    return device->ops->finish(device, NULL); /* the zeroing of memory that another queue writes */
}

tdm_status tdm__stage_open(tdm_stage **out, tdm_replica *replica, int64_t rows, size_t target_bytes) {
    const tdm_graph *graph = replica->plan->graph;
    *out = NULL;
    TDM_TRY(tdm__new(replica->host, out, 1, sizeof(**out), "stage"));
    tdm_stage *s = *out;
    s->rows = rows;
    s->row_bytes = (size_t)tdm__shape_count(&graph->values[graph->input].shape) * sizeof(float);
    s->target_bytes = target_bytes;
    s->target_at = round_up((size_t)rows * sizeof(int64_t));
    s->x_at = s->target_at + round_up((size_t)rows * target_bytes);
    s->bytes = s->x_at + (size_t)rows * s->row_bytes;
    return open_places(s, replica->device);
}

void tdm__stage_close(tdm_stage *s, tdm_replica *replica) {
    if (s == NULL) return;
    tdm_device *device = replica->device;
    if (s->queue != NULL) (void)device->ops->finish(device, s->queue);
    for (int i = 0; i < 2; i++) {
        device->ops->release(device, s->place[i].device);
        device->ops->release_host(device, s->place[i].host);
        if (s->place[i].arrived != NULL) device->ops->event_close(device, s->place[i].arrived);
    }
    if (s->queue != NULL) device->ops->queue_close(device, s->queue);
    tdm__delete(replica->host, s);
}

size_t tdm__stage_bytes(const tdm_stage *stage) {
    return 2 * stage->bytes;
}

int tdm__stage_place(const tdm_stage *stage) {
    return stage->current;
}

/* ---- a batch ---- */

static int64_t count_rows(const tdm_rows *parts, int count) {
    int64_t rows = 0;
    for (int i = 0; i < count; i++) rows += parts[i].rows;
    return rows;
}

/* The parts one behind the other in pinned memory. */
static void pack(const tdm_stage *s, char *to, const tdm_rows *parts, int count) {
    size_t first = 0;
    for (int i = 0; i < count; i++) {
        size_t rows = (size_t)parts[i].rows;
        if (rows == 0) continue;
        memcpy(to + s->x_at + first * s->row_bytes, parts[i].x, rows * s->row_bytes);
        if (parts[i].target != NULL)
            memcpy(to + s->target_at + first * s->target_bytes, parts[i].target, rows * s->target_bytes);
        memcpy(to + first * sizeof(int64_t), parts[i].position, rows * sizeof(int64_t));
        first += rows;
    }
}

static tdm_status send(tdm_stage *s, tdm_device *device, int index, const tdm_rows *parts, int count) {
    place *p = &s->place[index];
    int64_t rows = count_rows(parts, count);
    if (rows > s->rows)
        TDM_FAIL(TDM_E_INTERNAL, "exec: a batch of %lld rows, there is room for %lld", (long long)rows,
                 (long long)s->rows);
    pack(s, p->host, parts, count);
    TDM_TRY(device->ops->copy(device, s->queue, p->device, p->host, s->x_at + (size_t)rows * s->row_bytes));
    return device->ops->event_record(device, p->arrived, s->queue);
}

static void locate(const tdm_stage *s, const tdm_rows *parts, int count, tdm_rows *out) {
    const char *base = s->place[s->current].device;
    size_t first = 0;
    for (int i = 0; i < count; i++) {
        const bool has_target = parts[i].target != NULL;
        out[i] = (tdm_rows){.rows = parts[i].rows,
                            .x = (const float *)(const void *)(base + s->x_at + first * s->row_bytes),
                            .target = has_target ? base + s->target_at + first * s->target_bytes : NULL,
                            .position = (const int64_t *)(const void *)base + first};
        first += (size_t)parts[i].rows;
    }
}

tdm_status tdm__replica_place(tdm_replica *replica, const tdm_rows *parts, int count, int64_t ticket, tdm_rows *out) {
    tdm_device *device = replica->device;
    tdm_stage *s = replica->stage;
    if (s == NULL) {
        memmove(out, parts, (size_t)count * sizeof(*out));
        return TDM_OK;
    }
    int other = 1 - s->current;
    if (ticket != TDM_NO_TICKET && s->place[other].ticket == ticket) {
        s->current = other;
    } else {
        s->place[s->current].ticket = ticket;
        TDM_TRY(send(s, device, s->current, parts, count));
    }
    locate(s, parts, count, out);
    return device->ops->event_wait(device, s->place[s->current].arrived, NULL);
}

tdm_status tdm__replica_prefetch(tdm_replica *replica, const tdm_rows *parts, int count, int64_t ticket) {
    tdm_stage *s = replica->stage;
    if (s == NULL) return TDM_OK;
    s->place[1 - s->current].ticket = ticket;
    return send(s, replica->device, 1 - s->current, parts, count);
}
