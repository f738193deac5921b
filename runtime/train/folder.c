/* The run directory: the configuration, what happens step by step, how the run ended. Rank 0 alone writes it. A lock on
 * the folder keeps other jobs out. */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/system/clock.h"
#include "runtime/base/system/file.h"
#include "runtime/base/log.h"
#include "runtime/base/status.h"
#include "runtime/base/text/json_write.h"
#include "runtime/data/pictures/bad_samples.h"
#include "runtime/train/evaluate/details.h"
#include "runtime/train/log/tensorboard.h"
#include "runtime/train/log/metrics.h"
#include "runtime/train/run.h"

struct tdm_run_folder {
    tdm_folder dir;
    int lock; /* descriptor */
    tdm_metrics metrics;
    tdm_tensorboard board; /* open with log.tensorboard */
    bool status_failing, summary_failing, evaluation_failing;
    int64_t status_ns;
};

#define TDM_EVALUATION "evaluation.json"
#define TDM_EVALUATION_BEST "evaluation.best.json"

static const int64_t status_every_ns = INT64_C(5000000000);

const tdm_folder *tdm__folder_dir(const tdm_run *run) {
    return run->folder != NULL ? &run->folder->dir : NULL;
}

/* ---- files ---- */

static tdm_status keep_config(tdm_run *run, const char *name, const char *text) {
    return text != NULL ? tdm__file_replace(&tdm__file_system, &run->folder->dir, name, text, strlen(text)) : TDM_OK;
}

/* Training goes on without these files. A storage failure is reported once, until storage works again. */
static tdm_status replace_optional_file(tdm_run *run, const char *name, tdm_text *text, bool *failing) {
    tdm_error record;
    tdm_status status;
    if (text->failed) {
        tdm__text_deinit(text);
        TDM_FAIL(TDM_E_MEMORY, "out of memory while writing %s", name);
    }
    tdm__error_save(&record);
    status = tdm__file_update(&tdm__file_system, &run->folder->dir, name, text->data, text->length);
    tdm__text_deinit(text);
    if (status != TDM_OK && status != TDM_E_IO) return status;
    if (status != TDM_OK && !*failing) TDM_WARN(run->host, "run", "%s; training continues", tdm_error_message());
    *failing = status != TDM_OK;
    (void)tdm__error_restore(&record, NULL);
    return TDM_OK;
}

static bool is_ours(const char *base, bool numbered) {
    static const char *const ours[] = {
        "config.input.yaml", "config.resolved.yaml", "status.json", "summary.json", "weights.json",
        "env.json",          "report.html",          TDM_METRICS,   TDM_EVALUATION, TDM_EVALUATION_BEST};
    for (size_t i = 0; !numbered && i < sizeof(ours) / sizeof(ours[0]); i++) {
        if (strcmp(base, ours[i]) == 0) return true;
    }
    return false;
}

static tdm_status remove_leftovers(tdm_run *run) {
    const tdm_folder *dir = &run->folder->dir;
    TDM_TRY(tdm__leftovers_remove(run->host, &tdm__file_system, dir, "run", is_ours));
    return tdm__file_is_there(dir, TDM_CHECKPOINTS) ? tdm__ckpt_remove_leftovers(run->host, dir, TDM_CHECKPOINTS)
                                                    : TDM_OK;
}

tdm_status tdm__run_folder_open(tdm_run *run) {
    const char *dir = run->job->run.dir;
    if (dir == NULL || run->rank != 0) return TDM_OK;
    TDM_TRY(tdm__zone_new(&run->zone, &run->folder, 1, sizeof(*run->folder)));
    run->folder->dir.fd = run->folder->metrics.fd = run->folder->lock = -1;
    run->folder->board.file.fd = run->folder->board.folder.fd = -1;
    TDM_TRY(tdm__folder_make(run->host, &tdm__file_system, dir));
    TDM_TRY(tdm__folder_open(&run->folder->dir, &run->zone, NULL, dir, TDM_E_IO));
    return tdm__folder_lock(&run->folder->lock, &run->folder->dir);
}

tdm_status tdm__run_folder_begin(tdm_run *run) {
    if (run->folder == NULL) return TDM_OK;
    const tdm_folder *dir = &run->folder->dir;
    TDM_TRY(remove_leftovers(run));
    TDM_TRY(tdm__ckpt_set_aside(run->host, dir, TDM_CHECKPOINTS, run->kept_step));
    TDM_TRY(tdm__ckpt_name_best(run->host, dir, TDM_CHECKPOINTS, run->best.step));
    TDM_TRY(tdm__metrics_open(&run->folder->metrics, run->host, &tdm__file_system, dir, TDM_METRICS));
    TDM_TRY(tdm__metrics_rewind(&run->folder->metrics, run->step, run->eval_due));
    if (run->job->log.tensorboard)
        TDM_TRY(tdm__tensorboard_open(&run->folder->board, run->host, &tdm__file_system, dir, &run->zone, run->step));
    /* Written last: a job that is killed before leaves no configuration beside another job's checkpoints. */
    TDM_TRY(keep_config(run, "config.input.yaml", run->options.config_input));
    if (run->step == 0) TDM_TRY(keep_config(run, "weights.json", run->weights_report));
    return keep_config(run, "config.resolved.yaml", run->options.config_yaml);
}

