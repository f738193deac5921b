/* Measures the step of one device, alone and as one of several ranks. */
#include <math.h>
#include <stdlib.h>

#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/base/system/sync.h"
#include "runtime/comm/comm.h"
#include "runtime/train/plan/plan_scale.h"

enum { WARM_UP = 5, MEASURED = 20 }; /* a GPU times every eighth step */

typedef struct measured {
    int count;
    double forward[MEASURED], backward[MEASURED], rest[MEASURED], step[MEASURED]; /* milliseconds */
} measured;

/* A run of one device. Of several ranks each has a thread of its own. */
typedef struct device_run {
    const tdm_job *job;
    const tdm_graph *graph;
    tdm_comm *comm; /* NULL: it is alone */
    tdm_worker *worker;
    measured measured;
} device_run;

static int on_event(const tdm_event *event, void *user) {
    measured *m = user;
    const tdm_phase_ms *ms = &event->ms;
    if (event->kind != TDM_EVENT_STEP || event->step <= WARM_UP || m->count == MEASURED) return 0;
    const double forward = ms->forward + (isnan(ms->loss) ? 0 : ms->loss);
    m->forward[m->count] = forward;
    m->backward[m->count] = ms->backward;
    m->step[m->count] = ms->step;
    const double waited = isnan(ms->comm_exposed) ? 0 : ms->comm_exposed;
    m->rest[m->count++] = fmax(ms->step - forward - ms->backward - waited, 0);
    return 0;
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_seconds(double *ms) {
    qsort(ms, MEASURED, sizeof(*ms), by_value);
    return (ms[MEASURED / 2 - 1] + ms[MEASURED / 2]) / 2 / 1e3;
}

/* Half of what the middle two thirds span: the standard deviation, without the few steps that something disturbed. */
static double deviation_seconds(double *ms) {
    qsort(ms, MEASURED, sizeof(*ms), by_value);
    return (ms[MEASURED - 1 - MEASURED / 6] - ms[MEASURED / 6]) / 2 / 1e3;
}

/* The job as a run of one device, without what a run leaves behind or judges. */
static tdm_job job_of(const tdm_job *job, const tdm_planned *planned, tdm_mode_kind mode) {
    tdm_job alone = *job;
    alone.parallel.mode = mode;
    alone.parallel.ddp.backend = TDM_BACKEND_AUTO;
    if (alone.parallel.device_ids.count > 1) alone.parallel.device_ids.count = 1;
    alone.parallel.threads_per_device = planned->plan->options.threads;
    alone.parallel.ddp.compress.type = TDM_COMPRESS_NONE;
    alone.parallel.ddp.average = TDM_AVERAGE_SAMPLES;
    alone.train.per_device = planned->rows;
    alone.train.global_batch = TDM_INT_NULL;
    alone.train.epochs = TDM_INT_NULL;
    alone.train.steps = WARM_UP + MEASURED;
    alone.run.dir = NULL;
    alone.checkpoint.resume = "never";
    alone.data.eval.format = TDM_DATA_NONE; /* so nothing judges evaluations, either */
    alone.checkpoint.keep_best = TDM_METRIC_NONE;
    alone.train.stop_after = TDM_INT_NULL;
    if (alone.schedule.type == TDM_SCHEDULE_PLATEAU) alone.schedule.type = TDM_SCHEDULE_CONSTANT;
    return alone;
}

static tdm_status train(void *argument) {
    device_run *own = argument;
    tdm_run *run = NULL;
    tdm_run_options options = TDM_RUN_OPTIONS_INIT;
    options.on_event = on_event;
    options.user = &own->measured;
    options.comm = own->comm;
    tdm_status status = tdm_run_open(&run, own->job, own->graph, &options);
    if (status == TDM_OK) status = tdm_run_step(run, WARM_UP + MEASURED);
    if (status != TDM_OK && own->comm != NULL) tdm_comm_abort(own->comm, tdm_error_message());
    tdm_run_close(run);
    return status;
}

static tdm_status start(device_run *own, const tdm_host *host, int rank) {
    TDM_TRY(tdm__worker_open(&own->worker, host, TDM_THREAD_REPLICA, rank, -1));
    return tdm__worker_start(own->worker, train, own);
}

static tdm_status train_ranks(device_run *runs, int count, const tdm_host *host) {
    tdm_status status = TDM_OK;
    for (int r = 0; r < count && status == TDM_OK; r++) status = start(&runs[r], host, r);
    if (status != TDM_OK) tdm_comm_abort(runs[0].comm, tdm_error_message());
    for (int r = 0; r < count; r++) {
        const tdm_status own = runs[r].worker != NULL ? tdm__worker_wait(runs[r].worker) : TDM_OK;
        if (status == TDM_OK) status = own;
        tdm__worker_close(runs[r].worker);
    }
    return status;
}

static void take_times(tdm_scale_times *out, measured *m) {
    out->forward = median_seconds(m->forward);
    out->backward = median_seconds(m->backward);
    out->rest = median_seconds(m->rest);
    out->jitter = deviation_seconds(m->step);
}

tdm_status tdm__scale_measure(const tdm_job *job, const tdm_graph *graph, const tdm_planned *planned,
                              tdm_scale_times *out) {
    const tdm_job alone = job_of(job, planned, TDM_MODE_SINGLE);
    device_run run = {.job = &alone, .graph = graph};
    TDM_TRY(train(&run));
    take_times(out, &run.measured);
    return TDM_OK;
}

tdm_status tdm__scale_measure_ranks(const tdm_job *job, const tdm_graph *graph, const tdm_planned *planned, int count,
                                    tdm_scale_times *out) {
    const tdm_host *host = tdm_host_default();
    const tdm_job rank = job_of(job, planned, TDM_MODE_DDP);
    tdm_comm *comm[TDM_SCALE_MEASURED_MOST];
    device_run *runs = NULL;
    TDM_TRY(tdm_comm_open_threads(comm, count, host, tdm_duration_ms(job->parallel.ddp.timeout, INT64_MAX)));
    tdm_status status = tdm__new(host, &runs, (size_t)count, sizeof(*runs), "ranks to measure");
    for (int r = 0; r < count && status == TDM_OK; r++)
        runs[r] = (device_run){.job = &rank, .graph = graph, .comm = comm[r]};
    if (status == TDM_OK) status = train_ranks(runs, count, host);
    if (status == TDM_OK) take_times(out, &runs[0].measured);
    for (int r = 0; r < count; r++) tdm_comm_close(comm[r]);
    tdm__delete(host, runs);
    return status;
}
