/* Batches in order, read ahead by threads.
 *
 * Batches are numbered from the last seek. Batch b lies in slot b % slot_count of a ring that is allocated once.
 * Threads claim batches in the order of their numbers; the mutex is held while a thread claims a batch and writes the
 * indices of its samples. The samples themselves are read and transformed without the mutex. So the batches depend
 * neither on the number of threads nor on their speed. A failed batch stays at the front until the next seek. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "runtime/base/system/clock.h"
#include "runtime/base/log.h"
#include "runtime/base/status.h"
#include "runtime/base/system/thread.h"
#include "runtime/data/formats.h"
#include "runtime/data/transform.h"

enum { WORKERS_MAX = 1024, AHEAD_MAX = 4096, HELD_MAX = 64, WARN_SECONDS = 30 };
static const int64_t randperm_limit = 214748364; /* from this count on torch shuffles in another way */

typedef struct slot {
    tdm_batch batch;
    bool ready;
    tdm_status status;
    tdm_error error; /* if status is not TDM_OK */
} slot;

typedef struct loader_thread {
    tdm_loader *loader;
    pthread_t thread;
    unsigned char *sample; /* buffer for one sample of bytes, before its transform */
} loader_thread;

struct tdm_loader {
    const tdm_host *host;
    const tdm_dataset *dataset;
    tdm_loader_options options;
    tdm_block_memory memory;
    tdm_transform transform;
    size_t elements; /* of a sample */
    tdm_packing packing;
    size_t most_rows;    /* the largest number of rows of a shard */
    int64_t per_replica; /* samples of each replica per epoch */
    int64_t steps_per_epoch;
    slot *slots;
    int slot_count;
    tdm_shard *shards; /* the shards of all slots, consecutively */
    int64_t *indices;  /* of all shards, most_rows for each; NULL if they are in the blocks */
    loader_thread *threads;
    int thread_count, started;
    loader_thread caller; /* used if there are no threads */
    double waited_ms;     /* result of tdm__loader_waited_ms */

    pthread_mutex_t mutex; /* guards all below, and the slots that no thread has claimed */
    pthread_cond_t can_claim, changed;
    int64_t *order;                    /* the order of order_epoch */
    int64_t order_epoch;               /* -1: none yet */
    int64_t epoch, step;               /* of the next batch to claim */
    uint64_t claimed, taken, released; /* numbers of the next batch to claim, to give out, to get back */
    int busy;                          /* threads that are reading a claimed batch */
    bool running, closing;
};

/* ---- the content of a batch ---- */

static int64_t *index_of(const tdm_loader *loader, const tdm_shard *shard) {
    if (loader->indices == NULL) return (int64_t *)(shard->block + loader->packing.x_at);
    return loader->indices + (size_t)(shard - loader->shards) * loader->most_rows;
}

/* Fills in the indices and positions of batch (epoch, step). The caller holds the mutex. */
static void plan_batch(tdm_loader *loader, tdm_batch *batch) {
    const tdm_loader_options *o = &loader->options;
    int replicas = o->sampler.replicas;
    if (loader->order_epoch != loader->epoch) {
        tdm__sampler_order(&o->sampler, loader->epoch, loader->order);
        loader->order_epoch = loader->epoch;
    }
    int64_t first = loader->step * o->per_device, rows = loader->per_replica - first;
    if (rows > o->per_device) rows = o->per_device;
    batch->epoch = loader->epoch;
    batch->step_in_epoch = loader->step;
    batch->global_rows = rows * replicas;
    for (int i = 0; i < batch->shard_count; i++) {
        tdm_shard *shard = &batch->shard[i];
        int64_t position = o->first_replica + i, stride = replicas;
        shard->rows = rows;
        if (o->scatter == TDM_SCATTER_CHUNK) {
            shard->rows = tdm__chunk(batch->global_rows, replicas, o->first_replica + i, &position);
            stride = 1;
        }
        int64_t *positions = (int64_t *)shard->block, *indices = index_of(loader, shard);
        for (int64_t j = 0; j < shard->rows; j++, position += stride) {
            positions[j] = position;
            indices[j] = loader->order[first * replicas + position];
        }
    }
}

