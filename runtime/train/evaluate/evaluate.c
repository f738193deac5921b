/* Evaluation: batch b goes to replica b modulo replicas; sums are added in batch order, so the result does not depend
 * on the mode or the number of replicas. All ranks take part and learn the result. */
#include <math.h>
#include <string.h>

#include "runtime/base/log.h"
#include "runtime/base/call/sized.h"
#include "runtime/base/status.h"
#include "runtime/exec/loss.h"
#include "runtime/exec/own.h"
#include "runtime/train/run.h"
#include "runtime/train/evaluate/details.h"
#include "runtime/train/evaluate/scores.h"

/* What one batch adds: [PER_BATCH * batch]. */
enum { LOSS, DENOMINATOR, CORRECT, TOP5, COUNT, METRIC, METRIC_WEIGHT, PER_BATCH };

static bool has_top5(const tdm_run *run) {
    return run->loss->target == TDM_TARGET_CLASS && run->plan->output_width > TDM_TOP;
}

static tdm_status score(tdm_run *run, const tdm_shard *shard, const float *y, double *sums) {
    const tdm_step_values values = {.loss_seed = 1};
    double loss = 0;
    int64_t correct = 0;
    tdm_loss_args args = {.section = &run->job->loss,
                          .rows = shard->rows,
                          .width = run->plan->output_width,
                          .y = y,
                          .target = shard->target,
                          .values = &values,
                          .loss_sum = &loss,
                          .correct = &correct};
    const tdm_own_loss *own = run->options.loss;
    const tdm_own_metric *metric = run->options.metric;
    TDM_TRY(own != NULL ? tdm__own_loss(own, run->loss->target, &args) : tdm__loss_of_rows(run->loss, NULL, &args));
    if (metric != NULL) TDM_TRY(tdm__own_metric(metric, &args, &sums[METRIC], &sums[METRIC_WEIGHT]));
    sums[LOSS] = loss;
    sums[CORRECT] = (double)correct;
    if (has_top5(run))
        sums[TOP5] =
            (double)tdm__top5_hits(y, shard->rows, run->plan->output_width, shard->target, run->job->loss.ignore_index);
    const int64_t width = run->plan->output_width;
    sums[DENOMINATOR] = run->loss->denominator(&run->job->loss, shard->rows, width, shard->target);
    sums[COUNT] = tdm__rows_that_count(run->loss, &run->job->loss, shard->rows, width, shard->target);
    return TDM_OK;
}

/* Batches first, first + stride, ... one for each local replica. */
static tdm_status run_group(tdm_run *run, int64_t first, int64_t end, double *sums) {
    tdm_shard shards[TDM_REPLICAS_MAX] = {{0}};
    const float *outputs[TDM_REPLICAS_MAX];
    int count = 0;
    for (; count < run->eval_loader_count && first + count < end; count++) {
        const tdm_batch *batch = NULL;
        TDM_TRY(tdm__loader_next(run->eval_loaders[count], &batch));
        shards[count] = batch->shard[0];
    }
    TDM_TRY(run->mode->ops->evaluate(run->mode, shards, count, outputs));
    for (int i = 0; i < count; i++) {
        TDM_TRY(score(run, &shards[i], outputs[i], sums + PER_BATCH * (first + i)));
        TDM_TRY(tdm__details_add(run, &shards[i], outputs[i], (first + i) * run->eval_rows));
    }
    return TDM_OK;
}

