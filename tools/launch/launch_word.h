/* launch_word.h - what a parent and the processes that it starts say to each other. */
#ifndef LAUNCH_WORD_H
#define LAUNCH_WORD_H

#include "tools/launch/launch.h"

#define PARENT_VARIABLE "TANDEM_PARENT"     /* pid of the process that started this one */
#define REPORT_VARIABLE "TANDEM_REPORT_FD"  /* where word to it goes */
#define RESTARTS_VARIABLE "TANDEM_RESTARTS" /* how often the job has been started again */
#define RESUME_VARIABLE "TANDEM_RESUME"     /* "auto": go on from the last checkpoint, whatever the arguments say */

/* What travels over the pipe: below PIPE_BUF, so that a write is whole. */
typedef struct launch_word {
    int rank;
    bool began; /* training, at `step`; else `error` is why it ends */
    int64_t step;
    tdm_error error;
} launch_word;
_Static_assert(sizeof(launch_word) <= 4096, "a word must be one atomic write");

#endif
