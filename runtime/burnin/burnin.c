/* The burn-in as a whole: opening, the common start, the end. See tandem/burnin.h. */
#include "runtime/burnin/burnin.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/log.h"
#include "runtime/base/memory.h"
#include "runtime/base/call/sized.h"
#include "runtime/base/call/extra.h"
#include "runtime/base/status.h"
#include "runtime/base/system/clock.h"
#include "runtime/base/system/cpus.h"
#include "runtime/train/run.h"

enum { DEFAULT_SECONDS = 60, LOOK_MS = 200 };

/* ---- opening ---- */

/* Devices with other instructions round otherwise: sums of f32 in another order, factors in tf32 and bf16. */
static double tolerance_of(const tdm_job *job) {
    if (!isnan(job->burnin.tolerance)) return job->burnin.tolerance;
    return job->train.precision == TDM_BF16 ? 0.05 : job->train.precision == TDM_TF32 ? 0.01 : 1e-4;
}

static int64_t nanoseconds(double seconds) {
    return seconds < 9e9 ? (int64_t)(seconds * 1e9) : INT64_MAX;
}

static void take_job(tdm_burnin *b, const tdm_job *job) {
    b->job = *job;
    b->ids = job->parallel.device_ids;
    if (b->ids.count == 0) b->ids = (tdm_ints){.count = 1};
    tdm_job_predicts(&b->job);
    if (b->job.data.eval.format == TDM_DATA_NONE) b->job.data.eval = b->job.data.train;
    b->job.data.train = b->job.data.eval; /* the files of the other part may be missing */
    const bool is_free = job->burnin.iterations == TDM_INT_NULL && isnan(job->burnin.duration);
    b->iterations = job->burnin.iterations != TDM_INT_NULL ? job->burnin.iterations : INT64_MAX;
    b->duration_ns = is_free                       ? nanoseconds(DEFAULT_SECONDS)
                     : isnan(job->burnin.duration) ? INT64_MAX
                                                   : nanoseconds(job->burnin.duration);
    b->tolerance = tolerance_of(job);
}

/* The threads of the machine are shared by the devices that are its processor. */
static tdm_status open_device(tdm_burnin *b, int index) {
    tdm_burnin_worker *w = &b->worker[index];
    tdm_run_options options = TDM_RUN_OPTIONS_INIT;
    tdm_job *job = &w->job;
    const int threads = tdm__cpus_available(b->host) / b->count;
    *job = b->job;
    options.host = b->host;
    options.module_path = b->options.module_path;
    options.predicts = 1;
    job->parallel.device_ids = (tdm_ints){.count = 1, .item = {b->ids.item[index]}};
    if (job->parallel.threads_per_device == TDM_INT_NULL) job->parallel.threads_per_device = threads > 0 ? threads : 1;
    if (b->reader != NULL) job->data.train.format = job->data.eval.format = TDM_DATA_NONE; /* one reads for all */
    w->all = b;
    snprintf(w->seen.name, sizeof(w->seen.name), "device %lld", (long long)b->ids.item[index]);
    TDM_TRY(tdm_run_open(&w->run, job, b->graph, &options));
    if (b->reader == NULL) b->reader = w->run;
    const tdm_device *device = w->run->mode->replica[0]->device;
    snprintf(w->seen.name, sizeof(w->seen.name), "%.60s", device->name);
    return TDM_OK;
}

/* A device that is not there, or has too little memory, is bad; every other failure is the job's. */
static tdm_status open_devices(tdm_burnin *b) {
    int opened = 0;
    for (int i = 0; i < b->count; i++) {
        const tdm_status status = open_device(b, i);
        if (status != TDM_OK && status != TDM_E_DEVICE && status != TDM_E_MEMORY) return status;
        if (status != TDM_OK && i == b->count - 1 && opened == 0) return status;
        if (status != TDM_OK) tdm__burnin_fail(&b->worker[i]);
        opened += status == TDM_OK;
    }
    return TDM_OK;
}

/* Reads samples spread over the data, `b->samples` at most. The black pictures in place of those that cannot be read
 * are none. */
