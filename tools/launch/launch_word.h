/* launch_word.h - how a parent and the processes that it starts communicate. */
#ifndef LAUNCH_WORD_H
#define LAUNCH_WORD_H

#include "tools/launch/launch.h"

#define PARENT_VARIABLE "TANDEM_PARENT"     /* pid of the process that started this one */
#define REPORT_VARIABLE "TANDEM_REPORT_FD"  /* descriptor of the pipe to the parent */
#define RESTARTS_VARIABLE "TANDEM_RESTARTS" /* how often the job has been restarted */
#define RESUME_VARIABLE "TANDEM_RESUME"     /* "auto": continue from the last checkpoint, regardless of the arguments */
#define LOST_VARIABLE "TANDEM_LOST" /* how the rank ended for which this process speaks (a teller, launch_watch.h) */
#define ORDERS_VARIABLE "TANDEM_ORDERS_FD" /* descriptor of the launch_orders */

/* LAUNCH_FAILED: the process ends with `error`. LAUNCH_MET: all hosts know this rank. LAUNCH_BEGAN: training begins at
 * `step`. */
typedef enum launch_news { LAUNCH_FAILED, LAUNCH_MET, LAUNCH_BEGAN } launch_news;

/* A message over the pipe. Not larger than PIPE_BUF, so that a write is atomic. */
typedef struct launch_word {
    int rank;
    launch_news news;
    int64_t step;
    tdm_error error;
} launch_word;
_Static_assert(sizeof(launch_word) <= 4096, "a message must be one atomic write");

#endif
