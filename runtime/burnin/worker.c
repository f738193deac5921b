/* A device's thread: one batch to warm up, the common start, then batch after batch. */
#include <stdio.h>
#include <string.h>

#include "runtime/base/status.h"
#include "runtime/base/system/clock.h"
#include "runtime/burnin/burnin.h"

void tdm__burnin_fail(tdm_burnin_worker *w) {
    w->seen.verdict = TDM_BURNIN_FAILED;
    snprintf(w->seen.why, sizeof(w->seen.why), "%.*s", (int)sizeof(w->seen.why) - 1, tdm_error_message());
}

/* Waits until all workers have come here. */
static void meet(tdm_burnin *all) {
    pthread_mutex_lock(&all->lock);
    all->ready++;
    pthread_cond_broadcast(&all->changed);
    while (!all->has_started) pthread_cond_wait(&all->changed, &all->lock);
    pthread_mutex_unlock(&all->lock);
}

static int64_t rows_at(const tdm_burnin *all, int64_t first) {
    return all->samples - first < all->batch ? all->samples - first : all->batch;
}

static void count_time(tdm_burnin_device *seen, double ms) {
    if (seen->batches == 0 || ms < seen->ms_least) seen->ms_least = ms;
    if (ms > seen->ms_most) seen->ms_most = ms;
    seen->ms_mean += (ms - seen->ms_mean) / (double)(seen->batches + 1);
    seen->batches++;
}

/* The next batch. The bits of a later pass are those of the first. */
static tdm_status run_batch(tdm_burnin_worker *w, int64_t first) {
    const tdm_burnin *all = w->all;
    const int64_t rows = rows_at(all, first), begin = tdm__steady_ns(all->host);
    const bool is_again = first < w->covered;
    float *known = w->first + first * all->outputs;
    TDM_TRY(
        tdm_run_predict_as(w->run, TDM_INPUT_READY, all->x + first * all->inputs, rows, is_again ? w->again : known));
    count_time(&w->seen, (double)(tdm__steady_ns(all->host) - begin) * 1e-6);
    atomic_fetch_add(&w->samples, rows);
    if (!is_again)
        w->covered = first + rows;
    else if (memcmp(w->again, known, (size_t)(rows * all->outputs) * sizeof(float)) != 0)
        atomic_fetch_add(&w->wrong, 1);
    return TDM_OK;
}

static bool is_over(const tdm_burnin_worker *w) {
    const tdm_burnin *all = w->all;
    return atomic_load(&all->stops) || w->seen.batches >= all->iterations ||
           tdm__steady_ns(all->host) - all->start_ns >= all->duration_ns;
}

static tdm_status run_batches(tdm_burnin_worker *w) {
    const tdm_burnin *all = w->all;
    int64_t first = 0;
    if (atomic_load(&all->stops)) return TDM_OK;
    do { /* at least one: without outputs there is no verdict */
        TDM_TRY(run_batch(w, first));
        first += rows_at(all, first);
        if (first == all->samples) first = 0;
    } while (!is_over(w));
    return TDM_OK;
}

void tdm__burnin_work(void *argument) {
    tdm_burnin_worker *w = argument;
    tdm_burnin *all = w->all;
    tdm_status status = tdm_run_predict_as(w->run, TDM_INPUT_READY, all->x, rows_at(all, 0), w->again);
    meet(all);
    if (status == TDM_OK) status = run_batches(w);
    if (status != TDM_OK) tdm__burnin_fail(w);
    w->seen.seconds = (double)(tdm__steady_ns(all->host) - all->start_ns) * 1e-9;
    w->seen.samples = atomic_load(&w->samples);
    w->seen.wrong_batches = atomic_load(&w->wrong);
    pthread_mutex_lock(&all->lock);
    all->ended++;
    pthread_cond_broadcast(&all->changed);
    pthread_mutex_unlock(&all->lock);
}
