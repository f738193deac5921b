/* Workspaces: each call takes one that is free, or makes one, so there are as many as calls were in progress at once. */
#include <stdio.h>
#include <string.h>

#include "runtime/base/limit/limit.h"
#include "runtime/base/round.h"
#include "runtime/base/status.h"
#include "runtime/exec/prepared.h"
#include "runtime/model/model.h"
#include "runtime/train/run.h"

/* Under the lock, once the handle is shared. */
static tdm_status build_plan(tdm_model *model, int piece) {
    tdm_plan_options options = tdm__plan_options(&model->job, &model->compute, 1, 1, model->options.threads);
    options.rows = INT64_C(1) << piece;
    options.training = false;
    tdm_piece *p = &model->piece[piece];
    TDM_TRY(tdm__plan_build(&p->plan, model->host, model->graph, &options));
    for (int i = 0; i < p->plan->node_count; i++) {
        p->kept_bytes += p->plan->nodes[i].kept_bytes;
        p->call_bytes = tdm__larger(p->call_bytes, p->plan->nodes[i].call_bytes);
    }
    return TDM_OK;
}

tdm_status tdm__model_plan(tdm_model *model, int piece, const tdm_plan **out) {
    tdm_status status = TDM_OK;
    pthread_mutex_lock(&model->lock);
    if (model->piece[piece].plan == NULL) status = build_plan(model, piece);
    *out = model->piece[piece].plan;
    pthread_mutex_unlock(&model->lock);
    return status;
}

/* Advice for a training would be wrong. */
static tdm_status short_of_memory(const tdm_model *model) {
    const char *message = tdm_error_message();
    TDM_FAIL(TDM_E_MEMORY, "%.*s; pass fewer rows to a call, make fewer calls at once%s", (int)strcspn(message, ";"),
             message, tdm__limit_of(model->host).most > 0 ? ", or raise it" : "");
}

static tdm_status open_replica(tdm_model *model, const tdm_plan *plan, tdm_workspace *w) {
    const tdm_device_options device_options = {.precision = model->job.train.precision, .deterministic = true};
    const tdm_replica_options options = {
        .weights = &model->weights, .rows = plan->options.rows, .parts = 1, .untimed = true};
    tdm_device *device = NULL;
    TDM_TRY(model->compute.device->open(&device, model->host, &device_options));
    const tdm_status status = tdm__replica_open(&w->replica, model->host, plan, device, &options);
    if (status != TDM_OK) model->compute.device->close(device);
    return status == TDM_E_MEMORY ? short_of_memory(model) : status;
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

/* ---- what the library of the kernels takes ---- */

static tdm_status refuse(const tdm_model *model, int piece, size_t bytes) {
    char what[96];
    snprintf(what, sizeof(what), "kernels of one more call, for %d row%s at once", 1 << piece, piece > 0 ? "s" : "");
    return tdm__out_of_memory(model->host, what, bytes);
}

/* Counts the kernels of a workspace, before there are any. Their library does not give all back when the workspace is
 * closed, so the next one of this size has what was counted. */
static bool book_kernels(tdm_model *model, tdm_piece *p) {
    pthread_mutex_lock(&model->lock);
    const bool is_booked = p->spare > 0;
    if (is_booked) p->spare--;
    pthread_mutex_unlock(&model->lock);
    return is_booked || tdm__limit_book(model->host, p->kept_bytes);
}

/* Counts what the library takes in a call, if there were never as many calls at once. Under the lock. */
static bool book_call(tdm_model *model, const tdm_piece *p) {
    const size_t calling = model->calling + p->call_bytes;
    const size_t more = calling > model->called ? calling - model->called : 0;
    if (!tdm__limit_book(model->host, more)) return false;
    model->calling = calling;
    model->called += more;
    return true;
}

/* ---- taking and giving ---- */

/* A free workspace, or NULL. */
static tdm_status begin_call(tdm_model *model, int piece, tdm_workspace **out) {
    tdm_piece *p = &model->piece[piece];
    pthread_mutex_lock(&model->lock);
    const bool is_booked = book_call(model, p);
    tdm_workspace *w = *out = is_booked ? p->free : NULL;
    if (w != NULL) p->free = w->next;
    pthread_mutex_unlock(&model->lock);
    return is_booked ? TDM_OK : refuse(model, piece, p->call_bytes);
}

void tdm__workspace_give(tdm_model *model, int piece, tdm_workspace *w) {
    tdm_piece *p = &model->piece[piece];
    pthread_mutex_lock(&model->lock);
    model->calling -= p->call_bytes;
    if (w != NULL) w->next = p->free, p->free = w;
    pthread_mutex_unlock(&model->lock);
}

void tdm__workspace_drop(tdm_model *model, int piece, tdm_workspace *w) {
    if (w != NULL) tdm__workspace_close(model, w);
    tdm__workspace_give(model, piece, NULL);
    pthread_mutex_lock(&model->lock);
    model->piece[piece].spare++;
    pthread_mutex_unlock(&model->lock);
}

/* *out is closed by the caller after a failure, too. */
static tdm_status make(tdm_model *model, int piece, const tdm_plan *plan, tdm_workspace **out) {
    TDM_TRY(tdm__new(model->host, out, 1, sizeof(**out), "workspace of a model"));
    return open_parts(model, piece, plan, *out);
}

tdm_status tdm__workspace_take(tdm_model *model, int piece, tdm_workspace **out) {
    const tdm_plan *plan;
    *out = NULL;
    TDM_TRY(tdm__model_plan(model, piece, &plan));
    TDM_TRY(begin_call(model, piece, out));
    if (*out != NULL) return TDM_OK;
    if (!book_kernels(model, &model->piece[piece])) {
        tdm__workspace_give(model, piece, NULL);
        return refuse(model, piece, model->piece[piece].kept_bytes);
    }
    TDM_TRY_ELSE(make(model, piece, plan, out), tdm__workspace_drop(model, piece, *out));
    return TDM_OK;
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
