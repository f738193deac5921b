/* The samples go up in pieces, through pinned memory. */
#include "runtime/exec/resident.h"

#include <string.h>

#include "runtime/base/memory.h"
#include "runtime/base/round.h"
#include "runtime/base/status.h"
#include "runtime/base/system/sync.h"
#include "runtime/data/transform.h"

enum { TABLE_ENTRIES = 256, MAKERS = 8 };
static const size_t piece_bytes = (size_t)8 << 20;

static tdm_status open_table(tdm_resident *r, tdm_replica *replica, const tdm_transform *transform) {
    tdm_device *device = replica->device;
    size_t bytes = transform->channels * TABLE_ENTRIES * sizeof(float);
    TDM_TRY(tdm__replica_allocate(replica, bytes, &r->table, "the table of data.transform"));
    r->table_channels = (int64_t)transform->channels;
    TDM_TRY(device->ops->queues->copy(device, NULL, r->table, transform->table, bytes));
    return device->ops->queues->finish(device, NULL);
}

/* ---- samples: several threads make a piece, for some have to be drawn ---- */

typedef struct maker {
    const tdm_feed *feed;
    int64_t first, count;
    char *x, *targets;
} maker;

typedef struct upload {
    tdm_device *device;
    const tdm_resident *resident;
    const tdm_feed *feed;
    size_t x_bytes, target_bytes; /* of a sample */
    int64_t piece;                /* samples */
    char *targets, *x;            /* pinned */
    int makers;                   /* threads; with none the caller makes a piece */
    tdm_worker *worker[MAKERS];
    maker maker[MAKERS];
} upload;

static tdm_status make(void *argument) {
    const maker *m = argument;
    return tdm__dataset_fill(m->feed->dataset, m->feed->transform, m->first, m->count, m->x, m->targets);
}

static tdm_status make_piece(upload *u, int64_t first, int64_t count) {
    if (u->makers == 0) return tdm__dataset_fill(u->feed->dataset, u->feed->transform, first, count, u->x, u->targets);
    int64_t share = (count + u->makers - 1) / u->makers;
    tdm_status status = TDM_OK;
    tdm_error error;
    for (int i = 0; i < u->makers; i++) {
        int64_t at = share * i < count ? share * i : count, end = at + share < count ? at + share : count;
        u->maker[i] = (maker){u->feed, first + at, end - at, u->x + u->x_bytes * (size_t)at,
                              u->targets + u->target_bytes * (size_t)at};
        if (status != TDM_OK || end <= at) continue;
        status = tdm__worker_start(u->worker[i], make, &u->maker[i]);
        if (status != TDM_OK) tdm__error_save(&error);
    }
    for (int i = 0; i < u->makers; i++) {
        tdm_status own = tdm__worker_wait(u->worker[i]);
        if (own == TDM_OK || status != TDM_OK) continue;
        status = own;
        tdm__error_save(&error);
    }
    return status == TDM_OK ? TDM_OK : tdm__error_restore(&error, NULL);
}

static tdm_status send_piece(upload *u, int64_t first, int64_t count) {
    tdm_device *device = u->device;
    char *samples = u->resident->samples, *targets = u->resident->targets;
    TDM_TRY(make_piece(u, first, count));
    TDM_TRY(device->ops->queues->copy(device, NULL, samples + u->x_bytes * (size_t)first, u->x,
                                      u->x_bytes * (size_t)count));
    TDM_TRY(device->ops->queues->copy(device, NULL, targets + u->target_bytes * (size_t)first, u->targets,
                                      u->target_bytes * (size_t)count));
    return device->ops->queues->finish(device, NULL);
}

static tdm_status send_pieces(upload *u) {
    int64_t total = u->feed->dataset->count;
    for (; u->makers < MAKERS; u->makers++) {
        tdm_worker **worker = &u->worker[u->makers];
        TDM_TRY(tdm__worker_open_spare(worker, u->device->host, TDM_THREAD_SAMPLES, u->makers, u->device->index));
        if (*worker == NULL) break;
    }
    for (int64_t first = 0; first < total; first += u->piece)
        TDM_TRY(send_piece(u, first, total - first < u->piece ? total - first : u->piece));
    return TDM_OK;
}

static tdm_status send_samples(const tdm_resident *r, tdm_device *device, const tdm_feed *feed) {
    upload u = {.device = device,
                .resident = r,
                .feed = feed,
                .x_bytes = tdm__dataset_x_bytes(feed->dataset),
                .target_bytes = tdm__dataset_target_bytes(feed->dataset)};
    u.piece = (int64_t)(piece_bytes / (u.x_bytes + u.target_bytes));
    if (u.piece < 1) u.piece = 1;
    if (u.piece > feed->dataset->count) u.piece = feed->dataset->count;
    size_t targets = tdm__round_up(u.target_bytes * (size_t)u.piece, TDM_ALIGN);
    TDM_TRY(
        tdm__device_new_host(device, &u.targets, targets + u.x_bytes * (size_t)u.piece, "staging memory for samples"));
    u.x = u.targets + targets;
    tdm_status status = send_pieces(&u);
    for (int i = 0; i < u.makers; i++) tdm__worker_close(u.worker[i]);
    device->ops->release_host(device, u.targets);
    return status;
}

tdm_status tdm__resident_open(tdm_resident *r, tdm_replica *replica, const tdm_feed *feed) {
    const tdm_dataset *dataset = feed->dataset;
    if (feed->form != TDM_ROWS_FLOATS && dataset->x_is_bytes) TDM_TRY(open_table(r, replica, feed->transform));
    if (feed->form != TDM_ROWS_INDEX) return TDM_OK;
    size_t count = (size_t)dataset->count;
    TDM_TRY(tdm__replica_allocate(replica, count * tdm__dataset_x_bytes(dataset), &r->samples,
                                  "the training samples (data.resident: never keeps them in host memory)"));
    TDM_TRY(tdm__replica_allocate(replica, count * tdm__dataset_target_bytes(dataset), &r->targets,
                                  "the samples' targets"));
    return send_samples(r, replica->device, feed);
}

void tdm__resident_close(tdm_resident *r, tdm_device *device) {
    device->ops->release(device, r->samples);
    device->ops->release(device, r->targets);
    device->ops->release(device, r->table);
    *r = (tdm_resident){0};
}
