/* launch_watch.h - a launch in progress, shared by the code that starts it and the code that watches it. */
#ifndef LAUNCH_WATCH_H
#define LAUNCH_WATCH_H

#include <signal.h>
#include <sys/types.h>

#include "tools/launch/launch.h"

typedef struct launch_process {
    pid_t pid;     /* 0: not started */
    char name[64]; /* "rank 1 (pid 12)" */
    bool ended, killed_by_us, reported;
    bool met;      /* the other hosts know of it */
    bool stuck;    /* it was asked to stop and had to be killed */
    bool paused;   /* as by SIGSTOP */
    bool frozen;   /* it was paused for longer than the job's heartbeat */
    double silent; /* seconds that it was paused while this process ran */
    int order;     /* the order in which the parent saw processes end, from 1 */
    int report_order;
    int wait_status;
    tdm_error error;
} launch_process;

typedef struct launch {
    const launch_job *job;
    int count, alive;
    int fd;      /* shared by the ranks of this host; -1: there are no ranks */
    int pipe[2]; /* carries launch_word from the processes */
    launch_process *process;
    pid_t teller;             /* tells the other hosts of a rank that ended before it met them; 0: none */
    int ends, reports;        /* so far */
    bool failed;              /* a process failed: the others end by kill_at */
    bool is_overdue;          /* `grace` is over, except for its last second */
    double abort_at, kill_at; /* 0: not set */
    double killed_at;         /* when the first SIGKILL was sent; 0: none */
    bool left_behind;         /* a process survived SIGKILL */
    int signals, first_signal;
    double signalled; /* when the first signal came */
    int64_t began_at;
    sigset_t watched;
    /* Starts a teller for process `index`. Its pid; 0: it cannot be started, and the others wait for their timeout. */
    pid_t (*start_teller)(const struct launch *l, int index, const char *why);
} launch;

/* Returns when all processes have ended. */
void launch_watch(launch *l);
void launch_signal_all(launch *l, int number);
/* Call after launch_watch. Fills all of `end`. */
void launch_verdict(const launch *l, launch_end *end);

#endif
