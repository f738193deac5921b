/* Steps whose loss is not finite. If no label of the batch counts, training goes on as in PyTorch: the mean is 0 / 0
 * and the gradient 0. Any other such step ends the run, and the message names the samples of its batch. */
#include <math.h>

#include "runtime/base/finite.h"
#include "runtime/base/log.h"
#include "runtime/base/status.h"
#include "runtime/train/run.h"

enum { SAMPLES_LISTED = 8 };

/* ---- samples that hold what no model can learn from ---- */

/* Samples of a rank's part of the batch that are not finite, by their index in the file. */
typedef struct suspects {
    int64_t count, first;
} suspects;

static bool all_finite(const float *x, int64_t count) {
    return tdm__first_not_finite(TDM_F32_BITS, x, (size_t)count) == (size_t)count;
}

/* Memory for one sample as the model sees it, for batches that hold indices only (TDM_ROWS_INDEX). */
typedef struct sample {
    float *x;
    void *target;
} sample;

static bool is_suspect(const tdm_run *run, const tdm_shard *shard, int64_t row, const sample *room) {
    const tdm_dataset *dataset = run->train;
    int64_t width = tdm_run_input_width(run), outputs = run->plan->output_width;
    const float *x = shard->x != NULL ? shard->x + row * width : room->x;
    if (run->loss->target == TDM_TARGET_VALUES && !all_finite((const float *)shard->target + row * outputs, outputs))
        return true;
    if (dataset->x_is_bytes) return false;
    if (shard->x == NULL && tdm__dataset_fill(dataset, tdm__loader_transform(run->loader), shard->index[row], 1,
                                              room->x, room->target) != TDM_OK)
        return false;
    return !all_finite(x, width);
}

/* One sample may fill several rows of the last batch. */
static void find_suspects(const tdm_run *run, const tdm_batch *batch, const sample *room, suspects *out) {
    for (int s = 0; s < batch->shard_count; s++) {
        const tdm_shard *shard = &batch->shard[s];
        for (int64_t row = 0; row < shard->rows; row++) {
            int64_t index = tdm__dataset_row(run->train, shard->index[row]);
            if ((out->count > 0 && index == out->first) || !is_suspect(run, shard, row, room)) continue;
            if (out->count++ == 0) out->first = index;
        }
    }
}

/* Adds up those of all ranks, because every rank ends with the same loss. */
static tdm_status share_suspects(const tdm_run *run, suspects *own) {
    suspects all[TDM_REPLICAS_MAX];
    size_t words = sizeof(suspects) / sizeof(int64_t);
    if (run->comm == NULL) return TDM_OK;
    TDM_TRY(tdm_comm_all_gather(run->comm, (tdm_span){own, words, TDM_DTYPE_I64},
                                (tdm_span){all, words * (size_t)run->world, TDM_DTYPE_I64}));
    *own = (suspects){.count = 0};
    for (int r = 0; r < run->world; r++) {
        if (own->count == 0) own->first = all[r].first;
        own->count += all[r].count;
    }
    return TDM_OK;
}

static tdm_status suspects_of(const tdm_run *run, const tdm_batch *batch, suspects *out) {
    sample room = {.x = NULL};
    tdm_status status = TDM_OK;
    *out = (suspects){.count = 0};
    TDM_TRY_DONE(tdm__new(run->host, &room.x, (size_t)tdm_run_input_width(run), sizeof(float), "sample"));
    TDM_TRY_DONE(tdm__new(run->host, &room.target, 1, tdm__dataset_target_bytes(run->train), "target"));
    find_suspects(run, batch, &room, out);
done:
    tdm__delete(run->host, room.x);
    tdm__delete(run->host, room.target);
    return status;
}

/* ---- the message ---- */

static void add_samples(const tdm_run *run, const tdm_batch *batch, tdm_text *text) {
    int64_t listed = 0, rows = 0;
    for (int s = 0; s < batch->shard_count; s++) {
        const tdm_shard *shard = &batch->shard[s];
        for (int64_t row = 0; row < shard->rows && listed < SAMPLES_LISTED; row++, listed++)
            tdm__text_printf(text, "%s%lld", listed > 0 ? ", " : "",
                             (long long)tdm__dataset_row(run->train, shard->index[row]));
        rows += shard->rows;
    }
    if (rows > listed) tdm__text_printf(text, " and %lld more", (long long)(rows - listed));
}

static void add_cause(const tdm_run *run, const tdm_batch *batch, const suspects *found, tdm_text *text) {
    if (found->count == 1) {
        tdm__text_printf(text, "sample %lld of data.train holds infinite numbers or NaN; mend it or leave it out",
                         (long long)found->first);
        return;
    }
    if (found->count > 1)
        tdm__text_printf(text, "sample %lld of data.train and %lld more of its batch hold infinite numbers or NaN; ",
                         (long long)found->first, (long long)found->count - 1);
    tdm__text_puts(text, "its batch holds samples ");
    add_samples(run, batch, text);
    if (run->world > 1) tdm__text_printf(text, " on rank %d", run->rank);
    tdm__text_puts(text, found->count > 1 ? "; mend them or leave them out"
                                          : "; lower optimizer.lr, set train.clip_grad_norm, or look at the data");
}

static tdm_status fail(const tdm_run *run, const tdm_step_result *result, const tdm_batch *batch) {
    tdm_text text;
    suspects found;
    tdm__text_init(&text, run->host);
    /* A failed search is not reported; the loss is. */
    if (suspects_of(run, batch, &found) != TDM_OK) found = (suspects){.count = 0};
    if (share_suspects(run, &found) != TDM_OK) found = (suspects){.count = 0};
    add_cause(run, batch, &found, &text);
    (void)tdm__fail(TDM_E_NUMERIC, __FILE__, __LINE__, NULL, "the loss of step %lld is %s: %s%s",
                    (long long)(run->step + 1), isnan(result->loss) ? "nan" : "infinite",
                    text.failed ? "out of memory while looking for the cause" : text.data,
                    run->saved_at >= 0 ? "; the last checkpoint is from before" : "");
    tdm__text_deinit(&text);
    return TDM_E_NUMERIC;
}

static void note_ignored(tdm_run *run, const tdm_step_result *result) {
    if (run->ignored_steps++ > 0 || run->rank != 0) return;
    TDM_WARN(run->host, "train",
             "step %lld: every label of its batch is loss.ignore_index%s, so its loss is %s and its gradient 0; "
             "training continues",
             (long long)(run->step + 1), run->job->loss.weight.count > 0 ? " or weighs 0" : "",
             isnan(result->loss) ? "nan" : "infinite");
}

void tdm__run_report_ignored(const tdm_run *run) {
    if (run->ignored_steps < 2 || run->rank != 0) return;
    TDM_WARN(run->host, "train", "in %lld steps every label was loss.ignore_index%s", (long long)run->ignored_steps,
             run->job->loss.weight.count > 0 ? " or weighed 0" : "");
}

tdm_status tdm__run_check_loss(tdm_run *run, const tdm_step_result *result, const tdm_batch *batch) {
    if (result->denominator == 0) {
        note_ignored(run, result);
        return TDM_OK;
    }
    return isfinite((float)result->loss) ? TDM_OK : fail(run, result, batch);
}
