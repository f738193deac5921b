/* launch_watch.h - a launch under way, shared by who starts it and who watches it. */
#ifndef LAUNCH_WATCH_H
#define LAUNCH_WATCH_H

#include <signal.h>
#include <sys/types.h>

#include "tools/launch/launch.h"

typedef struct launch_process {
    pid_t pid; /* 0: not started */
    bool ended, killed_by_us, reported;
    bool stuck;    /* it was asked to stop and had to be killed */
    bool paused;   /* as SIGSTOP does */
    bool frozen;   /* it was paused for the job's heartbeat */
    double silent; /* seconds for which it has been paused while this process ran */
    int order;     /* in which the parent learned of its end, from 1 */
    int report_order;
    int wait_status;
    tdm_error error;
} launch_process;

typedef struct launch {
    const launch_job *job;
    int count, alive;
    int fd;      /* what ranks share; -1: there are none */
    int pipe[2]; /* words of the processes */
    launch_process *process;
    int ends, reports;        /* so far */
    bool failed;              /* one did: the others have a second */
    bool is_overdue;          /* the grace is over but for its last second */
    double abort_at, kill_at; /* 0: not yet decided */
    double killed_at;         /* when the first SIGKILL was sent; 0: none */
    bool left_behind;         /* somebody has not ended in spite of it */
    int signals, first_signal;
    double signalled; /* when the first came */
    int64_t began_at;
    sigset_t watched;
} launch;

/* Until all processes have ended. */
void launch_watch(launch *l);
void launch_signal_all(launch *l, int number);
/* After launch_watch: fills all of `end`. */
void launch_verdict(const launch *l, launch_end *end);

#endif