void tdm__run_folder_close(tdm_run *run) {
    if (run->folder == NULL) return;
    tdm__metrics_close(&run->folder->metrics);
    tdm__tensorboard_close(&run->folder->board);
    if (run->folder->lock >= 0) close(run->folder->lock);
    tdm__folder_close(&run->folder->dir);
    run->folder = NULL; /* its memory is the run's zone */
}

/* ---- metrics.jsonl ---- */

static void put_phases(tdm_json_out *to, const tdm_tally *tally) {
    tdm__json_put(to, "ms:{");
    for (int i = 0; i < TDM_PHASE_COUNT; i++) {
        if (tally->steps == 0 || isnan(tally->ms[i])) continue;
        tdm__json_put(to, "%s:%.4f", tdm__phase_names[i], tally->ms[i] / (double)tally->steps);
    }
    tdm__json_put(to, "}");
}

static double rate(const tdm_tally *tally) {
    double ms = tally->ms[TDM_PHASE_STEP];
    return tally->steps > 0 && ms > 0 ? (double)tally->samples * 1000.0 / ms : NAN;
}

/* The same numbers for TensorBoard; those that a run does not have are left out. */
static tdm_status board_train(tdm_run *run, const tdm_step_result *result, double lr) {
    const tdm_scalar scalars[] = {{"train/loss", result->loss},
                                  {"train/lr", lr},
                                  {"train/samples_per_s", rate(&run->since_log)},
                                  {"train/grad_norm", result->grad_norm}};
    return tdm__tensorboard_add(&run->folder->board, run->step, scalars, isnan(result->grad_norm) ? 3 : 4);
}

static tdm_status board_eval(tdm_run *run) {
    const tdm_scores *scores = &run->scores;
    const tdm_scalar scalars[] = {
        {"eval/loss", scores->loss}, {"eval/accuracy", scores->accuracy}, {"eval/top5", scores->top5}};
    return tdm__tensorboard_add(&run->folder->board, run->step, scalars,
                                isnan(scores->accuracy) ? 1
                                : isnan(scores->top5)   ? 2
                                                        : 3);
}

tdm_status tdm__folder_train_line(tdm_run *run, const tdm_step_result *result, double lr) {
    if (run->folder == NULL) return TDM_OK;
    int64_t epoch = run->step_in_epoch == 0 && run->epoch > 0 ? run->epoch - 1 : run->epoch; /* of the step just done */
    tdm_text text;
    tdm__text_init(&text, run->host);
    tdm_json_out json = tdm__json_out(&text, "");
    tdm__json_put(&json, "{ kind:train step:%lld epoch:%lld loss:%.9g lr:%.17g", (long long)run->step, (long long)epoch,
                  result->loss, lr);
    if (!isnan(result->grad_norm)) tdm__json_put(&json, "grad_norm:%.9g", result->grad_norm);
    tdm__json_put(&json, "samples:%lld samples_per_s:%.1f", (long long)result->rows, rate(&run->since_log));
    put_phases(&json, &run->since_log);
    tdm__json_put(&json, "}\n");
    TDM_TRY(tdm__metrics_add(&run->folder->metrics, &text));
    return board_train(run, result, lr);
}

/* Models of few classes have no top5: their lines are without it. */
static void put_top5(tdm_json_out *to, const tdm_run *run) {
    if (!isnan(run->scores.top5)) tdm__json_put(to, "top5:%.17g", run->scores.top5);
}

/* Of the program's own. */
static void put_metric(tdm_json_out *to, const tdm_run *run) {
    if (!isnan(run->scores.metric)) tdm__json_put(to, "metric:%.17g", run->scores.metric);
}

tdm_status tdm__folder_eval_line(tdm_run *run) {
    if (run->folder == NULL) return TDM_OK;
    tdm_text text;
    tdm__text_init(&text, run->host);
    tdm_json_out json = tdm__json_out(&text, "");
    tdm__json_put(&json, "{ kind:eval step:%lld loss:%.9g accuracy:%.17g", (long long)run->step, run->scores.loss,
                  run->scores.accuracy);
    put_top5(&json, run);
    put_metric(&json, run);
    tdm__json_put(&json, "}\n");
    TDM_TRY(tdm__metrics_add(&run->folder->metrics, &text));
    return board_eval(run);
}

