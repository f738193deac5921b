/* Kernels prepared for a number of rows. */
#include "runtime/exec/prepared.h"

#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/base/system/sync.h"

static void free_prepared(tdm_replica *replica, tdm_prepared *prepared) {
    const tdm_plan *plan = replica->plan;
    for (int i = 0; prepared->state != NULL && i < plan->node_count; i++) {
        const tdm_kernel *kernel = plan->nodes[i].kernel;
        if (prepared->state[i] != NULL && kernel != NULL && kernel->close != NULL) kernel->close(prepared->state[i]);
    }
    tdm__delete(replica->host, prepared->state);
    tdm__delete(replica->host, prepared);
}

static tdm_status open_states(tdm_replica *replica, tdm_prepared *prepared) {
    const tdm_plan *plan = replica->plan;
    for (int i = 0; i < plan->node_count; i++) {
        const tdm_kernel *kernel = plan->nodes[i].kernel;
        if (kernel == NULL || kernel->open == NULL || plan->nodes[i].stage != replica->stage) continue;
        TDM_TRY(kernel->open(replica->device, &plan->nodes[i].desc, prepared->rows,
                             prepared->training && !plan->nodes[i].evaluates, &prepared->state[i]));
    }
    return TDM_OK;
}

static tdm_status add_prepared(tdm_replica *replica, int64_t rows, bool training) {
    tdm_prepared *prepared = NULL;
    TDM_TRY(tdm__new(replica->host, &prepared, 1, sizeof(*prepared), "prepared kernels"));
    prepared->rows = rows;
    prepared->training = training;
    tdm_status status = tdm__new(replica->host, &prepared->state, (size_t)replica->plan->node_count, sizeof(void *),
                                 "prepared kernels");
    if (status == TDM_OK) status = open_states(replica, prepared);
    if (status != TDM_OK) {
        free_prepared(replica, prepared);
        return tdm__frame(status, __FILE__, __LINE__);
    }
    tdm__prepared_log(replica, prepared);
    prepared->next = replica->prepared->first;
    replica->prepared->first = prepared;
    return TDM_OK;
}

static tdm_status prepare_first(void *argument) {
    tdm_replica *replica = argument;
    return add_prepared(replica, replica->plan->options.rows, replica->plan->options.training);
}

tdm_status tdm__prepare_start(tdm_replica *replica) {
    TDM_TRY(tdm__new(replica->host, &replica->prepared, 1, sizeof(*replica->prepared), "prepared kernels"));
    if (replica->device->ops->enter != NULL) return TDM_OK; /* kernels belong to the thread that has entered */
    tdm_worker **worker = &replica->prepared->worker;
    TDM_TRY(tdm__worker_open_spare(worker, replica->host, TDM_THREAD_PREPARE, 0, replica->device->index));
    return *worker != NULL ? tdm__worker_start(*worker, prepare_first, replica) : prepare_first(replica);
}

void tdm__prepared_free_all(tdm_replica *replica) {
    tdm_prepared_list *list = replica->prepared;
    if (list == NULL) return;
    tdm__worker_close(list->worker);
    while (list->first != NULL) {
        tdm_prepared *next = list->first->next;
        free_prepared(replica, list->first);
        list->first = next;
    }
    tdm__delete(replica->host, list);
}

tdm_status tdm__prepare_wait(tdm_replica *replica) {
    tdm_prepared_list *list = replica->prepared;
    if (list->worker == NULL) return TDM_OK;
    tdm_status status = tdm__worker_wait(list->worker);
    tdm__worker_close(list->worker);
    list->worker = NULL;
    return status;
}

tdm_status tdm__prepared_find(tdm_replica *replica, int64_t rows, bool training, tdm_prepared **out) {
    TDM_TRY(tdm__prepare_wait(replica));
    tdm_prepared **link = &replica->prepared->first;
    for (tdm_prepared *p = *link; p != NULL; link = &p->next, p = p->next) {
        if (p->rows != rows || p->training != training) continue;
        *link = p->next; /* the last used comes first, so that the usual case is found at once */
        p->next = replica->prepared->first;
        replica->prepared->first = p;
        *out = p;
        return TDM_OK;
    }
    TDM_TRY(add_prepared(replica, rows, training));
    *out = replica->prepared->first;
    return TDM_OK;
}
