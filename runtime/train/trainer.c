/* The training loop: steps, and what is due between them. */
#include <string.h>

#include "runtime/base/log.h"
#include "runtime/base/status.h"
#include "runtime/base/system/clock.h"
#include "runtime/data/pictures/bad_samples.h"
#include "runtime/train/steps/steps.h"

/* ---- what falls due ---- */

/* Clocks differ between ranks, so rank 0's decides for all. */
static tdm_status time_is_up(tdm_run *run, double seconds, int64_t *last_ns, bool *due) {
    int64_t flag = (double)(tdm__steady_ns(run->host) - *last_ns) * 1e-9 >= seconds;
    if (run->comm != NULL) TDM_TRY(tdm_comm_broadcast(run->comm, (tdm_span){&flag, 1, TDM_DTYPE_I64}, 0));
    *due = flag != 0;
    if (*due) *last_ns = tdm__steady_ns(run->host);
    return TDM_OK;
}

static tdm_status falls_due(tdm_run *run, const tdm_interval *every, int64_t *last_ns, bool *due) {
    *due = tdm__is_due_after(run, every, run->step);
    return every->kind == TDM_INTERVAL_SECONDS ? time_is_up(run, every->amount, last_ns, due) : TDM_OK;
}

/* If a stop is requested meanwhile, the run that continues from here makes the evaluation. `due`: it is one of
 * eval.every, not made only because the run ends. */
static tdm_status evaluate_now(tdm_run *run, bool due, bool *stopped) {
    TDM_TRY(tdm__run_evaluate(run, &run->scores, stopped));
    run->eval_due = *stopped;
    if (*stopped) atomic_store(&run->stop, 0);
    if (*stopped) return TDM_OK;
    tdm__run_update_best(run, due);
    TDM_TRY(tdm__folder_eval_line(run));
    TDM_TRY(tdm__folder_evaluation(run));
    tdm__send_event(run, TDM_EVENT_EVAL, NULL, tdm__run_lr(run, -1), NULL);
    return TDM_OK;
}

/* A storage failure does not end training: the next interval tries again. A best checkpoint that could not be saved is
 * not the best: the one before it is still there. */
static tdm_status save_or_go_on(tdm_run *run, const tdm_folder *dir, bool last, bool *saved) {
    tdm_error record;
    tdm__error_save(&record);
    const char *name = dir != NULL ? TDM_CHECKPOINTS : NULL;
    tdm_status status = tdm__run_save(run, dir, name, run->job->checkpoint.keep_last);
    *saved = status == TDM_OK;
    if (status == TDM_E_IO && !last) {
        run->unsaved++;
        if (tdm__run_is_best(run)) run->best = run->best_before;
        if (run->rank == 0)
            TDM_WARN(run->host, "checkpoint", "%s; training continues, and the next interval tries again",
                     tdm_error_message());
        (void)tdm__error_restore(&record, NULL);
        return TDM_OK;
    }
    if (*saved && run->unsaved > 0) {
        if (run->rank == 0)
            TDM_WARN(run->host, "checkpoint", "the checkpoint of step %lld is saved; %lld before it could not be",
                     (long long)run->step, (long long)run->unsaved);
        run->unsaved = 0;
    }
    return status;
}

/* The last checkpoint of a run that ends or stops must succeed. */
static tdm_status save_now(tdm_run *run, bool last) {
    const tdm_folder *dir = tdm__folder_dir(run);
    bool saved = false;
    TDM_TRY(tdm__run_verify(run)); /* a replica that differs must not replace a good checkpoint */
    TDM_TRY(save_or_go_on(run, dir, last, &saved));
    if (!saved) return TDM_OK;
    run->saved_at = run->step;
    if (dir == NULL) return TDM_OK;
    tdm_zone zone;
    const char *path = NULL;
    tdm__zone_init(&zone, run->host);
    tdm_status status =
        tdm__zone_printf(&zone, &path, "%s/" TDM_CHECKPOINTS "/step-%08lld", dir->path, (long long)run->step);
    if (status == TDM_OK) tdm__send_event(run, TDM_EVENT_CHECKPOINT, NULL, tdm__run_lr(run, -1), path);
    tdm__zone_deinit(&zone);
    return status;
}