/* Claims the next batch and returns its slot. The caller holds the mutex. */
static slot *claim(tdm_loader *loader) {
    slot *s = &loader->slots[loader->claimed % (uint64_t)loader->slot_count];
    s->ready = false;
    plan_batch(loader, &s->batch);
    loader->claimed++;
    loader->step++;
    if (loader->step == loader->steps_per_epoch) {
        loader->step = 0;
        loader->epoch++;
    }
    return s;
}

/* Reads row `row` of the shard. `sample` is a buffer for one sample of bytes. */
static tdm_status fetch_row(const tdm_loader *loader, const tdm_shard *shard, size_t row, unsigned char *sample) {
    const tdm_dataset *dataset = loader->dataset;
    const tdm_packing *packing = &loader->packing;
    int64_t index = shard->index[row];
    char *x = shard->block + packing->x_at + row * packing->row_bytes;
    char *target = shard->block + packing->target_at + row * packing->target_bytes;
    if (shard->form == TDM_ROWS_INDEX) {
        TDM_TRY(dataset->ops->read(dataset, index, NULL, target));
    } else if (!dataset->x_is_bytes) {
        TDM_TRY(dataset->ops->read(dataset, index, x, target));
        tdm__transform_floats(&loader->transform, (float *)x);
    } else if (shard->form == TDM_ROWS_RAW) {
        TDM_TRY(dataset->ops->read(dataset, index, x, target));
    } else {
        TDM_TRY(dataset->ops->read(dataset, index, sample, target));
        tdm__transform_bytes(&loader->transform, sample, (float *)x);
    }
    return TDM_OK;
}

static tdm_status fetch(const tdm_loader *loader, const slot *s, unsigned char *sample) {
    for (int i = 0; i < s->batch.shard_count; i++) {
        const tdm_shard *shard = &s->batch.shard[i];
        for (size_t row = 0; row < (size_t)shard->rows; row++) TDM_TRY(fetch_row(loader, shard, row, sample));
    }
    return TDM_OK;
}

static void fetch_and_keep_error(const tdm_loader *loader, slot *s, unsigned char *sample) {
    s->status = fetch(loader, s, sample);
    if (s->status != TDM_OK) tdm__error_save(&s->error);
}

static bool may_claim(const tdm_loader *loader) {
    return loader->running && loader->claimed - loader->released < (uint64_t)loader->slot_count;
}

static void *work(void *argument) {
    loader_thread *self = argument;
    tdm_loader *loader = self->loader;
    pthread_setname_np(pthread_self(), "tdm-data");
    pthread_mutex_lock(&loader->mutex);
    for (;;) {
        while (!loader->closing && !may_claim(loader)) pthread_cond_wait(&loader->can_claim, &loader->mutex);
        if (loader->closing) break;
        slot *s = claim(loader);
        loader->busy++;
        pthread_mutex_unlock(&loader->mutex);
        fetch_and_keep_error(loader, s, self->sample);
        pthread_mutex_lock(&loader->mutex);
        loader->busy--;
        s->ready = true;
        pthread_cond_broadcast(&loader->changed);
    }
    pthread_mutex_unlock(&loader->mutex);
    return NULL;
}

/* ---- opening and closing ---- */

