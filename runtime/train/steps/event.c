/* What a run tells the program while it trains. */
#include <math.h>
#include <string.h>

#include "runtime/train/steps/steps.h"

/* `cleanup` is run for exceptions by functions of the C++ runtime. Only a program that has that throws, so the library
 * does without: where they are not found, the call that an exception leaves does not end. */
__asm__(".weak _Unwind_Resume\n.weak __gcc_personality_v0");

/* Runs when an exception of C++ passes through `tell`, too. It comes here between steps, so nothing is half done. */
static void end_callback(tdm_guard *const *guard) {
    if ((*guard)->reports) atomic_store(&(*guard)->is_left, true);
}

static void tell(tdm_run *run, const tdm_event *event) {
    __attribute__((cleanup(end_callback))) tdm_guard *const guard = &run->guard;
    guard->reports = true;
    if (run->options.on_event(event, run->options.user) != 0) tdm_run_request_stop(run);
    guard->reports = false;
}

void tdm__send_event(tdm_run *run, tdm_event_kind kind, const tdm_step_result *result, double lr, const char *path) {
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
                       .top5 = NAN,
                       .metric = NAN};
    if (kind == TDM_EVENT_EVAL) {
        event.loss = run->scores.loss;
        event.accuracy = run->scores.accuracy;
        event.top5 = run->scores.top5;
        event.metric = run->scores.metric;
    }
    if (kind == TDM_EVENT_STEP) {
        event.accuracy = run->loss->target == TDM_TARGET_CLASS ? (double)result->correct / (double)result->rows : NAN;
        event.samples_per_second = (double)result->rows * 1000.0 / result->times.ms[TDM_PHASE_STEP];
    }
    memcpy(&event.ms, result != NULL ? result->times.ms : none.ms, sizeof(event.ms));
    tell(run, &event);
}
