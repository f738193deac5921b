/* Saving and loading checkpoints of a run. The unwrapped module is saved: names, layouts and optimizer state do not
 * depend on the mode, so any mode on any number of devices can continue from it. */
#include <stdio.h>
#include <string.h>

#include "runtime/base/log.h"
#include "runtime/base/status.h"
#include "runtime/base/writer.h"
#include "runtime/train/resume.h"

/* ---- saving ---- */

static tdm_status fill_state(tdm_run *run, tdm_ckpt_state *state) {
    const tdm_job *job = run->job;
    *state = (tdm_ckpt_state){.step = run->step,
                              .epoch = run->epoch,
                              .step_in_epoch = run->step_in_epoch,
                              .samples = run->samples,
                              .seed = job->seed,
                              .lr = run->schedules.own.lr,
                              .schedule_step = run->schedules.own.count,
                              .replicas = run->replicas,
                              .per_device = run->per_device,
                              .eval_due = run->eval_due,
                              .skipped = run->skipped};
    strncpy(state->mode, run->mode->ops->name, sizeof(state->mode) - 1);
    strncpy(state->optimizer, run->optim->name, sizeof(state->optimizer) - 1);
    memcpy(state->data, run->data, sizeof(state->data));
    const bool names = run->train != NULL && run->train->identity[0] != '\0';
    snprintf(state->identity, sizeof(state->identity), "%s", names ? run->train->identity : run->identity);
    tdm__run_best_save(run, state);
    tdm_hash128 hash;
    TDM_TRY(tdm__params_hash(run, &hash));
    tdm__hash_print(state->params_xxh3, hash);
    return TDM_OK;
}

static tdm_status collect_one(tdm_run *run, const tdm_named *named, void *arenas[TDM_ARENA_COUNT], tdm_tensor *to) {
    char *data;
    TDM_TRY(tdm__tensor_at(run->mode->replica[0], named, arenas, &data));
    *to = (tdm_tensor){.name = named->name,
                       .dtype = named->is_counter ? TDM_ST_I64 : TDM_ST_F32,
                       .ndim = named->shape->ndim,
                       .bytes = named->bytes,
                       .data = data};
    memcpy(to->dim, named->shape->dim, (size_t)named->shape->ndim * sizeof(int64_t));
    return TDM_OK;
}

/* Everything but the configuration. The average's file is a model of its own: the buffers are in it, too. */
static tdm_status collect(tdm_run *run, tdm_zone *zone, tdm_ckpt_parts *parts, int *count) {
    void *arenas[TDM_ARENA_COUNT] = {NULL};
    tdm_tensor *to;
    int all = run->tensor_count + run->average_count, buffers = run->model_tensors - run->plan->param_count;
    *count = all + (run->average_count > 0 ? buffers : 0);
    TDM_TRY(tdm__zone_new(zone, &to, (size_t)*count, sizeof(*to)));
    *parts = (tdm_ckpt_parts){.model = to,
                              .model_count = run->model_tensors,
                              .optimizer = to + run->model_tensors,
                              .optimizer_count = run->tensor_count - run->model_tensors,
                              .average = run->average_count > 0 ? to + run->tensor_count : NULL,
                              .average_count = *count - run->tensor_count};
    for (int i = 0; i < *count; i++)
        TDM_TRY(collect_one(run, &run->tensors[i < all ? i : run->plan->param_count + i - all], arenas, &to[i]));
    return fill_state(run, &parts->state);
}

/* If the process is killed before it writes status.json again, that says what the checkpoint has. The save does not
 * fail if it cannot be written. */
static void update_status(tdm_run *run) {
    tdm_error record;
    tdm__error_save(&record);
    if (tdm__folder_status(run, "running", TDM_OK, true) != TDM_OK)
        TDM_WARN(run->host, "run", "%s; training continues", tdm_error_message());
    (void)tdm__error_restore(&record, NULL);
}

/* Where a checkpoint goes. */
typedef struct destination {
    const tdm_folder *folder; /* NULL: the name is a path */
    const char *name;
    int64_t keep_last;
    const tdm_file_ops *archive; /* that take it as one archive; NULL: a step directory */
} destination;