static tdm_status fill(tdm_burnin *b) {
    const tdm_dataset *data = b->reader->eval;
    const int64_t all = data->count, wanted = b->samples;
    b->samples = 0;
    for (int64_t i = 0; i < wanted; i++) {
        int64_t label;
        const int64_t index = (int64_t)((double)i * (double)all / (double)wanted);
        TDM_TRY(tdm_run_eval_sample(b->reader, index, b->x + b->samples * b->inputs, &label));
        b->samples += data->ops->is_left_out == NULL || !data->ops->is_left_out(data, index);
    }
    if (b->samples == 0)
        TDM_FAIL_AT(&b->job.data.eval.origin, TDM_E_DATA,
                    "burn-in: none of the %lld pictures that it takes can be read, and on_bad_sample: skip leaves them "
                    "out; repair them, or name other pictures",
                    (long long)wanted);
    return TDM_OK;
}

/* All devices read the same memory. */
static tdm_status read_samples(tdm_burnin *b) {
    tdm_run *run = b->reader;
    const int64_t all = tdm_run_eval_count(run), wanted = b->job.burnin.max_samples;
    size_t bytes;
    if (all == 0)
        TDM_FAIL(
            TDM_E_CONFIG,
            "burn-in: the job has no data; for made-up pictures write data: {train: {format: synthetic, samples: 64}}");
    b->samples = all < wanted ? all : wanted;
    b->inputs = tdm_run_input_width(run);
    b->outputs = tdm_run_output_width(run);
    b->batch = tdm_run_eval_batch(run);
    if (!tdm__mul_fits((size_t)b->samples, (size_t)b->inputs, &bytes))
        TDM_FAIL(TDM_E_CONFIG, "burn-in: burnin.max_samples is too large for samples of this size");
    TDM_TRY(tdm__new(b->host, &b->x, bytes, sizeof(*b->x), "samples of the burn-in; make burnin.max_samples smaller"));
    TDM_TRY(fill(b));
    for (int i = 0; i < b->count; i++) {
        tdm_burnin_worker *w = &b->worker[i];
        TDM_TRY(tdm__new(b->host, &w->first, (size_t)(b->samples * b->outputs), sizeof(float), "burn-in"));
        TDM_TRY(tdm__new(b->host, &w->again, (size_t)(b->batch * b->outputs), sizeof(float), "burn-in"));
    }
    return TDM_OK;
}

static tdm_status open_lock(tdm_burnin *b) {
    if (pthread_mutex_init(&b->lock, NULL) != 0) TDM_FAIL(TDM_E_MEMORY, "burn-in: no memory for a lock");
    if (tdm__condition_init(&b->changed) != 0) {
        pthread_mutex_destroy(&b->lock);
        TDM_FAIL(TDM_E_MEMORY, "burn-in: no memory for a lock");
    }
    b->has_lock = true;
    return TDM_OK;
}

static tdm_status open_all(tdm_burnin *b) {
    b->count = b->ids.count;
    TDM_TRY(tdm__new(b->host, &b->worker, (size_t)b->count, sizeof(*b->worker), "burn-in"));
    TDM_TRY(open_lock(b));
    TDM_TRY(open_devices(b));
    return read_samples(b);
}

tdm_status tdm_burnin_open(tdm_burnin **out, const tdm_job *job, const tdm_graph *graph,
                           const tdm_burnin_options *options) {
    if (out == NULL || job == NULL || graph == NULL)
        TDM_FAIL(TDM_E_USAGE, "tdm_burnin_open: out, job or graph is NULL");
    *out = NULL;
    TDM_EXTRA(BURNIN);
    tdm_burnin_options given = TDM_BURNIN_OPTIONS_INIT;
    TDM_TRY(tdm__sized_take("tdm_burnin_open: options", &given, sizeof(given), options, TDM_SIZED_ANY));
    const tdm_host *host = given.host;
    tdm_burnin *b = NULL;
    TDM_TRY(tdm__host_take(&host));
    TDM_TRY(tdm__job_check(host, job));
    TDM_TRY(tdm__new(host, &b, 1, sizeof(*b), "burn-in"));
    b->host = host;
    b->options = given;
    tdm__guard_init(&b->guard, "burn-in");
    tdm__zone_init(&b->zone, host);
    const tdm_job *kept;
    tdm_status status = tdm__job_copy(&b->zone, &kept, job);
    if (status == TDM_OK) status = tdm__zone_text(&b->zone, &b->options.module_path, given.module_path);
    if (status == TDM_OK) {
        b->graph = tdm__graph_keep(graph);
        take_job(b, kept);
        status = open_all(b);
    }
    if (status != TDM_OK) {
        tdm_burnin_close(b);
        return status;
    }
    *out = b;
    return TDM_OK;
}

