/* What `tandem plan --scale` needs of a run. */
#ifndef TDM_TRAIN_PLAN_SCALE_H
#define TDM_TRAIN_PLAN_SCALE_H

#include <tandem/scale.h>

#include "runtime/train/plan/planned.h"

/* Trains some steps on the job's first device alone, with as many threads as the plan has, and fills the times of
 * `options` with their medians. Opens the job's data. */
tdm_status tdm__scale_measure(const tdm_job *job, const tdm_graph *graph, const tdm_planned *planned,
                              tdm_plan_scale_options *options);

typedef struct tdm_scale_rates {
    double cost;    /* tdm_link.cost within this machine */
    double sharing; /* tdm_cluster.sharing */
} tdm_scale_rates;
/* Measures them in a fraction of a second: as many ranks as there are devices and cores, as threads of this process, add
 * a bucket of so many bytes, and touch as many as an update does. */
tdm_status tdm__scale_measure_rates(const tdm_host *host, int devices, double bucket, double update,
                                    tdm_scale_rates *out);

#endif
