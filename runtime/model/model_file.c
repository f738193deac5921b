/* From the text in the file's metadata to a job and a graph. The file may come from anywhere: its text is read by the
 * same code, with the same limits, as a configuration; what could make the reader look elsewhere is refused or left
 * out. */
#include <string.h>

#include "runtime/base/isa.h"
#include "runtime/base/status.h"
#include "runtime/graph/graph.h"
#include "runtime/model/model.h"
#include "runtime/train/run.h"

tdm_status tdm__model_fault(const tdm_model *model, tdm_status status) {
    if (status != TDM_E_CONFIG && status != TDM_E_UNSUPPORTED) return status;
    TDM_FAIL(status == TDM_E_CONFIG ? TDM_E_CHECKPOINT : status, "%s: tandem.model in its metadata: %s", model->path,
             tdm_error_message());
}

static tdm_status read_text(tdm_model *model) {
    const char *text = tdm__tensor_file_note(model->file, TDM_NOTE_MODEL);
    if (text == NULL)
        TDM_FAIL(
            TDM_E_CHECKPOINT,
            "%s: weights without their model: its metadata has no tandem.model; `tandem export RUN -o FILE` writes "
            "a file that has it",
            model->path);
    if (strstr(text, "${") != NULL)
        TDM_FAIL(TDM_E_CHECKPOINT, "%s: tandem.model in its metadata has '${', which no model needs", model->path);
    TDM_TRY(tdm_config_parse(&model->config, model->host, text, strlen(text), "tandem.model", NULL));
    TDM_TRY(tdm_config_predicts(model->config));
    return tdm__model_fault(model, tdm_config_check(model->config));
}

/* A precision of the file that this processor lacks becomes f32: the numbers are more exact then. */
static tdm_status take_precision(tdm_model *model, const tdm_job *from) {
    const bool has_bf16 = from->parallel.kernels == TDM_KERNELS_REF || tdm__has_fast_bf16();
    const tdm_model_precision asked = model->options.precision;
    if (asked == TDM_MODEL_BF16 && !has_bf16)
        TDM_FAIL(TDM_E_UNSUPPORTED, "%s: " TDM_NO_FAST_BF16 "; open the model without a precision, or in f32",
                 model->path);
    const bool is_bf16 = asked == TDM_MODEL_OF_FILE ? from->train.precision == TDM_BF16 : asked == TDM_MODEL_BF16;
    model->job.train.precision = is_bf16 && has_bf16 ? TDM_BF16 : TDM_F32;
    return TDM_OK;
}

/* Only what predictions need: not the data, devices, stages or paths of whoever wrote the file. */
static tdm_status take_job(tdm_model *model) {
    const tdm_job *from = tdm_config_job(model->config);
    TDM_TRY(tdm_job_init(&model->job));
    model->job.name = from->name;
    model->job.data.transform = from->data.transform;
    model->job.loss = from->loss;
    model->job.parallel.kernels = from->parallel.kernels;
    model->graph = tdm_config_graph(model->config);
    return take_precision(model, from);
}

static tdm_status check_rows(const tdm_model *model) {
    const tdm_rows_fault fault = tdm__graph_rows_fault(model->graph, 1, false);
    if (fault.node == NULL) return TDM_OK;
    TDM_FAIL(TDM_E_UNSUPPORTED,
             "%s: %s '%s' takes the statistics of the batch, so the model cannot predict one sample by itself; "
             "`tandem predict RUN` predicts in the batches of its evaluation",
             model->path, fault.node->op->name, fault.node->name);
}

static tdm_status read_classes(tdm_model *model) {
    const char *text = tdm__tensor_file_note(model->file, TDM_NOTE_CLASSES);
    const long long outputs = (long long)tdm_graph_output_width(model->graph);
    if (text == NULL) return TDM_OK;
    const tdm_status status = tdm__classes_parse(&model->classes, &model->zone, text);
    if (status == TDM_E_CHECKPOINT) TDM_FAIL(status, "%s: %s", model->path, tdm_error_message());
    TDM_TRY(status);
    if (model->classes.count > outputs)
        TDM_FAIL(TDM_E_CHECKPOINT, "%s: tandem.classes in its metadata has %lld names, and the model %lld outputs",
                 model->path, (long long)model->classes.count, outputs);
    return TDM_OK;
}

static tdm_status read_transform(tdm_model *model) {
    const tdm_transform_spec *spec = &model->job.data.transform;
    const tdm_shape *sample = &model->graph->sample;
    tdm__data_inputs_of(model->graph, &model->inputs);
    return tdm__model_fault(model,
                            tdm__transform_init_given(&model->transform, model->host, spec, sample, &model->inputs));
}

tdm_status tdm__model_read(tdm_model *model) {
    TDM_TRY(read_text(model));
    TDM_TRY(take_job(model));
    TDM_TRY(check_rows(model));
    TDM_TRY(read_classes(model));
    TDM_TRY(tdm__model_read_features(model));
    return read_transform(model);
}
