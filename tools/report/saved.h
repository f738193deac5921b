/* saved.h - finds the checkpoint that a job can continue from. */
#ifndef SAVED_H
#define SAVED_H

#include "tools/tool.h"

/* The step of the newest checkpoint, by name, in a run directory or a checkpoints folder. Negative: there is none, or
 * the folder cannot be listed. */
enum { SAVED_NONE = -1, SAVED_UNREADABLE = -2 };
int64_t saved_step(const char *dir);
/* The exit code of a job that was asked to stop before its first step: TDM_E_STOPPED if a checkpoint has all work done
 * so far, else 0, which means 128+n. */
int saved_code(const tdm_job *job);

#endif