static tdm_status check_options(const tdm_dataset *dataset, const tdm_loader_options *o) {
    const tdm_sampler *sampler = &o->sampler;
    if (sampler->count != dataset->count || sampler->count < 1)
        TDM_FAIL(TDM_E_INTERNAL, "loader: the sampler has %lld samples, the dataset %lld", (long long)sampler->count,
                 (long long)dataset->count);
    if (sampler->replicas < 1 || o->first_replica < 0 || o->replicas_here < 1 ||
        o->replicas_here > sampler->replicas - o->first_replica)
        TDM_FAIL(TDM_E_USAGE, "loader: replicas %d to %d are requested, but there are %d", o->first_replica,
                 o->first_replica + o->replicas_here - 1, sampler->replicas);
    if (o->per_device < 1)
        TDM_FAIL(TDM_E_USAGE, "loader: rows per device must be at least 1, got %lld", (long long)o->per_device);
    if (o->workers < 0 || o->workers > WORKERS_MAX)
        TDM_FAIL(TDM_E_USAGE, "loader: workers must be 0 to %d, got %lld", WORKERS_MAX, (long long)o->workers);
    if (o->ahead < 1 || o->ahead > AHEAD_MAX)
        TDM_FAIL(TDM_E_USAGE, "loader: batches ahead must be 1 to %d, got %d", AHEAD_MAX, o->ahead);
    if (o->held < 0 || o->held > HELD_MAX)
        TDM_FAIL(TDM_E_USAGE, "loader: batches held must be 0 to %d, got %d", HELD_MAX, o->held);
    if (o->form == TDM_ROWS_INDEX && dataset->resident_bytes == 0)
        TDM_FAIL(TDM_E_USAGE, "loader: only indices are requested, but these samples cannot be kept on a device");
    if (sampler->shuffle && sampler->count >= randperm_limit)
        TDM_FAIL(TDM_E_UNSUPPORTED,
                 "data.shuffle needs fewer than %lld samples, found %lld; set shuffle: false or a range",
                 (long long)randperm_limit, (long long)sampler->count);
    return TDM_OK;
}

static tdm_status count_steps(tdm_loader *loader) {
    const tdm_loader_options *o = &loader->options;
    loader->per_replica = tdm__sampler_per_replica(&o->sampler);
    loader->steps_per_epoch = loader->per_replica / o->per_device;
    if (!o->drop_last_batch && loader->per_replica % o->per_device != 0) loader->steps_per_epoch++;
    if (loader->steps_per_epoch < 1)
        TDM_FAIL(TDM_E_DATA,
                 "%lld samples over %d replicas leave no whole batch of %lld each; use a smaller batch or "
                 "data.drop_last: false",
                 (long long)o->sampler.count, o->sampler.replicas, (long long)o->per_device);
    return TDM_OK;
}

static size_t row_bytes(const tdm_loader *loader) {
    switch (loader->options.form) {
    case TDM_ROWS_INDEX:
        return sizeof(int64_t);
    case TDM_ROWS_RAW:
        return tdm__dataset_x_bytes(loader->dataset);
    default:
        return loader->elements * sizeof(float);
    }
}

/* Puts `rows` rows of `bytes` bytes at *end, and moves *end past them, aligned. False if that overflows. */
static bool pack(size_t *end, size_t rows, size_t bytes, size_t *at) {
    size_t size;
    *at = *end;
    if (!tdm__mul_fits(rows, bytes, &size) || !tdm__add_fits(*end, size, &size)) return false;
    if (!tdm__add_fits(size, TDM_ALIGN - 1, &size)) return false;
    *end = size / TDM_ALIGN * TDM_ALIGN;
    return true;
}

static tdm_status set_packing(tdm_loader *loader) {
    const tdm_loader_options *o = &loader->options;
    tdm_packing *packing = &loader->packing;
    size_t positions_at;
    loader->most_rows = (size_t)(o->per_device < loader->per_replica ? o->per_device : loader->per_replica);
    packing->target_bytes = tdm__dataset_target_bytes(loader->dataset);
    packing->row_bytes = row_bytes(loader);
    if (!pack(&packing->bytes, loader->most_rows, sizeof(int64_t), &positions_at) ||
        !pack(&packing->bytes, loader->most_rows, packing->target_bytes, &packing->target_at) ||
        !pack(&packing->bytes, loader->most_rows, packing->row_bytes, &packing->x_at))
        TDM_FAIL(TDM_E_MEMORY, "loader: %zu rows of %zu bytes overflow", loader->most_rows, packing->row_bytes);
    return TDM_OK;
}

