/* Batches in order, read ahead by threads.
 *
 * Batches are numbered from the last seek. Batch b lies in entry b % entry_count of a ring that is allocated once. Four
 * things happen to an entry, in this order:
 *
 *   claimed    A thread takes the next number and writes the indices of the batch's samples. It holds the mutex.
 *   fetched    The same thread reads and transforms the samples, without the mutex. Then the entry is ready.
 *   taken      tdm__loader_next gives it to the caller. A batch that failed is not taken: it stays at the front, and
 *              every call returns its error, until the next seek.
 *   released   The caller has taken `held` more; the entry can be claimed again.
 *
 * Only the claims are in order of the numbers, and they alone decide the content. So the batches depend neither on the
 * number of threads nor on their speed. Without threads the caller claims and fetches the batch that it asks for. */
#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "runtime/base/log.h"
#include "runtime/base/round.h"
#include "runtime/base/status.h"
#include "runtime/base/system/clock.h"
#include "runtime/base/system/thread.h"
#include "runtime/data/batches.h"

enum { WORKERS_MAX = 1024, AHEAD_MAX = 4096, HELD_MAX = 64, WARN_SECONDS = 30 };

typedef struct entry {
    tdm_batch *batch;
    bool ready;
    tdm_status status;
    tdm_error error; /* its record, if it is not TDM_OK */
} entry;

typedef struct loader_thread {
    tdm_loader *loader;
    tdm_thread thread;
    tdm_batch_reader reader;
} loader_thread;

struct tdm_loader {
    const tdm_host *host;
    tdm_batches batches;
    entry *entries;
    int entry_count, thread_count, started, readers;
    loader_thread *threads; /* `readers` of them, at least one: if no thread runs, the caller uses its reader */
    unsigned char *samples; /* all buffers */
    double waited_ms;       /* result of tdm__loader_waited_ms */

    pthread_mutex_t mutex; /* guards all below, and the entries that no thread has claimed */
    pthread_cond_t can_claim, changed;
    int64_t epoch, step;               /* of the next batch to claim */
    uint64_t claimed, taken, released; /* numbers of the next batch to claim, to give out, to get back */
    int busy;                          /* threads that are reading a claimed batch */
    bool running, closing;
    bool ended; /* with a stride: all steps have been claimed */
};

/* ---- claiming and fetching ---- */

static entry *entry_of(const tdm_loader *loader, uint64_t number) {
    return &loader->entries[number % (uint64_t)loader->entry_count];
}

static bool may_claim(const tdm_loader *loader) {
    return loader->running && !loader->ended && loader->claimed - loader->released < (uint64_t)loader->entry_count;
}

/* Claims the next batch and returns its entry. The caller holds the mutex. */
static entry *claim(tdm_loader *loader) {
    entry *e = entry_of(loader, loader->claimed++);
    e->ready = false;
    tdm__batch_plan(&loader->batches, e->batch, loader->epoch, loader->step);
    const int64_t stride = loader->batches.options.stride;
    loader->step += stride > 0 ? stride : 1;
    if (loader->step < loader->batches.steps_per_epoch) return e;
    loader->ended = stride > 0;
    loader->epoch++;
    loader->step = 0;
    return e;
}

static void fetch(const tdm_loader *loader, entry *e, tdm_batch_reader *reader) {
    e->status = tdm__batch_fetch(&loader->batches, e->batch, reader);
    if (e->status == TDM_OK) return;
    tdm__error_save(&e->error);
    e->error.status = e->status;
}

static void work(void *argument) {
    loader_thread *self = argument;
    tdm_loader *loader = self->loader;
    pthread_mutex_lock(&loader->mutex);
    for (;;) {
        while (!loader->closing && !may_claim(loader)) pthread_cond_wait(&loader->can_claim, &loader->mutex);
        if (loader->closing) break;
        entry *e = claim(loader);
        loader->busy++;
        pthread_mutex_unlock(&loader->mutex);
        fetch(loader, e, &self->reader);
        pthread_mutex_lock(&loader->mutex);
        loader->busy--;
        e->ready = true;
        pthread_cond_broadcast(&loader->changed);
    }
    pthread_mutex_unlock(&loader->mutex);
}

/* ---- giving out ---- */

static bool is_fetched(const tdm_loader *loader, const entry *e) {
    return loader->claimed > loader->taken && e->ready;
}