static tdm_status write_checkpoint(tdm_run *run, tdm_zone *zone, const destination *to) {
    tdm_ckpt_parts parts;
    int count;
    TDM_TRY(collect(run, zone, &parts, &count));
    TDM_TRY(tdm__run_collect_mode(run, zone, &parts));
    memcpy(parts.note, run->note, sizeof(parts.note));
    parts.property = run->property;
    parts.property_count = run->property_count;
    if (run->options.config_yaml != NULL) TDM_TRY(tdm__zone_text(zone, &parts.config_yaml, run->options.config_yaml));
    if (to->archive != NULL) return tdm__ckpt_save_archive(run->host, to->archive, &parts);
    TDM_TRY(tdm__ckpt_save(run->host, &tdm__file_system, to->folder, to->name, &parts, to->keep_last));
    if (to->folder != NULL) update_status(run);
    return TDM_OK;
}

/* Weights that could not be saved are not a result either. */
static tdm_status check_numbers(tdm_run *run, tdm_zone *zone) {
    tdm_ckpt_parts parts;
    int count;
    TDM_TRY(collect(run, zone, &parts, &count));
    tdm_status status = tdm__tensors_finite(parts.model, count);
    if (status == TDM_OK) return TDM_OK;
    char prefix[64];
    tdm_error error;
    tdm__error_save(&error);
    snprintf(prefix, sizeof(prefix), "after step %lld: ", (long long)run->step);
    return tdm__error_restore(&error, prefix);
}

/* All ranks take rank 0's outcome, so none waits for a checkpoint that does not exist. */
static tdm_status share_outcome(tdm_run *run, tdm_status status) {
    if (run->comm == NULL) return status;
    tdm_error said = {.status = TDM_OK};
    if (status != TDM_OK) tdm__error_save(&said);
    said.frame_count = 0; /* these texts are this process's own */
    tdm_status shared = tdm_comm_broadcast(run->comm, (tdm_span){&said, sizeof(said), TDM_DTYPE_U8}, 0);
    if (run->rank == 0 && status != TDM_OK) return tdm__error_restore(&said, NULL);
    TDM_TRY(shared);
    return said.status == TDM_OK ? TDM_OK : tdm__error_restore(&said, "rank 0: ");
}

/* `to` NULL: the numbers are only checked. */
static tdm_status save(tdm_run *run, const destination *to) {
    tdm_zone zone;
    tdm__zone_init(&zone, run->host);
    tdm_status status = to != NULL ? write_checkpoint(run, &zone, to) : check_numbers(run, &zone);
    tdm__zone_deinit(&zone);
    if (status == TDM_E_NUMERIC)
        status = tdm__fail(status, __FILE__, __LINE__, NULL, "%s; lower optimizer.lr or set train.clip_grad_norm",
                           tdm_error_message());
    return status;
}

tdm_status tdm__run_save(tdm_run *run, const tdm_folder *folder, const char *name, int64_t keep_last) {
    const destination to = {folder, name, keep_last, NULL};
    TDM_TRY(tdm__run_gather_mode(run));
    return share_outcome(run, run->rank != 0 ? TDM_OK : save(run, name != NULL ? &to : NULL));
}

