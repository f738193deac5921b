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
    char *version; /* that with which tandem has greeted from there; NULL: nothing has, and of this machine */
    const struct ssh_fault *fault; /* what ssh has said; NULL: nothing that is known */
    bool ended, is_stranger;       /* is_stranger: ended without a greeting, and unasked */
    int order, code;               /* the order in which hosts ended, from 1 */
} hosted;

/* Why ssh does not connect. */
typedef struct ssh_fault {
    const char *words, *what, *advice; /* what ssh writes, in a part of a line; what that means; and what to do */
} ssh_fault;

/* What has been done to end the job; each follows some time after the one before. */
typedef enum fleet_phase { FLEET_RUNS, FLEET_STOPS, FLEET_LETS_GO, FLEET_KILLS, FLEET_LEAVES } fleet_phase;

typedef struct fleet {
    const hosts_job *job;
    hosted *host;
    int count, alive, ends;
    int signals, first_signal;
    double signalled; /* when the first signal came */
    fleet_phase phase;
    double next_phase_at;      /* 0: nothing ends the job */
    double beat_at, remind_at; /* remind_at: of hosts that have not greeted; 0: not set, INFINITY: done */
    int signal_fd;
} fleet;

/* Returns when all hosts have ended. */
void fleet_watch(fleet *f);
/* Ended because it was asked to, with a checkpoint or with nothing to save. */
bool fleet_has_stopped(const hosted *h);

/* ---- hosts_fault.c ---- */

/* Notes what a line of another host tells: the greeting of tandem, or why ssh cannot connect. True: it is not to be
 * shown. */
bool hosted_notes(hosted *h, const char *line);
/* The host runs no tandem of this version: nothing there will join the job. */
bool hosted_is_foreign(const hosted *h);

/* ---- hosts_verdict.c ---- */

/* The exit code of the whole, after saying which host failed first, what has failed there, and what to do. */
int fleet_verdict(const fleet *f);

#endif
