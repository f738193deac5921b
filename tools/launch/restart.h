/* restart.h - `tandem train --restarts N`: a job that is started again when one of its processes dies. */
#ifndef RESTART_H
#define RESTART_H

#include "tools/launch/launch.h"

/* As launch_run, and again from the last checkpoint, up to `most` times, as long as the end may be another one then and
 * there is progress. job->restarts says afterwards how often. */
void restart_run(launch_job *job, const char *run_dir, int64_t most, launch_end *end);

#endif
