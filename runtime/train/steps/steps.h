/* Steps of training: made whole and several in flight (step.c), or in pieces that a program calls (pieces.c). */
#ifndef TDM_TRAIN_STEPS_H
#define TDM_TRAIN_STEPS_H

#include "runtime/train/run.h"

/* `result` NULL: the event is of no step. A callback that wants the run to stop is heard. */
void tdm__send_event(tdm_run *run, tdm_event_kind kind, const tdm_step_result *result, double lr, const char *path);

/* Gives the next step's result, and counts the step. Steps up to `last` may be submitted meanwhile. */
tdm_status tdm__step_run(tdm_run *run, int64_t last, tdm_step_result *result, double *lr);
/* Ranks agree on stopping within the step. A single process also counts a request that came after the step began. Each
 * request is answered once. */
bool tdm__step_stops(tdm_run *run, const tdm_step_result *result);
/* Is something due by steps or epochs after step `step`? Intervals in seconds are not decided here. */
bool tdm__is_due_after(const tdm_run *run, const tdm_interval *every, int64_t step);

/* ---- of which both kinds consist ---- */

/* The settings of the next step's update. */
tdm_update tdm__step_update(tdm_run *run);
/* Reads the next batch and submits its step. After a failure other ranks are told. */
tdm_status tdm__step_submit(tdm_run *run, const tdm_update *update);
/* Waits for the oldest step. While others are in flight, a step takes the time from one result to the next. */
tdm_status tdm__step_collect(tdm_run *run, tdm_step_result *result, double *lr);
/* The schedules go on to the step behind those submitted. */
void tdm__step_schedule(tdm_run *run);
/* Counts the step as made. */
void tdm__step_advance(tdm_run *run, const tdm_step_result *result);
/* The step that comes next has failed. Says so to other ranks, and returns the failure. */
tdm_status tdm__step_fail(tdm_run *run);

#endif
