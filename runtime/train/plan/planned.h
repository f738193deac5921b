/* A plan without a run: what `tandem plan` looks at. */
#ifndef TDM_TRAIN_PLANNED_H
#define TDM_TRAIN_PLANNED_H

#include "runtime/train/run.h"

typedef struct tdm_planned {
    tdm_compute compute;
    tdm_plan *plan;
    int64_t rows;     /* of a device in a step */
    const char *note; /* what differs from a run of the job; NULL: nothing */
} tdm_planned;

/* Checks the job and makes the plan of one of `devices` replicas that share this process's CPUs. `look` says up to
 * which pass, and whether it trains. */
tdm_status tdm__planned_open(tdm_planned *out, const tdm_job *job, const tdm_graph *graph, int devices,
                             const tdm_plan_print_options *look);
void tdm__planned_close(tdm_planned *planned);

#endif
