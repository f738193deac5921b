/* launch.h - starts and watches processes: the local ranks of a job, or the single process of a job with restarts. */
#ifndef LAUNCH_H
#define LAUNCH_H

#include "tools/tool.h"

#include <tandem/comm.h>

/* This host among several. */
typedef struct launch_nodes {
    int count, rank;    /* hosts; this one. count 0: there is only this host */
    const int *ranks;   /* of each host; NULL: all start equally many */
    const char *master; /* the host of rank 0 */
    int port;
} launch_nodes;

/* How many ranks the first `hosts` hosts have, of which this one has `own`. */
static inline int launch_ranks_before(const launch_nodes *nodes, int hosts, int own) {
    int count = nodes->ranks ? 0 : hosts * own;
    for (int i = 0; nodes->ranks && i < hosts; i++) count += nodes->ranks[i];
    return count;
}

/* What to start: copies of this process with the same arguments. */
typedef struct launch_job {
    const tool *t;
    int world; /* number of ranks on this host; 0: one process that is not a rank */
    launch_nodes nodes;
    const char *extra; /* an argument after the others, or NULL */
    double grace;      /* seconds that processes have to stop when asked; then they are killed */
    double heartbeat;  /* seconds that a process may be paused, as by SIGSTOP; 0, NaN: no limit */
    int restarts;      /* how often the job has been restarted */
    bool goes_on;      /* continues from its last checkpoint, regardless of the arguments */
    bool may_restart;  /* after this start there may be another one */
    int stop_code;     /* exit code if a signal comes before the start; 0: 128+n */
} launch_job;

/* The rank of the first process of this host. */
static inline int launch_first_rank(const launch_job *job) {
    return launch_ranks_before(&job->nodes, job->nodes.rank, job->world);
}

/* How the processes ended. */
typedef struct launch_end {
    int code;
    bool was_lost;     /* a process died, or lost another: a restart may help */
    bool was_asked;    /* a signal to this process asked to stop */
    bool left_at_once; /* a second signal ended the job at once */
    int64_t began_at;  /* steps done when training began; -1: it did not begin */
    tdm_error error;   /* the reason; no message if there is nothing to report */
} launch_end;

/* Starts the processes and waits for all of them. If one fails, or is paused for longer than `heartbeat`, the others
 * are ended within a second; within five if it only lost a peer, which may still say why it failed, or if other hosts
 * must be told of it first. A stop signal is passed on to them. A second signal kills them, and so does the end of
 * `grace`. A process that survives even that is reported and left behind. Signals stay blocked afterwards: a late one
 * must not change how this process ends. */
void launch_run(const launch_job *job, launch_end *end);
/* Prints the error of `end` on stderr. Returns the exit code. */
int launch_tell(const launch_end *end);
/* launch_run, then launch_tell, for `world` ranks of this command line. */
int launch_ranks(const tool *t, int world);

/* Runs this program with other arguments and waits. Passes stop signals on, and records them (stop_signal). Returns its
 * exit code. */
int launch_command(char *const *argv);

/* ---- restart.c: `tandem train --restarts N` ---- */

/* As launch_run, but restarts the job from its last checkpoint, up to `most` times. Restarts only if a process was lost
 * and the job makes progress. Afterwards job->restarts is the number of restarts. */
void restart_run(launch_job *job, const char *run_dir, int64_t most, launch_end *end);

/* ---- launch_rank.c: for the started process ---- */

/* Makes this process die with its parent and leave Ctrl-C to it. TDM_E_USAGE after printing which variable is wrong. */
int launch_join(const tdm_launch_facts *facts);
/* Sends the error to the parent, which decides which rank's error came first. Returns the exit code. */
int launch_report(const tool *t, const tdm_launch_facts *facts, tdm_status status);
/* Tells the parent that all hosts know this rank. */
void launch_met(const tdm_launch_facts *facts);
/* Tells the parent that training begins, with `step` steps done. */
void launch_began(const tdm_launch_facts *facts, int64_t step);
/* True if a tandem process watches this one; launch_is_rank: as one of several ranks. */
bool launch_is_watched(void);
bool launch_is_rank(const tdm_launch_facts *facts);
/* How a rank ended that cannot tell the other hosts, so that this process does; NULL: it is a process of its own. */
const char *launch_lost(void);
/* The process to signal: this one, or the parent that watches it. */
int launch_pid(void);
/* launch_job's `restarts` and `goes_on`, as the parent passed them. */
int launch_restarts(void);
bool launch_goes_on(void);

#endif
