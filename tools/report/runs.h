/* runs.h - hints for a user who gave the folder above the run directories. */
#ifndef RUNS_H
#define RUNS_H

#include "tools/tool.h"

/* Prints the newest run directory below a folder on stderr, if there is one. Call after an error about the folder. */
void runs_hint(const char *folder);
/* True if `path` is a folder without `name`, a file that every run directory has. Then also prints an error and the
 * hint. */
bool runs_lacks(const char *path, const char *name);

#endif
