/* What a program can ask an open run: its state, predictions, descriptions. */
#include <math.h>
#include <string.h>

#include "runtime/base/call/sized.h"
#include "runtime/base/status.h"
#include "runtime/exec/prepared.h"
#include "runtime/exec/repeats.h"
#include "runtime/train/evaluate/details.h"
#include "runtime/train/run.h"

tdm_status tdm__run_leave(tdm_run *run) {
    tdm_error error;
    tdm__error_save(&error);
    if (run->comm != NULL) tdm_comm_abort(run->comm, error.message);
    return tdm__error_restore(&error, NULL);
}

tdm_status tdm__run_idle(const tdm_run *run, const char *what) {
    if (run->failed_step > 0)
        TDM_FAIL(TDM_E_USAGE, "%s: step %lld failed; close the run, and continue from its last checkpoint", what,
                 (long long)run->failed_step);
    if (tdm__run_has_steps_in_flight(run))
        TDM_FAIL(TDM_E_USAGE, "%s: step %lld is in flight; call it between steps, or open the run with run_ahead 0",
                 what, (long long)run->submitted);
    return TDM_OK;
}

tdm_status tdm__run_computes(const tdm_run *run, const char *what) {
    TDM_TRY(tdm__run_idle(run, what));
    if (run->waits == TDM_BACKWARD_WAITS)
        TDM_FAIL(TDM_E_USAGE, "%s: the forward of step %lld waits; call tdm_run_backward or tdm_run_skip_update first",
                 what, (long long)(run->step + 1));
    return TDM_OK;
}

tdm_status tdm__run_rests(const tdm_run *run, const char *what) {
    TDM_TRY(tdm__run_computes(run, what));
    if (run->waits == TDM_FORWARD_WAITS)
        TDM_FAIL(TDM_E_USAGE,
                 "%s: step %lld waits for the forward of its next micro-batch; call tdm_run_forward or "
                 "tdm_run_skip_update first",
                 what, (long long)(run->step + 1));
    if (run->waits == TDM_UPDATE_WAITS)
        TDM_FAIL(TDM_E_USAGE, "%s: the gradients of step %lld wait; call tdm_run_update or tdm_run_skip_update first",
                 what, (long long)(run->step + 1));
    return TDM_OK;
}

tdm_status tdm__run_trains(const tdm_run *run, const char *what) {
    if (run->options.predicts) TDM_FAIL(TDM_E_USAGE, "%s: the run was opened to predict (options.predicts)", what);
    return TDM_OK;
}