tdm_status tdm_run_save(tdm_run *run, const char *dir) {
    if (run == NULL || dir == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_run_save: run or dir is NULL");
    TDM_ENTER(&run->guard, "tdm_run_save", TDM_GUARD_ASKS);
    TDM_TRY(tdm__run_rests(run, "tdm_run_save"));
    TDM_TRY(tdm__run_trains(run, "tdm_run_save"));
    TDM_TRY(tdm__run_verify(run));
    return tdm__run_save(run, NULL, dir, 0);
}

static tdm_status save_to(tdm_run *run, const tdm_writer *writer) {
    static const char function[] = "tdm_run_save_to";
    tdm_sink sink;
    TDM_TRY(tdm__sink_init(&sink, writer, function));
    return tdm__sink_end(&sink, save(run, &(destination){.archive = &sink.ops}), function);
}

/* Only rank 0 uses its writer. If that is refused, all ranks fail, as they do when the save fails. */
tdm_status tdm__run_save_to(tdm_run *run, const tdm_writer *to, const char *function) {
    TDM_TRY(tdm__run_rests(run, function));
    TDM_TRY(tdm__run_trains(run, function));
    TDM_TRY(tdm__run_verify(run));
    TDM_TRY(tdm__run_gather_mode(run));
    return share_outcome(run, run->rank != 0 ? TDM_OK : save_to(run, to));
}

tdm_status tdm_run_save_to(tdm_run *run, const tdm_writer *to) {
    if (run == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_run_save_to: run is NULL");
    TDM_ENTER(&run->guard, "tdm_run_save_to", TDM_GUARD_ASKS);
    return tdm__run_save_to(run, to, "tdm_run_save_to");
}

/* ---- restoring ---- */

/* The first tensor of the optimizer's state that is not in the file; NULL if all are. */
static const char *find_absent(const tdm_run *run, const tdm_tensor_file *file) {
    for (int i = run->model_tensors; i < run->tensor_count; i++) {
        if (tdm__tensor_file_find(file, run->tensors[i].name) == NULL) return run->tensors[i].name;
    }
    return NULL;
}

static bool is_of_state(const char *tensor, const char *state) {
    const size_t length = strlen(state);
    return strncmp(tensor, state, length) == 0 && tensor[length] == '.';
}

static bool has_state(const tdm_tensor_file *file, const char *state) {
    for (int i = 0; i < tdm__tensor_file_count(file); i++) {
        if (is_of_state(tdm__tensor_file_get(file, i)->name, state)) return true;
    }
    return false;
}

/* `absent` is a tensor that the file lacks. If it lacks all of that state: the setting with which the optimizer needs
 * none; else NULL. */
static const char *setting_without(const tdm_run *run, const tdm_tensor_file *file, const char *absent) {
    for (int i = 0; i < TDM_MAX_STATES && run->optim->state[i] != NULL; i++) {
        if (is_of_state(absent, run->optim->state[i]))
            return has_state(file, run->optim->state[i]) ? NULL : run->optim->without[i];
    }
    return NULL;
}

static tdm_status restore_optimizer(tdm_run *run, const tdm_ckpt *ckpt) {
    const tdm_tensor_file *file = tdm__ckpt_optimizer(ckpt);
    tdm_status status = tdm__tensors_load(run, file, run->model_tensors, run->tensor_count);
    if (status != TDM_E_CHECKPOINT) return status;
    const char *absent = find_absent(run, file);
    const char *setting = absent != NULL ? setting_without(run, file, absent) : NULL;
    if (setting != NULL)
        TDM_FAIL(status, "%s: %s; was it saved with %s? Then resume with that", tdm__ckpt_path(ckpt),
                 tdm_error_message(), setting);
    if (absent != NULL)
        TDM_FAIL(status,
                 "%s: %s; was its parameter frozen then? Resume with the same model.freeze, or start a new run from "
                 "its weights: model.weights, and another run.dir",
                 tdm__ckpt_path(ckpt), tdm_error_message());
    TDM_FAIL(status, "%s: %s", tdm__ckpt_path(ckpt), tdm_error_message());
}

/* A run that has had no average begins one with the weights that it continues from. */
static tdm_status restore_average(tdm_run *run, const tdm_ckpt *ckpt) {
    const tdm_tensor_file *file = tdm__ckpt_average(ckpt);
    if (run->average_count == 0) return TDM_OK;
    if (file == NULL) {
        TDM_WARN(run->host, "checkpoint", "%s has no average of the parameters: train.ema begins with its weights",
                 tdm__ckpt_path(ckpt));
        return tdm__average_begin(run);
    }
    tdm_status status = tdm__tensors_load(run, file, run->tensor_count, run->tensor_count + run->average_count);
    if (status == TDM_E_CHECKPOINT) TDM_FAIL(status, "%s: %s", tdm__ckpt_path(ckpt), tdm_error_message());
    return status;
}

/* Sends what rank 0 found to all ranks. */
typedef struct found {
    int64_t any, has_state, has_mode;
    tdm_ckpt_state state;
} found;

/* Tensors that do not fit belong to another model: says where it was found and how to go on without it. */
static tdm_status refuse_model(tdm_status status, const tdm_ckpt *ckpt, bool newest_in_folder) {
    if (status != TDM_E_CHECKPOINT) return status;
    const char *way_out = newest_in_folder
                              ? "it was saved by another job; write into another run.dir (--run-dir), or begin "
                                "anew here with checkpoint.resume=never"
                              : "checkpoint.resume needs a checkpoint of this model";
    TDM_FAIL(status, "%s: %s; %s", tdm__ckpt_path(ckpt), tdm_error_message(), way_out);
}

/* A step beyond the job's end is from another job, or forged, and the schedule would be followed up to it. With epochs,
 * other batch sizes may have needed more steps, but at most one for each sample. */
static tdm_status check_position(const tdm_run *run, const tdm_ckpt *ckpt) {
    const tdm_ckpt_state *state = tdm__ckpt_state(ckpt);
    bool has_steps = run->job->train.steps != TDM_INT_NULL;
    int64_t most = run->job->train.steps;
    if (!has_steps && __builtin_mul_overflow(run->job->train.epochs, run->train->count, &most)) most = INT64_MAX;
    if (state->step <= most) return TDM_OK;
    TDM_FAIL(TDM_E_CHECKPOINT,
             "%s is of step %lld, this job ends after %s%lld (train.%s); raise that, or start from its weights with "
             "model.weights",
             tdm__ckpt_path(ckpt), (long long)state->step, has_steps ? "" : "at most ", (long long)most,
             has_steps ? "steps" : "epochs");
}

static tdm_status load(tdm_run *run, tdm_ckpt *ckpt, bool newest_in_folder, found *out) {
    const tdm_ckpt_state *state = tdm__ckpt_state(ckpt);
    TDM_TRY(tdm__run_check_notes(run, ckpt));
    TDM_TRY(tdm__own_check_saved_loss(run, ckpt));
    tdm_status status = tdm__weights_load(run, tdm__run_weights_of(run, ckpt));
    if (status != TDM_OK) return refuse_model(status, ckpt, newest_in_folder);
    TDM_TRY(tdm__run_keep_notes(run, ckpt));
    if (state == NULL) TDM_TRY(tdm__average_begin(run));
    if (state != NULL) TDM_TRY(tdm__run_take_properties(run, tdm__ckpt_model(ckpt)));
    if (state == NULL || run->options.predicts) return TDM_OK;
    TDM_TRY(check_position(run, ckpt));
    out->has_state = 1;
    out->state = *state;
    bool has_mode;
    TDM_TRY(restore_optimizer(run, ckpt));
    TDM_TRY(tdm__run_restore_mode(run, ckpt, &has_mode));
    out->has_mode = has_mode;
    return restore_average(run, ckpt);
}

/* A refused change is reported before anything is modified; accepted changes are reported after loading. */
static tdm_status go_on(tdm_run *run, tdm_ckpt *ckpt, bool newest_in_folder, found *out) {
    tdm_changes changes = {.saved = {0}};
    tdm_status status = TDM_OK;
    if (tdm__ckpt_state(ckpt) != NULL && !run->options.predicts) status = tdm__changes_read(&changes, run, ckpt);
    if (status == TDM_OK) status = load(run, ckpt, newest_in_folder, out);
    if (status == TDM_OK) TDM_INFO(run->host, "checkpoint", "continuing from %s", tdm__ckpt_path(ckpt));
    if (status == TDM_OK) tdm__changes_report(&changes, run);
    tdm__changes_forget(&changes);
    return status;
}

/* What a run is restored from. */
typedef struct origin {
    const char *path;  /* NULL: the newest in its folder */
    const void *bytes; /* instead of the path; NULL: none */
    size_t count;
} origin;

static tdm_status open_origin(tdm_ckpt **out, const tdm_run *run, const origin *from) {
    if (from->bytes != NULL) return tdm__ckpt_open_memory(out, run->host, from->bytes, from->count);
    if (from->path != NULL) return tdm__ckpt_open_any(out, run->host, from->path);
    return tdm__ckpt_open_newest(out, run->host, tdm__folder_dir(run), TDM_CHECKPOINTS);
}

static tdm_status read_here(tdm_run *run, const origin *from, bool newest_in_folder, found *out) {
    tdm_ckpt *ckpt = NULL;
    TDM_TRY(open_origin(&ckpt, run, from));
    if (ckpt == NULL) return TDM_OK;
    out->any = 1;
    tdm_status status = go_on(run, ckpt, newest_in_folder, out);
    tdm__ckpt_close(ckpt);
    return status;
}

/* Only a job that counts epochs calls this. */
static int64_t steps_left(const tdm_run *run) {
    int64_t epochs = run->job->train.epochs;
    return run->epoch < epochs ? (epochs - run->epoch) * run->steps_per_epoch - run->step_in_epoch : 0;
}

/* Later checkpoints could not hold these numbers, so a run does not continue from them. */
static tdm_status check_samples(const tdm_run *run, int64_t samples) {
    const int64_t global = run->per_device * run->replicas, steps = run->steps_total - run->step;
    int64_t last;
    if (!__builtin_mul_overflow(steps, global, &last) && !__builtin_add_overflow(last, samples, &last) &&
        last <= INT64_C(1) << 53)
        return TDM_OK;
    TDM_FAIL(TDM_E_CHECKPOINT,
             "the checkpoint has %lld samples, and %lld steps of %lld follow: the counter of samples would exceed 2^53",
             (long long)samples, (long long)steps, (long long)global);
}

/* The position is a number of samples of the epoch, so a run can continue with another number of devices or another
 * batch size. */
static tdm_status set_position(tdm_run *run, const tdm_ckpt_state *state) {
    run->step = run->submitted = state->step;
    run->epoch = state->epoch;
    run->samples = state->samples;
    run->skipped = state->skipped;
    memcpy(run->identity, state->identity, sizeof(run->identity));
    int64_t global = run->per_device * run->replicas;
    int64_t seen = state->step_in_epoch * state->per_device * state->replicas;
    run->step_in_epoch = seen / global;
    if (seen % global != 0)
        TDM_WARN(run->host, "checkpoint",
                 "%lld samples of this epoch, after the last whole batch of %lld, are used again",
                 (long long)(seen % global), (long long)global);
    if (run->step_in_epoch >= run->steps_per_epoch) run->epoch++, run->step_in_epoch = 0;
    if (run->job->train.steps == TDM_INT_NULL) run->steps_total = run->step + steps_left(run);
    TDM_TRY(check_samples(run, state->samples));
    run->eval_waits = run->save_waits = run->verify_waits = false;
    run->eval_due = state->eval_due != 0;
    tdm__run_best_restore(run, state);
    const tdm_plateau plateau = tdm__run_plateau(run, state);
    tdm__schedules_seek(&run->schedules, run->step, run->steps_per_epoch, &plateau);
    return TDM_OK;
}

static tdm_status restore(tdm_run *run, const origin *from, bool newest_in_folder) {
    found what = {0};
    const bool reads = run->rank == 0 && (!newest_in_folder || tdm__folder_dir(run) != NULL);
    tdm_status status = reads ? read_here(run, from, newest_in_folder, &what) : TDM_OK;
    TDM_TRY(share_outcome(run, status));
    if (run->comm != NULL) TDM_TRY(tdm_comm_broadcast(run->comm, (tdm_span){&what, sizeof(what), TDM_DTYPE_U8}, 0));
    if (!what.any) return TDM_OK;
    TDM_TRY(tdm__mode_sync(run->mode, true));
    if (!what.has_state) return TDM_OK;
    TDM_TRY(tdm__run_share_mode(run, what.has_mode != 0));
    tdm__run_init_schedules(run);
    TDM_TRY(set_position(run, &what.state));
    run->saved_at = newest_in_folder ? run->step : -1; /* a checkpoint elsewhere does not count as saved */
    return TDM_OK;
}

tdm_status tdm__run_restore(tdm_run *run, const char *path, bool newest_in_folder) {
    return restore(run, &(origin){.path = newest_in_folder ? NULL : path}, newest_in_folder);
}

tdm_status tdm_run_load(tdm_run *run, const char *path) {
    if (run == NULL || path == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_run_load: run or path is NULL");
    TDM_ENTER(&run->guard, "tdm_run_load", TDM_GUARD_MOVES);
    TDM_TRY(tdm__run_rests(run, "tdm_run_load"));
    TDM_TRY(tdm__run_restore(run, path, false));
    return tdm__run_seek(run);
}

tdm_status tdm_run_load_memory(tdm_run *run, const void *bytes, size_t count) {
    if (run == NULL || (bytes == NULL && run->rank == 0))
        TDM_FAIL(TDM_E_USAGE, "tdm_run_load_memory: run or bytes is NULL");
    TDM_ENTER(&run->guard, "tdm_run_load_memory", TDM_GUARD_MOVES);
    TDM_TRY(tdm__run_rests(run, "tdm_run_load_memory"));
    TDM_TRY(restore(run, &(origin){.bytes = bytes, .count = count}, false));
    return tdm__run_seek(run);
}
