#include "runtime/exec/mode.h"

#include <math.h>

#include "runtime/base/memory.h"
#include "runtime/base/status.h"

tdm_status tdm__mode_open(tdm_mode **out, const tdm_mode_ops *ops, const tdm_mode_params *params) {
    tdm_mode *mode = NULL;
    *out = NULL;
    TDM_TRY(tdm__new(params->host, &mode, 1, ops->bytes, "mode"));
    mode->ops = ops;
    mode->params = *params;
    mode->depth = 1;
    mode->gradient_backend = "here";
    mode->scatter = TDM_SCATTER_STRIDED;
    tdm_error error;
    if (ops->open(mode) == TDM_OK) {
        *out = mode;
        return TDM_OK;
    }
    tdm__error_save(&error);
    tdm__mode_close(mode);
    return tdm__error_restore(&error, NULL);
}

void tdm__mode_close(tdm_mode *mode) {
    if (mode == NULL) return;
    mode->ops->close(mode);
    tdm__delete(mode->params.host, mode);
}

/* The first failure is the one to report. */
static tdm_status step_failed(tdm_mode *mode) {
    tdm_error error;
    tdm__error_save(&error);
    mode->collected = mode->submitted;
    for (int i = 0; i < mode->replica_count; i++) tdm__replica_abandon(mode->replica[i]);
    if (mode->ops->step_failed != NULL) mode->ops->step_failed(mode, error.message);
    return tdm__error_restore(&error, NULL);
}

/* As torch.chunk cuts the rows of each shard; ranks with `join` are dealt rows in turn. */
int64_t tdm__mode_micro_batches(const tdm_mode *mode, const tdm_batch *batch) {
    const int64_t most = mode->params.job->train.accumulate;
    int64_t rows = (batch->global_rows + mode->params.replicas - 1) / mode->params.replicas;
    for (int i = 0; i < batch->shard_count; i++) rows = batch->shard[i].rows > rows ? batch->shard[i].rows : rows;
    const int64_t size = (rows + most - 1) / most;
    return size > 0 ? (rows + size - 1) / size : 1;
}

tdm_status tdm__mode_submit(tdm_mode *mode, const tdm_batch *batch, const tdm_update *update) {
    tdm_step_result *result = &mode->result[mode->submitted++ % TDM_MODE_DEPTH];
    const int64_t last = tdm__mode_micro_batches(mode, batch) - 1;
    mode->micro_batch = update->extent == TDM_TO_LOSS ? 0 : last;
    mode->is_last = mode->micro_batch == last;
    *result = (tdm_step_result){
        .rows = batch->global_rows, .grad_norm = isnan(update->clip_norm) ? NAN : 0, .stop = update->stop};
    tdm__times_init(&result->times, mode->phases);
    return mode->ops->submit(mode, batch, update, result) == TDM_OK ? TDM_OK : step_failed(mode);
}

tdm_status tdm__mode_collect(tdm_mode *mode, tdm_step_result *result) {
    if (mode->collected == mode->submitted) TDM_FAIL(TDM_E_INTERNAL, "modes: no step has been submitted");
    *result = mode->result[mode->collected++ % TDM_MODE_DEPTH];
    return mode->ops->collect(mode, result) == TDM_OK ? TDM_OK : step_failed(mode);
}

tdm_status tdm__mode_forward(tdm_mode *mode, const tdm_batch *batch, const tdm_update *update,
                             tdm_step_result *result) {
    mode->micro_batch++;
    mode->is_last = mode->micro_batch + 1 == tdm__mode_micro_batches(mode, batch);
    return mode->ops->forward(mode, batch, update, result) == TDM_OK ? TDM_OK : step_failed(mode);
}

tdm_status tdm__mode_backward(tdm_mode *mode, const tdm_batch *batch, const tdm_update *update,
                              tdm_step_result *result) {
    return mode->ops->backward(mode, batch, update, result) == TDM_OK ? TDM_OK : step_failed(mode);
}

tdm_status tdm__mode_update(tdm_mode *mode, const tdm_update *update, tdm_step_result *result) {
    return mode->ops->update(mode, update, result) == TDM_OK ? TDM_OK : step_failed(mode);
}

tdm_status tdm__mode_sync(tdm_mode *mode, bool with_state) {
    return mode->ops->sync != NULL ? mode->ops->sync(mode, with_state) : TDM_OK;
}
