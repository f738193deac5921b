/* A step in pieces, for programs that own the loop: the loss, the gradients, the update or none. */
#include <math.h>
#include <string.h>

#include "runtime/base/call/sized.h"
#include "runtime/base/round.h"
#include "runtime/base/status.h"
#include "runtime/base/system/clock.h"
#include "runtime/train/steps/steps.h"

static tdm_status check_pass(const char *what, const tdm_pass *out) {
    return out != NULL ? tdm__sized_check(what, out, TDM_SIZED_ANY, sizeof(*out)) : TDM_OK;
}

/* May the next step begin? */
static tdm_status check_begin(tdm_run *run, const char *function) {
    TDM_TRY(tdm__run_rests(run, function));
    TDM_TRY(tdm__run_trains(run, function));
    TDM_TRY(tdm__run_check_rows(run));
    if (run->step == run->steps_total)
        TDM_FAIL(TDM_E_USAGE, "%s: all %lld steps of the job are done", function, (long long)run->steps_total);
    return TDM_OK;
}

static const tdm_batch *pending_batch(const tdm_run *run) {
    return run->ahead[run->step % TDM_MODE_DEPTH].batch;
}

static void describe(const tdm_run *run, const tdm_step_result *result, tdm_pass *out) {
    const bool has_hits = run->loss->target == TDM_TARGET_CLASS;
    const tdm_pass pass = {.step = run->step + 1,
                           .samples = result->rows,
                           .loss = result->loss,
                           .accuracy = has_hits ? (double)result->correct / (double)result->rows : NAN,
                           .micro_batch = run->mode->micro_batch + 1,
                           .micro_batches = tdm__mode_micro_batches(run->mode, pending_batch(run))};
    tdm__sized_give(out, &pass);
}

/* Reads the next batch, and makes of its step what `extent` says. */
static tdm_status begin_step(tdm_run *run, tdm_extent extent) {
    tdm_update update = tdm__step_update(run);
    update.extent = extent;
    TDM_TRY(tdm__step_submit(run, &update));
    TDM_TRY(tdm__step_collect(run, &run->pending, &update.lr));
    run->pending.grad_norm = NAN;
    run->waits = extent == TDM_TO_LOSS ? TDM_BACKWARD_WAITS : TDM_UPDATE_WAITS;
    return TDM_OK;
}

/* The step took so much longer. */
static void add_time(tdm_run *run, int64_t start_ns) {
    const double ms = (double)(tdm__steady_ns(run->host) - start_ns) * 1e-6;
    run->pending.times.ms[TDM_PHASE_STEP] += ms;
    run->seconds += ms * 1e-3;
}

/* The forward of the next micro-batch, or the backward of the one before. */
static tdm_status go_on(tdm_run *run, bool is_forward) {
    tdm_update update = tdm__step_update(run);
    update.extent = is_forward ? TDM_TO_LOSS : TDM_TO_GRADIENTS;
    const int64_t start = tdm__steady_ns(run->host);
    const tdm_status status = is_forward ? tdm__mode_forward(run->mode, pending_batch(run), &update, &run->pending)
                                         : tdm__mode_backward(run->mode, pending_batch(run), &update, &run->pending);
    if (status != TDM_OK) return tdm__step_fail(run);
    add_time(run, start);
    run->waits = is_forward ? TDM_BACKWARD_WAITS : run->mode->is_last ? TDM_UPDATE_WAITS : TDM_FORWARD_WAITS;
    return TDM_OK;
}

/* Of several parts one after another is in the memory of activations. */
static tdm_status check_stops_at_loss(const tdm_run *run) {
    if (run->mode->in_turn != NULL)
        TDM_FAIL(TDM_E_UNSUPPORTED, "tdm_run_forward: %s; tdm_run_backward makes both", run->mode->in_turn);
    return TDM_OK;
}

