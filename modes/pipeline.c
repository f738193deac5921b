#include "modes/pipeline.h"

#include <math.h>
#include <stdio.h>

#include "modes/exchange.h"
#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/base/system/gate.h"
#include "runtime/base/system/sync.h"
#include "runtime/optim/optim.h"

/* A stage, and what it puts on its device's queue for the queues of its neighbours to wait for: an event for each
 * micro-batch that the neighbour may have in flight. */
typedef struct stage {
    tdm_replica *replica;
    tdm_worker *worker;          /* NULL of the first: it runs on the calling thread */
    tdm_device_event **sent;     /* what the next stage reads of a micro-batch is in its memory */
    tdm_device_event **returned; /* the gradients for the stage before are in its memory, and this one's is free */
    int sent_count, returned_count;
    tdm_rows *rows; /* [parts]: of this step, where the stage sees them */
} stage;

struct tdm_pipeline {
    const tdm_mode_params *params;
    int count, parts;
    stage *stage;
    tdm_gate *gate;      /* NULL with one stage */
    tdm_outcome outcome; /* of all stages */
};

/* A pass, or an update, of all stages. */
typedef struct pipeline_work pipeline_work;
struct pipeline_work {
    tdm_pipeline *pipeline;
    int part;
    int64_t micro_batches; /* of the part; with statistics, of the rank that has the most */
    int64_t first;         /* micro-batch of a pass that is only its forward or its backward */
    int64_t all_rows;      /* of all ranks */
    const tdm_exec_hooks *hooks;
    tdm_exec_hooks early; /* the hooks of all micro-batches but the last, in which no bucket becomes ready */
    const tdm_update *update;
    tdm_status (*run)(const pipeline_work *work, int stage);
};

/* ---- opening ---- */

static tdm_status open_events(const tdm_pipeline *p, tdm_device *device, tdm_device_event ***out, int *opened,
                              int count) {
    TDM_TRY(tdm__new(p->params->host, out, (size_t)count, sizeof(**out), "events"));
    for (; *opened < count; ++*opened) TDM_TRY(device->ops->events->open(device, TDM_ORDERS, &(*out)[*opened]));
    return TDM_OK;
}

static tdm_status open_stage(tdm_pipeline *p, tdm_replica *first, int index) {
    const tdm_plan *plan = p->params->plan;
    stage *s = &p->stage[index];
    TDM_TRY(tdm__new(p->params->host, &s->rows, (size_t)p->parts, sizeof(*s->rows), "rows of a step"));
    s->replica = first->stages[index];
    tdm_device *device = s->replica->device;
    if (index + 1 < p->count)
        TDM_TRY(open_events(p, device, &s->sent, &s->sent_count, plan->stages[index + 1].in_flight));
    if (index == 0) return TDM_OK;
    TDM_TRY(open_events(p, device, &s->returned, &s->returned_count, plan->stages[index - 1].in_flight));
    return tdm__worker_open(&s->worker, p->params->host, TDM_THREAD_STAGE, index, device->index);
}

static tdm_status open_all(tdm_pipeline *p, tdm_replica *replica) {
    TDM_TRY(tdm__new(p->params->host, &p->stage, (size_t)p->count, sizeof(*p->stage), "stages"));
    for (int k = 0; k < p->count; k++) TDM_TRY(open_stage(p, replica, k));
    if (p->count == 1) return TDM_OK;
    tdm__replica_set_captures(replica, TDM_CAPTURES_NEVER); /* a capture belongs to one thread */
    return tdm__gate_open(&p->gate, p->params->host, 3 * p->count);
}

tdm_status tdm__pipeline_open(tdm_pipeline **out, const tdm_mode_params *params, tdm_replica *replica, int parts) {
    TDM_TRY(tdm__new(params->host, out, 1, sizeof(**out), "pipeline"));
    (*out)->params = params;
    (*out)->count = params->plan->stage_count;
    (*out)->parts = parts;
    return open_all(*out, replica); /* after a failure the mode closes it */
}

