/* saved.h - what a run directory holds that a job can go on from. */
#ifndef SAVED_H
#define SAVED_H

#include "tools/commands/tool.h"

/* The step of the newest checkpoint by its name, of a run directory or its checkpoints; below 0: there is none, or it
 * cannot be known, for the system refuses to list them. */
enum { SAVED_NONE = -1, SAVED_UNREADABLE = -2 };
int64_t saved_step(const char *dir);
/* The exit code of a job that was asked to stop before it did anything: TDM_E_STOPPED if a checkpoint holds all that
 * was done, else 0 for 128+n. */
int saved_code(const tdm_job *job);

#endif
