/* The training loop: batch, step, schedule, and what is due between steps. */
#include <math.h>
#include <string.h>

#include "runtime/base/system/clock.h"
#include "runtime/base/log.h"
#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/data/pictures/bad_samples.h"
#include "runtime/optim/optim.h"
#include "runtime/train/run.h"

/* Steps left out of the summary's speed: memory is used for the first time and kernels are prepared. */
enum { WARMUP_STEPS = 5 };

/* ---- events ---- */

static void send_event(tdm_run *run, tdm_event_kind kind, const tdm_step_result *result, double lr, const char *path) {
    if (run->options.on_event == NULL) return;
    tdm_times none;
    tdm__times_init(&none, 0);
    tdm_event event = {.size = sizeof(event),
                       .kind = kind,
                       .step = run->step,
                       .steps_total = run->steps_total,
                       .epoch = run->epoch,
                       .samples = result != NULL ? result->rows : 0,
                       .loss = run->last_loss,
                       .accuracy = NAN,
                       .lr = lr,
                       .grad_norm = result != NULL ? result->grad_norm : NAN,
                       .samples_per_second = NAN,
                       .path = path,
                       .top5 = NAN};
    if (kind == TDM_EVENT_EVAL) {
        event.loss = run->scores.loss;
        event.accuracy = run->scores.accuracy;
        event.top5 = run->scores.top5;
    }
    if (kind == TDM_EVENT_STEP) {
        event.accuracy = run->loss->target == TDM_TARGET_CLASS ? (double)result->correct / (double)result->rows : NAN;
        event.samples_per_second = (double)result->rows * 1000.0 / result->times.ms[TDM_PHASE_STEP];
    }
    memcpy(&event.ms, result != NULL ? result->times.ms : none.ms, sizeof(event.ms));
    run->guard.reports = true;
    if (run->options.on_event(&event, run->options.user) != 0) tdm_run_request_stop(run);
    run->guard.reports = false;
}

/* ---- one step ---- */

static void count_up(tdm_tally *tally, const tdm_step_result *result) {
    for (int i = 0; i < TDM_PHASE_COUNT; i++) tally->ms[i] += result->times.ms[i];
    tally->steps++;
    tally->samples += result->rows;
    tally->bytes_moved += result->bytes_moved;
}

static void advance(tdm_run *run, const tdm_step_result *result) {
    run->step++;
    run->samples += result->rows;
    run->step_in_epoch++;
    if (run->step_in_epoch == run->steps_per_epoch) run->epoch++, run->step_in_epoch = 0;
    run->last_loss = result->loss;
    run->eval_due = false;
    count_up(&run->since_log, result);
    count_up(&run->since_open, result);
    if (run->warmup_steps < WARMUP_STEPS)
        run->warmup_steps++;
    else
        count_up(&run->since_start, result);
}

/* ---- steps in flight ---- */

/* Due by steps or epochs, after step `step`. Intervals in seconds are not decided here. */
static bool is_due_after(const tdm_run *run, const tdm_interval *every, int64_t step) {
    int64_t amount = (int64_t)every->amount, past = run->step_in_epoch + (step - run->step);
    if (amount <= 0) return false;
    if (every->kind == TDM_INTERVAL_STEPS) return step % amount == 0;
    return every->kind == TDM_INTERVAL_EPOCHS && past % run->steps_per_epoch == 0 &&
           (run->epoch + past / run->steps_per_epoch) % amount == 0;
}

/* May another step be submitted while others are in flight? Not if an evaluation, a check or a checkpoint is due
 * between them: it must see the replicas as the last of these steps leaves them. All ranks come to the same answer. A
 * single process also waits if the loader has failed to make the next batch, so that the steps before it are reported
 * first. */
static bool may_submit(const tdm_run *run) {
    if (!tdm__run_has_steps_in_flight(run)) return true;
    return run->runs_ahead && run->submitted - run->step < run->mode->depth && !run->eval_waits && !run->save_waits &&
           !run->verify_waits && !is_due_after(run, &run->job->eval.every, run->submitted) &&
           !is_due_after(run, &run->job->parallel.verify, run->submitted) &&
           !is_due_after(run, &run->job->checkpoint.every, run->submitted) &&
           (run->comm != NULL || tdm__loader_peek(run->loader) != NULL);
}

