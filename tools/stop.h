/* stop.h - SIGTERM and SIGINT while a run trains: finish the step, save, leave. */
#ifndef STOP_H
#define STOP_H

#include "tools/tool.h"

/* Signals this close together are one wish. */
enum { STOP_SAME_EVENT_MS = 300 };

/* From now on the first signal asks `run` to stop. The second leaves at once with 128+n, but in a rank that a parent
 * watches the parent decides that. */
void stop_install(tdm_run *run, bool watched_rank, bool quiet);
/* Training is over and saved: a first signal changes nothing any more, a second still leaves. */
void stop_done(void);

#endif
