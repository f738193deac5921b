/* ReduceLROnPlateau of torch.optim.lr_scheduler: what it remembers of the evaluations, and when it reduces. */
#ifndef TDM_OPTIM_PLATEAU_H
#define TDM_OPTIM_PLATEAU_H

#include <stdbool.h>
#include <stdint.h>

#include <tandem/job.h>

typedef struct tdm_plateau {
    double best;        /* infinite: there is none yet */
    int64_t bad;        /* evaluations in a row without an improvement */
    int64_t cooldown;   /* evaluations during which none counts as bad */
    int64_t reductions; /* so far */
} tdm_plateau;

void tdm__plateau_init(tdm_plateau *plateau, const tdm_schedule_section *section);
/* After an evaluation. Returns whether the learning rates are to be reduced. */
bool tdm__plateau_step(tdm_plateau *plateau, const tdm_schedule_section *section, double metric);
/* A learning rate after one reduction. */
double tdm__plateau_reduced(const tdm_schedule_section *section, double lr);

#endif
