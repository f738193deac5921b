/* A worker thread with a short queue of jobs. A failure and its error record are kept for the next wait. */
#include "runtime/base/system/sync.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/base/system/thread.h"

enum { QUEUE = 64 };

struct tdm_worker {
    const tdm_host *host;
    tdm_thread thread;
    pthread_mutex_t mutex; /* guards all below */
    pthread_cond_t work, idle;
    struct {
        tdm_worker_fn fn;
        void *argument;
    } job[QUEUE]; /* a ring; the running job stays at the front until it is done */
    int first, count;
    bool closing, failed;
    tdm_error error; /* of the first failure since the last wait */
};

static void run_jobs(void *argument) {
    tdm_worker *worker = argument;
    pthread_mutex_lock(&worker->mutex);
    for (;;) {
        while (worker->count == 0 && !worker->closing) pthread_cond_wait(&worker->work, &worker->mutex);
        if (worker->count == 0) break;
        tdm_worker_fn fn = worker->job[worker->first].fn;
        void *fn_argument = worker->job[worker->first].argument;
        if (!worker->failed) {
            pthread_mutex_unlock(&worker->mutex);
            tdm_status status = fn(fn_argument);
            pthread_mutex_lock(&worker->mutex);
            if (status != TDM_OK) {
                worker->failed = true;
                tdm__error_save(&worker->error);
                worker->error.status = status;
            }
        }
        worker->first = (worker->first + 1) % QUEUE;
        worker->count--;
        if (worker->count == 0) pthread_cond_broadcast(&worker->idle);
    }
    pthread_mutex_unlock(&worker->mutex);
}

static int open_parts(tdm_worker *worker, tdm_thread_role role, int index, int device) {
    int error = pthread_mutex_init(&worker->mutex, NULL);
    if (error != 0) return error;
    error = tdm__condition_init(&worker->work);
    if (error != 0) goto no_work;
    error = tdm__condition_init(&worker->idle);
    if (error != 0) goto no_idle;
    error = tdm__thread_start(&worker->thread, worker->host, role, index, device, run_jobs, worker);
    if (error == 0) return 0;
    pthread_cond_destroy(&worker->idle);
no_idle:
    pthread_cond_destroy(&worker->work);
no_work:
    pthread_mutex_destroy(&worker->mutex);
    return error;
}

/* *error is 0 and *out the worker, or *out is NULL and `why` says why there is no thread. */
static tdm_status open_worker(tdm_worker **out, const tdm_host *host, const tdm_thread_info *info, int *error,
                              char why[160]) {
    tdm_worker *worker;
    *out = NULL;
    TDM_TRY(tdm__new(host, &worker, 1, sizeof(*worker), "worker"));
    worker->host = worker->thread.host = host;
    *error = open_parts(worker, info->role, info->index, info->device);
    if (*error == 0) {
        *out = worker;
    } else {
        (void)tdm__thread_why(&worker->thread, *error, why);
        tdm__delete(host, worker);
    }
    return TDM_OK;
}

tdm_status tdm__worker_open(tdm_worker **out, const tdm_host *host, tdm_thread_role role, int index, int device) {
    const tdm_thread_info info = {.role = role, .index = index, .device = device};
    char why[160], name[16];
    int error;
    TDM_TRY(open_worker(out, host, &info, &error, why));
    tdm__thread_print(name, role, index);
    if (error != 0) TDM_FAIL(TDM_E_MEMORY, "thread '%s' cannot be started: %s", name, why);
    return TDM_OK;
}

tdm_status tdm__worker_open_spare(tdm_worker **out, const tdm_host *host, tdm_thread_role role, int index, int device) {
    const tdm_thread_info info = {.role = role, .index = index, .device = device};
    char why[160];
    int error;
    return open_worker(out, host, &info, &error, why);
}

tdm_status tdm__worker_start(tdm_worker *worker, tdm_worker_fn fn, void *argument) {
    pthread_mutex_lock(&worker->mutex);
    bool full = worker->count == QUEUE;
    if (!full) {
        int last = (worker->first + worker->count) % QUEUE;
        worker->job[last].fn = fn;
        worker->job[last].argument = argument;
        worker->count++;
        pthread_cond_signal(&worker->work);
    }
    pthread_mutex_unlock(&worker->mutex);
    if (full) TDM_FAIL(TDM_E_INTERNAL, "worker '%s': its queue of %d jobs is full", worker->thread.name, QUEUE);
    return TDM_OK;
}

tdm_status tdm__worker_wait(tdm_worker *worker) {
    pthread_mutex_lock(&worker->mutex);
    while (worker->count > 0) pthread_cond_wait(&worker->idle, &worker->mutex);
    const bool failed = worker->failed;
    worker->failed = false;
    if (failed) tdm__error_restore(&worker->error, NULL);
    pthread_mutex_unlock(&worker->mutex);
    return failed ? tdm__frame(tdm_error_last()->status, __FILE__, __LINE__) : TDM_OK;
}

void tdm__worker_close(tdm_worker *worker) {
    if (worker == NULL) return;
    pthread_mutex_lock(&worker->mutex);
    worker->closing = true;
    pthread_cond_signal(&worker->work);
    pthread_mutex_unlock(&worker->mutex);
    tdm__thread_join(&worker->thread);
    pthread_cond_destroy(&worker->idle);
    pthread_cond_destroy(&worker->work);
    pthread_mutex_destroy(&worker->mutex);
    tdm__delete(worker->host, worker);
}
