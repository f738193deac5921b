/* From a checkpoint to the file that is the model: its weights, with what the metadata says of the model and of where
 * it comes from. */
#include <stdlib.h>
#include <string.h>

#include <tandem/tandem.h>

#include "runtime/base/call/guard.h"
#include "runtime/base/call/extra.h"
#include "runtime/base/status.h"
#include "runtime/base/text/network.h"
#include "runtime/base/text/json_write.h"
#include "runtime/base/writer.h"
#include "runtime/graph/graph.h"
#include "runtime/model/model.h"
#include "runtime/model/onnx/onnx.h"
#include "runtime/train/run.h"

typedef struct exporting {
    const tdm_host *host;
    const tdm_file_ops *ops; /* that take the file */
    tdm_zone zone;
    tdm_ckpt *ckpt;
    const tdm_tensor_file *file; /* the one of the checkpoint that is exported */
    bool is_average;
    tdm_config *config; /* of the text of the model */
    tdm_tensor *tensor;
    tdm_map map; /* of that file */
} exporting;

/* A checked configuration in *out. */
static tdm_status read_config(tdm_config **out, const tdm_host *host, const char *text, const char *name) {
    TDM_TRY(tdm_config_parse(out, host, text, strlen(text), name, NULL));
    TDM_TRY(tdm_config_predicts(*out));
    return tdm_config_check(*out);
}

/* Predictions of a run take the average, unless its configuration says otherwise. One that this build cannot read says
 * nothing. */
static tdm_status choose_file(exporting *e) {
    const tdm_tensor_file *average = tdm__ckpt_average(e->ckpt);
    const char *text = NULL;
    tdm_config *config = NULL;
    e->file = tdm__ckpt_model(e->ckpt);
    if (average == NULL) return TDM_OK;
    e->is_average = true;
    TDM_TRY(tdm__ckpt_config(e->ckpt, &text));
    tdm_error before;
    tdm__error_save(&before);
    if (text != NULL && read_config(&config, e->host, text, "config") == TDM_OK)
        e->is_average = tdm_config_job(config)->eval.weights == TDM_WEIGHTS_EMA;
    tdm_config_free(config);
    (void)tdm__error_restore(&before, NULL);
    if (e->is_average) e->file = average;
    return TDM_OK;
}

static tdm_status find_text(const char **out, const tdm_tensor_file *file, const char *path) {
    *out = tdm__tensor_file_note(file, TDM_NOTE_MODEL);
    if (*out == NULL) TDM_TRY(tdm__network_refuse(path, TDM_E_CHECKPOINT, "a model of tandem"));
    if (*out == NULL)
        TDM_FAIL(
            TDM_E_CHECKPOINT,
            "%s does not carry its model (tandem.model in the metadata): an earlier version saved it, or YAML cannot "
            "say it; `tandem train` with the same --run-dir and one more step saves one that does",
            path);
    return TDM_OK;
}

static tdm_status read_model(exporting *e) {
    const char *text, *path = tdm__ckpt_path(e->ckpt);
    TDM_TRY(find_text(&text, e->file, path));
    const tdm_status status = read_config(&e->config, e->host, text, "tandem.model");
    if (status == TDM_E_CONFIG)
        TDM_FAIL(TDM_E_CHECKPOINT, "%s: tandem.model in its metadata: %s", path, tdm_error_message());
    return status;
}

/* They are written from where the file is mapped, or in memory. */
static tdm_status map_tensors(exporting *e) {
    const int count = tdm__tensor_file_count(e->file);
    uint64_t bytes;
    const int fd = tdm__tensor_file_descriptor(e->file, &bytes);
    TDM_TRY(tdm__zone_new(&e->zone, &e->tensor, (size_t)count, sizeof(*e->tensor)));
    if (fd >= 0) TDM_TRY(tdm__map_descriptor(&e->map, fd, bytes, tdm__ckpt_path(e->ckpt)));
    for (int i = 0; i < count; i++) {
        e->tensor[i] = *tdm__tensor_file_get(e->file, i);
        if (fd >= 0) e->tensor[i].data = (const char *)e->map.bytes + e->tensor[i].file_offset;
    }
    return TDM_OK;
}

