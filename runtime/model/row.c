/* What a model that was trained on a table says of its columns. */
#include "runtime/base/call/sized.h"
#include "runtime/base/status.h"
#include "runtime/data/tables/features.h"
#include "runtime/model/model.h"

tdm_status tdm__model_read_features(tdm_model *model) {
    const char *text = tdm__tensor_file_note(model->file, TDM_NOTE_FEATURES);
    tdm_features *features;
    if (text == NULL) return TDM_OK;
    TDM_TRY(tdm__zone_new(&model->zone, &features, 1, sizeof(*features)));
    const tdm_status status = tdm__features_parse(features, &model->zone, text);
    if (status == TDM_E_CHECKPOINT) TDM_FAIL(status, "%s: %s", model->path, tdm_error_message());
    TDM_TRY(status);
    const int64_t columns = features->numbers + features->categories, width = tdm__shape_count(&model->graph->sample);
    if (columns != width)
        TDM_FAIL(TDM_E_CHECKPOINT, "%s: tandem.features in its metadata has %lld columns, and a sample %lld numbers",
                 model->path, (long long)columns, (long long)width);
    model->features = features;
    return TDM_OK;
}

const char *tdm_model_column(const tdm_model *model, int64_t index) {
    if (model == NULL || model->features == NULL || index < 0) return NULL;
    return index < model->features->numbers + model->features->categories ? model->features->item[index].name : NULL;
}

tdm_status tdm_model_read_row(const tdm_model *model, const char *const *cell, float *x) {
    if (model == NULL || cell == NULL || x == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_model_read_row: a pointer is NULL");
    if (model->features == NULL)
        TDM_FAIL(TDM_E_USAGE, "tdm_model_read_row: %s was not trained on a table", model->path);
    return tdm__features_row(model->features, cell, x);
}

tdm_status tdm_model_target(const tdm_model *model, tdm_target *out) {
    if (model == NULL || out == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_model_target: a pointer is NULL");
    TDM_TRY(tdm__sized_check("tdm_model_target: tdm_target", out, TDM_SIZED_ANY, sizeof(*out)));
    const tdm_target full = tdm__features_target(model->features);
    tdm__sized_give(out, &full);
    return TDM_OK;
}
