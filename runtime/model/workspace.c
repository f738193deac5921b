/* Workspaces: each call takes one that is free, or makes one, so there are as many as calls were in progress at once. */
#include <string.h>

#include "runtime/base/status.h"
#include "runtime/exec/prepared.h"
#include "runtime/model/model.h"
#include "runtime/train/run.h"

/* Under the lock, once the handle is shared. */
static tdm_status build_plan(tdm_model *model, int piece) {
    tdm_plan_options options = tdm__plan_options(&model->job, &model->compute, 1, 1, model->options.threads);
    options.rows = INT64_C(1) << piece;
    options.training = false;
    return tdm__plan_build(&model->piece[piece].plan, model->host, model->graph, &options);
}

tdm_status tdm__model_plan(tdm_model *model, int piece, const tdm_plan **out) {
    tdm_status status = TDM_OK;
    pthread_mutex_lock(&model->lock);
    if (model->piece[piece].plan == NULL) status = build_plan(model, piece);
    *out = model->piece[piece].plan;
    pthread_mutex_unlock(&model->lock);
    return status;
}

static tdm_status open_replica(tdm_model *model, const tdm_plan *plan, tdm_workspace *w) {
    const tdm_device_options device_options = {.precision = model->job.train.precision, .deterministic = true};
    const tdm_replica_options options = {
        .weights = &model->weights, .rows = plan->options.rows, .parts = 1, .untimed = true};
    tdm_device *device = NULL;
    TDM_TRY(model->compute.device->open(&device, model->host, &device_options));
    const tdm_status status = tdm__replica_open(&w->replica, model->host, plan, device, &options);
    if (status != TDM_OK) model->compute.device->close(device);
    return status;
}

static tdm_status open_parts(tdm_model *model, int piece, const tdm_plan *plan, tdm_workspace *w) {
    const size_t rows = (size_t)plan->options.rows, width = tdm__transform_width(&model->transform);
    TDM_TRY(open_replica(model, plan, w));
    TDM_TRY(tdm__prepare_wait(w->replica)); /* ends its thread, and the first call waits for nothing */
    TDM_TRY(tdm__model_pack(model, piece, w));
    if (model->compute.rest != NULL) model->compute.rest();
    TDM_TRY(tdm__new(model->host, &w->ready, rows * width, sizeof(*w->ready), "samples"));
    TDM_TRY(tdm__new(model->host, &w->position, rows, sizeof(*w->position), "samples"));
    for (size_t i = 0; i < rows; i++) w->position[i] = (int64_t)i;
    return TDM_OK;
}

tdm_status tdm__workspace_take(tdm_model *model, int piece, tdm_workspace **out) {
    const tdm_plan *plan;
    tdm_workspace *w;
    pthread_mutex_lock(&model->lock);
    w = *out = model->piece[piece].free;
    if (w != NULL) model->piece[piece].free = w->next;
    pthread_mutex_unlock(&model->lock);
    if (w != NULL) return TDM_OK;
    TDM_TRY(tdm__model_plan(model, piece, &plan));
    TDM_TRY(tdm__new(model->host, &w, 1, sizeof(*w), "workspace of a model"));
    TDM_TRY_ELSE(open_parts(model, piece, plan, w), tdm__workspace_close(model, w));
    *out = w;
    return TDM_OK;
}

void tdm__workspace_give(tdm_model *model, int piece, tdm_workspace *w) {
    pthread_mutex_lock(&model->lock);
    w->next = model->piece[piece].free;
    model->piece[piece].free = w;
    pthread_mutex_unlock(&model->lock);
}

void tdm__workspace_close(const tdm_model *model, tdm_workspace *w) {
    tdm_device *device = w->replica != NULL ? w->replica->device : NULL;
    tdm__replica_close(w->replica);
    if (device != NULL) model->compute.device->close(device);
    tdm__delete(model->host, w->ready);
    tdm__delete(model->host, w->position);
    tdm__delete(model->host, w);
}

tdm_status tdm__model_threads_take(tdm_model *model, tdm_model_threads **out) {
    tdm_model_threads *t;
    *out = NULL;
    if (model->options.threads < 2) return TDM_OK;
    pthread_mutex_lock(&model->lock);
    t = *out = model->threads;
    if (t != NULL) model->threads = t->next;
    pthread_mutex_unlock(&model->lock);
    if (t != NULL) return TDM_OK;
    TDM_TRY(tdm__new(model->host, &t, 1, sizeof(*t), "threads of a call"));
    TDM_TRY_ELSE(tdm__threads_open(&t->threads, model->host, model->options.threads, 0, model->compute.thread_begin),
                 tdm__delete(model->host, t));
    *out = t;
    return TDM_OK;
}

void tdm__model_threads_give(tdm_model *model, tdm_model_threads *t) {
    if (t == NULL) return;
    pthread_mutex_lock(&model->lock);
    t->next = model->threads;
    model->threads = t;
    pthread_mutex_unlock(&model->lock);
}
