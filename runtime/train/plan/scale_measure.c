/* Measures the step of one device. */
#include <math.h>
#include <stdlib.h>

#include "runtime/base/status.h"
#include "runtime/train/plan/plan_scale.h"

enum { WARM_UP = 5, MEASURED = 20 }; /* a GPU times every eighth step */

typedef struct measured {
    int count;
    double forward[MEASURED], backward[MEASURED], rest[MEASURED], step[MEASURED]; /* milliseconds */
} measured;

static int on_event(const tdm_event *event, void *user) {
    measured *m = user;
    const tdm_phase_ms *ms = &event->ms;
    if (event->kind != TDM_EVENT_STEP || event->step <= WARM_UP || m->count == MEASURED) return 0;
    const double forward = ms->forward + (isnan(ms->loss) ? 0 : ms->loss);
    m->forward[m->count] = forward;
    m->backward[m->count] = ms->backward;
    m->step[m->count] = ms->step;
    m->rest[m->count++] = fmax(ms->step - forward - ms->backward, 0);
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

tdm_status tdm__scale_measure(const tdm_job *job, const tdm_graph *graph, const tdm_planned *planned,
                              tdm_plan_scale_options *options) {
    tdm_job alone = *job;
    measured m = {.count = 0};
    tdm_run *run = NULL;
    tdm_run_options run_options = TDM_RUN_OPTIONS_INIT;
    run_options.on_event = on_event;
    run_options.user = &m;
    alone.parallel.mode = TDM_MODE_SINGLE;
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
    TDM_TRY(tdm_run_open(&run, &alone, graph, &run_options));
    const tdm_status status = tdm_run_step(run, WARM_UP + MEASURED);
    tdm_run_close(run);
    if (status != TDM_OK) return status;
    options->forward = median_seconds(m.forward);
    options->backward = median_seconds(m.backward);
    options->update = median_seconds(m.rest);
    options->jitter = deviation_seconds(m.step);
    return TDM_OK;
}
