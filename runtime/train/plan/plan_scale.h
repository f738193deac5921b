/* What `tandem plan --scale` needs of a run. */
#ifndef TDM_TRAIN_PLAN_SCALE_H
#define TDM_TRAIN_PLAN_SCALE_H

#include <tandem/scale.h>

#include "runtime/train/plan/planned.h"

/* Trains some steps on the job's first device alone, with as many threads as the plan has, and fills the times of
 * `options` with their medians. Opens the job's data. */
tdm_status tdm__scale_measure(const tdm_job *job, const tdm_graph *graph, const tdm_planned *planned,
                              tdm_plan_scale_options *options);

#endif