tdm_status tdm__folder_evaluation(tdm_run *run) {
    const char *const names[] = {TDM_EVALUATION, TDM_EVALUATION_BEST};
    if (run->folder == NULL) return TDM_OK;
    for (int i = 0; i < 1 + tdm__run_is_best(run); i++) {
        tdm_text text;
        tdm__text_init(&text, run->host);
        tdm__details_print(run->details, &text);
        TDM_TRY(replace_optional_file(run, names[i], &text, &run->folder->evaluation_failing));
    }
    return TDM_OK;
}

/* ---- status.json, summary.json ---- */

tdm_status tdm__folder_status(tdm_run *run, const char *state, tdm_status code, bool force) {
    if (run->folder == NULL) return TDM_OK;
    int64_t now = tdm__steady_ns(run->host);
    if (!force && now - run->folder->status_ns < status_every_ns) return TDM_OK;
    run->folder->status_ns = now;
    const tdm_job_status status = {.state = state,
                                   .step = run->step,
                                   .steps_total = run->steps_total,
                                   .epoch = run->epoch,
                                   .restarts = run->options.restarts,
                                   .pid = run->options.pid,
                                   .exit_code = (int)code,
                                   .reason = code == TDM_OK          ? (run->end_reason != NULL ? run->end_reason : "")
                                             : code == TDM_E_STOPPED ? "stopped on request"
                                                                     : tdm_error_message()};
    tdm_text text;
    tdm__text_init(&text, run->host);
    tdm__status_print(&text, &status);
    return replace_optional_file(run, "status.json", &text, &run->folder->status_failing);
}

static void put_bad(tdm_json_out *to, const char *data, const tdm_dataset *dataset) {
    int64_t row = -1;
    if (dataset == NULL || dataset->bad == NULL) return;
    for (const char *why; (why = tdm__bad_samples_next(dataset->bad, row, &row)) != NULL;)
        tdm__json_put(to, "{ data:%s sample:%lld why:%s }", data, (long long)row, why);
}

/* The samples that any rank could not read, each with the reason of the first reading. */
static void put_all_bad(tdm_json_out *to, const tdm_run *run) {
    tdm__json_put(to, "bad_samples:[\n");
    put_bad(to, "train", run->train);
    put_bad(to, "eval", run->eval);
    tdm__json_put(to, "]");
}

tdm_status tdm__folder_summary(tdm_run *run, const char *reason, const int64_t *peak_bytes, int count) {
    if (run->folder == NULL) return TDM_OK;
    tdm_hash128 hash;
    char hash_text[TDM_HASH_TEXT];
    TDM_TRY(tdm__params_hash(run, &hash));
    tdm__hash_print(hash_text, hash);
    const tdm_tally *tally = run->since_start.steps > 0 ? &run->since_start : &run->since_open;
    tdm_text text;
    tdm__text_init(&text, run->host);
    tdm_json_out json = tdm__json_out(&text, "");
    tdm__json_put(&json, "{ name:%s mode:%s device:%s devices:%d replicas:%d per_device:%lld global_batch:%lld",
                  run->job->name != NULL ? run->job->name : "", run->mode->ops->name, run->compute.device->name, count,
                  run->replicas, (long long)run->per_device, (long long)(run->per_device * run->replicas));
    tdm__json_put(&json, "parameters:%lld step:%lld epoch:%lld samples:%lld",
                  (long long)tdm_graph_param_count(run->graph), (long long)run->step, (long long)run->epoch,
                  (long long)run->samples);
    tdm__json_put(&json, "loss:%.9g eval_loss:%.9g accuracy:%.17g", run->last_loss, run->scores.loss,
                  run->scores.accuracy);
    put_top5(&json, run);
    put_metric(&json, run);
    tdm__json_put(&json, "samples_per_s:%.17g warmup_steps:%lld seconds:%.3f", rate(tally),
                  (long long)(run->since_start.steps > 0 ? run->warmup_steps : 0), run->seconds);
    tdm__json_put_integers(&json, "peak_memory_bytes", peak_bytes, count);
    put_phases(&json, tally);
    if (run->best.step > 0)
        tdm__json_put(&json, "best_step:%lld best_score:%.17g", (long long)run->best.step, run->best.score);
    if (run->end_reason != NULL) tdm__json_put(&json, "stopped_early:%s", run->end_reason);
    put_all_bad(&json, run);
    tdm__json_put(&json, "bytes_moved_per_step:%lld params_xxh3:%s restarts:%d exit_reason:%s }\n",
                  (long long)(tally->steps > 0 ? tally->bytes_moved / tally->steps : 0), hash_text,
                  run->options.restarts, reason);
    return replace_optional_file(run, "summary.json", &text, &run->folder->summary_failing);
}