static tdm_status leave_step(tdm_run *run) {
    run->failed_step = run->submitted + 1;
    return tdm__run_leave(run);
}

/* A batch that could not be read is read again by the next call of the program, and not before it: until then no thread
 * asks for samples again. */
static tdm_status next_batch(tdm_run *run, const tdm_batch **out) {
    if (run->read_failed && run->comm == NULL) TDM_TRY(tdm__run_seek(run));
    const tdm_status status = tdm__loader_next(run->loader, out);
    run->read_failed = status != TDM_OK;
    return status;
}

static tdm_status submit_step(tdm_run *run) {
    tdm_ahead *ahead = &run->ahead[run->submitted % TDM_MODE_DEPTH];
    ahead->start_ns = tdm__now_ns();
    ahead->lr = tdm__run_lr(run, -1);
    tdm_status status = next_batch(run, &ahead->batch);
    if (status != TDM_OK) return run->comm != NULL ? leave_step(run) : status;
    ahead->data_ms = tdm__loader_waited_ms(run->loader);
    tdm_update update = {.optim = run->optim,
                         .optim_run = run->optim_run,
                         .optimizer = &run->job->optimizer,
                         .states = tdm__optim_states(run->job),
                         .lr = tdm__run_lr(run, -1),
                         .momentum = run->schedules.own.momentum,
                         .t = run->submitted + 1,
                         .clip_norm = run->job->train.clip_grad_norm,
                         .clip_value = run->job->train.clip_grad_value,
                         .average_weight = tdm__average_weight(&run->job->train, run->submitted + 1),
                         .stop = atomic_load(&run->stop) != 0};
    for (int i = 0; i < run->schedules.count; i++) update.group_lr[i] = tdm__run_lr(run, i);
    status = tdm__mode_submit(run->mode, ahead->batch, &update);
    if (status == TDM_OK && run->submitted + 1 < run->steps_total) status = tdm__run_prefetch(run);
    if (status != TDM_OK) return leave_step(run);
    run->submitted++;
    int64_t past = run->step_in_epoch + (run->submitted - run->step);
    tdm__schedules_step(&run->schedules, past % run->steps_per_epoch == 0);
    return TDM_OK;
}

/* While others are in flight, a step takes the time from one result to the next. */
static tdm_status collect_step(tdm_run *run, tdm_step_result *result, double *lr) {
    const tdm_ahead *ahead = &run->ahead[run->step % TDM_MODE_DEPTH];
    int64_t start = ahead->start_ns > run->collected_ns ? ahead->start_ns : run->collected_ns;
    tdm_status status = tdm__mode_collect(run->mode, result);
    if (status != TDM_OK) run->failed_step = run->step + 1;
    if (status != TDM_OK) return status;
    run->collected_ns = tdm__now_ns();
    result->times.ms[TDM_PHASE_DATA] = ahead->data_ms;
    result->times.ms[TDM_PHASE_STEP] = (double)(run->collected_ns - start) * 1e-6;
    *lr = ahead->lr;
    run->seconds += result->times.ms[TDM_PHASE_STEP] * 1e-3;
    return TDM_OK;
}

/* Collects and drops the steps in flight behind one whose result must not be used. */
static void give_up(tdm_run *run) {
    tdm_error error;
    tdm__error_save(&error);
    for (int64_t left = run->submitted - run->step - 1; left > 0; left--) {
        tdm_step_result unused;
        if (tdm__mode_collect(run->mode, &unused) != TDM_OK) break;
    }
    run->submitted = run->step;
    (void)tdm__error_restore(&error, NULL);
}

/* Gives the next step's result. Steps up to `last` may be submitted meanwhile. */
static tdm_status run_step(tdm_run *run, int64_t last, tdm_step_result *result, double *lr) {
    while (run->submitted < last && may_submit(run)) TDM_TRY(submit_step(run));
    TDM_TRY(collect_step(run, result, lr));
    tdm_status status = tdm__run_check_loss(run, result, run->ahead[run->step % TDM_MODE_DEPTH].batch);
    if (status == TDM_OK) {
        advance(run, result);
        return TDM_OK;
    }
    run->failed_step = run->step + 1;
    give_up(run);
    return status;
}

/* Ranks agree on stopping within the step. A single process also counts a request that came after the step began. Each
 * request is answered once. */