static tdm_status log_step(tdm_run *run, const tdm_step_result *result, double lr, bool last) {
    bool due = false;
    tdm_interval every = run->job->log.every;
    if (every.kind == TDM_INTERVAL_SECONDS) { /* each rank uses its own clock: only rank 0 writes */
        due = (double)(tdm__steady_ns(run->host) - run->logged_ns) * 1e-9 >= every.amount;
        if (due) run->logged_ns = tdm__steady_ns(run->host);
    } else
        TDM_TRY(falls_due(run, &every, &run->logged_ns, &due));
    if (!due && !last) return TDM_OK;
    TDM_TRY(tdm__folder_train_line(run, result, lr));
    run->since_log = (tdm_tally){0};
    return TDM_OK;
}

/* An interval in seconds may fall due while the next step is in flight; it then waits for the end of that step. */
static tdm_status between_steps(tdm_run *run, bool last, bool *stopped) {
    bool due = false;
    TDM_TRY(falls_due(run, &run->job->eval.every, &run->eval_ns, &due));
    run->eval_waits = run->eval_waits || (run->eval != NULL && due);
    TDM_TRY(falls_due(run, &run->job->checkpoint.every, &run->save_ns, &due));
    run->save_waits = run->save_waits || due || last;
    TDM_TRY(falls_due(run, &run->job->parallel.verify, &run->verify_ns, &due));
    run->verify_waits = run->verify_waits || due;
    if (!tdm__run_has_steps_in_flight(run)) {
        if (run->verify_waits) TDM_TRY(tdm__run_verify(run));
        if (run->eval_waits || (run->eval != NULL && last)) TDM_TRY(evaluate_now(run, run->eval_waits, stopped));
        bool ends = last || *stopped || run->end_reason != NULL;
        if (run->save_waits || ends || tdm__run_is_best(run)) TDM_TRY(save_now(run, ends));
        run->eval_waits = run->save_waits = run->verify_waits = false;
    }
    return tdm__folder_status(run, "running", TDM_OK, false);
}

/* ---- the end ---- */

static int64_t peak_of(const tdm_replica *replica) {
    return (int64_t)(replica->device->bytes_peak + replica->lent_bytes);
}

/* Of each device: replica after replica, those of its stages in a row. */
static tdm_status peak_memory(tdm_run *run, int64_t *bytes, int *count) {
    const int stages = run->plan->stage_count, local = run->mode->replica_count * stages;
    int64_t own[TDM_LIST_MAX] = {0};
    for (int i = 0; i < local && i < TDM_LIST_MAX; i++)
        own[i] = peak_of(run->mode->replica[i / stages]->stages[i % stages]);
    *count = run->world > 1 ? run->world * stages : local;
    if (run->comm == NULL) {
        memcpy(bytes, own, sizeof(own));
        return TDM_OK;
    }
    return tdm_comm_all_gather(run->comm, (tdm_span){own, (size_t)stages, TDM_DTYPE_I64},
                               (tdm_span){bytes, (size_t)*count, TDM_DTYPE_I64});
}

/* Each rank has left out what it could not read; the summary lists what any rank left out. */
static tdm_status gather_bad(tdm_run *run, const tdm_dataset *dataset) {
    if (run->comm == NULL || dataset == NULL || dataset->bad == NULL) return TDM_OK;
    const size_t all = (size_t)(run->world + 1) * TDM_BAD_SAMPLES_KEPT;
    tdm_left_out *list = NULL;
    TDM_TRY(tdm__new(run->host, &list, all, sizeof(*list), "samples that were left out"));
    tdm_left_out *others = list + TDM_BAD_SAMPLES_KEPT;
    tdm__bad_samples_list(dataset->bad, list);
    const size_t bytes = TDM_BAD_SAMPLES_KEPT * sizeof(*list);
    const tdm_status status = tdm_comm_all_gather(run->comm, (tdm_span){list, bytes, TDM_DTYPE_U8},
                                                  (tdm_span){others, (size_t)run->world * bytes, TDM_DTYPE_U8});
    if (status == TDM_OK) tdm__bad_samples_merge(dataset->bad, others, all - TDM_BAD_SAMPLES_KEPT);
    tdm__delete(run->host, list);
    return status;
}

static tdm_status finish(tdm_run *run, bool stopped) {
    int64_t bytes[TDM_LIST_MAX] = {0};
    int count = 0;
    tdm__run_report_ignored(run);
    TDM_TRY(peak_memory(run, bytes, &count));
    TDM_TRY(gather_bad(run, run->train));
    TDM_TRY(gather_bad(run, run->eval));
    /* The summary comes last: a folder that has it is complete, and a restarted job has nothing to do. */
    TDM_TRY(tdm__folder_status(run, stopped ? "stopped" : "finished", stopped ? TDM_E_STOPPED : TDM_OK, true));
    TDM_TRY(tdm__folder_summary(run, stopped ? "stopped" : "finished", bytes, count));
    tdm__send_event(run, TDM_EVENT_END, NULL, tdm__run_lr(run, -1), NULL);
    return TDM_OK;
}