/* The last number counts the ranks that were asked to stop. */
static tdm_status run_batches(tdm_run *run, int64_t batches, double *sums, bool heeds_stop) {
    int64_t stride = run->world > 1 ? run->world : run->eval_loader_count;
    double *stops = &sums[PER_BATCH * batches];
    for (int i = 0; i < run->eval_loader_count && run->rank + i < batches; i++)
        TDM_TRY(tdm__loader_seek(run->eval_loaders[i], 0, run->rank + i));
    for (int64_t first = run->rank; first < batches && *stops == 0; first += stride) {
        if (run_group(run, first, batches, sums) != TDM_OK) return tdm__run_leave(run);
        if (heeds_stop && atomic_load(&run->stop) != 0) *stops = 1;
    }
    if (run->comm == NULL) return TDM_OK;
    /* One rank makes each number and all others have zero there, so this sum is exact. */
    return tdm_comm_all_reduce(run->comm, (tdm_span){sums, (size_t)(PER_BATCH * batches + 1), TDM_DTYPE_F64},
                               TDM_REDUCE_SUM);
}

/* A loss over data.eval that is not finite does not stop training, which does not use it. The warning comes once: the
 * same labels or samples usually cause it every time. */
static void warn_not_finite(tdm_run *run, double loss, double labels) {
    if (isfinite((float)loss) || run->rank != 0 || run->eval_warned) return;
    char when[40] = ""; /* a run that only evaluates does not know the step of its weights */
    if (run->step > 0) snprintf(when, sizeof(when), " after step %lld", (long long)run->step);
    run->eval_warned = true;
    if (labels == 0)
        TDM_WARN(run->host, "eval", "every label of data.eval is loss.ignore_index, so its loss is nan");
    else
        TDM_WARN(run->host, "eval",
                 "the loss over data.eval is %s%s; look for samples with infinite numbers or NaN: `tandem data check` "
                 "names them",
                 isnan(loss) ? "nan" : "infinite", when);
}

/* With the weights as they are. */
static tdm_status evaluate(tdm_run *run, tdm_scores *out, bool *stopped) {
    TDM_TRY(tdm__mode_sync(run->mode, false));
    TDM_TRY(tdm__details_begin(run));
    int64_t batches = tdm__loader_steps_per_epoch(run->eval_loaders[0]);
    double *sums = NULL;
    TDM_TRY(tdm__new(run->host, &sums, (size_t)(PER_BATCH * batches + 1), sizeof(double), "evaluation"));
    tdm_status status = run_batches(run, batches, sums, stopped != NULL);
    if (stopped != NULL) *stopped = status == TDM_OK && sums[PER_BATCH * batches] > 0;
    double total[PER_BATCH] = {0};
    for (int64_t b = 0; status == TDM_OK && b < batches; b++) {
        for (int k = 0; k < PER_BATCH; k++) total[k] += sums[PER_BATCH * b + k];
    }
    tdm__delete(run->host, sums);
    if (status != TDM_OK || (stopped != NULL && *stopped)) return status;
    bool labels = run->loss->target == TDM_TARGET_CLASS;
    *out = (tdm_scores){.size = sizeof(*out),
                        .samples = labels ? (int64_t)total[COUNT] : run->eval->count,
                        .loss = total[LOSS] / total[DENOMINATOR],
                        .accuracy = labels ? total[CORRECT] / total[COUNT] : NAN,
                        .top5 = has_top5(run) ? total[TOP5] / total[COUNT] : NAN,
                        .metric = run->options.metric != NULL ? total[METRIC] / total[METRIC_WEIGHT] : NAN};
    warn_not_finite(run, out->loss, total[COUNT]);
    return tdm__details_end(run, out);
}

/* With the average in place of the parameters. They come back also after a failure, after which ranks no longer meet.
 */
static tdm_status evaluate_average(tdm_run *run, tdm_scores *out, bool *stopped) {
    tdm_error failure;
    TDM_TRY(tdm__average_swap(run));
    tdm_status status = evaluate(run, out, stopped);
    if (status != TDM_OK) tdm__error_save(&failure);
    tdm_status back = tdm__average_swap(run);
    if (back == TDM_OK && (status == TDM_OK || run->comm == NULL)) back = tdm__mode_sync(run->mode, false);
    return status == TDM_OK ? back : tdm__error_restore(&failure, NULL);
}

