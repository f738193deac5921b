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
    tdm_comm_task task;
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

tdm_status tdm__comm_run(tdm_comm *comm, const tdm_comm_task *task) {
    switch (task->kind) {
    case TDM_TASK_ALL_REDUCE:
        return tdm__all_reduce(comm, task->in, task->op);
    case TDM_TASK_BROADCAST:
        return tdm__broadcast(comm, task->in, task->rank);
    case TDM_TASK_REDUCE:
        return tdm__reduce(comm, task->in, task->rank, task->op);
    case TDM_TASK_GATHER:
        return tdm__gather(comm, task->in, task->out, task->rank);
    case TDM_TASK_ALL_GATHER:
        return tdm__all_gather(comm, task->in, task->out);
    case TDM_TASK_SCATTER:
        return tdm__scatter(comm, task->in, task->out, task->rank);
    case TDM_TASK_SEND:
        return tdm__send(comm, task->in, task->rank);
    case TDM_TASK_RECEIVE:
        return tdm__receive(comm, task->out, task->rank);
    case TDM_TASK_BARRIER:
        return tdm__barrier(comm);
    case TDM_TASK_ALLOCATE:
        return tdm__comm_allocate(comm, task->bytes, task->allocated);
    case TDM_TASK_SPLIT:
        return tdm__comm_split(comm, task->ranks, task->rank_count, task->split);
    }
    TDM_FAIL(TDM_E_INTERNAL, "communicator: unknown call %d", (int)task->kind);
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
        int64_t start = tdm__now_ns();
        tdm_status status = tdm__comm_run(queue->comm, &request->task);
        double ms = tdm__ms_since(start);
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
    tdm_status status = tdm__worker_open(&queue->worker, comm->host, "tandem-comm");
    if (status != TDM_OK) {
        tdm__delete(comm->host, queue);
        return tdm__frame(status, __FILE__, __LINE__);
    }
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

tdm_status tdm__comm_start(tdm_comm_queue *queue, const tdm_comm_task *task, tdm_comm_request **out) {
    tdm_comm_request *request;
    *out = NULL;
    pthread_mutex_lock(&queue->mutex);
    tdm_status status = new_request(queue, &request);
    if (status == TDM_OK) {
        request->queue = queue;
        request->task = *task;
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

tdm_status tdm__comm_start_all_reduce(tdm_comm_queue *queue, tdm_span io, tdm_reduce_op op, tdm_comm_request **out) {
    return tdm__comm_start(queue, &(tdm_comm_task){.kind = TDM_TASK_ALL_REDUCE, .in = io, .op = op}, out);
}

bool tdm__comm_done(tdm_comm_request *request) {
    pthread_mutex_lock(&request->queue->mutex);
    bool done = request->done;
    pthread_mutex_unlock(&request->queue->mutex);
    return done;
}

tdm_status tdm__comm_wait(tdm_comm_request *request, double *ms) {
    tdm_comm_queue *queue = request->queue;
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

tdm_status tdm__comm_queue_call(tdm_comm_queue *queue, const tdm_comm_task *task) {
    tdm_comm_request *request;
    TDM_TRY(tdm__comm_start(queue, task, &request));
    return tdm__comm_wait(request, NULL);
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

void tdm__comm_close(tdm_comm *comm) {
    if (comm == NULL) return;
    tdm__comm_queue_close(comm->queue);
    comm->ops->close(comm);
}
