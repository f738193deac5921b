/* stop.h - stop signals: finish the step, save, exit. */
#ifndef STOP_H
#define STOP_H

#include "tools/tool.h"

#include <signal.h>

/* Signals this close together count as one. */
enum { STOP_SAME_EVENT_MS = 300 };

/* The stop signals: those that a user sends, and those that batch systems send shortly before the time limit. SIGHUP is
 * not included if it is ignored (`nohup`). */
void stop_signals(sigset_t *out);
/* True for a signal that the system repeats every second: a second one does not mean "exit at once". */
bool stop_repeats(int number);

/* Installs the handlers. The first signal asks the run to stop, as soon as there is a run. The second exits at once
 * with 128+n. A rank that a parent watches leaves the second signal and Ctrl-C to the parent. */
void stop_begin(bool watched_rank, bool quiet);
/* The run directory that this process writes, or NULL. If the process exits at once, it records its end in status.json
 * there. */
void stop_in(const char *run_dir, int restarts);
/* While the ranks of another launcher are joining there is no work to save: the first signal exits at once, with `code`
 * if it is not 0, else with 128+n. */
void stop_joining(bool joins, int code);
/* The run that the first signal stops, even if the signal came earlier. NULL: training is over and saved, and a first
 * signal has no effect any more. */
void stop_run(tdm_run *run);
/* The first signal received; 0: none. `stop_note` records a signal that was taken without a handler. */
int stop_signal(void);
void stop_note(int number);

/* Why the run ended, for status.json. The caller frees it. */
char *stop_reason(int code);

/* `tandem --ended DIR CODE RESTARTS`: what a run's process becomes when it exits at once. */
int stop_ended(int argc, char **argv);

#endif
