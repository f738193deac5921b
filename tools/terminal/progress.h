/* progress.h - progress of a run: a bar on a terminal, otherwise a plain line per interval. */
#ifndef PROGRESS_H
#define PROGRESS_H

#include "tools/tool.h"

typedef struct progress {
    bool bar; /* false: plain lines */
    bool silent;
    tdm_interval every; /* of plain lines */
    int64_t epochs;     /* of the job; TDM_INT_NULL if it counts steps */
    int64_t steps_per_epoch, first_step;
    double started, shown;         /* seconds; shown: the last redraw or line */
    int64_t span;                  /* what the bar shows: the number of the epoch, or 0 for the whole run */
    int64_t span_base;             /* steps done when this process began the span */
    double span_started;           /* when it began the span */
    double step_rate, sample_rate; /* smoothed */
    double loss_sum, loss_weight;  /* of the running mean: it is loss_sum / loss_weight */
    double last_step_at;
    int64_t samples;
} progress;

void progress_start(progress *p, const tdm_job *job, const tdm_run_state *state, bool quiet);
void progress_event(progress *p, const tdm_event *event);
void progress_end(progress *p);
double progress_now(void); /* seconds, monotonic */

#endif