static tdm_status allocate_from_host(void *host, void **out, size_t bytes, const char *what) {
    TDM_TRY(tdm__new(host, out, bytes, 1, what));
    return TDM_OK;
}

static void release_to_host(void *host, void *block) {
    tdm__delete(host, block);
}

static void take_memory(tdm_loader *loader) {
    const tdm_block_memory *lent = loader->options.memory;
    loader->options.memory = NULL; /* belongs to the caller; no longer needed */
    loader->memory = (tdm_block_memory){allocate_from_host, release_to_host, (void *)(uintptr_t)loader->host};
    if (lent != NULL) loader->memory = *lent;
}

static tdm_status new_shard(tdm_loader *loader, tdm_shard *shard) {
    const tdm_packing *packing = &loader->packing;
    void *block;
    TDM_TRY(loader->memory.allocate(loader->memory.user, &block, packing->bytes, "batch"));
    shard->form = loader->options.form;
    shard->block = block;
    shard->position = block;
    shard->target = shard->block + packing->target_at;
    shard->index = index_of(loader, shard);
    if (shard->form == TDM_ROWS_FLOATS || (shard->form == TDM_ROWS_RAW && !loader->dataset->x_is_bytes))
        shard->x = (const float *)(shard->block + packing->x_at);
    return TDM_OK;
}

static tdm_status new_slots(tdm_loader *loader) {
    size_t here = (size_t)loader->options.replicas_here, count = (size_t)loader->slot_count;
    TDM_TRY(tdm__new(loader->host, &loader->slots, count, sizeof(slot), "loader"));
    TDM_TRY(tdm__new(loader->host, &loader->shards, count * here, sizeof(tdm_shard), "loader"));
    if (loader->options.form != TDM_ROWS_INDEX)
        TDM_TRY(tdm__new(loader->host, &loader->indices, count * here, loader->most_rows * sizeof(int64_t), "indices"));
    for (size_t i = 0; i < count; i++) {
        loader->slots[i].batch.shard_count = loader->options.replicas_here;
        loader->slots[i].batch.shard = loader->shards + i * here;
    }
    for (size_t i = 0; i < count * here; i++) TDM_TRY(new_shard(loader, &loader->shards[i]));
    return TDM_OK;
}

static tdm_status start_threads(tdm_loader *loader) {
    int error = 0;
    while (loader->started < loader->thread_count && error == 0) {
        loader_thread *thread = &loader->threads[loader->started];
        error = tdm__thread_start(&thread->thread, work, thread);
        if (error == 0) loader->started++;
    }
    errno = error;
    if (error != 0)
        TDM_FAIL(TDM_E_MEMORY, "data.workers: loader thread %d of %d cannot start: %m", loader->started + 1,
                 loader->thread_count);
    return TDM_OK;
}

static tdm_status new_threads(tdm_loader *loader) {
    size_t bytes = loader->dataset->x_is_bytes && loader->options.form == TDM_ROWS_FLOATS ? loader->elements : 0;
    TDM_TRY(tdm__new(loader->host, &loader->caller.sample, bytes, 1, "loader"));
    TDM_TRY(tdm__new(loader->host, &loader->threads, (size_t)loader->thread_count, sizeof(loader_thread), "loader"));
    for (int i = 0; i < loader->thread_count; i++) {
        loader->threads[i].loader = loader;
        TDM_TRY(tdm__new(loader->host, &loader->threads[i].sample, bytes, 1, "loader"));
    }
    TDM_TRY(start_threads(loader));
    return TDM_OK;
}

