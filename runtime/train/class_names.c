/* The names of a run's classes: from its data, or, if it only predicts, from its weights. Checkpoints keep them, so
 * that predictions have names where the data trained on is not at hand. */
#include <string.h>

#include "runtime/base/status.h"
#include "runtime/data/classes.h"
#include "runtime/train/run.h"

tdm_status tdm__run_classes_of_weights(tdm_run *run) {
    tdm_ckpt *ckpt = NULL;
    const char *path = run->job->weights;
    if (!run->options.predicts || path == NULL) return TDM_OK;
    TDM_TRY(tdm__error_at(tdm__ckpt_open_any(&ckpt, run->host, path), &run->job->weights_at));
    const char *text = tdm__tensor_file_classes(tdm__ckpt_model(ckpt));
    tdm_status status = text != NULL ? tdm__classes_parse(&run->classes, &run->zone, text) : TDM_OK;
    tdm__ckpt_close(ckpt);
    if (status == TDM_E_CHECKPOINT) TDM_FAIL_AT(&run->job->weights_at, status, "%s: %s", path, tdm_error_message());
    return status;
}

tdm_status tdm__run_take_classes(tdm_run *run) {
    if (run->classes.count == 0 && run->train != NULL) run->classes = run->train->class_names;
    if (run->classes.count == 0) return TDM_OK;
    tdm_text text;
    tdm__text_init(&text, run->host);
    tdm__classes_print(&run->classes, &text);
    tdm_status status = TDM_OK;
    if (text.failed)
        status = tdm__fail(TDM_E_MEMORY, __FILE__, __LINE__, NULL, "out of memory for the names of classes");
    else
        status = tdm__zone_text(&run->zone, &run->classes_json, text.data);
    tdm__text_deinit(&text);
    return status;
}

tdm_status tdm__run_check_classes(const tdm_run *run, const tdm_ckpt *ckpt) {
    const char *saved = tdm__tensor_file_classes(tdm__ckpt_model(ckpt)), *now = run->classes_json;
    if (run->options.predicts || saved == NULL || now == NULL || strcmp(saved, now) == 0) return TDM_OK;
    TDM_FAIL(TDM_E_CHECKPOINT,
             "%s was trained on the classes %.200s, and data.train has %.200s: an output would change its meaning; "
             "resume with the same classes, or start a new run from its weights: model.weights, and another run.dir",
             tdm__ckpt_path(ckpt), saved, now);
}

const char *tdm_run_class_name(const tdm_run *run, int64_t index) {
    if (run == NULL || index < 0 || index >= run->classes.count) return NULL;
    return run->classes.name[index];
}
