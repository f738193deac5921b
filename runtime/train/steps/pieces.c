/* A step in pieces, for programs that own the loop: the gradients, then the update or none. */
#include <math.h>

#include "runtime/base/call/sized.h"
#include "runtime/base/status.h"
#include "runtime/base/system/clock.h"
#include "runtime/train/steps/steps.h"

static tdm_status check_backward(tdm_run *run, const tdm_pass *out) {
    static const char function[] = "tdm_run_backward";
    if (out != NULL) TDM_TRY(tdm__sized_check("tdm_run_backward: tdm_pass", out, TDM_SIZED_ANY, sizeof(*out)));
    TDM_TRY(tdm__run_rests(run, function));
    TDM_TRY(tdm__run_trains(run, function));
    TDM_TRY(tdm__run_check_rows(run));
    if (run->step == run->steps_total)
        TDM_FAIL(TDM_E_USAGE, "%s: all %lld steps of the job are done", function, (long long)run->steps_total);
    return TDM_OK;
}

static void describe(const tdm_run *run, const tdm_step_result *result, tdm_pass *out) {
    const bool has_hits = run->loss->target == TDM_TARGET_CLASS;
    const tdm_pass pass = {.step = run->step + 1,
                           .samples = result->rows,
                           .loss = result->loss,
                           .accuracy = has_hits ? (double)result->correct / (double)result->rows : NAN};
    tdm__sized_give(out, &pass);
}

tdm_status tdm_run_backward(tdm_run *run, tdm_pass *out) {
    if (run == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_run_backward: run is NULL");
    TDM_ENTER(&run->guard, "tdm_run_backward", TDM_GUARD_MOVES);
    TDM_TRY(check_backward(run, out));
    tdm_update update = tdm__step_update(run);
    update.is_later = true;
    TDM_TRY(tdm__step_submit(run, &update));
    TDM_TRY(tdm__step_collect(run, &run->pending, &update.lr));
    run->pending.grad_norm = NAN;
    run->update_waits = true;
    if (out != NULL) describe(run, &run->pending, out);
    return TDM_OK;
}

static tdm_status check_waiting(const tdm_run *run, const char *function) {
    TDM_TRY(tdm__run_idle(run, function));
    if (!run->update_waits)
        TDM_FAIL(TDM_E_USAGE, "%s: no gradients wait for an update; call tdm_run_backward first", function);
    return TDM_OK;
}

static tdm_status end_step(tdm_run *run, double lr) {
    const tdm_step_result result = run->pending;
    run->update_waits = false;
    run->submitted++;
    tdm__step_schedule(run);
    tdm__step_advance(run, &result);
    tdm__send_event(run, TDM_EVENT_STEP, &result, lr, NULL);
    if (tdm__step_stops(run, &result))
        TDM_FAIL(TDM_E_STOPPED, "stopped on request after step %lld; no checkpoint is saved", (long long)run->step);
    return TDM_OK;
}

tdm_status tdm_run_update(tdm_run *run) {
    if (run == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_run_update: run is NULL");
    TDM_ENTER(&run->guard, "tdm_run_update", TDM_GUARD_MOVES);
    TDM_TRY(check_waiting(run, "tdm_run_update"));
    TDM_TRY(tdm__run_check_loss(run, &run->pending, run->ahead[run->step % TDM_MODE_DEPTH].batch));
    const tdm_update update = tdm__step_update(run);
    const int64_t start = tdm__steady_ns(run->host);
    if (tdm__mode_update(run->mode, &update, &run->pending) != TDM_OK) return tdm__step_fail(run);
    const double ms = (double)(tdm__steady_ns(run->host) - start) * 1e-6;
    run->pending.times.ms[TDM_PHASE_STEP] += ms;
    run->seconds += ms * 1e-3;
    return end_step(run, update.lr);
}

tdm_status tdm_run_skip_update(tdm_run *run) {
    if (run == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_run_skip_update: run is NULL");
    TDM_ENTER(&run->guard, "tdm_run_skip_update", TDM_GUARD_MOVES);
    TDM_TRY(check_waiting(run, "tdm_run_skip_update"));
    run->skipped++;
    return end_step(run, tdm__run_lr(run, -1));
}
