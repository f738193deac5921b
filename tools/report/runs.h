/* runs.h - run directories, where somebody names the folder above them. */
#ifndef RUNS_H
#define RUNS_H

#include "tools/commands/tool.h"

/* Names the newest run directory below a folder on stderr, if there is one: behind an error about the folder. */
void runs_hint(const char *folder);
/* Is `path` a folder without `name`, which every run directory has? Then that is told, with the hint. */
bool runs_lacks(const char *path, const char *name);

#endif
