/* A step: its batch, its submission, its result; and what may be in flight meanwhile. */
#include "runtime/base/status.h"
#include "runtime/base/system/clock.h"
#include "runtime/train/steps/steps.h"

/* Steps left out of the summary's speed: memory is used for the first time and kernels are prepared. */
enum { WARMUP_STEPS = 5 };

/* ---- one step ---- */

static void count_up(tdm_tally *tally, const tdm_step_result *result) {
    for (int i = 0; i < TDM_PHASE_COUNT; i++) tally->ms[i] += result->times.ms[i];
    tally->steps++;
    tally->samples += result->rows;
    tally->bytes_moved += result->bytes_moved;
}

void tdm__step_advance(tdm_run *run, const tdm_step_result *result) {
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

bool tdm__is_due_after(const tdm_run *run, const tdm_interval *every, int64_t step) {
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
           !run->verify_waits && !tdm__is_due_after(run, &run->job->eval.every, run->submitted) &&
           !tdm__is_due_after(run, &run->job->parallel.verify, run->submitted) &&
           !tdm__is_due_after(run, &run->job->checkpoint.every, run->submitted) &&
           (run->comm != NULL || tdm__loader_peek(run->loader) != NULL);
}

tdm_status tdm__step_fail(tdm_run *run) {
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

tdm_update tdm__step_update(tdm_run *run) {
    const int64_t t = run->submitted + 1, updates = t - run->skipped;
    tdm_update update = {.optim = run->optim,
                         .optim_run = run->optim_run,
                         .optimizer = &run->job->optimizer,
                         .states = run->optim_states,
                         .own = run->options.optimizer,
                         .lr = tdm__run_lr(run, -1),
                         .momentum = run->schedules.own.momentum,
                         .t = t,
                         .updates = updates,
                         .clip_norm = run->job->train.clip_grad_norm,
                         .clip_value = run->job->train.clip_grad_value,
                         .average_weight = tdm__average_weight(&run->job->train, updates),
                         .stop = atomic_load(&run->stop) != 0};
    for (int i = 0; i < run->schedules.count; i++) update.group_lr[i] = tdm__run_lr(run, i);
    return update;
}

tdm_status tdm__step_submit(tdm_run *run, const tdm_update *update) {
    tdm_ahead *ahead = &run->ahead[run->submitted % TDM_MODE_DEPTH];
    ahead->start_ns = tdm__steady_ns(run->host);
    ahead->lr = update->lr;
    tdm_status status = next_batch(run, &ahead->batch);
    if (status != TDM_OK) return run->comm != NULL ? tdm__step_fail(run) : status;
    ahead->data_ms = tdm__loader_waited_ms(run->loader);
    status = tdm__mode_submit(run->mode, ahead->batch, update);
    if (status == TDM_OK && run->submitted + 1 < run->steps_total) status = tdm__run_prefetch(run);
    return status == TDM_OK ? TDM_OK : tdm__step_fail(run);
}

void tdm__step_schedule(tdm_run *run) {
    int64_t past = run->step_in_epoch + (run->submitted - run->step);
    tdm__schedules_step(&run->schedules, past % run->steps_per_epoch == 0);
}

static tdm_status submit_step(tdm_run *run) {
    const tdm_update update = tdm__step_update(run);
    TDM_TRY(tdm__step_submit(run, &update));
    run->submitted++;
    tdm__step_schedule(run);
    return TDM_OK;
}

tdm_status tdm__step_collect(tdm_run *run, tdm_step_result *result, double *lr) {
    const tdm_ahead *ahead = &run->ahead[run->step % TDM_MODE_DEPTH];
    int64_t start = ahead->start_ns > run->collected_ns ? ahead->start_ns : run->collected_ns;
    tdm_status status = tdm__mode_collect(run->mode, result);
    if (status != TDM_OK) run->failed_step = run->step + 1;
    if (status != TDM_OK) return status;
    run->collected_ns = tdm__steady_ns(run->host);
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

tdm_status tdm__step_run(tdm_run *run, int64_t last, tdm_step_result *result, double *lr) {
    while (run->submitted < last && may_submit(run)) TDM_TRY(submit_step(run));
    TDM_TRY(tdm__step_collect(run, result, lr));
    tdm_status status = tdm__run_check_loss(run, result, run->ahead[run->step % TDM_MODE_DEPTH].batch);
    if (status == TDM_OK) {
        tdm__step_advance(run, result);
        return TDM_OK;
    }
    run->failed_step = run->step + 1;
    give_up(run);
    return status;
}

bool tdm__step_stops(tdm_run *run, const tdm_step_result *result) {
    if (!result->stop && (run->comm != NULL || atomic_load(&run->stop) == 0)) return false;
    atomic_store(&run->stop, 0);
    return true;
}

tdm_status tdm_run_step(tdm_run *run, int64_t count) {
    if (run == NULL || count < 0) TDM_FAIL(TDM_E_USAGE, "tdm_run_step: run is NULL or count is negative");
    TDM_ENTER(&run->guard, "tdm_run_step", TDM_GUARD_MOVES);
    TDM_TRY(tdm__run_rests(run, "tdm_run_step"));
    TDM_TRY(tdm__run_trains(run, "tdm_run_step"));
    TDM_TRY(tdm__run_check_rows(run));
    int64_t left = run->steps_total - run->step, last = run->step + (count < left ? count : left);
    bool stopped = false;
    while (run->step < last) {
        tdm_step_result result;
        double lr = 0;
        TDM_TRY(tdm__step_run(run, stopped ? run->submitted : last, &result, &lr));
        tdm__send_event(run, TDM_EVENT_STEP, &result, lr, NULL);
        stopped = tdm__step_stops(run, &result) || stopped;
        if (stopped && !tdm__run_has_steps_in_flight(run))
            TDM_FAIL(TDM_E_STOPPED, "stopped on request after step %lld; tdm_run_step saves no checkpoint",
                     (long long)run->step);
    }
    if (count > left)
        TDM_FAIL(TDM_E_USAGE, "tdm_run_step: all %lld steps of the job are done", (long long)run->steps_total);
    return TDM_OK;
}