/* ---- running ---- */

static tdm_status start_threads(tdm_burnin *b) {
    for (int i = 0; i < b->count; i++) {
        tdm_burnin_worker *w = &b->worker[i];
        if (w->run == NULL) continue;
        const int error =
            tdm__thread_start(&w->thread, b->host, TDM_THREAD_BURNIN, i, (int)b->ids.item[i], tdm__burnin_work, w);
        char why[160];
        if (error != 0)
            TDM_FAIL(TDM_E_MEMORY, "burn-in: a device's thread cannot be started: %s",
                     tdm__thread_why(&w->thread, error, why));
        w->is_running = true;
    }
    return TDM_OK;
}

static int running(const tdm_burnin *b) {
    int count = 0;
    for (int i = 0; i < b->count; i++) count += b->worker[i].is_running;
    return count;
}

/* Under the lock. */
static void wait_a_little(tdm_burnin *b) {
    const struct timespec until = tdm__timespec(tdm__deadline_ns(tdm__now_ns(), LOOK_MS));
    pthread_cond_timedwait(&b->changed, &b->lock, &until);
}

static double fraction_of(const tdm_burnin *b, double seconds, int64_t samples) {
    const double by_time = b->duration_ns == INT64_MAX ? 0.0 : seconds * 1e9 / (double)b->duration_ns;
    const double each = (double)samples / (double)running(b) / (double)b->batch;
    const double by_batches = b->iterations == INT64_MAX ? 0.0 : each / (double)b->iterations;
    const double most = by_time > by_batches ? by_time : by_batches;
    return most < 1.0 ? most : 1.0;
}

static void tell_progress(tdm_burnin *b) {
    tdm_burnin_progress progress = {.size = sizeof(progress),
                                    .seconds = (double)(tdm__steady_ns(b->host) - b->start_ns) * 1e-9};
    if (b->options.on_progress == NULL) return;
    for (int i = 0; i < b->count; i++) {
        progress.samples += atomic_load(&b->worker[i].samples);
        progress.wrong += atomic_load(&b->worker[i].wrong);
    }
    progress.fraction = fraction_of(b, progress.seconds, progress.samples);
    b->guard.reports = true;
    b->options.on_progress(&progress, b->options.user);
    b->guard.reports = false;
}

/* The common start, and the wait for the last end. */
static void lead(tdm_burnin *b) {
    const int count = running(b);
    pthread_mutex_lock(&b->lock);
    while (b->ready < count) pthread_cond_wait(&b->changed, &b->lock);
    b->start_ns = tdm__steady_ns(b->host);
    b->has_started = true;
    pthread_cond_broadcast(&b->changed);
    while (b->ended < count) {
        wait_a_little(b);
        pthread_mutex_unlock(&b->lock);
        tell_progress(b);
        pthread_mutex_lock(&b->lock);
    }
    pthread_mutex_unlock(&b->lock);
}

static void join_threads(tdm_burnin *b) {
    for (int i = 0; i < b->count; i++) {
        tdm_burnin_worker *w = &b->worker[i];
        if (!w->is_running) continue;
        tdm__thread_join(&w->thread);
        if (w->seen.seconds > b->seconds) b->seconds = w->seen.seconds;
    }
    for (int i = 0; i < b->count; i++) b->worker[i].is_running = false;
}

static int good_devices(const tdm_burnin *b) {
    int good = 0;
    for (int i = 0; i < b->count; i++) good += b->worker[i].seen.verdict == TDM_BURNIN_GOOD;
    return good;
}

