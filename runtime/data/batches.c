/* The content of batches, and their memory. */
#include "runtime/data/batches.h"

#include <tandem/sys/label.h>

#include "runtime/base/round.h"
#include "runtime/base/status.h"
#include "runtime/data/formats.h"

/* ---- memory ---- */

static tdm_status count_steps(tdm_batches *b) {
    const tdm_loader_options *o = &b->options;
    b->per_replica = tdm__sampler_per_replica(&o->sampler);
    b->steps_per_epoch = b->per_replica / o->per_device;
    if (!o->drop_last_batch && b->per_replica % o->per_device != 0) b->steps_per_epoch++;
    if (b->steps_per_epoch < 1)
        TDM_FAIL(TDM_E_DATA,
                 "%lld samples over %d replicas leave no whole batch of %lld each; use a smaller batch or "
                 "data.drop_last: false",
                 (long long)o->sampler.count, o->sampler.replicas, (long long)o->per_device);
    return TDM_OK;
}

static size_t row_bytes(const tdm_batches *b) {
    switch (b->options.form) {
    case TDM_ROWS_INDEX:
        return sizeof(int64_t);
    case TDM_ROWS_RAW:
        return tdm__dataset_x_bytes(b->dataset);
    default:
        return b->elements * sizeof(float);
    }
}

/* Puts `rows` rows of `bytes` bytes at *end, and moves *end past them, aligned. False if that overflows. */
static bool pack(size_t *end, size_t rows, size_t bytes, size_t *at) {
    size_t size;
    *at = *end;
    if (!tdm__mul_fits(rows, bytes, &size) || !tdm__add_fits(*end, size, &size)) return false;
    *end = tdm__round_up(size, TDM_ALIGN);
    return *end >= size;
}

static tdm_status set_packing(tdm_batches *b) {
    const tdm_loader_options *o = &b->options;
    tdm_packing *packing = &b->packing;
    size_t positions_at;
    b->most_rows = (size_t)(o->per_device < b->per_replica ? o->per_device : b->per_replica);
    packing->target_bytes = tdm__dataset_target_bytes(b->dataset);
    packing->row_bytes = row_bytes(b);
    if (!pack(&packing->bytes, b->most_rows, sizeof(int64_t), &positions_at) ||
        !pack(&packing->bytes, b->most_rows, packing->target_bytes, &packing->target_at) ||
        !pack(&packing->bytes, b->most_rows, packing->row_bytes, &packing->x_at))
        TDM_FAIL(TDM_E_MEMORY, "loader: %zu rows of %zu bytes overflow", b->most_rows, packing->row_bytes);
    return TDM_OK;
}

static int64_t *index_of(const tdm_batches *b, const tdm_shard *shard) {
    if (b->indices == NULL) return (int64_t *)(shard->block + b->packing.x_at);
    return b->indices + (size_t)(shard - b->shards) * b->most_rows;
}

static tdm_status new_shard(tdm_batches *b, tdm_shard *shard) {
    const tdm_block_memory *memory = &b->options.memory;
    const tdm_packing *packing = &b->packing;
    void *block;
    TDM_TRY(memory->allocate != NULL ? memory->allocate(memory->user, &block, packing->bytes, "batch")
                                     : tdm__new(b->host, &block, packing->bytes, 1, "batch"));
    shard->form = b->options.form;
    shard->block = block;
    shard->position = block;
    shard->target = shard->block + packing->target_at;
    shard->index = index_of(b, shard);
    if (shard->form == TDM_ROWS_FLOATS || (shard->form == TDM_ROWS_RAW && !b->dataset->x_is_bytes))
        shard->x = (const float *)(shard->block + packing->x_at);
    return TDM_OK;
}

static tdm_status new_batches(tdm_batches *b) {
    size_t here = (size_t)b->options.replicas_here, count = (size_t)b->count;
    TDM_TRY(tdm__new(b->host, &b->batch, count, sizeof(*b->batch), "loader"));
    TDM_TRY(tdm__new(b->host, &b->shards, count * here, sizeof(*b->shards), "loader"));
    if (b->options.form != TDM_ROWS_INDEX)
        TDM_TRY(tdm__new(b->host, &b->indices, count * here, b->most_rows * sizeof(int64_t), "indices"));
    for (size_t i = 0; i < count; i++)
        b->batch[i] = (tdm_batch){.shard_count = b->options.replicas_here, .shard = b->shards + i * here};
    for (size_t i = 0; i < count * here; i++) TDM_TRY(new_shard(b, &b->shards[i]));
    return TDM_OK;
}

