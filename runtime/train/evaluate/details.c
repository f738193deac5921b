#include "runtime/train/evaluate/details.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/largest.h"
#include "runtime/base/status.h"
#include "runtime/base/text/json_write.h"
#include "runtime/train/evaluate/scores.h"

tdm_status tdm__details_begin(tdm_run *run) {
    tdm_details *details = run->details;
    if (details == NULL) {
        size_t classes = run->loss->target == TDM_TARGET_CLASS ? (size_t)run->plan->output_width : 0;
        size_t cells = classes <= TDM_CONFUSION_CLASSES ? classes * classes : 0;
        TDM_TRY(tdm__zone_new(&run->zone, &details, 1, sizeof(*details)));
        details->classes = (int64_t)classes;
        details->number = 2 * classes + cells;
        TDM_TRY(tdm__zone_new(&run->zone, &details->correct, details->number, sizeof(*details->correct)));
        details->count = details->correct + classes;
        details->confusion = cells > 0 ? details->count + classes : NULL;
        run->details = details;
    }
    details->step = -1;
    details->worst_count = 0;
    if (details->number > 0) memset(details->correct, 0, details->number * sizeof(*details->correct));
    return TDM_OK;
}

/* ---- the worst samples ---- */

static int by_badness(const void *a, const void *b) {
    const tdm_worst_sample *x = a, *y = b;
    if (isnan(x->loss) != isnan(y->loss)) return isnan(x->loss) ? -1 : 1;
    if (x->loss != y->loss && !isnan(x->loss)) return x->loss > y->loss ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static void keep_if_bad(tdm_details *details, const tdm_worst_sample *sample) {
    tdm_worst_sample *worst = details->worst;
    int at = details->worst_count;
    if (at == TDM_WORST && by_badness(&worst[TDM_WORST - 1], sample) < 0) return;
    if (at == TDM_WORST) at--;
    for (; at > 0 && by_badness(sample, &worst[at - 1]) < 0; at--) worst[at] = worst[at - 1];
    worst[at] = *sample;
    if (details->worst_count < TDM_WORST) details->worst_count++;
}

/* ---- adding rows ---- */

/* The loss of one row by the job's own loss, so that all of its settings count: weighted, as reduction="none" has it.
 */
static tdm_status loss_of_row(const tdm_run *run, const tdm_shard *shard, const float *y, int64_t row, double *out) {
    const tdm_step_values values = {.loss_seed = 1};
    const int64_t width = run->plan->output_width;
    const bool labels = run->loss->target == TDM_TARGET_CLASS;
    const void *target = labels ? (const void *)((const int64_t *)shard->target + row)
                                : (const void *)((const float *)shard->target + row * width);
    double loss = 0;
    int64_t correct = 0;
    tdm_loss_args args = {.section = &run->job->loss,
                          .rows = 1,
                          .width = width,
                          .y = y + row * width,
                          .target = target,
                          .values = &values,
                          .correct = &correct};
    TDM_TRY(run->loss->run(&args, &loss));
    *out = loss / tdm__rows_that_count(run->loss, &run->job->loss, 1, width, target);
    return TDM_OK;
}

static void count_row(tdm_details *details, int64_t label, int64_t predicted) {
    details->count[label]++;
    details->correct[label] += predicted == label;
    if (details->confusion != NULL) details->confusion[label * details->classes + predicted]++;
}

tdm_status tdm__details_add(tdm_run *run, const tdm_shard *shard, const float *y, int64_t first) {
    tdm_details *details = run->details;
    const int64_t width = run->plan->output_width;
    for (int64_t n = 0; n < shard->rows; n++) {
        tdm_worst_sample sample = {.index = first + n, .label = -1, .predicted = -1};
        if (details->classes > 0) {
            sample.label = ((const int64_t *)shard->target)[n];
            if (sample.label == run->job->loss.ignore_index) continue;
            sample.predicted = tdm__largest(y + n * width, width);
            count_row(details, sample.label, sample.predicted);
        }
        TDM_TRY(loss_of_row(run, shard, y, n, &sample.loss));
        keep_if_bad(details, &sample);
    }
    return TDM_OK;
}

/* ---- ranks ---- */

static tdm_status gather_worst(tdm_run *run) {
    tdm_details *details = run->details;
    const size_t bytes = sizeof(details->worst), world = (size_t)run->world;
    tdm_worst_sample own[TDM_WORST], *all = NULL;
    memcpy(own, details->worst, bytes);
    for (int i = details->worst_count; i < TDM_WORST; i++) own[i] = (tdm_worst_sample){.index = -1};
    TDM_TRY(tdm__new(run->host, &all, world * TDM_WORST, sizeof(*all), "the worst samples"));
    tdm_status status = tdm_comm_all_gather(run->comm, (tdm_span){own, bytes, TDM_DTYPE_U8},
                                            (tdm_span){all, world * bytes, TDM_DTYPE_U8});
    details->worst_count = 0;
    for (size_t i = 0; status == TDM_OK && i < world * TDM_WORST; i++) {
        if (all[i].index >= 0) keep_if_bad(details, &all[i]);
    }
    tdm__delete(run->host, all);
    return status;
}

tdm_status tdm__details_end(tdm_run *run, const tdm_scores *scores) {
    tdm_details *details = run->details;
    if (run->comm != NULL && details->number > 0)
        TDM_TRY(tdm_comm_all_reduce(run->comm, (tdm_span){details->correct, details->number, TDM_DTYPE_I64},
                                    TDM_REDUCE_SUM));
    if (run->comm != NULL) TDM_TRY(gather_worst(run));
    details->scores = *scores;
    details->step = run->step;
    details->samples = run->eval;
    if (run->classes.count == details->classes) details->names = run->classes;
    return TDM_OK;
}

/* ---- JSON ---- */

static void print_classes(tdm_json_out *to, const tdm_details *details) {
    const int classes = (int)details->classes;
    if (details->names.count > 0) tdm__json_put(to, "class_names:[");
    for (int64_t k = 0; k < details->names.count; k++) tdm__json_put(to, "%s", details->names.name[k]);
    if (details->names.count > 0) tdm__json_put(to, "]");
    tdm__json_put_integers(to, "class_samples", details->count, classes);
    tdm__json_put_integers(to, "class_correct", details->correct, classes);
    if (details->confusion == NULL) return;
    tdm__json_put(to, "confusion:[\n");
    for (int label = 0; label < classes; label++)
        tdm__json_put_integers(to, NULL, details->confusion + (ptrdiff_t)label * classes, classes);
    tdm__json_put(to, "]");
}

void tdm__details_print(const tdm_details *details, tdm_text *out) {
    tdm_json_out json = tdm__json_out(out, "");
    tdm__json_put(&json, "{\n step:%lld samples:%lld loss:%.9g accuracy:%.17g", (long long)details->step,
                  (long long)details->scores.samples, details->scores.loss, details->scores.accuracy);
    if (!isnan(details->scores.top5)) tdm__json_put(&json, "top5:%.17g", details->scores.top5);
    if (details->classes > 0) print_classes(&json, details);
    tdm__json_put(&json, "worst:[\n");
    for (const tdm_worst_sample *w = details->worst; w < details->worst + details->worst_count; w++) {
        tdm__json_put(&json, "{ index:%lld loss:%.9g", (long long)w->index, w->loss);
        if (details->classes > 0)
            tdm__json_put(&json, "label:%lld predicted:%lld", (long long)w->label, (long long)w->predicted);
        if (details->samples->ops->file != NULL)
            tdm__json_put(&json, "file:%s", details->samples->ops->file(details->samples, w->index));
        tdm__json_put(&json, "}");
    }
    tdm__json_put(&json, "]}\n");
}