tdm_status tdm_run_get_state(tdm_run *run, tdm_run_state *out) {
    if (run == NULL || out == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_run_get_state: a pointer is NULL");
    TDM_TRY(tdm__sized_check("tdm_run_get_state: tdm_run_state", out, TDM_SIZED_ANY, sizeof(*out)));
    TDM_ENTER(&run->guard, "tdm_run_get_state", TDM_GUARD_ASKS);
    TDM_TRY(tdm__run_idle(run, "tdm_run_get_state"));
    tdm_run_state full = {.step = run->step,
                          .steps_total = run->steps_total,
                          .epoch = run->epoch,
                          .steps_per_epoch = run->steps_per_epoch,
                          .samples = run->samples,
                          .lr = tdm__run_lr(run, -1),
                          .loss = run->last_loss,
                          .replicas = run->replicas,
                          .per_device = run->per_device,
                          .global_batch = run->per_device * run->replicas,
                          .params = tdm_graph_param_count(run->graph),
                          .has_ended = run->end_reason != NULL,
                          .best_step = run->best.step,
                          .best_score = run->best.step > 0 ? run->best.score : NAN,
                          .saved_step = run->job->run.dir != NULL ? run->saved_at : -1};
    tdm_hash128 hash;
    TDM_TRY(tdm__params_hash(run, &hash));
    tdm__hash_print(full.params_xxh3, hash);
    tdm__sized_give(out, &full);
    return TDM_OK;
}

tdm_status tdm_run_set_lr(tdm_run *run, int group, double lr) {
    if (run == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_run_set_lr: run is NULL");
    TDM_ENTER(&run->guard, "tdm_run_set_lr", TDM_GUARD_ASKS);
    TDM_TRY(tdm__run_trains(run, "tdm_run_set_lr"));
    const int count = run->job->optimizer.groups.count;
    if (group < -1 || group >= count)
        TDM_FAIL(TDM_E_USAGE,
                 "tdm_run_set_lr: group %d is none of the job's %d in optimizer.groups; -1 is for parameters in none",
                 group, count);
    if (lr < 0 || isinf(lr))
        TDM_FAIL(TDM_E_USAGE, "tdm_run_set_lr: the learning rate must be finite and at least 0, got %g", lr);
    run->set_lr[1 + group] = lr;
    return TDM_OK;
}

void tdm_run_request_stop(tdm_run *run) {
    if (run != NULL) atomic_store(&run->stop, 1);
}

int64_t tdm_run_output_width(const tdm_run *run) {
    return run != NULL ? run->plan->output_width : 0;
}

int64_t tdm_run_input_width(const tdm_run *run) {
    return run != NULL ? tdm__shape_count(&run->graph->sample) : 0;
}

int64_t tdm_run_eval_batch(const tdm_run *run) {
    return run != NULL ? run->eval_rows : 0;
}

int64_t tdm_run_eval_count(const tdm_run *run) {
    return run != NULL && run->eval != NULL ? run->eval->count : 0;
}

tdm_status tdm_run_eval_sample(tdm_run *run, int64_t index, float *x, int64_t *label) {
    if (run == NULL || x == NULL || label == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_run_eval_sample: a pointer is NULL");
    TDM_ENTER(&run->guard, "tdm_run_eval_sample", TDM_GUARD_ASKS);
    if (index < 0 || index >= tdm_run_eval_count(run))
        TDM_FAIL(TDM_E_USAGE, "tdm_run_eval_sample: index %lld is not in [0, %lld)", (long long)index,
                 (long long)tdm_run_eval_count(run));
    int64_t rows = run->eval_rows;
    if (run->eval_batch == NULL || run->eval_batch->step_in_epoch != index / rows) {
        const bool follows = run->eval_batch != NULL && run->world == 1 && run->eval_loader_count == 1 &&
                             run->eval_batch->step_in_epoch + 1 == index / rows;
        run->eval_batch = NULL;
        if (!follows) TDM_TRY(tdm__loader_seek(run->eval_loaders[0], 0, index / rows));
        TDM_TRY(tdm__loader_next(run->eval_loaders[0], &run->eval_batch));
    }
    const tdm_shard *shard = &run->eval_batch->shard[0];
    int64_t width = tdm_run_input_width(run), at = index % rows;
    memcpy(x, shard->x + at * width, (size_t)width * sizeof(float));
    *label = run->loss->target == TDM_TARGET_CLASS ? ((const int64_t *)shard->target)[at] : -1;
    return TDM_OK;
}

/* ---- tensors ---- */

int tdm_run_tensor_count(const tdm_run *run) {
    return run != NULL ? run->model_tensors : 0;
}

/* Of the tensors `first` to `end` - 1 of the run's list. */
static tdm_status describe(const tdm_run *run, const char *function, int first, int end, int index,
                           tdm_tensor_info *out) {
    if (index < 0 || index >= end - first)
        TDM_FAIL(TDM_E_USAGE, "%s: index %d is not in [0, %d)", function, index, end - first);
    const tdm_named *named = &run->tensors[first + index];
    TDM_TRY(tdm__sized_check("tdm_tensor_info", out, TDM_SIZED_ANY, sizeof(*out)));
    tdm_tensor_info full = {.name = named->name,
                            .ndim = named->shape->ndim,
                            .count = named->count,
                            .bytes = named->bytes,
                            .is_buffer = named->arena == TDM_ARENA_BUFFER,
                            .is_int64 = named->is_counter};
    memcpy(full.dim, named->shape->dim, (size_t)named->shape->ndim * sizeof(int64_t));
    tdm__sized_give(out, &full);
    return TDM_OK;
}

tdm_status tdm_run_tensor(const tdm_run *run, int index, tdm_tensor_info *out) {
    if (run == NULL || out == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_run_tensor: a pointer is NULL");
    return describe(run, "tdm_run_tensor", 0, run->model_tensors, index, out);
}

int tdm_run_optimizer_count(const tdm_run *run) {
    return run != NULL ? run->tensor_count - run->model_tensors : 0;
}

tdm_status tdm_run_optimizer_tensor(const tdm_run *run, int index, tdm_tensor_info *out) {
    if (run == NULL || out == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_run_optimizer_tensor: a pointer is NULL");
    return describe(run, "tdm_run_optimizer_tensor", run->model_tensors, run->tensor_count, index, out);
}

static tdm_status check_bytes(const char *function, const tdm_named *named, size_t bytes) {
    if (named->bytes == bytes) return TDM_OK;
    TDM_FAIL(TDM_E_USAGE, "%s: tensor '%s' has %zu bytes, the caller's memory %zu", function, named->name, named->bytes,
             bytes);
}

static tdm_status check_run(const tdm_run *run, const char *function) {
    if (run == NULL) TDM_FAIL(TDM_E_USAGE, "%s: run is NULL", function);
    return TDM_OK;
}

/* Finds a tensor of the model that fits the caller's memory. */
static tdm_status find(tdm_run *run, const char *function, const char *name, const void *memory, size_t bytes,
                       const tdm_named **out) {
    if (name == NULL || memory == NULL) TDM_FAIL(TDM_E_USAGE, "%s: a pointer is NULL", function);
    TDM_TRY(tdm__run_idle(run, function));
    int i = 0;
    while (i < run->model_tensors && strcmp(run->tensors[i].name, name) != 0) i++;
    if (i == run->model_tensors) TDM_FAIL(TDM_E_USAGE, "%s: the model has no tensor '%s'", function, name);
    *out = &run->tensors[i];
    return check_bytes(function, *out, bytes);
}

/* Where the tensor is in the first replica; if that is in device memory, in a copy of it. */
static tdm_status locate(const tdm_run *run, const tdm_named *named, char **at) {
    void *arenas[TDM_ARENA_COUNT] = {NULL};
    return tdm__tensor_at(run->mode->replica[0], named, arenas, at);
}

tdm_status tdm_run_read(tdm_run *run, const char *name, void *to, size_t bytes) {
    const tdm_named *named;
    char *at;
    TDM_TRY(check_run(run, "tdm_run_read"));
    TDM_ENTER(&run->guard, "tdm_run_read", TDM_GUARD_ASKS);
    TDM_TRY(find(run, "tdm_run_read", name, to, bytes, &named));
    TDM_TRY(locate(run, named, &at));
    memcpy(to, at, bytes);
    return TDM_OK;
}

/* The list of tensors begins with the parameters, in the graph's order. */
static bool is_frozen(const tdm_run *run, const tdm_named *parameter) {
    return run->plan->frozen[parameter - run->tensors];
}

/* Finds the gradient of a parameter that fits the caller's memory. */
static tdm_status find_gradient(tdm_run *run, const char *function, const char *name, const void *memory, size_t bytes,
                                tdm_named *out) {
    const tdm_named *named;
    TDM_TRY(find(run, function, name, memory, bytes, &named));
    TDM_TRY(tdm__run_trains(run, function));
    if (named->arena != TDM_ARENA_PARAM || is_frozen(run, named))
        TDM_FAIL(TDM_E_USAGE, "%s: '%s' is %s, so it has no gradient", function, name,
                 named->arena != TDM_ARENA_PARAM ? "a buffer" : "frozen");
    *out = *named;
    out->arena = TDM_ARENA_GRAD; /* with the offsets of the parameters */
    return TDM_OK;
}

tdm_status tdm_run_read_gradient(tdm_run *run, const char *name, void *to, size_t bytes) {
    tdm_named gradient;
    char *at;
    TDM_TRY(check_run(run, "tdm_run_read_gradient"));
    TDM_ENTER(&run->guard, "tdm_run_read_gradient", TDM_GUARD_ASKS);
    TDM_TRY(find_gradient(run, "tdm_run_read_gradient", name, to, bytes, &gradient));
    if (run->waits == TDM_FORWARD_WAITS)
        TDM_FAIL(TDM_E_USAGE,
                 "tdm_run_read_gradient: the gradients of this step's other micro-batches are not there yet");
    if (run->since_open.steps == 0 && run->waits != TDM_UPDATE_WAITS)
        TDM_FAIL(TDM_E_USAGE, "tdm_run_read_gradient: the run has made no step since it was opened");
    TDM_TRY(locate(run, &gradient, &at));
    memcpy(to, at, bytes);
    return TDM_OK;
}

/* Into all replicas of this process, because each may make the update. */
tdm_status tdm_run_write_gradient(tdm_run *run, const char *name, const void *from, size_t bytes) {
    tdm_named gradient;
    TDM_TRY(check_run(run, "tdm_run_write_gradient"));
    TDM_ENTER(&run->guard, "tdm_run_write_gradient", TDM_GUARD_ASKS);
    TDM_TRY(find_gradient(run, "tdm_run_write_gradient", name, from, bytes, &gradient));
    if (run->waits != TDM_UPDATE_WAITS)
        TDM_FAIL(TDM_E_USAGE, "tdm_run_write_gradient: no gradients wait for an update; call tdm_run_backward first");
    for (int i = 0; i < run->mode->replica_count; i++) {
        void *arenas[TDM_ARENA_COUNT] = {NULL};
        char *at;
        TDM_TRY(tdm__tensor_at(run->mode->replica[i], &gradient, arenas, &at));
        memcpy(at, from, bytes);
        TDM_TRY(tdm__replica_put(run->mode->replica[i], TDM_ARENA_GRAD));
    }
    return TDM_OK;
}

tdm_status tdm_run_write(tdm_run *run, const char *name, const void *from, size_t bytes) {
    const tdm_named *named;
    char *at;
    TDM_TRY(check_run(run, "tdm_run_write"));
    TDM_ENTER(&run->guard, "tdm_run_write", TDM_GUARD_ASKS);
    TDM_TRY(tdm__run_computes(run, "tdm_run_write"));
    TDM_TRY(find(run, "tdm_run_write", name, from, bytes, &named));
    TDM_TRY(locate(run, named, &at));
    memcpy(at, from, bytes);
    TDM_TRY(tdm__replica_put(run->mode->replica[0], named->arena));
    return tdm__mode_sync(run->mode, false);
}

/* What is wrong with the names: the optimizer has no such state, or the model no such trained parameter. */
static tdm_status refuse_state(const tdm_run *run, const char *function, const char *state, const char *param) {
    char states[128] = "none";
    bool known = false;
    for (int i = run->model_tensors, at = 0; i < run->tensor_count; i += run->plan->trained_count) {
        const char *name = run->tensors[i].name;
        const int length = (int)(strchr(name, '.') - name);
        known = known || ((size_t)length == strlen(state) && strncmp(name, state, (size_t)length) == 0);
        at += snprintf(states + at, sizeof(states) - (size_t)at, "%s%.*s", at > 0 ? ", " : "", length, name);
    }
    if (known)
        TDM_FAIL(TDM_E_USAGE,
                 "%s: the model trains no parameter '%s', or it is frozen; tdm_run_optimizer_tensor has all", function,
                 param);
    TDM_FAIL(TDM_E_USAGE, "%s: optimizer %s keeps no state '%s' in this run; it keeps: %s", function, run->optim->name,
             state, states);
}

tdm_status tdm_run_read_optimizer(tdm_run *run, const char *state, const char *param, void *to, size_t bytes) {
    static const char function[] = "tdm_run_read_optimizer";
    void *arenas[TDM_ARENA_COUNT] = {NULL};
    char *at;
    if (run == NULL || state == NULL || param == NULL || to == NULL)
        TDM_FAIL(TDM_E_USAGE, "%s: a pointer is NULL", function);
    TDM_ENTER(&run->guard, "tdm_run_read_optimizer", TDM_GUARD_ASKS);
    TDM_TRY(tdm__run_idle(run, function));
    const size_t length = strlen(state);
    for (int i = run->model_tensors; i < run->tensor_count; i++) {
        const tdm_named *named = &run->tensors[i];
        if (strncmp(named->name, state, length) != 0 || named->name[length] != '.' ||
            strcmp(named->name + length + 1, param) != 0)
            continue;
        TDM_TRY(check_bytes(function, named, bytes));
        TDM_TRY(tdm__tensor_at(run->mode->replica[0], named, arenas, &at));
        memcpy(to, at, bytes);
        return TDM_OK;
    }
    return refuse_state(run, function, state, param);
}

/* ---- descriptions ---- */

static tdm_status print_summary(tdm_run *run, char **out) {
    tdm_text text;
    tdm__text_init(&text, run->host);
    const tdm_replica *root = run->mode->replica[0];
    tdm__text_printf(
        &text,
        "mode %s\ndevice %s\ngradients %s\nreplicas %d\nper_device %lld\nglobal_batch %lld\nparameters %lld\nmemory_bytes %zu\n",
        run->mode->ops->name, run->compute.device->name, run->mode->gradient_backend, run->replicas,
        (long long)run->per_device, (long long)(run->per_device * run->replicas),
        (long long)tdm_graph_param_count(run->graph), root->memory_bytes);
    tdm__text_printf(&text,
                     "train_samples %lld\neval_samples %lld\nsteps_per_epoch %lld\nsteps_total %lld\n"
                     "threads_per_device %d\nkernels %s\n",
                     (long long)(run->train != NULL ? run->train->count : 0), (long long)tdm_run_eval_count(run),
                     (long long)run->steps_per_epoch, (long long)run->steps_total, run->plan->options.threads,
                     run->compute.report.text);
    return tdm__text_take_public(&text, out);
}

static tdm_status print_plan(tdm_run *run, bool json, char **out) {
    tdm_text text;
    tdm__text_init(&text, run->host);
    tdm__plan_report(run->plan, run->job, run->replicas, json, &text);
    return tdm__text_take_public(&text, out);
}

static tdm_status print_evaluation(tdm_run *run, char **out) {
    tdm_text text;
    if (run->details == NULL || run->details->step < 0)
        TDM_FAIL(TDM_E_USAGE, "tdm_run_print: the run has not evaluated yet; call tdm_run_evaluate first");
    tdm__text_init(&text, run->host);
    tdm__details_print(run->details, &text);
    return tdm__text_take_public(&text, out);
}

static tdm_status print_kernels(tdm_run *run, char **out) {
    tdm_text text;
    tdm_replica *root = run->mode->replica[0];
    TDM_TRY(tdm__run_idle(run, "tdm_run_print"));
    for (int k = 0; k < run->plan->stage_count; k++) TDM_TRY(tdm__prepare_wait(root->stages[k]));
    tdm__text_init(&text, run->host);
    tdm__prepared_print(root, &text);
    return tdm__text_take_public(&text, out);
}

static tdm_status print_times(tdm_run *run, char **out) {
    tdm_text text;
    if (run->options.repeats <= 0)
        TDM_FAIL(TDM_E_USAGE, "tdm_run_print: layers are not timed; open the run with tdm_run_options.repeats");
    TDM_TRY(tdm__run_idle(run, "tdm_run_print"));
    tdm__text_init(&text, run->host);
    tdm__repeats_print(run->mode->replica[0], &text);
    return tdm__text_take_public(&text, out);
}

tdm_status tdm_run_print(tdm_run *run, const char *what, char **out) {
    if (run == NULL || what == NULL || out == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_run_print: a pointer is NULL");
    TDM_ENTER(&run->guard, "tdm_run_print", TDM_GUARD_ASKS);
    if (strcmp(what, "graph") == 0) return tdm_graph_print(run->graph, out);
    if (strcmp(what, "plan") == 0) return print_plan(run, false, out);
    if (strcmp(what, "plan.json") == 0) return print_plan(run, true, out);
    if (strcmp(what, "summary") == 0) return print_summary(run, out);
    if (strcmp(what, "kernels.json") == 0) return print_kernels(run, out);
    if (strcmp(what, "times.json") == 0) return print_times(run, out);
    if (strcmp(what, "evaluation.json") == 0) return print_evaluation(run, out);
    TDM_FAIL(
        TDM_E_USAGE,
        "tdm_run_print: nothing is named '%s'; there are graph, plan, plan.json, kernels.json, times.json, evaluation.json and summary",
        what);
}
