/* launch_word.h - how a parent and the processes that it starts communicate. */
#ifndef LAUNCH_WORD_H
#define LAUNCH_WORD_H

#include "tools/launch/launch.h"

#define PARENT_VARIABLE "TANDEM_PARENT"     /* pid of the process that started this one */
#define REPORT_VARIABLE "TANDEM_REPORT_FD"  /* descriptor of the pipe to the parent */
#define RESTARTS_VARIABLE "TANDEM_RESTARTS" /* how often the job has been restarted */
#define RESUME_VARIABLE "TANDEM_RESUME"     /* "auto": continue from the last checkpoint, regardless of the arguments */
#define ORDERS_VARIABLE "TANDEM_ORDERS_FD"  /* descriptor of the launch_orders */

/* A message over the pipe. Not larger than PIPE_BUF, so that a write is atomic. */
typedef struct launch_word {
    int rank;
    bool began; /* training begins at `step`; false: the process ends with `error` */
    int64_t step;
    tdm_error error;
} launch_word;
_Static_assert(sizeof(launch_word) <= 4096, "a message must be one atomic write");

#endif