static tdm_status set_mixing(tdm_batches *b, const tdm_transform_spec *spec) {
    const tdm_loader_options *o = &b->options;
    if (!o->mixes || !tdm__transform_mixes(spec)) return TDM_OK;
    if (o->form != TDM_ROWS_FLOATS) TDM_FAIL(TDM_E_USAGE, "loader: only rows of floats can be mixed");
    TDM_TRY(tdm__mixing_init(&b->mixing, spec, b->dataset, (uint64_t)o->sampler.seed, o->ignore_index));
    b->other_bytes = b->elements * sizeof(float);
    return TDM_OK;
}

tdm_status tdm__batches_open(tdm_batches *batches, const tdm_host *host, const tdm_dataset *dataset,
                             const tdm_loader_options *options, int count) {
    tdm_batches *b = batches;
    *b = (tdm_batches){
        .host = host, .dataset = dataset, .options = *options, .transform = {.host = host}, .order_epoch = -1};
    b->options.transform = NULL; /* belongs to the caller */
    TDM_TRY(count_steps(b));
    TDM_TRY(tdm__transform_init(&b->transform, host, options->transform, dataset));
    if (!tdm__shape_elements(&dataset->x_shape, &b->elements) || b->elements > SIZE_MAX / sizeof(float))
        TDM_FAIL(TDM_E_INTERNAL, "loader: the dataset has no shape");
    TDM_TRY(set_mixing(b, options->transform));
    TDM_TRY(set_packing(b));
    if (dataset->x_is_bytes && options->form == TDM_ROWS_FLOATS)
        b->sample_bytes = b->elements * (dataset->ops->read_rows != NULL ? b->most_rows : 1);
    TDM_TRY(
        tdm__new(host, &b->order, (size_t)tdm__sampler_room(&options->sampler), sizeof(int64_t), "order of samples"));
    b->count = count;
    return new_batches(b);
}

void tdm__batches_close(tdm_batches *batches) {
    const tdm_host *host = batches->host;
    const tdm_block_memory *memory = &batches->options.memory;
    int shards = batches->shards == NULL ? 0 : batches->count * batches->options.replicas_here;
    for (int i = 0; i < shards; i++) {
        char *block = batches->shards[i].block;
        if (block != NULL && memory->release != NULL)
            memory->release(memory->user, block);
        else
            tdm__delete(host, block);
    }
    tdm__delete(host, batches->indices);
    tdm__delete(host, batches->shards);
    tdm__delete(host, batches->batch);
    tdm__delete(host, batches->order);
    tdm__transform_deinit(&batches->transform);
}

/* ---- content ---- */

void tdm__batch_plan(tdm_batches *batches, tdm_batch *batch, int64_t epoch, int64_t step) {
    const tdm_loader_options *o = &batches->options;
    int replicas = o->sampler.replicas;
    if (batches->order_epoch != epoch) {
        tdm__sampler_order(&o->sampler, epoch, batches->order);
        batches->order_epoch = epoch;
    }
    const int64_t first = step * o->per_device * replicas;
    batch->epoch = epoch;
    batch->step_in_epoch = step;
    batch->global_rows = tdm__sampler_step_rows(&o->sampler, o->per_device, step);
    for (int i = 0; i < batch->shard_count; i++) {
        tdm_shard *shard = &batch->shard[i];
        int64_t position = o->first_replica + i, stride = replicas;
        shard->rows = tdm__sampler_rows_of(&o->sampler, batch->global_rows, (int)position);
        if (o->scatter == TDM_SCATTER_CHUNK) {
            shard->rows = tdm__chunk(batch->global_rows, replicas, o->first_replica + i, &position);
            stride = 1;
        }
        int64_t *positions = (int64_t *)shard->block, *indices = index_of(batches, shard);
        for (int64_t j = 0; j < shard->rows; j++, position += stride) {
            positions[j] = position;
            indices[j] = batches->order[first + position];
        }
    }
}