static void close_events(const tdm_pipeline *p, tdm_device *device, tdm_device_event **events, int count) {
    for (int i = 0; i < count; i++) device->ops->events->close(device, events[i]);
    tdm__delete(p->params->host, events);
}

void tdm__pipeline_close(tdm_pipeline *p) {
    if (p == NULL) return;
    for (int k = 0; p->stage != NULL && k < p->count; k++) {
        stage *s = &p->stage[k];
        tdm__worker_close(s->worker);
        tdm__delete(p->params->host, s->rows);
        if (s->replica == NULL) continue;
        close_events(p, s->replica->device, s->sent, s->sent_count);
        close_events(p, s->replica->device, s->returned, s->returned_count);
    }
    tdm__gate_close(p->gate);
    tdm__delete(p->params->host, p->stage);
    tdm__delete(p->params->host, p);
}

int tdm__pipeline_depth(const tdm_pipeline *p) {
    return p->count == 1 ? tdm__replica_depth(p->stage[0].replica) : 1;
}

unsigned tdm__pipeline_phases(const tdm_pipeline *p) {
    const unsigned all = 1u << TDM_PHASE_FORWARD | 1u << TDM_PHASE_BACKWARD | 1u << TDM_PHASE_OPTIMIZER;
    return p->count == 1 ? all | 1u << TDM_PHASE_LOSS : all; /* the first stage has no loss */
}

/* ---- all stages at once ---- */

typedef struct stage_call {
    const pipeline_work *work;
    int stage;
} stage_call;

/* Puts the stage's name in front of this thread's error. */
static void name_stage(const tdm_pipeline *p, int index) {
    char prefix[64];
    tdm_error error;
    snprintf(prefix, sizeof(prefix), "stage %d (%s): ", index, p->stage[index].replica->device->name);
    tdm__error_save(&error);
    tdm__error_restore(&error, prefix);
}

/* A stage that fails breaks the gate. The others then stop waiting for it and end without a failure of their own, or,
 * where they wait for other ranks, with the communicator's. */
static tdm_status run_call(void *argument) {
    const stage_call *call = argument;
    const tdm_exec_hooks *hooks = call->work->hooks;
    const tdm_status status = call->work->run(call->work, call->stage);
    if (status == TDM_OK) return TDM_OK;
    name_stage(call->work->pipeline, call->stage);
    if (hooks != NULL && hooks->stage_failed != NULL) hooks->stage_failed(hooks->user);
    tdm__gate_break(call->work->pipeline->gate);
    return status;
}

/* Keeps this thread's error. Of several stages the one with the lowest number counts, unless it failed because the
 * communicator had ended. */
static void keep_error(tdm_status status, tdm_error *error) {
    const bool is_first = error->status == TDM_OK || (error->status == TDM_E_COMM && status != TDM_E_COMM);
    if (status != TDM_OK && is_first) tdm__error_save(error);
}

/* Of the micro-batches before the first nothing is waited for. */
static void reset_gate(const pipeline_work *work) {
    const tdm_pipeline *p = work->pipeline;
    tdm__gate_reset(p->gate);
    for (int i = 0; work->first > 0 && i < 3 * p->count; i++) tdm__gate_raise(p->gate, i, work->first);
}

static tdm_status run_all(const pipeline_work *work) {
    const tdm_pipeline *p = work->pipeline;
    stage_call call[TDM_STAGES_MAX];
    tdm_error error = {.status = TDM_OK};
    if (p->count == 1) return work->run(work, 0);
    reset_gate(work);
    for (int k = 0; k < p->count; k++) call[k] = (stage_call){work, k};
    for (int k = 1; k < p->count && error.status == TDM_OK; k++) {
        const tdm_status status = tdm__worker_start(p->stage[k].worker, run_call, &call[k]);
        if (status == TDM_OK) continue;
        name_stage(p, k);
        keep_error(status, &error);
        tdm__gate_break(p->gate);
    }
    if (error.status == TDM_OK) keep_error(run_call(&call[0]), &error);
    for (int k = 1; k < p->count; k++) keep_error(tdm__worker_wait(p->stage[k].worker), &error);
    return error.status == TDM_OK ? TDM_OK : tdm__error_restore(&error, NULL);
}

