/* launch.h - processes that this one starts: the local ranks of a job, or the one process of a job that is watched. */
#ifndef LAUNCH_H
#define LAUNCH_H

#include "tools/commands/tool.h"

#include <tandem/comm.h>

/* What is started: copies of this process with the same arguments. */
typedef struct launch_job {
    const tool *t;
    int world;         /* ranks; 0: one process that is none */
    const char *extra; /* an argument behind the others, or NULL */
    double grace;      /* seconds that processes have to stop when they are asked to, before they are killed */
    double heartbeat;  /* seconds that a process may be paused, as by SIGSTOP; 0, NaN: for ever */
    int restarts;      /* how often it has been started again */
    bool goes_on;      /* from its last checkpoint, whatever the arguments say */
    int stop_code;     /* if a signal comes before anything is started; 0: 128+n */
} launch_job;

/* How it ended. */
typedef struct launch_end {
    int code;
    bool was_lost;     /* a process died, or lost another: starting again may help */
    bool was_asked;    /* to stop, by a signal to this process */
    bool left_at_once; /* at a second one */
    int64_t began_at;  /* the step that was done when training began; -1: it did not */
    tdm_error error;   /* why; without a message where nothing is to be told */
} launch_end;

/* Starts the processes and waits for all. The first that fails ends the others within a second, and so
 * does one that is paused for longer than `heartbeat`. A signal that asks for an end goes on to them, a second one
 * kills them, as does the end of `grace`; who does not end even then is told and left behind. Afterwards signals stay
 * blocked: one that comes late must not change how this process ends. */
void launch_run(const launch_job *job, launch_end *end);
/* What `end` has to say goes to stderr; returns the exit code. */
int launch_tell(const launch_end *end);
/* Both. */
int launch_ranks(const tool *t, int world);

/* Runs this program with other arguments and waits; signals are passed on, and noted (stop_signal). Returns its exit
 * code. */
int launch_command(char *const *argv);

/* ---- in a process that was started so ---- */

/* Dies with its parent, leaves Ctrl-C to it. TDM_E_USAGE after telling which variable is wrong. */
int launch_join(const tdm_launch_facts *facts);
/* Who ends with an error: word to the parent, which knows whose error came first. Returns the exit code. */
int launch_report(const tool *t, const tdm_launch_facts *facts, tdm_status status);
/* Training begins, with `step` steps done. */
void launch_began(const tdm_launch_facts *facts, int64_t step);
/* Does a parent of ours watch this process? As a rank of several? */
bool launch_is_watched(void);
bool launch_is_rank(const tdm_launch_facts *facts);
/* Whom to signal: this process, or the parent that watches it. */
int launch_pid(void);
/* launch_job's `restarts` and `goes_on`, as this process was told. */
int launch_restarts(void);
bool launch_goes_on(void);

#endif
