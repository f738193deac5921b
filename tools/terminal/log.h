/* log.h - the library's log: all lines go to the rank's log file, warnings and errors also to stderr. */
#ifndef LOG_H
#define LOG_H

#include "tools/tool.h"

/* Fills t->host. */
void log_init(tool *t);
/* This process is `rank` of `world`. If world > 1, its lines on stderr begin with [rank N]. */
void log_set_rank(int rank, int world);
/* From now on lines go to <run dir>/logs/rank-N.log. Lines that cannot be written wait in memory; one warning says so.
 */
void log_open(const char *run_dir, int rank);
/* Writes a line of the command itself, to the file only. */
void log_note(const char *format, ...) TDM_PRINTF(1, 2);
void log_close(void);

#endif