/* Waits until the batch in `e` is read. The caller holds the mutex. Slow storage is not an error, but warns. */
static void wait_for(tdm_loader *loader, const entry *e) {
    struct timespec deadline = tdm__timespec(tdm__now_ns());
    for (int64_t waited = WARN_SECONDS; !is_fetched(loader, e);) {
        deadline.tv_sec += WARN_SECONDS;
        int result = 0;
        while (!is_fetched(loader, e) && result != ETIMEDOUT)
            result = pthread_cond_timedwait(&loader->changed, &loader->mutex, &deadline);
        if (is_fetched(loader, e)) break;
        pthread_mutex_unlock(&loader->mutex);
        TDM_WARN(loader->host, "data", "still waiting for a batch after %lld s: reading samples is slow or stuck",
                 (long long)waited);
        pthread_mutex_lock(&loader->mutex);
        waited += WARN_SECONDS;
    }
}

/* The next batch to give out, after it was read. The caller holds the mutex. */
static entry *front(tdm_loader *loader) {
    int64_t start_ns = tdm__steady_ns(loader->host);
    loader->running = true;
    pthread_cond_broadcast(&loader->can_claim);
    entry *e = entry_of(loader, loader->taken);
    if (loader->thread_count > 0) {
        wait_for(loader, e);
    } else if (loader->claimed == loader->taken) {
        fetch(loader, claim(loader), &loader->threads[0].reader);
        e->ready = true;
    }
    loader->waited_ms += (double)(tdm__steady_ns(loader->host) - start_ns) * 1e-6;
    return e;
}

tdm_status tdm__loader_next(tdm_loader *loader, const tdm_batch **out) {
    *out = NULL;
    pthread_mutex_lock(&loader->mutex);
    if (loader->ended && loader->claimed == loader->taken) {
        pthread_mutex_unlock(&loader->mutex);
        TDM_FAIL(TDM_E_INTERNAL, "loader: no step is left");
    }
    uint64_t kept = (uint64_t)loader->batches.options.held - 1; /* beside the batch that this call gives */
    loader->released = loader->taken > kept ? loader->taken - kept : 0;
    entry *e = front(loader);
    tdm_status status = e->status;
    if (status == TDM_OK) loader->taken++;
    pthread_mutex_unlock(&loader->mutex);
    if (status != TDM_OK) return tdm__error_restore(&e->error, NULL);
    *out = e->batch;
    return TDM_OK;
}

const tdm_batch *tdm__loader_peek(tdm_loader *loader) {
    pthread_mutex_lock(&loader->mutex);
    const entry *e = front(loader);
    pthread_mutex_unlock(&loader->mutex);
    return e->status == TDM_OK ? e->batch : NULL;
}

tdm_status tdm__loader_seek(tdm_loader *loader, int64_t epoch, int64_t step_in_epoch) {
    int64_t steps = loader->batches.steps_per_epoch;
    if (epoch < 0 || step_in_epoch < 0 || step_in_epoch > steps)
        TDM_FAIL(TDM_E_USAGE, "loader: needs epoch 0 or later and step 0 to %lld, got epoch %lld, step %lld",
                 (long long)steps, (long long)epoch, (long long)step_in_epoch);
    pthread_mutex_lock(&loader->mutex);
    loader->running = false;
    while (loader->busy > 0) pthread_cond_wait(&loader->changed, &loader->mutex);
    loader->claimed = loader->taken = loader->released = 0;
    loader->ended = false;
    loader->epoch = epoch + step_in_epoch / steps;
    loader->step = step_in_epoch % steps;
    loader->running = true;
    pthread_cond_broadcast(&loader->can_claim);
    pthread_mutex_unlock(&loader->mutex);
    return TDM_OK;
}

int64_t tdm__loader_steps_per_epoch(const tdm_loader *loader) {
    return loader->batches.steps_per_epoch;
}

const tdm_packing *tdm__loader_packing(const tdm_loader *loader) {
    return &loader->batches.packing;
}

const tdm_transform *tdm__loader_transform(const tdm_loader *loader) {
    return &loader->batches.transform;
}

double tdm__loader_waited_ms(tdm_loader *loader) {
    double ms = loader->waited_ms;
    loader->waited_ms = 0;
    return ms;
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
    if (sampler->shuffle && sampler->count >= TDM_RANDPERM_LIMIT)
        TDM_FAIL(TDM_E_UNSUPPORTED,
                 "data.shuffle needs fewer than %d samples, found %lld; set shuffle: false or a range",
                 TDM_RANDPERM_LIMIT, (long long)sampler->count);
    return TDM_OK;
}