static tdm_status open_parts(tdm_loader *loader) {
    const tdm_loader_options *o = &loader->options;
    const tdm_dataset *dataset = loader->dataset;
    TDM_TRY(count_steps(loader));
    TDM_TRY(tdm__transform_init(&loader->transform, loader->host, o->transform, dataset));
    loader->options.transform = NULL; /* belongs to the caller; no longer needed */
    if (!tdm__shape_elements(&dataset->x_shape, &loader->elements) || loader->elements > SIZE_MAX / sizeof(float))
        TDM_FAIL(TDM_E_INTERNAL, "loader: the dataset has no shape");
    TDM_TRY(set_packing(loader));
    /* The caller holds some slots. The others are read ahead, at least one for each thread. */
    loader->thread_count = o->form == TDM_ROWS_INDEX ? 0 : (int)o->workers; /* indices: waking a thread takes longer */
    int ahead = o->ahead > loader->thread_count ? o->ahead : loader->thread_count;
    loader->slot_count = o->held + (loader->thread_count == 0 ? 1 : ahead);
    TDM_TRY(tdm__new(loader->host, &loader->order, (size_t)tdm__sampler_room(&o->sampler), sizeof(int64_t),
                     "order of samples"));
    TDM_TRY(new_slots(loader));
    TDM_TRY(new_threads(loader));
    return TDM_OK;
}

static void init_locks(tdm_loader *loader) {
    pthread_mutex_init(&loader->mutex, NULL);
    (void)tdm__condition_init(&loader->can_claim);
    (void)tdm__condition_init(&loader->changed);
}

tdm_status tdm__loader_open(tdm_loader **out, const tdm_host *host, const tdm_dataset *dataset,
                            const tdm_loader_options *options) {
    tdm_loader *loader;
    *out = NULL;
    TDM_TRY(check_options(dataset, options));
    TDM_TRY(tdm__new(host, &loader, 1, sizeof(*loader), "loader"));
    loader->host = host;
    loader->dataset = dataset;
    loader->options = *options;
    if (loader->options.held == 0) loader->options.held = 1;
    take_memory(loader);
    loader->order_epoch = -1;
    loader->transform.host = host;
    init_locks(loader);
    tdm_status status = open_parts(loader);
    if (status != TDM_OK) {
        tdm__loader_close(loader);
        return tdm__frame(status, __FILE__, __LINE__);
    }
    *out = loader;
    return TDM_OK;
}

static void stop_threads(tdm_loader *loader) {
    pthread_mutex_lock(&loader->mutex);
    loader->closing = true;
    pthread_cond_broadcast(&loader->can_claim);
    pthread_mutex_unlock(&loader->mutex);
    for (int i = 0; i < loader->started; i++) pthread_join(loader->threads[i].thread, NULL);
}

void tdm__loader_close(tdm_loader *loader) {
    if (loader == NULL) return;
    const tdm_host *host = loader->host;
    stop_threads(loader);
    for (int i = 0; loader->threads != NULL && i < loader->thread_count; i++)
        tdm__delete(host, loader->threads[i].sample);
    int shards = loader->shards == NULL ? 0 : loader->slot_count * loader->options.replicas_here;
    for (int i = 0; i < shards; i++) {
        if (loader->shards[i].block != NULL) loader->memory.release(loader->memory.user, loader->shards[i].block);
    }
    tdm__delete(host, loader->indices);
    tdm__delete(host, loader->shards);
    tdm__delete(host, loader->slots);
    tdm__delete(host, loader->threads);
    tdm__delete(host, loader->caller.sample);
    tdm__delete(host, loader->order);
    tdm__transform_deinit(&loader->transform);
    pthread_cond_destroy(&loader->can_claim);
    pthread_cond_destroy(&loader->changed);
    pthread_mutex_destroy(&loader->mutex);
    tdm__delete(host, loader);
}

/* ---- use ---- */

int64_t tdm__loader_steps_per_epoch(const tdm_loader *loader) {
    return loader->steps_per_epoch;
}

const tdm_packing *tdm__loader_packing(const tdm_loader *loader) {
    return &loader->packing;
}

const tdm_transform *tdm__loader_transform(const tdm_loader *loader) {
    return &loader->transform;
}