/* ---- forward, loss, backward ---- */

/* For each stage, how many micro-batches the stage before has sent, how many gradients the next has returned, and how
 * many it has ended, so that their memory is free. */
enum { SENT, RETURNED, ENDED };

static int counter(int index, int what) {
    return 3 * index + what;
}

static tdm_status record(const stage *s, tdm_device_event **events, int count, int64_t micro_batch) {
    tdm_device *device = s->replica->device;
    return device->ops->events->record(device, events[micro_batch % count], NULL);
}

static tdm_status wait_for(const stage *s, tdm_device_event **events, int count, int64_t micro_batch) {
    tdm_device *device = s->replica->device;
    return device->ops->events->wait(device, events[micro_batch % count], NULL);
}

/* The rows of this rank in a micro-batch: none, perhaps, where others have some. And which ranks take part in its
 * statistics. */
static void find_rows(const pipeline_work *work, int index, int64_t micro_batch, tdm_rows *rows) {
    const tdm_mode_params *params = work->pipeline->params;
    const int64_t count = params->job->train.accumulate;
    if (!tdm__micro_batch(params, &work->pipeline->stage[index].rows[work->part], count, micro_batch, rows))
        *rows = (tdm_rows){.rows = 0};
    rows->replica = params->rank;
    if (params->plan->statistics_bytes > 0)
        rows->present = tdm__exchange_present(work->all_rows, params->replicas, count, micro_batch);
}

/* Ranks make the same calls in which they exchange statistics, so they run equally many micro-batches. Without
 * statistics each runs its own; a rank without rows runs one, in which its buckets become ready. */
static int64_t count_micro_batches(const pipeline_work *work) {
    const tdm_mode_params *params = work->pipeline->params;
    const tdm_rows *own = &work->pipeline->stage[0].rows[work->part];
    const int64_t most = params->job->train.accumulate;
    tdm_rows rows;
    int64_t count = 1;
    if (params->plan->statistics_bytes > 0)
        while (count < most && tdm__exchange_present(work->all_rows, params->replicas, most, count) != 0) count++;
    else
        while (tdm__micro_batch(params, own, most, count, &rows)) count++;
    return count;
}

/* The hooks of backward: buckets become ready in the last micro-batch alone. */
static const tdm_exec_hooks *hooks_of(const pipeline_work *work, int64_t micro_batch) {
    return micro_batch + 1 == work->micro_batches ? work->hooks : &work->early;
}

/* *goes_on: false if another stage has failed. */
static tdm_status send(const pipeline_work *work, int index, const tdm_rows *rows, int64_t micro_batch, bool *goes_on) {
    const tdm_pipeline *p = work->pipeline;
    const stage *s = &p->stage[index], *next = s + 1;
    const int room = p->params->plan->stages[index + 1].in_flight;
    *goes_on = tdm__gate_wait(p->gate, counter(index + 1, ENDED), micro_batch + 1 - room);
    if (!*goes_on) return TDM_OK;
    if (micro_batch >= room) TDM_TRY(wait_for(s, next->returned, next->returned_count, micro_batch - room));
    TDM_TRY(tdm__exec_send(s->replica, rows, micro_batch));
    TDM_TRY(record(s, s->sent, s->sent_count, micro_batch));
    tdm__gate_raise(p->gate, counter(index + 1, SENT), micro_batch + 1);
    return TDM_OK;
}

