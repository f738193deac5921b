/* train.h - what `tandem train` and `tandem launch` have in common. */
#ifndef TRAIN_H
#define TRAIN_H

#include "tools/launch/launch.h"

/* Trains the job of the arguments, in this process or in processes that it starts. `nodes`: of `tandem launch`, else
 * NULL. Returns the exit code. */
int train_run(tool *t, const launch_nodes *nodes);
/* `tandem launch` is for mode ddp: TDM_E_USAGE, after printing that, for any other. */
int train_check_launched(const tool *t, const tdm_job *job);

#endif
