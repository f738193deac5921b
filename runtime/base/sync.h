/* Where threads meet: worker threads that run one job at a time, and a barrier. Every wait has a deadline. */
#ifndef TDM_BASE_SYNC_H
#define TDM_BASE_SYNC_H

#include <stdbool.h>

#include <tandem/host.h>

/* A thread that runs functions one after another in the order given. */
typedef struct tdm_worker tdm_worker;
typedef tdm_status (*tdm_worker_fn)(void *argument);

tdm_status tdm__worker_open(tdm_worker **out, const tdm_host *host, const char *name);
/* Hand over `fn(argument)`; returns at once. The worker's queue holds up to 64 jobs; more is TDM_E_INTERNAL. */
tdm_status tdm__worker_start(tdm_worker *worker, tdm_worker_fn fn, void *argument);
/* Wait until everything handed over has run. Returns the first failure since the last wait, with its error record
 * moved to the calling thread. After a failure the jobs behind it are skipped until this call.
 * timeout_ms < 0 waits for ever: only for work that is known to end. A timeout is TDM_E_COMM. */
tdm_status tdm__worker_wait(tdm_worker *worker, int64_t timeout_ms);
/* Waits for queued work, then ends the thread. NULL is fine. */
void tdm__worker_close(tdm_worker *worker);

#endif