/* Makes of a sample the floats that the model reads: of `bytes`, or, if samples are no bytes, of x itself. */
static void transform(const tdm_batches *b, const unsigned char *bytes, float *x) {
    if (b->sample_bytes > 0)
        tdm__transform_bytes(&b->transform, bytes, x);
    else
        tdm__transform_floats(&b->transform, x);
}

/* Reads a sample and makes floats of it. */
static tdm_status read_floats(const tdm_batches *b, const tdm_batch_reader *reader, int64_t index, float *x,
                              void *target) {
    TDM_TRY(tdm__sample_take(&reader->reader, index, b->sample_bytes > 0 ? (void *)reader->sample : x, target));
    transform(b, reader->sample, x);
    return TDM_OK;
}

/* A sample whose label is ignored is neither mixed nor mixed in: its share of the loss would be unknown. */
static tdm_status mix_in(const tdm_batches *b, const tdm_batch_reader *reader, int64_t index, float *x,
                         int64_t *label) {
    const int64_t ignored = b->options.ignore_index;
    int64_t other;
    if (*label == ignored) return TDM_OK;
    const tdm_mix mix = tdm__mixing_draw(&b->mixing, reader->reader.epoch, index);
    if (mix.partner < 0) return TDM_OK;
    TDM_TRY(read_floats(b, reader, mix.partner, reader->other, &other));
    if (other == ignored) return TDM_OK;
    tdm__mix_samples(&b->mixing, &mix, x, reader->other);
    *label = tdm_label_pack(*label, other, mix.parts);
    return TDM_OK;
}

/* Reads row `row` of the shard. */
static tdm_status fetch_row(const tdm_batches *b, const tdm_shard *shard, size_t row, const tdm_batch_reader *reader) {
    int64_t index = shard->index[row];
    char *x = shard->block + b->packing.x_at + row * b->packing.row_bytes;
    char *target = shard->block + b->packing.target_at + row * b->packing.target_bytes;
    if (shard->x == NULL)
        return tdm__sample_take(&reader->reader, index, shard->form == TDM_ROWS_INDEX ? NULL : x, target);
    TDM_TRY(read_floats(b, reader, index, (float *)x, target));
    return b->mixing.count > 0 ? mix_in(b, reader, index, (float *)x, (int64_t *)target) : TDM_OK;
}

/* Reads the shard in one call of the dataset. */
static tdm_status fetch_rows(const tdm_batches *b, const tdm_shard *shard, const tdm_batch_reader *reader) {
    char *x = shard->block + b->packing.x_at, *target = shard->block + b->packing.target_at;
    TDM_TRY(b->dataset->ops->read_rows(&reader->reader, shard->index, shard->rows,
                                       b->sample_bytes > 0 ? (char *)reader->sample : x, target));
    if (shard->x == NULL) return TDM_OK;
    for (size_t row = 0; row < (size_t)shard->rows; row++)
        transform(b, b->sample_bytes > 0 ? reader->sample + row * b->elements : NULL, (float *)x + row * b->elements);
    for (size_t row = 0; row < (size_t)shard->rows && b->mixing.count > 0; row++)
        TDM_TRY(mix_in(b, reader, shard->index[row], (float *)x + row * b->elements, (int64_t *)target + row));
    return TDM_OK;
}

static tdm_status fetch_shard(const tdm_batches *b, const tdm_shard *shard, const tdm_batch_reader *reader) {
    if (b->dataset->ops->read_rows != NULL && shard->rows > 0) return fetch_rows(b, shard, reader);
    for (size_t row = 0; row < (size_t)shard->rows; row++) TDM_TRY(fetch_row(b, shard, row, reader));
    return TDM_OK;
}

tdm_status tdm__batch_fetch(const tdm_batches *batches, const tdm_batch *batch, tdm_batch_reader *reader) {
    reader->reader.epoch = batch->epoch;
    for (int i = 0; i < batch->shard_count; i++) TDM_TRY(fetch_shard(batches, &batch->shard[i], reader));
    return TDM_OK;
}
