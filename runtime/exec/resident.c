/* The samples go up in pieces, through pinned memory. */
#include "runtime/exec/resident.h"

#include <string.h>

#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/data/transform.h"

enum { TABLE_ENTRIES = 256 };
static const size_t piece_bytes = (size_t)8 << 20;

static tdm_status allocate(tdm_resident *r, tdm_device *device, size_t bytes, void **out, const char *what) {
    TDM_TRY(device->ops->allocate(device, out, bytes, what));
    r->bytes += bytes;
    return TDM_OK;
}

static tdm_status open_table(tdm_resident *r, tdm_device *device, const tdm_transform *transform) {
    void *table = NULL;
    size_t bytes = transform->channels * TABLE_ENTRIES * sizeof(float);
    TDM_TRY(allocate(r, device, bytes, &table, "the table of data.transform"));
    r->table = table;
    r->table_channels = (int64_t)transform->channels;
    TDM_TRY(device->ops->copy(device, NULL, table, transform->table, bytes));
    return device->ops->finish(device, NULL);
}

static tdm_status send_piece(const tdm_resident *r, tdm_device *device, const tdm_feed *feed, int64_t first,
                             int64_t count, char *room) {
    size_t x = tdm__dataset_x_bytes(feed->dataset), target = tdm__dataset_target_bytes(feed->dataset);
    char *targets = room + x * (size_t)count;
    TDM_TRY(tdm__dataset_fill(feed->dataset, feed->transform, first, count, room, targets));
    TDM_TRY(device->ops->copy(device, NULL, (char *)r->samples + x * (size_t)first, room, x * (size_t)count));
    TDM_TRY(
        device->ops->copy(device, NULL, (char *)r->targets + target * (size_t)first, targets, target * (size_t)count));
    return device->ops->finish(device, NULL);
}

static tdm_status send_samples(const tdm_resident *r, tdm_device *device, const tdm_feed *feed) {
    size_t sample = tdm__dataset_x_bytes(feed->dataset) + tdm__dataset_target_bytes(feed->dataset);
    int64_t piece = (int64_t)(piece_bytes / sample), total = feed->dataset->count;
    if (piece < 1) piece = 1;
    if (piece > total) piece = total;
    void *room = NULL;
    TDM_TRY(device->ops->allocate_host(device, &room, sample * (size_t)piece, "samples on their way"));
    tdm_status status = TDM_OK;
    for (int64_t first = 0; first < total && status == TDM_OK; first += piece)
        status = send_piece(r, device, feed, first, total - first < piece ? total - first : piece, room);
    device->ops->release_host(device, room);
    return status;
}

tdm_status tdm__resident_open(tdm_resident *r, tdm_device *device, const tdm_feed *feed) {
    const tdm_dataset *dataset = feed->dataset;
    if (feed->form != TDM_ROWS_FLOATS && dataset->x_is_bytes) TDM_TRY(open_table(r, device, feed->transform));
    if (feed->form != TDM_ROWS_INDEX) return TDM_OK;
    size_t count = (size_t)dataset->count;
    TDM_TRY(allocate(r, device, count * tdm__dataset_x_bytes(dataset), &r->samples,
                     "the training samples; data.resident: never leaves them in host memory"));
    TDM_TRY(allocate(r, device, count * tdm__dataset_target_bytes(dataset), &r->targets, "the samples' targets"));
    return send_samples(r, device, feed);
}

void tdm__resident_close(tdm_resident *r, tdm_device *device) {
    device->ops->release(device, r->samples);
    device->ops->release(device, r->targets);
    device->ops->release(device, r->table);
    *r = (tdm_resident){0};
}
