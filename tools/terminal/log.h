/* log.h - where the library's log lines go: all of them to the rank's log file, warnings and errors also to stderr. */
#ifndef LOG_H
#define LOG_H

#include "tools/commands/tool.h"

/* Fills t->host. */
void log_init(tool *t);
/* This process is `rank` of `world`: with several, its lines on stderr begin with [rank N]. */
void log_set_rank(int rank, int world);
/* From now on lines are kept in <run dir>/logs/rank-N.log; what cannot be written is told once, and
 * waits. */
void log_open(const char *run_dir, int rank);
/* A line of the command's own, into the file only. */
void log_note(const char *format, ...) TDM_PRINTF(1, 2);
void log_close(void);

#endif