static int by_name(const void *a, const void *b) {
    const tdm_tensor *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

/* As a run's params_xxh3: of all parameters in the order of their names. */
static tdm_status hash_params(const exporting *e, char out[TDM_HASH_TEXT]) {
    const tdm_graph *graph = tdm_config_graph(e->config);
    const tdm_tensor **param;
    tdm_hasher *hasher;
    tdm_zone zone;
    tdm__zone_init(&zone, e->host);
    tdm_status status = tdm__zone_new(&zone, &param, graph->param_count, sizeof(*param));
    for (size_t i = 0; status == TDM_OK && i < graph->param_count; i++) {
        const tdm_tensor *at = tdm__tensor_file_find(e->file, graph->params[i].name);
        if (at != NULL) param[i] = &e->tensor[at - tdm__tensor_file_get(e->file, 0)];
        if (at == NULL)
            status =
                tdm__fail(TDM_E_CHECKPOINT, __FILE__, __LINE__, NULL, "%s: the tensor '%s' of its model is missing",
                          tdm__ckpt_path(e->ckpt), graph->params[i].name);
    }
    if (status == TDM_OK) status = tdm__hash_open(&hasher, e->host);
    if (status == TDM_OK) {
        qsort(param, graph->param_count, sizeof(*param), by_name);
        for (size_t i = 0; i < graph->param_count; i++) tdm__hash_add(hasher, param[i]->data, param[i]->bytes);
        tdm__hash_print(out, tdm__hash_value(hasher));
        tdm__hash_close(hasher);
    }
    tdm__zone_deinit(&zone);
    return status;
}

/* A file that was exported keeps where it is from. */
static tdm_status print_origin(const exporting *e, tdm_text *out) {
    const tdm_ckpt_state *state = tdm__ckpt_state(e->ckpt);
    const char *known = tdm__tensor_file_note(e->file, TDM_NOTE_ORIGIN);
    tdm_json_out json = tdm__json_out(out, " ");
    char hash[TDM_HASH_TEXT];
    if (known != NULL) tdm__text_puts(out, known);
    if (known == NULL) {
        TDM_TRY(hash_params(e, hash));
        tdm__json_put(&json, "{ run:%s", tdm_config_job(e->config)->name);
        if (state != NULL) tdm__json_put(&json, "step:%lld", (long long)state->step);
        tdm__json_put(&json, "params_xxh3:%s weights:%s tandem:%s }", hash, e->is_average ? "ema" : "model",
                      tdm_version());
    }
    if (out->failed) TDM_FAIL(TDM_E_MEMORY, "out of memory for the origin of a model");
    return TDM_OK;
}

/* Writes the file; *bytes: its size. */
typedef tdm_status (*writer)(const exporting *e, const char *to, const char *const note[TDM_NOTES], uint64_t *bytes);

static tdm_status write_tensors(const exporting *e, const char *to, const char *const note[TDM_NOTES],
                                uint64_t *bytes) {
    const tdm_ckpt_state *state = tdm__ckpt_state(e->ckpt);
    const char *metadata[TDM_METADATA];
    char step[TDM_METADATA_STEP];
    tdm__tensor_metadata(metadata, step, state != NULL ? state->step : -1, note);
    int count;
    const tdm_property *property = tdm__tensor_file_properties(e->file, &count);
    tdm__tensor_metadata_add(metadata, property, count);
    return tdm__tensor_file_write(e->host, e->ops, NULL, to, e->tensor, tdm__tensor_file_count(e->file), metadata, NULL,
                                  NULL, bytes);
}

static tdm_status write_onnx(const exporting *e, const char *to, const char *const note[TDM_NOTES], uint64_t *bytes) {
    TDM_EXTRA(ONNX);
    tdm_onnx_source source = {.ops = e->ops,
                              .graph = tdm_config_graph(e->config),
                              .name = tdm_config_job(e->config)->name,
                              .tensor = e->tensor,
                              .tensor_count = tdm__tensor_file_count(e->file)};
    memcpy(source.note, note, sizeof(source.note));
    source.property = tdm__tensor_file_properties(e->file, &source.property_count);
    return tdm__onnx_write(e->host, &source, to, bytes);
}

static tdm_status write(const exporting *e, writer run, const char *to, const char *origin, tdm_text *report) {
    const tdm_ckpt_state *state = tdm__ckpt_state(e->ckpt);
    const char *note[TDM_NOTES];
    uint64_t bytes;
    for (int i = 0; i < TDM_NOTES; i++) note[i] = tdm__tensor_file_note(e->file, (tdm_note)i);
    note[TDM_NOTE_ORIGIN] = origin;
    TDM_TRY(run(e, to, note, &bytes));
    char size[32];
    tdm__text_printf(report, "%d tensors, %lld parameters, %s", tdm__tensor_file_count(e->file),
                     (long long)tdm_graph_param_count(tdm_config_graph(e->config)), tdm__print_bytes(size, bytes));
    if (state != NULL) tdm__text_printf(report, ", step %lld", (long long)state->step);
    if (e->is_average) tdm__text_puts(report, ", the average of the weights (train.ema)");
    return TDM_OK;
}

/* Of e->ckpt. */
static tdm_status export_all(exporting *e, writer run, const char *to, tdm_text *report) {
    tdm_text origin;
    TDM_TRY(choose_file(e));
    TDM_TRY(read_model(e));
    TDM_TRY(map_tensors(e));
    tdm__text_init(&origin, e->host);
    tdm_status status = print_origin(e, &origin);
    if (status == TDM_OK) status = write(e, run, to, origin.data, report);
    tdm__text_deinit(&origin);
    return status;
}

/* Closes `ckpt`. report may be NULL. */
static tdm_status export_ckpt(writer run, const tdm_host *host, const tdm_file_ops *ops, tdm_ckpt *ckpt, const char *to,
                              char **report) {
    tdm_text text;
    exporting e = {.host = host, .ops = ops, .ckpt = ckpt};
    tdm__zone_init(&e.zone, host);
    tdm__text_init(&text, host);
    tdm_status status = export_all(&e, run, to, &text);
    if (status == TDM_OK && report != NULL) status = tdm__text_take_public(&text, report);
    tdm__text_deinit(&text);
    tdm__map_close(&e.map);
    tdm_config_free(e.config);
    tdm__ckpt_close(ckpt);
    tdm__zone_deinit(&e.zone);
    return status;
}

static tdm_status export(writer run, const tdm_host *host, const tdm_file_ops *ops, const char *from, const char *to,
                         char **report) {
    tdm_ckpt *ckpt;
    if (report != NULL) *report = NULL;
    if (from == NULL || to == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_model_export: a path is NULL");
    TDM_TRY(tdm__host_take(&host));
    TDM_TRY(tdm__ckpt_open_any(&ckpt, host, from));
    return export_ckpt(run, host, ops, ckpt, to, report);
}

static tdm_status export_to(writer run, const tdm_host *host, const char *from, const tdm_writer *to, char **report,
                            const char *function) {
    tdm_sink sink;
    if (report != NULL) *report = NULL;
    TDM_TRY(tdm__sink_init(&sink, to, function));
    return tdm__sink_end(&sink, export(run, host, &sink.ops, from, "the writer", report), function);
}

tdm_status tdm_model_export(const tdm_host *host, const char *from, const char *to, char **report) {
    return export(write_tensors, host, &tdm__file_system, from, to, report);
}

tdm_status tdm_model_export_to(const tdm_host *host, const char *from, const tdm_writer *to, char **report) {
    return export_to(write_tensors, host, from, to, report, "tdm_model_export_to");
}

/* Of rank 0; the run's checkpoint is the source, so that its model is that of a saved one, to the byte. */
static tdm_status export_saved(writer run_writer, const tdm_run *run, const tdm_buffer *saved, const tdm_writer *to,
                               char **report, const char *function) {
    tdm_sink sink;
    tdm_ckpt *ckpt;
    TDM_TRY(tdm__sink_init(&sink, to, function));
    tdm_status status = tdm__ckpt_open_memory(&ckpt, run->host, saved->bytes, saved->count);
    if (status == TDM_OK) status = export_ckpt(run_writer, run->host, &sink.ops, ckpt, "the writer", report);
    return tdm__sink_end(&sink, status, function);
}

static tdm_status export_run(writer run_writer, tdm_run *run, const tdm_writer *to, char **report,
                             const char *function) {
    tdm_buffer saved = TDM_BUFFER_INIT;
    tdm_writer keeps = TDM_WRITER_INIT;
    if (report != NULL) *report = NULL;
    if (run == NULL) TDM_FAIL(TDM_E_USAGE, "%s: run is NULL", function);
    keeps.write = tdm_buffer_write, keeps.user = &saved;
    TDM_ENTER(&run->guard, function, TDM_GUARD_ASKS);
    tdm_status status = tdm__run_save_to(run, &keeps, function);
    if (status == TDM_OK && run->rank == 0) status = export_saved(run_writer, run, &saved, to, report, function);
    tdm_buffer_free(&saved);
    return status;
}

tdm_status tdm_run_export_to(tdm_run *run, const tdm_writer *to, char **report) {
    return export_run(write_tensors, run, to, report, "tdm_run_export_to");
}

tdm_status tdm_run_export_onnx_to(tdm_run *run, const tdm_writer *to, char **report) {
    return export_run(write_onnx, run, to, report, "tdm_run_export_onnx_to");
}

tdm_status tdm_model_export_onnx(const tdm_host *host, const char *from, const char *to, char **report) {
    return export(write_onnx, host, &tdm__file_system, from, to, report);
}

tdm_status tdm_model_export_onnx_to(const tdm_host *host, const char *from, const tdm_writer *to, char **report) {
    return export_to(write_onnx, host, from, to, report, "tdm_model_export_onnx_to");
}

tdm_status tdm_model_text(const tdm_host *host, const char *path, char **out) {
    tdm_ckpt *ckpt;
    const char *found;
    tdm_text text;
    if (path == NULL || out == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_model_text: path or out is NULL");
    *out = NULL;
    TDM_TRY(tdm__host_take(&host));
    TDM_TRY(tdm__ckpt_open_any(&ckpt, host, path));
    tdm__text_init(&text, host);
    tdm_status status = find_text(&found, tdm__ckpt_model(ckpt), path);
    if (status == TDM_OK) {
        tdm__text_puts(&text, found);
        status = tdm__text_take_public(&text, out);
    }
    tdm__ckpt_close(ckpt);
    return status;
}
