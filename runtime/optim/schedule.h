/* Learning-rate schedules: torch.optim.lr_scheduler's recursions. */
#ifndef TDM_OPTIM_SCHEDULE_H
#define TDM_OPTIM_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/optim/plateau.h"

typedef struct tdm_schedule {
    const tdm_schedule_section *section;
    double base_lr, base_momentum;
    int64_t total;       /* steps or epochs that the schedule spans */
    int64_t warmup;      /* steps of warm-up done */
    int64_t count;       /* calls of the main schedule's step */
    double lr, momentum; /* the current values */
} tdm_schedule;

void tdm__schedule_init(tdm_schedule *schedule, const tdm_schedule_section *section, double lr, double momentum,
                        int64_t steps_total, int64_t steps_per_epoch);
void tdm__schedule_step(tdm_schedule *schedule, bool epoch_ended); /* after each step */
/* Why this schedule does not suit a job of so many steps: a resume would have to follow too many changes. NULL: it
 * does. */
const char *tdm__schedule_fault(const tdm_schedule *schedule, int64_t steps, int64_t steps_per_epoch);
/* Moves the schedule from the start to after `steps` steps of training, with the same bits as one step after another.
 * Takes no time while the learning rate is constant. */
void tdm__schedule_seek(tdm_schedule *schedule, int64_t steps, int64_t steps_per_epoch);

/* The schedules of a job: that of the optimizer's own learning rate, and those of its groups. Like torch.optim's, each
 * begins with a learning rate of its own and otherwise follows the same settings. */
typedef struct tdm_schedules {
    tdm_schedule own, group[TDM_PARAM_GROUPS_MAX];
    int count;           /* of the groups */
    tdm_plateau plateau; /* one for all */
} tdm_schedules;

void tdm__schedules_init(tdm_schedules *schedules, const tdm_job *job, double momentum, int64_t steps_total,
                         int64_t steps_per_epoch);
void tdm__schedules_step(tdm_schedules *schedules, bool epoch_ended);
/* After an evaluation: plateau may reduce the learning rates. During warm-up it does not look. */
void tdm__schedules_measured(tdm_schedules *schedules, double metric);
/* `plateau`: as it was after those steps. */
void tdm__schedules_seek(tdm_schedules *schedules, int64_t steps, int64_t steps_per_epoch, const tdm_plateau *plateau);

#endif