static tdm_status start_threads(tdm_loader *loader) {
    for (; loader->started < loader->thread_count; loader->started++) {
        loader_thread *thread = &loader->threads[loader->started];
        const int error =
            tdm__thread_start(&thread->thread, loader->host, TDM_THREAD_DATA, loader->started, -1, work, thread);
        char why[160];
        if (error != 0)
            TDM_FAIL(TDM_E_MEMORY, "data.workers: loader thread %d of %d cannot be started: %s", loader->started + 1,
                     loader->thread_count, tdm__thread_why(&thread->thread, error, why));
    }
    return TDM_OK;
}

/* Indices: waking a thread takes longer. */
static int threads_of(const tdm_loader_options *o) {
    return o->form == TDM_ROWS_INDEX ? 0 : (int)o->workers;
}

/* The caller holds some batches. The others are read ahead, at least one for each thread. */
int tdm__loader_batches(const tdm_loader_options *o) {
    const int threads = threads_of(o), ahead = o->ahead > threads ? o->ahead : threads;
    return (o->held > 0 ? o->held : 1) + (threads == 0 ? 1 : ahead);
}

static tdm_status open_parts(tdm_loader *loader, const tdm_dataset *dataset, tdm_loader_options options) {
    const tdm_host *host = loader->host;
    if (options.held == 0) options.held = 1;
    int threads = threads_of(&options), buffers = threads > 0 ? threads : 1;
    loader->thread_count = threads;
    loader->entry_count = tdm__loader_batches(&options);
    TDM_TRY(tdm__batches_open(&loader->batches, host, dataset, &options, loader->entry_count));
    TDM_TRY(tdm__new(host, &loader->entries, (size_t)loader->entry_count, sizeof(entry), "loader"));
    for (int i = 0; i < loader->entry_count; i++) loader->entries[i].batch = &loader->batches.batch[i];
    size_t other_at = tdm__round_up(loader->batches.sample_bytes, TDM_ALIGN);
    size_t stride = other_at + tdm__round_up(loader->batches.other_bytes, TDM_ALIGN);
    TDM_TRY(tdm__new(host, &loader->samples, (size_t)buffers, stride, "loader"));
    TDM_TRY(tdm__new(host, &loader->threads, (size_t)buffers, sizeof(loader_thread), "loader"));
    for (; loader->readers < buffers; loader->readers++) {
        loader_thread *thread = &loader->threads[loader->readers];
        thread->loader = loader;
        thread->reader.sample = loader->samples + (size_t)loader->readers * stride;
        thread->reader.other = (float *)(void *)(thread->reader.sample + other_at);
        TDM_TRY(tdm__sample_reader_open(&thread->reader.reader, dataset));
    }
    return start_threads(loader);
}

tdm_status tdm__loader_open(tdm_loader **out, const tdm_host *host, const tdm_dataset *dataset,
                            const tdm_loader_options *options) {
    tdm_loader *loader;
    *out = NULL;
    TDM_TRY(check_options(dataset, options));
    TDM_TRY(tdm__new(host, &loader, 1, sizeof(*loader), "loader"));
    loader->host = host;
    pthread_mutex_init(&loader->mutex, NULL);
    (void)tdm__condition_init(&loader->can_claim);
    (void)tdm__condition_init(&loader->changed);
    TDM_TRY_ELSE(open_parts(loader, dataset, *options), tdm__loader_close(loader));
    *out = loader;
    return TDM_OK;
}

static void stop_threads(tdm_loader *loader) {
    pthread_mutex_lock(&loader->mutex);
    loader->closing = true;
    pthread_cond_broadcast(&loader->can_claim);
    pthread_mutex_unlock(&loader->mutex);
    for (int i = 0; i < loader->started; i++) tdm__thread_join(&loader->threads[i].thread);
}

void tdm__loader_close(tdm_loader *loader) {
    if (loader == NULL) return;
    const tdm_host *host = loader->host;
    stop_threads(loader);
    tdm__batches_close(&loader->batches);
    for (int i = 0; i < loader->readers; i++) tdm__sample_reader_close(&loader->threads[i].reader.reader);
    tdm__delete(host, loader->samples);
    tdm__delete(host, loader->threads);
    tdm__delete(host, loader->entries);
    pthread_cond_destroy(&loader->can_claim);
    pthread_cond_destroy(&loader->changed);
    pthread_mutex_destroy(&loader->mutex);
    tdm__delete(host, loader);
}