static tdm_status forward(const pipeline_work *work, int index, int64_t micro_batch, bool *goes_on) {
    const tdm_pipeline *p = work->pipeline;
    const stage *s = &p->stage[index], *before = s - 1;
    tdm_rows rows;
    find_rows(work, index, micro_batch, &rows);
    if (index > 0) {
        *goes_on = tdm__gate_wait(p->gate, counter(index, SENT), micro_batch + 1);
        if (!*goes_on) return TDM_OK;
        TDM_TRY(wait_for(s, before->sent, before->sent_count, micro_batch));
    }
    TDM_TRY(tdm__pass_forward(s->replica, &rows, micro_batch, work->hooks));
    if (index + 1 < p->count)
        TDM_TRY(send(work, index, &rows, micro_batch, goes_on));
    else
        TDM_TRY(tdm__loss_of_output(p->params, s->replica, &rows, work->part));
    if (index > 0) return TDM_OK;
    return tdm__replica_lap(s->replica, p->count == 1 ? TDM_PHASE_LOSS : TDM_PHASE_FORWARD);
}

static tdm_status backward(const pipeline_work *work, int index, int64_t micro_batch, bool *goes_on) {
    const tdm_pipeline *p = work->pipeline;
    const stage *s = &p->stage[index], *next = s + 1;
    tdm_rows rows;
    find_rows(work, index, micro_batch, &rows);
    if (index + 1 < p->count) {
        *goes_on = tdm__gate_wait(p->gate, counter(index, RETURNED), micro_batch + 1);
        if (!*goes_on) return TDM_OK;
        TDM_TRY(wait_for(s, next->returned, next->returned_count, micro_batch));
    }
    TDM_TRY(tdm__pass_backward(s->replica, &rows, micro_batch, hooks_of(work, micro_batch)));
    if (index == 0) return TDM_OK;
    TDM_TRY(record(s, s->returned, s->returned_count, micro_batch));
    tdm__gate_raise(p->gate, counter(index, ENDED), micro_batch + 1);
    tdm__gate_raise(p->gate, counter(index - 1, RETURNED), micro_batch + 1);
    return TDM_OK;
}

/* 1F1B. */
static tdm_status run_pass(const pipeline_work *work, int index) {
    const int64_t count = work->micro_batches, ahead = work->pipeline->count - 1 - index;
    bool goes_on = true;
    for (int64_t next = 0, done = 0; goes_on && done < count;) {
        if (next < count && next <= done + ahead)
            TDM_TRY(forward(work, index, next++, &goes_on));
        else
            TDM_TRY(backward(work, index, done++, &goes_on));
    }
    return TDM_OK;
}

static tdm_status pass_of_one(const pipeline_work *work) {
    const tdm_pipeline *p = work->pipeline;
    const stage *s = &p->stage[0];
    tdm_rows rows;
    for (int64_t k = 0; k < work->micro_batches; k++) {
        find_rows(work, 0, k, &rows);
        TDM_TRY(tdm__pass(p->params, s->replica, &rows, k, work->part, hooks_of(work, k)));
    }
    return TDM_OK;
}

tdm_status tdm__pipeline_pass(tdm_pipeline *p, int part, int64_t all_rows, const tdm_exec_hooks *hooks) {
    pipeline_work work = {.pipeline = p, .part = part, .all_rows = all_rows, .hooks = hooks, .run = run_pass};
    if (hooks != NULL) work.early = *hooks;
    work.early.bucket_ready = NULL;
    work.micro_batches = count_micro_batches(&work);
    return p->count == 1 ? pass_of_one(&work) : run_all(&work);
}

static tdm_status run_forward(const pipeline_work *work, int index) {
    bool goes_on = true;
    return forward(work, index, work->first, &goes_on);
}

static tdm_status run_backward(const pipeline_work *work, int index) {
    bool goes_on = true;
    return backward(work, index, work->first, &goes_on);
}

tdm_status tdm__pipeline_forward(tdm_pipeline *p, int64_t micro_batch, int64_t all_rows, const tdm_exec_hooks *hooks) {
    const pipeline_work work = {
        .pipeline = p, .first = micro_batch, .all_rows = all_rows, .hooks = hooks, .run = run_forward};
    return run_all(&work);
}

