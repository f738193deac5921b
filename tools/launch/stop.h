/* stop.h - signals that ask for an end: finish the step, save, leave. */
#ifndef STOP_H
#define STOP_H

#include "tools/commands/tool.h"

#include <signal.h>

/* Signals this close together are one wish. */
enum { STOP_SAME_EVENT_MS = 300 };

/* Those that ask for an end: a person's, and those by which batch systems say that the time is nearly over. SIGHUP is
 * not one of them where `nohup` or a shell had it ignored. */
void stop_signals(sigset_t *out);
/* The system sends it again each second, so that a second one is no second wish. */
bool stop_repeats(int number);

/* From now on the first signal is remembered, and asks the run to stop as soon as there is one. The second leaves at
 * once with 128+n. A rank that a parent watches leaves that, and Ctrl-C, to the parent. */
void stop_begin(bool watched_rank, bool quiet);
/* The run directory that this process writes, or NULL: who leaves at once writes its end into status.json. */
void stop_in(const char *run_dir, int restarts);
/* While the ranks of another launcher meet nothing is under way: the first signal leaves at once, with `code` if it is
 * not 0, else with 128+n. */
void stop_meeting(bool meets, int code);
/* What a first signal asks to stop, one that came before included; NULL: training is over and saved, and a first signal
 * changes nothing any more. */
void stop_run(tdm_run *run);
/* The first signal that came; 0: none. `stop_note` is for who waits for signals without a handler. */
int stop_signal(void);
void stop_note(int number);

/* Why it ended so: for status.json, and for free(). */
char *stop_reason(int code);

/* `tandem --ended DIR CODE RESTARTS`: what the process of a run becomes when it leaves at once. */
int stop_ended(int argc, char **argv);

#endif