tdm_status tdm_burnin_run(tdm_burnin *b) {
    if (b == NULL || b->has_run) TDM_FAIL(TDM_E_USAGE, "tdm_burnin_run: NULL, or run already");
    TDM_EXTRA(BURNIN);
    TDM_ENTER(&b->guard, "tdm_burnin_run", TDM_GUARD_MOVES);
    b->has_run = true;
    const tdm_status started = start_threads(b);
    if (started != TDM_OK) atomic_store(&b->stops, true);
    lead(b);
    b->was_stopped = atomic_load(&b->stops);
    join_threads(b);
    TDM_TRY(started);
    TDM_TRY(tdm__burnin_judge(b));
    const int good = good_devices(b);
    if (good < b->count) TDM_FAIL(TDM_E_CHECK, "burn-in: %d of %d devices are bad", b->count - good, b->count);
    return TDM_OK;
}

void tdm_burnin_request_stop(tdm_burnin *b) {
    if (b != NULL) atomic_store(&b->stops, true);
}

/* ---- results ---- */

static double rate_of(const tdm_burnin_device *seen) {
    return seen->seconds > 0.0 ? (double)seen->samples / seen->seconds : 0.0;
}

tdm_status tdm_burnin_get_total(const tdm_burnin *b, tdm_burnin_total *out) {
    if (b == NULL || out == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_burnin_get_total: a pointer is NULL");
    TDM_TRY(tdm__sized_check("tdm_burnin_get_total: tdm_burnin_total", out, TDM_SIZED_ANY, sizeof(*out)));
    tdm_burnin_total total = {.devices = b->count,
                              .good = good_devices(b),
                              .different_samples = b->samples,
                              .batch = b->batch,
                              .seconds = b->seconds,
                              .tolerance = b->tolerance,
                              .equal_bits = b->equal_bits,
                              .stopped = b->was_stopped};
    double slowest = INFINITY, fastest = 0.0;
    for (int i = 0; i < b->count; i++) {
        const tdm_burnin_device *seen = &b->worker[i].seen;
        const double rate = rate_of(seen);
        total.samples += seen->samples;
        if (seen->verdict == TDM_BURNIN_FAILED) continue;
        if (rate < slowest) slowest = rate;
        if (rate > fastest) fastest = rate;
    }
    if (fastest > 0.0) total.spread = (fastest - slowest) / fastest;
    tdm__sized_give(out, &total);
    return TDM_OK;
}

tdm_status tdm_burnin_get_device(const tdm_burnin *b, int index, tdm_burnin_device *out) {
    if (b == NULL || out == NULL || index < 0 || index >= b->count)
        TDM_FAIL(TDM_E_USAGE, "tdm_burnin_get_device: NULL, or no device %d", index);
    TDM_TRY(tdm__sized_check("tdm_burnin_get_device: tdm_burnin_device", out, TDM_SIZED_ANY, sizeof(*out)));
    tdm__sized_give(out, &b->worker[index].seen);
    return TDM_OK;
}

const char *tdm_burnin_verdict_name(tdm_burnin_verdict verdict) {
    static const char *const names[] = {"good", "unstable", "wrong", "failed"};
    return verdict >= 0 && verdict <= TDM_BURNIN_FAILED ? names[verdict] : "";
}

void tdm_burnin_close(tdm_burnin *b) {
    if (b == NULL) return;
    if (tdm__guard_enter(&b->guard, "tdm_burnin_close", TDM_GUARD_MOVES) != TDM_OK) {
        if (tdm__guard_is_home(&b->guard))
            TDM_WARN(b->host, "burnin", "%s; the burn-in stays open", tdm_error_message());
        return;
    }
    for (int i = 0; b->worker != NULL && i < b->count; i++) {
        tdm_run_close(b->worker[i].run);
        tdm__delete(b->host, b->worker[i].first);
        tdm__delete(b->host, b->worker[i].again);
    }
    if (b->has_lock) {
        pthread_cond_destroy(&b->changed);
        pthread_mutex_destroy(&b->lock);
    }
    tdm__delete(b->host, b->worker);
    tdm__delete(b->host, b->x);
    tdm__graph_leave(b->graph);
    tdm__zone_deinit(&b->zone);
    tdm__delete(b->host, b);
}
