/* Worker threads that run one job at a time. */
#ifndef TDM_BASE_SYNC_H
#define TDM_BASE_SYNC_H

#include <tandem/host.h>

/* A thread that runs jobs one after another, in the order in which they were started. */
typedef struct tdm_worker tdm_worker;
typedef tdm_status (*tdm_worker_fn)(void *argument);

/* The members of tdm_thread_info. TDM_E_MEMORY names the thread that cannot be started, and why. */
tdm_status tdm__worker_open(tdm_worker **out, const tdm_host *host, tdm_thread_role role, int index, int device);
/* The same for work that the caller can do itself, only later: *out is NULL if no thread is started. */
tdm_status tdm__worker_open_spare(tdm_worker **out, const tdm_host *host, tdm_thread_role role, int index, int device);
/* Queues the job `fn(argument)` and returns at once. The queue holds 64 jobs; one more is TDM_E_INTERNAL. */
tdm_status tdm__worker_start(tdm_worker *worker, tdm_worker_fn fn, void *argument);
/* Waits until all queued jobs have run. Returns the first failure since the last wait and moves its error record to the
 * calling thread. After a failure later jobs are skipped until this call. It has no deadline: every job must end by
 * itself. */
tdm_status tdm__worker_wait(tdm_worker *worker);
/* Waits for the queued jobs, then ends the thread. NULL is fine. */
void tdm__worker_close(tdm_worker *worker);

#endif