static bool is_stopped(tdm_run *run, const tdm_step_result *result) {
    if (!result->stop && (run->comm != NULL || atomic_load(&run->stop) == 0)) return false;
    atomic_store(&run->stop, 0);
    return true;
}

tdm_status tdm_run_step(tdm_run *run, int64_t count) {
    if (run == NULL || count < 0) TDM_FAIL(TDM_E_USAGE, "tdm_run_step: run is NULL or count is negative");
    TDM_ENTER(&run->guard, "tdm_run_step", TDM_GUARD_MOVES);
    TDM_TRY(tdm__run_idle(run, "tdm_run_step"));
    TDM_TRY(tdm__run_trains(run, "tdm_run_step"));
    TDM_TRY(tdm__run_check_rows(run));
    int64_t left = run->steps_total - run->step, last = run->step + (count < left ? count : left);
    bool stopped = false;
    while (run->step < last) {
        tdm_step_result result;
        double lr = 0;
        TDM_TRY(run_step(run, stopped ? run->submitted : last, &result, &lr));
        send_event(run, TDM_EVENT_STEP, &result, lr, NULL);
        stopped = is_stopped(run, &result) || stopped;
        if (stopped && !tdm__run_has_steps_in_flight(run))
            TDM_FAIL(TDM_E_STOPPED, "stopped on request after step %lld; tdm_run_step saves no checkpoint",
                     (long long)run->step);
    }
    if (count > left)
        TDM_FAIL(TDM_E_USAGE, "tdm_run_step: all %lld steps of the job are done", (long long)run->steps_total);
    return TDM_OK;
}

/* ---- what falls due ---- */

/* Clocks differ between ranks, so rank 0's decides for all. */
static tdm_status time_is_up(tdm_run *run, double seconds, int64_t *last_ns, bool *due) {
    int64_t flag = (double)(tdm__now_ns() - *last_ns) * 1e-9 >= seconds;
    if (run->comm != NULL) TDM_TRY(tdm_comm_broadcast(run->comm, (tdm_span){&flag, 1, TDM_DTYPE_I64}, 0));
    *due = flag != 0;
    if (*due) *last_ns = tdm__now_ns();
    return TDM_OK;
}

static tdm_status falls_due(tdm_run *run, const tdm_interval *every, int64_t *last_ns, bool *due) {
    *due = is_due_after(run, every, run->step);
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
    send_event(run, TDM_EVENT_EVAL, NULL, tdm__run_lr(run, -1), NULL);
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
    if (status == TDM_OK) send_event(run, TDM_EVENT_CHECKPOINT, NULL, tdm__run_lr(run, -1), path);
    tdm__zone_deinit(&zone);
    return status;
}

static tdm_status log_step(tdm_run *run, const tdm_step_result *result, double lr, bool last) {
    bool due = false;
    tdm_interval every = run->job->log.every;
    if (every.kind == TDM_INTERVAL_SECONDS) { /* each rank uses its own clock: only rank 0 writes */
        due = (double)(tdm__now_ns() - run->logged_ns) * 1e-9 >= every.amount;
        if (due) run->logged_ns = tdm__now_ns();
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
    send_event(run, TDM_EVENT_END, NULL, tdm__run_lr(run, -1), NULL);
    return TDM_OK;
}

/* A run that is asked to stop skips the evaluation that is due: it might take longer than the requester waits. The
 * checkpoint says so, and the run that continues makes it first. The log stays what it would be without a stop. */
static tdm_status stop_here(tdm_run *run) {
    run->eval_due = run->eval != NULL && is_due_after(run, &run->job->eval.every, run->step);
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
    const bool due = every->kind == TDM_INTERVAL_SECONDS || is_due_after(run, every, run->step);
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
        TDM_TRY(run_step(run, stops ? run->submitted : run->steps_total, &result, &lr));
        send_event(run, TDM_EVENT_STEP, &result, lr, NULL);
        stops = is_stopped(run, &result) || stops;
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
    TDM_TRY(tdm__run_idle(run, "tdm_run_train"));
    TDM_TRY(tdm__run_trains(run, "tdm_run_train"));
    TDM_TRY(tdm__run_check_rows(run));
    send_event(run, TDM_EVENT_START, NULL, tdm__run_lr(run, -1), NULL);
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
