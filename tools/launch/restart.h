/* restart.h - `tandem train --restarts N`: restarts a job when one of its processes dies. */
#ifndef RESTART_H
#define RESTART_H

#include "tools/launch/launch.h"

/* As launch_run, but restarts the job from its last checkpoint, up to `most` times. Restarts only if a process was lost
 * and the job makes progress. Afterwards job->restarts is the number of restarts. */
void restart_run(launch_job *job, const char *run_dir, int64_t most, launch_end *end);

#endif
