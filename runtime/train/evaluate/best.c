/* What follows from an evaluation: the best checkpoint stays, and a run that no longer improves ends. Both compare one
 * number with the best so far. A number that is not finite is no improvement. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/status.h"
#include "runtime/train/run.h"
#include "runtime/train/evaluate/scores.h"

static const char *const names[] = {
    [TDM_METRIC_NONE] = "", [TDM_METRIC_ACCURACY] = "accuracy", [TDM_METRIC_TOP5] = "top5", [TDM_METRIC_LOSS] = "loss"};

static double number_of(const tdm_scores *scores, int metric) {
    return metric == TDM_METRIC_LOSS ? scores->loss : metric == TDM_METRIC_TOP5 ? scores->top5 : scores->accuracy;
}

static bool improves(const tdm_best *best, double score, int metric, double min_delta) {
    if (!isfinite(score)) return false;
    if (best->step == 0) return true;
    return metric == TDM_METRIC_LOSS ? score < best->score - min_delta : score > best->score + min_delta;
}

static void update(const tdm_run *run, tdm_best *best, int metric, double min_delta) {
    double score = number_of(&run->scores, metric);
    if (improves(best, score, metric, min_delta))
        *best = (tdm_best){.score = score, .step = run->step};
    else
        best->waited++;
}

static bool has_ended(const tdm_run *run) {
    const tdm_train_section *train = &run->job->train;
    return train->stop_after != TDM_INT_NULL && run->early.waited >= train->stop_after;
}

static void find_end(tdm_run *run) {
    run->end_reason = NULL;
    if (!has_ended(run)) return;
    snprintf(run->end_text, sizeof(run->end_text),
             "train.stop_early: %s has not improved in %lld evaluations; the best is %.6g, of step %lld",
             names[run->job->train.stop_metric], (long long)run->early.waited, run->early.score,
             (long long)run->early.step);
    run->end_reason = run->end_text;
}

/* `due`: the evaluation is one of eval.every. Only these may end the run or change its learning rate: a run that is
 * resumed has further evaluations, at the end of each of its parts, and must give the numbers of an uninterrupted run. */
void tdm__run_update_best(tdm_run *run, bool due) {
    const tdm_train_section *train = &run->job->train;
    const int metric = run->job->checkpoint.keep_best;
    run->best_before = run->best;
    if (metric != TDM_METRIC_NONE) update(run, &run->best, metric, 0);
    if (!due) return;
    if (train->stop_after != TDM_INT_NULL) update(run, &run->early, train->stop_metric, train->stop_min_delta);
    if (run->job->schedule.type == TDM_SCHEDULE_PLATEAU)
        tdm__schedules_measured(&run->schedules, number_of(&run->scores, run->job->schedule.metric));
    find_end(run);
}

bool tdm__run_is_best(const tdm_run *run) {
    return run->best.step > 0 && run->best.step == run->step;
}

/* ---- checkpoints ---- */

static void save_plateau(const tdm_run *run, tdm_ckpt_state *state) {
    const tdm_plateau *plateau = &run->schedules.plateau;
    state->plateau_bad = plateau->bad;
    state->plateau_cooldown = plateau->cooldown;
    state->plateau_reductions = plateau->reductions;
    if (!isfinite(plateau->best)) return;
    strncpy(state->plateau_metric, names[run->job->schedule.metric], sizeof(state->plateau_metric) - 1);
    state->plateau_best = plateau->best;
}

void tdm__run_best_save(const tdm_run *run, tdm_ckpt_state *state) {
    const tdm_job *job = run->job;
    if (run->best.step > 0) {
        strncpy(state->best_metric, names[job->checkpoint.keep_best], sizeof(state->best_metric) - 1);
        state->best_step = run->best.step;
        state->best_score = run->best.score;
    }
    if (job->schedule.type == TDM_SCHEDULE_PLATEAU) save_plateau(run, state);
    if (run->early.step == 0 && run->early.waited == 0) return;
    strncpy(state->stop_metric, names[job->train.stop_metric], sizeof(state->stop_metric) - 1);
    state->stop_step = run->early.step;
    state->stop_score = run->early.score;
    state->stop_waited = run->early.waited;
}

void tdm__run_best_restore(tdm_run *run, const tdm_ckpt_state *state) {
    const tdm_job *job = run->job;
    run->best = run->early = (tdm_best){.step = 0};
    if (job->checkpoint.keep_best != TDM_METRIC_NONE &&
        strcmp(state->best_metric, names[job->checkpoint.keep_best]) == 0)
        run->best = (tdm_best){.score = state->best_score, .step = state->best_step};
    if (job->train.stop_after != TDM_INT_NULL && strcmp(state->stop_metric, names[job->train.stop_metric]) == 0)
        run->early = (tdm_best){.score = state->stop_score, .step = state->stop_step, .waited = state->stop_waited};
    run->best_before = run->best;
    find_end(run);
}

/* If the job follows another metric than the checkpoint did, there is no best value yet. */
tdm_plateau tdm__run_plateau(const tdm_run *run, const tdm_ckpt_state *state) {
    const tdm_schedule_section *section = &run->job->schedule;
    tdm_plateau plateau;
    tdm__plateau_init(&plateau, section);
    plateau.bad = state->plateau_bad;
    plateau.cooldown = state->plateau_cooldown;
    plateau.reductions = state->plateau_reductions;
    if (strcmp(state->plateau_metric, names[section->metric]) == 0) plateau.best = state->plateau_best;
    return plateau;
}

/* ---- the job ---- */

static tdm_status check_metric(const tdm_run *run, const char *key, int metric) {
    if (run->job->data.eval.format == TDM_DATA_NONE && run->options.eval == NULL)
        TDM_FAIL(TDM_E_CONFIG, "%s judges evaluations, and the job has no data.eval; add it, or leave %s out", key,
                 key);
    if (metric == TDM_METRIC_LOSS) return TDM_OK;
    int64_t classes = tdm__shape_count(&run->graph->values[run->graph->output].shape);
    if (metric == TDM_METRIC_TOP5 && classes <= TDM_TOP)
        TDM_FAIL(TDM_E_CONFIG, "%s: top5 needs more than %d classes, and the model gives %lld; write accuracy", key,
                 TDM_TOP, (long long)classes);
    return TDM_OK;
}

tdm_status tdm__run_check_metrics(const tdm_run *run) {
    const tdm_job *job = run->job;
    if (run->options.predicts) return TDM_OK;
    if (job->checkpoint.keep_best != TDM_METRIC_NONE)
        TDM_TRY(check_metric(run, "checkpoint.keep_best", job->checkpoint.keep_best));
    if (job->schedule.type == TDM_SCHEDULE_PLATEAU)
        TDM_TRY(check_metric(run, "schedule: plateau", job->schedule.metric));
    if (job->train.stop_after == TDM_INT_NULL) return TDM_OK;
    return check_metric(run, "train.stop_early.metric", job->train.stop_metric);
}