/* Without broadcast_buffers each rank has batch-norm statistics of its own. All evaluate with those of rank 0, which are
 * saved, and get their own back. *own NULL: the evaluation takes none. */
static tdm_status keep_buffers(tdm_run *run, void **own) {
    tdm_replica *replica = run->mode->replica[0];
    const size_t bytes = tdm__replica_arena_bytes(replica, TDM_ARENA_BUFFER);
    void *buffers;
    *own = NULL;
    if (run->rank == 0 || run->job->parallel.ddp.broadcast_buffers || bytes == 0) return TDM_OK;
    TDM_TRY(tdm__replica_fetch(replica, TDM_ARENA_BUFFER, &buffers));
    TDM_TRY(tdm__new(run->host, own, bytes, 1, "buffers of this rank"));
    memcpy(*own, buffers, bytes);
    return TDM_OK;
}

/* After an evaluation of this status; also after a failure. */
static tdm_status give_buffers_back(tdm_run *run, void *own, tdm_status status) {
    tdm_replica *replica = run->mode->replica[0];
    tdm_error failure;
    void *buffers;
    if (own == NULL) return status;
    if (status != TDM_OK) tdm__error_save(&failure);
    tdm_status back = tdm__replica_fetch(replica, TDM_ARENA_BUFFER, &buffers);
    if (back == TDM_OK) {
        memcpy(buffers, own, tdm__replica_arena_bytes(replica, TDM_ARENA_BUFFER));
        back = tdm__replica_put(replica, TDM_ARENA_BUFFER);
    }
    tdm__delete(run->host, own);
    return status == TDM_OK ? back : tdm__error_restore(&failure, NULL);
}

tdm_status tdm__run_evaluate(tdm_run *run, tdm_scores *out, bool *stopped) {
    void *own;
    if (run->eval == NULL) TDM_FAIL(TDM_E_USAGE, "evaluation needs data.eval; add data.eval to the file");
    if (tdm__own_check_evaluation(run) != TDM_OK) return tdm__run_leave(run); /* rank 0 has read the weights */
    bool averages = run->average_count > 0 && run->job->eval.weights == TDM_WEIGHTS_EMA;
    run->eval_batch = NULL;
    TDM_TRY(tdm__run_verify(run)); /* syncing would hide a replica that differs */
    if (keep_buffers(run, &own) != TDM_OK) return tdm__run_leave(run);
    const tdm_status status = averages ? evaluate_average(run, out, stopped) : evaluate(run, out, stopped);
    return give_buffers_back(run, own, status);
}

tdm_status tdm_run_evaluate(tdm_run *run, double *loss, double *accuracy) {
    if (run == NULL || loss == NULL || accuracy == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_run_evaluate: a pointer is NULL");
    TDM_ENTER(&run->guard, "tdm_run_evaluate", TDM_GUARD_ASKS);
    tdm_scores scores = TDM_SCORES_INIT;
    TDM_TRY(tdm__run_computes(run, "tdm_run_evaluate"));
    TDM_TRY(tdm__run_evaluate(run, &scores, NULL));
    *loss = scores.loss;
    *accuracy = scores.accuracy;
    return TDM_OK;
}

tdm_status tdm_run_evaluate_scores(tdm_run *run, tdm_scores *out) {
    if (run == NULL || out == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_run_evaluate_scores: a pointer is NULL");
    TDM_TRY(tdm__sized_check("tdm_run_evaluate_scores: tdm_scores", out, TDM_SIZED_ANY, sizeof(*out)));
    TDM_ENTER(&run->guard, "tdm_run_evaluate_scores", TDM_GUARD_ASKS);
    tdm_scores scores = TDM_SCORES_INIT;
    TDM_TRY(tdm__run_computes(run, "tdm_run_evaluate_scores"));
    TDM_TRY(tdm__run_evaluate(run, &scores, NULL));
    tdm__sized_give(out, &scores);
    return TDM_OK;
}