tdm_status tdm__pipeline_backward(tdm_pipeline *p, int64_t micro_batch, bool is_last, int64_t all_rows,
                                  const tdm_exec_hooks *hooks) {
    pipeline_work work = {.pipeline = p,
                          .micro_batches = is_last ? micro_batch + 1 : 0,
                          .first = micro_batch,
                          .all_rows = all_rows,
                          .hooks = hooks,
                          .run = run_backward};
    if (hooks != NULL) work.early = *hooks;
    work.early.bucket_ready = NULL;
    return run_all(&work);
}

/* ---- the update ---- */

static tdm_status run_norms(const pipeline_work *work, int index) {
    return tdm__optim_norms(work->pipeline->stage[index].replica);
}

static tdm_status run_update(const pipeline_work *work, int index) {
    const tdm_pipeline *p = work->pipeline;
    return tdm__optim_stage_step(p->stage[index].replica, work->update, p->outcome.grad_norm);
}

tdm_status tdm__pipeline_update(tdm_pipeline *p, const tdm_update *update) {
    pipeline_work work = {.pipeline = p, .update = update, .run = run_norms};
    if (p->count == 1) return tdm__optim_step(p->stage[0].replica, update);
    if (!isnan(update->clip_norm)) {
        TDM_TRY(run_all(&work));
        p->outcome.grad_norm = tdm__optim_norm(p->stage[0].replica);
    }
    work.run = run_update;
    return run_all(&work);
}

/* ---- a step ---- */

tdm_status tdm__pipeline_begin(tdm_pipeline *p, const tdm_shard *parts, int count, const tdm_values *values) {
    for (int k = 0; k < p->count; k++) {
        TDM_TRY(tdm__replica_take(p->stage[k].replica, parts, count, p->stage[k].rows));
        TDM_TRY(tdm__replica_begin(p->stage[k].replica, values));
    }
    return TDM_OK;
}

tdm_status tdm__pipeline_again(tdm_pipeline *p, const tdm_values *values) {
    for (int k = 0; k < p->count; k++) TDM_TRY(tdm__replica_again(p->stage[k].replica, values));
    return TDM_OK;
}

const tdm_rows *tdm__pipeline_rows(const tdm_pipeline *p, int index) {
    return p->stage[index].rows;
}

tdm_status tdm__pipeline_end(tdm_pipeline *p) {
    for (int k = 0; k < p->count; k++) TDM_TRY(tdm__replica_end(p->stage[k].replica));
    return TDM_OK;
}

/* The loss is the last stage's. */
tdm_status tdm__pipeline_wait(tdm_pipeline *p, tdm_times *times, const tdm_outcome **outcome) {
    const double norm = p->outcome.grad_norm;
    for (int k = 0; k < p->count; k++) TDM_TRY(tdm__replica_wait(p->stage[k].replica, times, outcome));
    if (p->count == 1) return TDM_OK;
    p->outcome = **outcome;
    p->outcome.grad_norm = norm;
    *outcome = &p->outcome;
    return TDM_OK;
}

/* ---- the update alone ---- */

typedef struct update_work {
    tdm_pipeline *pipeline;
    const tdm_update *update;
} update_work;

static tdm_status update_alone(void *user) {
    const update_work *work = user;
    TDM_TRY(tdm__pipeline_update(work->pipeline, work->update));
    return tdm__replica_lap(work->pipeline->stage[0].replica, TDM_PHASE_OPTIMIZER);
}

tdm_status tdm__pipeline_update_alone(tdm_pipeline *p, const tdm_update *update, tdm_step_result *result) {
    const tdm_values values = tdm__optim_all_values(update, result->denominator);
    update_work work = {p, update};
    const tdm_outcome *outcome = NULL;
    tdm_times times;
    tdm__times_init(&times, 1u << TDM_PHASE_OPTIMIZER);
    TDM_TRY(tdm__pipeline_again(p, &values));
    TDM_TRY(tdm__replica_run(p->stage[0].replica, tdm__update_key(), update_alone, &work));
    TDM_TRY(tdm__pipeline_end(p));
    TDM_TRY(tdm__pipeline_wait(p, &times, &outcome));
    tdm__update_result(p->stage[0].replica, update, &times, outcome, result);
    return TDM_OK;
}
