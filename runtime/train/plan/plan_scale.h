/* What `tandem plan --scale` needs of a run. */
#ifndef TDM_TRAIN_PLAN_SCALE_H
#define TDM_TRAIN_PLAN_SCALE_H

#include <tandem/scale.h>

#include "runtime/train/plan/planned.h"

/* Seconds, of a device in a step. */
typedef struct tdm_scale_times {
    double forward, backward;
    double rest; /* the update, and all else but waiting for other ranks */
    double jitter;
} tdm_scale_times;
/* Trains some steps on the job's first device alone, with as many threads as the plan has: medians. Opens the job's
 * data. */
tdm_status tdm__scale_measure(const tdm_job *job, const tdm_graph *graph, const tdm_planned *planned,
                              tdm_scale_times *out);
/* At most so many ranks are measured at once. */
enum { TDM_SCALE_MEASURED_MOST = 64 };
/* The same of `count` ranks of ddp, threads of this process: the times of the first. */
tdm_status tdm__scale_measure_ranks(const tdm_job *job, const tdm_graph *graph, const tdm_planned *planned, int count,
                                    tdm_scale_times *out);

/* Of `count` devices with `threads` each on so many cores something takes `slower` times as long as of one of them: how
 * many times as long it would take beside all cores as on one core alone, by the line that tdm_cluster.sharing means. */
double tdm__scale_of_all_cores(double slower, int count, int threads, double cores);
/* *cost: tdm_link.cost within this machine. Measured in a fraction of a second: as many ranks as there are devices and
 * cores, as threads of this process, add a bucket of so many bytes, each time another part of what a step touches: what
 * the caches do not hold until the next step, they do not hold here. */
tdm_status tdm__scale_measure_cost(const tdm_host *host, int devices, double bucket, double touched, double *cost);

#endif
