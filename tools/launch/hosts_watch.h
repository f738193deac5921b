/* hosts_watch.h - the hosts of a job while it runs, shared by the code that starts them and the code that watches them. */
#ifndef HOSTS_WATCH_H
#define HOSTS_WATCH_H

#include <signal.h>
#include <sys/types.h>

#include "tools/launch/hosts.h"

/* What ssh, and the shell on the other host, say with a status that tandem does not have. */
enum { SSH_FAILED = 255, SHELL_CANNOT_RUN = 126, SHELL_NOT_FOUND = 127 };

/* What another host writes, until a line is whole. */
typedef struct hosted_output {
    int fd; /* -1: ended, or this process's own stream */
    char *text;
    size_t bytes, room;
} hosted_output;

typedef struct hosted {
    const launch_host *host;
    pid_t pid;   /* ssh, or tandem on this machine; 0: not started */
    int control; /* its standard input; -1: closed */
    char *orders;
    size_t bytes, sent; /* of the orders */
    int stops;          /* ORDERS_STOP to be sent behind them */
    hosted_output output[2];
    bool ended;
    int order, code; /* the order in which hosts ended, from 1 */
} hosted;

/* What has been done to end the job; each follows some time after the one before. */
typedef enum fleet_phase { FLEET_RUNS, FLEET_STOPS, FLEET_LETS_GO, FLEET_KILLS, FLEET_LEAVES } fleet_phase;

typedef struct fleet {
    const hosts_job *job;
    hosted *host;
    int count, alive, ends;
    int signals, first_signal;
    double signalled; /* when the first signal came */
    fleet_phase phase;
    double next_phase_at; /* 0: nothing ends the job */
    double beat_at;
    int signal_fd;
} fleet;

/* Returns when all hosts have ended. */
void fleet_watch(fleet *f);
/* Ended because it was asked to, with a checkpoint or with nothing to save. */
bool fleet_has_stopped(const hosted *h);

#endif