tdm_status tdm__loader_seek(tdm_loader *loader, int64_t epoch, int64_t step_in_epoch) {
    if (epoch < 0 || step_in_epoch < 0 || step_in_epoch > loader->steps_per_epoch)
        TDM_FAIL(TDM_E_USAGE, "loader: needs epoch 0 or later and step 0 to %lld, got epoch %lld, step %lld",
                 (long long)loader->steps_per_epoch, (long long)epoch, (long long)step_in_epoch);
    if (step_in_epoch == loader->steps_per_epoch) {
        epoch++;
        step_in_epoch = 0;
    }
    pthread_mutex_lock(&loader->mutex);
    loader->running = false;
    while (loader->busy > 0) pthread_cond_wait(&loader->changed, &loader->mutex);
    loader->claimed = loader->taken = loader->released = 0;
    loader->epoch = epoch;
    loader->step = step_in_epoch;
    loader->running = true;
    pthread_cond_broadcast(&loader->can_claim);
    pthread_mutex_unlock(&loader->mutex);
    return TDM_OK;
}

static bool is_fetched(const tdm_loader *loader, const slot *s) {
    return loader->claimed > loader->taken && s->ready;
}

/* Waits until the batch in `s` is read. The caller holds the mutex. Slow storage is not an error, but warns. */
static void wait_for(tdm_loader *loader, const slot *s) {
    struct timespec deadline;
    clock_gettime(CLOCK_MONOTONIC, &deadline);
    for (int64_t waited = WARN_SECONDS; !is_fetched(loader, s);) {
        deadline.tv_sec += WARN_SECONDS;
        int result = 0;
        while (!is_fetched(loader, s) && result != ETIMEDOUT)
            result = pthread_cond_timedwait(&loader->changed, &loader->mutex, &deadline);
        if (is_fetched(loader, s)) break;
        pthread_mutex_unlock(&loader->mutex);
        TDM_WARN(loader->host, "data", "still waiting for a batch after %lld s: reading samples is slow or stuck",
                 (long long)waited);
        pthread_mutex_lock(&loader->mutex);
        waited += WARN_SECONDS;
    }
}

/* The next batch to give out, after it was read. The caller holds the mutex. */
static slot *front(tdm_loader *loader) {
    int64_t start_ns = tdm__now_ns();
    loader->running = true;
    pthread_cond_broadcast(&loader->can_claim);
    slot *s = &loader->slots[loader->taken % (uint64_t)loader->slot_count];
    if (loader->thread_count > 0) {
        wait_for(loader, s);
    } else if (loader->claimed == loader->taken) {
        fetch_and_keep_error(loader, claim(loader), loader->caller.sample);
        s->ready = true;
    }
    loader->waited_ms += tdm__ms_since(start_ns);
    return s;
}

tdm_status tdm__loader_next(tdm_loader *loader, const tdm_batch **out) {
    *out = NULL;
    pthread_mutex_lock(&loader->mutex);
    uint64_t kept = (uint64_t)loader->options.held - 1; /* beside the batch that this call gives */
    loader->released = loader->taken > kept ? loader->taken - kept : 0;
    slot *s = front(loader);
    tdm_status status = s->status;
    if (status == TDM_OK) loader->taken++;
    pthread_mutex_unlock(&loader->mutex);
    if (status != TDM_OK) {
        s->error.status = status;
        return tdm__error_restore(&s->error, NULL);
    }
    *out = &s->batch;
    return TDM_OK;
}

const tdm_batch *tdm__loader_peek(tdm_loader *loader) {
    pthread_mutex_lock(&loader->mutex);
    const slot *s = front(loader);
    pthread_mutex_unlock(&loader->mutex);
    return s->status == TDM_OK ? &s->batch : NULL;
}

double tdm__loader_waited_ms(tdm_loader *loader) {
    double ms = loader->waited_ms;
    loader->waited_ms = 0;
    return ms;
}
