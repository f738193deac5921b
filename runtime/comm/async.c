/* Asynchronous calls: one worker thread makes the calls of a queue, in the order in which they were started. */
#include <pthread.h>
#include <string.h>

#include "runtime/base/system/clock.h"
#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/comm/comm.h"

struct tdm_comm_request {
    tdm_comm_queue *queue;
    tdm_comm_request *next;          /* in the queue, or in the list of free requests */
    tdm_comm_request *older, *newer; /* list of all requests not yet waited for */
    tdm_comm_call call;
    tdm_comm_fn fn;
    void *user; /* of fn: &call for a call */
    bool done;
    double ms;
    tdm_status status;
    tdm_error error;
};

struct tdm_comm_queue {
    tdm_comm *comm;
    const tdm_host *host;
    tdm_worker *worker;
    pthread_mutex_t mutex; /* guards all below, and `done` of the requests */
    pthread_cond_t progress;
    tdm_comm_request *first, *last; /* the queue: calls not yet begun */
    tdm_comm_request *open;         /* the newest request not yet waited for */
    tdm_comm_request *free;
    bool draining;
};

static tdm_status make_call(tdm_comm *comm, void *user) {
    return tdm__comm_call(comm, user);
}

/* The worker's only job: makes the queued calls until the queue is empty. */
static tdm_status drain(void *argument) {
    tdm_comm_queue *queue = argument;
    pthread_mutex_lock(&queue->mutex);
    while (queue->first != NULL) {
        tdm_comm_request *request = queue->first;
        queue->first = request->next;
        if (queue->first == NULL) queue->last = NULL;
        pthread_mutex_unlock(&queue->mutex);
        const int64_t start = tdm__steady_ns(queue->host);
        tdm_status status = request->fn(queue->comm, request->user);
        const double ms = (double)(tdm__steady_ns(queue->host) - start) * 1e-6;
        if (status != TDM_OK) tdm__error_save(&request->error);
        pthread_mutex_lock(&queue->mutex);
        request->status = status;
        request->ms = ms;
        request->done = true;
        pthread_cond_broadcast(&queue->progress);
    }
    queue->draining = false;
    pthread_mutex_unlock(&queue->mutex);
    return TDM_OK;
}

tdm_status tdm__comm_queue_open(tdm_comm_queue **out, tdm_comm *comm) {
    tdm_comm_queue *queue;
    *out = NULL;
    TDM_TRY(tdm__new(comm->host, &queue, 1, sizeof(*queue), "communicator's queue"));
    queue->comm = comm;
    queue->host = comm->host;
    TDM_TRY_ELSE(tdm__worker_open(&queue->worker, comm->host, TDM_THREAD_QUEUE, 0, -1), tdm__delete(comm->host, queue));
    int error = pthread_mutex_init(&queue->mutex, NULL);
    if (error == 0) {
        error = pthread_cond_init(&queue->progress, NULL);
        if (error != 0) pthread_mutex_destroy(&queue->mutex);
    }
    if (error != 0) {
        tdm__worker_close(queue->worker);
        tdm__delete(comm->host, queue);
        TDM_FAIL(TDM_E_MEMORY, "communicator's queue: %s", strerrordesc_np(error));
    }
    *out = queue;
    return TDM_OK;
}

static tdm_status new_request(tdm_comm_queue *queue, tdm_comm_request **out) {
    *out = queue->free;
    if (*out != NULL) {
        queue->free = (*out)->next;
        **out = (tdm_comm_request){0};
        return TDM_OK;
    }
    return tdm__new(queue->host, out, 1, sizeof(**out), "request of a communicator");
}

static void free_request(tdm_comm_queue *queue, tdm_comm_request *request) {
    if (request->newer != NULL)
        request->newer->older = request->older;
    else
        queue->open = request->older;
    if (request->older != NULL) request->older->newer = request->newer;
    request->next = queue->free;
    queue->free = request;
}

/* Appends the request to the queue. The caller holds the mutex. */
static tdm_status submit(tdm_comm_queue *queue, tdm_comm_request *request) {
    if (!queue->draining) {
        TDM_TRY(tdm__worker_start(queue->worker, drain, queue));
        queue->draining = true;
    }
    if (queue->last != NULL)
        queue->last->next = request;
    else
        queue->first = request;
    queue->last = request;
    return TDM_OK;
}

/* call NULL: runs fn. */
static tdm_status start(tdm_comm_queue *queue, const tdm_comm_call *call, tdm_comm_fn fn, void *user,
                        tdm_comm_request **out) {
    tdm_comm_request *request;
    *out = NULL;
    pthread_mutex_lock(&queue->mutex);
    tdm_status status = new_request(queue, &request);
    if (status == TDM_OK) {
        request->queue = queue;
        if (call != NULL) request->call = *call;
        request->fn = call != NULL ? make_call : fn;
        request->user = call != NULL ? &request->call : user;
        request->older = queue->open;
        if (queue->open != NULL) queue->open->newer = request;
        queue->open = request;
        status = submit(queue, request);
        if (status == TDM_OK)
            *out = request;
        else
            free_request(queue, request);
    }
    pthread_mutex_unlock(&queue->mutex);
    return status;
}

tdm_status tdm__comm_start(tdm_comm_queue *queue, const tdm_comm_call *call, tdm_comm_request **out) {
    return start(queue, call, NULL, NULL, out);
}

tdm_status tdm__comm_queue_run(tdm_comm_queue *queue, tdm_comm_fn fn, void *user) {
    tdm_comm_request *request;
    TDM_TRY(start(queue, NULL, fn, user, &request));
    return tdm_comm_wait(request, NULL);
}

int tdm_comm_done(tdm_comm_request *request) {
    if (request == NULL || !tdm__comm_is_home(request->queue->comm)) return 1;
    pthread_mutex_lock(&request->queue->mutex);
    bool done = request->done;
    pthread_mutex_unlock(&request->queue->mutex);
    return done;
}

tdm_status tdm_comm_wait(tdm_comm_request *request, double *ms) {
    if (request == NULL) TDM_FAIL(TDM_E_USAGE, "wait: needs a request, got NULL");
    tdm_comm_queue *queue = request->queue;
    TDM_TRY(tdm__comm_check_home(queue->comm, "wait"));
    pthread_mutex_lock(&queue->mutex);
    while (!request->done) pthread_cond_wait(&queue->progress, &queue->mutex);
    tdm_status status = request->status;
    if (ms != NULL) *ms = request->ms;
    if (status != TDM_OK) tdm__error_restore(&request->error, NULL);
    free_request(queue, request);
    pthread_mutex_unlock(&queue->mutex);
    if (status != TDM_OK) return tdm__frame(status, __FILE__, __LINE__);
    return TDM_OK;
}

void tdm__comm_queue_close(tdm_comm_queue *queue) {
    if (queue == NULL) return;
    tdm__worker_close(queue->worker);
    while (queue->open != NULL) free_request(queue, queue->open);
    while (queue->free != NULL) {
        tdm_comm_request *next = queue->free->next;
        tdm__delete(queue->host, queue->free);
        queue->free = next;
    }
    pthread_cond_destroy(&queue->progress);
    pthread_mutex_destroy(&queue->mutex);
    tdm__delete(queue->host, queue);
}

void tdm_comm_close(tdm_comm *comm) {
    if (comm == NULL || !tdm__comm_is_home(comm)) return;
    tdm__comm_queue_close(comm->queue);
    comm->ops->close(comm);
}