/* A run that is asked to stop skips the evaluation that is due: it might take longer than the requester waits. The
 * checkpoint says so, and the run that continues makes it first. The log stays what it would be without a stop. */
static tdm_status stop_here(tdm_run *run) {
    run->eval_due = run->eval != NULL && tdm__is_due_after(run, &run->job->eval.every, run->step);
    return save_now(run, true);
}

/* A stop requested before the first step is answered before it, by all ranks. */
static tdm_status is_stopped_before(tdm_run *run, bool *stopped) {
    int64_t asked = atomic_load(&run->stop) != 0;
    if (run->comm != NULL)
        TDM_TRY(tdm_comm_all_reduce(run->comm, (tdm_span){&asked, 1, TDM_DTYPE_I64}, TDM_REDUCE_MAX));
    if (asked) atomic_store(&run->stop, 0);
    *stopped = asked != 0 && run->step < run->steps_total;
    return TDM_OK;
}

/* Without a new step there is nothing to save, or the checkpoint that the run came from has it. */
static tdm_status stop_before_first_step(tdm_run *run) {
    return run->step == 0 || run->saved_at == run->step ? TDM_OK : save_now(run, true);
}

/* The evaluation that the run before this one left out. Its checkpoint is saved again if it is the best or last. */
static tdm_status evaluate_late(tdm_run *run, bool *stopped) {
    const tdm_interval *every = &run->job->eval.every;
    const bool due = every->kind == TDM_INTERVAL_SECONDS || tdm__is_due_after(run, every, run->step);
    TDM_TRY(evaluate_now(run, due, stopped));
    bool ends = run->end_reason != NULL && !*stopped;
    return ends || (!*stopped && tdm__run_is_best(run)) ? save_now(run, ends) : TDM_OK;
}

static tdm_status loop(tdm_run *run, bool *stopped) {
    bool stops = false;
    TDM_TRY(is_stopped_before(run, stopped));
    if (!*stopped && run->eval_due && run->eval != NULL) TDM_TRY(evaluate_late(run, stopped));
    if (*stopped) return stop_before_first_step(run);
    while (run->step < run->steps_total && run->end_reason == NULL && !*stopped) {
        tdm_step_result result;
        double lr = 0;
        TDM_TRY(tdm__step_run(run, stops ? run->submitted : run->steps_total, &result, &lr));
        tdm__send_event(run, TDM_EVENT_STEP, &result, lr, NULL);
        stops = tdm__step_stops(run, &result) || stops;
        bool last = run->step == run->steps_total;
        TDM_TRY(log_step(run, &result, lr, last));
        *stopped = stops && !last && !tdm__run_has_steps_in_flight(run);
        if (*stopped) return stop_here(run);
        if (!stops || last) TDM_TRY(between_steps(run, last, stopped));
    }
    return TDM_OK;
}

tdm_status tdm_run_train(tdm_run *run) {
    if (run == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_run_train: run is NULL");
    TDM_ENTER(&run->guard, "tdm_run_train", TDM_GUARD_MOVES);
    bool stopped = false;
    TDM_TRY(tdm__run_rests(run, "tdm_run_train"));
    TDM_TRY(tdm__run_trains(run, "tdm_run_train"));
    TDM_TRY(tdm__run_check_rows(run));
    tdm__send_event(run, TDM_EVENT_START, NULL, tdm__run_lr(run, -1), NULL);
    TDM_TRY(tdm__folder_status(run, "running", TDM_OK, true));
    tdm_status status = loop(run, &stopped);
    if (status == TDM_OK) status = finish(run, stopped);
    if (status != TDM_OK) {
        tdm_error error;
        tdm__error_save(&error);
        /* The other ranks learn why; after a verdict of all ranks they know already. */
        if (run->comm != NULL && status != TDM_E_CHECK) tdm_comm_abort(run->comm, error.message);
        (void)tdm__folder_status(run, "failed", status, true); /* the first failure is the one to report */
        return tdm__error_restore(&error, NULL);
    }
    if (stopped)
        TDM_FAIL(TDM_E_STOPPED, "stopped on request after step %lld of %lld; %s", (long long)run->step,
                 (long long)run->steps_total,
                 run->job->run.dir == NULL ? "no checkpoint is saved: the job has no run.dir"
                 : run->step == 0          ? "there is nothing to save yet"
                                           : "a checkpoint is saved");
    return TDM_OK;
}