tdm_status tdm_run_forward(tdm_run *run, tdm_pass *out) {
    if (run == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_run_forward: run is NULL");
    TDM_ENTER(&run->guard, "tdm_run_forward", TDM_GUARD_MOVES);
    TDM_TRY(check_pass("tdm_run_forward: tdm_pass", out));
    if (run->waits != TDM_FORWARD_WAITS) {
        TDM_TRY(check_begin(run, "tdm_run_forward"));
        TDM_TRY(check_stops_at_loss(run));
        TDM_TRY(begin_step(run, TDM_TO_LOSS));
    } else {
        TDM_TRY(tdm__run_idle(run, "tdm_run_forward"));
        TDM_TRY(go_on(run, true));
    }
    if (out != NULL) describe(run, &run->pending, out);
    return TDM_OK;
}

tdm_status tdm_run_backward(tdm_run *run, tdm_pass *out) {
    if (run == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_run_backward: run is NULL");
    TDM_ENTER(&run->guard, "tdm_run_backward", TDM_GUARD_MOVES);
    TDM_TRY(check_pass("tdm_run_backward: tdm_pass", out));
    if (run->waits != TDM_BACKWARD_WAITS) {
        TDM_TRY(check_begin(run, "tdm_run_backward"));
        TDM_TRY(begin_step(run, TDM_TO_GRADIENTS));
    } else {
        TDM_TRY(tdm__run_idle(run, "tdm_run_backward"));
        TDM_TRY(go_on(run, false));
    }
    if (out != NULL) describe(run, &run->pending, out);
    return TDM_OK;
}

/* ---- outputs ---- */

/* Of the micro-batch that went forward last: the rows of a replica, from its `first` on. */
static int64_t micro_rows(const tdm_run *run, int replica, int64_t *first) {
    *first = 0;
    return tdm__chunk(pending_batch(run)->shard[replica].rows, (int)run->job->train.accumulate,
                      (int)run->mode->micro_batch, first);
}

/* Outputs, and behind them targets, of all replicas of this process, into run->outputs. */
static tdm_status gather_outputs(tdm_run *run, tdm_outputs *out) {
    const tdm_batch *batch = pending_batch(run);
    const size_t y_bytes = (size_t)out->width * sizeof(float), target_bytes = tdm__dataset_target_bytes(run->train);
    const size_t rows = (size_t)out->rows, target_at = tdm__round_up(rows * y_bytes, TDM_ALIGN);
    TDM_TRY(tdm__grow(run->host, &run->outputs, &run->outputs_room, target_at + rows * target_bytes, 1, "outputs"));
    char *y = run->outputs, *target = run->outputs + target_at;
    out->y = (float *)(void *)y;
    out->target = target;
    for (int i = 0; i < batch->shard_count; i++) {
        int64_t first;
        const size_t count = (size_t)micro_rows(run, i, &first);
        const float *from;
        if (count == 0) continue;
        TDM_TRY(tdm__replica_fetch_output(run->mode->replica[i], (int64_t)count, &from));
        memcpy(y, from, count * y_bytes);
        memcpy(target, (const char *)batch->shard[i].target + (size_t)first * target_bytes, count * target_bytes);
        y += count * y_bytes;
        target += count * target_bytes;
    }
    return TDM_OK;
}

tdm_status tdm_run_outputs(tdm_run *run, tdm_outputs *out) {
    tdm_outputs full = TDM_OUTPUTS_INIT;
    if (run == NULL || out == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_run_outputs: a pointer is NULL");
    TDM_TRY(tdm__sized_check("tdm_run_outputs: tdm_outputs", out, TDM_SIZED_ANY, sizeof(*out)));
    TDM_ENTER(&run->guard, "tdm_run_outputs", TDM_GUARD_ASKS);
    TDM_TRY(tdm__run_idle(run, "tdm_run_outputs"));
    if (run->waits != TDM_BACKWARD_WAITS)
        TDM_FAIL(TDM_E_USAGE, "tdm_run_outputs: outputs are there between tdm_run_forward and what follows it");
    const tdm_batch *batch = pending_batch(run);
    full.width = run->plan->output_width;
    for (int i = 0; i < batch->shard_count; i++) full.rows += micro_rows(run, i, &(int64_t){0});
    if (full.rows > 0) TDM_TRY(gather_outputs(run, &full));
    tdm__sized_give(out, &full);
    return TDM_OK;
}

/* ---- the end of the step ---- */

static tdm_status check_waiting(const tdm_run *run, const char *function) {
    TDM_TRY(tdm__run_idle(run, function));
    if (run->waits == TDM_FORWARD_WAITS)
        TDM_FAIL(TDM_E_USAGE,
                 "%s: gradients are there of %lld of %lld micro-batches; call tdm_run_forward and tdm_run_backward for "
                 "the next, or tdm_run_skip_update",
                 function, (long long)run->mode->micro_batch + 1,
                 (long long)tdm__mode_micro_batches(run->mode, pending_batch(run)));
    if (run->waits != TDM_UPDATE_WAITS)
        TDM_FAIL(TDM_E_USAGE, "%s: no gradients wait for an update; call tdm_run_backward first", function);
    return TDM_OK;
}

static tdm_status end_step(tdm_run *run, double lr) {
    const tdm_step_result result = run->pending;
    run->waits = TDM_NOTHING_WAITS;
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
    TDM_TRY(tdm__run_check_loss(run, &run->pending, pending_batch(run)));
    const tdm_update update = tdm__step_update(run);
    const int64_t start = tdm__steady_ns(run->host);
    if (tdm__mode_update(run->mode, &update, &run->pending) != TDM_OK) return tdm__step_fail(run);
    add_time(run, start);
    return end_step(run, update.lr);
}

tdm_status tdm_run_skip_update(tdm_run *run) {
    if (run == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_run_skip_update: run is NULL");
    TDM_ENTER(&run->guard, "tdm_run_skip_update", TDM_GUARD_MOVES);
    TDM_TRY(tdm__run_idle(run, "tdm_run_skip_update"));
    if (run->waits == TDM_NOTHING_WAITS) TDM_TRY(check_waiting(run, "tdm_run_skip_update"));
    run->skipped++;
    return end_step(run, tdm__run_lr(run, -1));
}
