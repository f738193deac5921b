/* Opening and closing a model, and what it says of itself. See tandem/model.h. */
#include "runtime/model/model.h"

#include <string.h>

#include "runtime/base/call/sized.h"
#include "runtime/base/memory.h"
#include "runtime/base/limit/limit.h"
#include "runtime/base/status.h"
#include "runtime/base/system/file.h"
#include "runtime/base/text/network.h"
#include "runtime/graph/graph.h"

/* ---- opening ---- */

static tdm_status take_options(tdm_model_options *to, const tdm_model_options *from) {
    TDM_TRY(tdm__sized_take("tdm_model_open: options", to, sizeof(*to), from, TDM_SIZED_ANY));
    if (to->threads < 1 || to->threads > 1024)
        TDM_FAIL(TDM_E_USAGE, "tdm_model_open: options.threads must be 1 to 1024, got %d", to->threads);
    if (to->precision < TDM_MODEL_OF_FILE || to->precision > TDM_MODEL_BF16)
        TDM_FAIL(TDM_E_USAGE, "tdm_model_open: options.precision must be one of tdm_model_precision, got %d",
                 (int)to->precision);
    return tdm__host_take(&to->host);
}

static tdm_status open_lock(tdm_model *model) {
    if (pthread_mutex_init(&model->lock, NULL) != 0) TDM_FAIL(TDM_E_MEMORY, "model: no memory for a lock");
    model->has_lock = true;
    return TDM_OK;
}

/* With the first workspace, so that the first sample waits for nothing. */
static tdm_status open_parts(tdm_model *model, const void *bytes, size_t count) {
    tdm_compute_options compute = {.device = TDM_DEVICE_CPU, .module_path = model->options.module_path};
    const tdm_plan *plan;
    tdm_workspace *first;
    TDM_TRY(open_lock(model));
    TDM_TRY(tdm__tensor_file_open_memory(&model->file, model->host, bytes, count, model->path));
    TDM_TRY(tdm__model_read(model));
    compute.kernels = model->job.parallel.kernels;
    TDM_TRY(tdm__compute_open(&model->compute, model->host, &compute));
    if (!tdm__limit_book(model->host, model->compute.process_bytes))
        return tdm__out_of_memory(model->host, "the library of the kernels", model->compute.process_bytes);
    TDM_TRY(tdm__model_fault(model, tdm__model_plan(model, 0, &plan)));
    TDM_TRY(tdm__model_bind(model));
    TDM_TRY(tdm__workspace_take(model, 0, &first));
    tdm__workspace_give(model, 0, first);
    return TDM_OK;
}

static tdm_status new_model(tdm_model **out, const char *path, const tdm_model_options *options) {
    tdm_model_options taken = TDM_MODEL_OPTIONS_INIT;
    tdm_model *model = NULL;
    TDM_TRY(take_options(&taken, options));
    TDM_TRY(tdm__limit_open(&taken.host, 0));
    TDM_TRY_ELSE(tdm__new(taken.host, &model, 1, sizeof(*model), "model"), tdm__limit_close(taken.host));
    model->host = taken.host;
    model->options = taken;
    tdm__zone_init(&model->zone, model->host);
    model->transform.host = model->host;
    TDM_TRY_ELSE(tdm__zone_text(&model->zone, &model->path, path), tdm_model_close(model));
    *out = model;
    return TDM_OK;
}

/* The caller's texts are not needed after opening. */
static tdm_status fail_closed(tdm_model *model) {
    tdm_error error;
    tdm__error_save(&error);
    tdm_model_close(model);
    return tdm__error_restore(&error, NULL);
}

/* A run or a checkpoint, which tandem takes in many places, is a folder. */
static tdm_status open_map(tdm_map *map, const char *path) {
    const tdm_status status = tdm__map_open(map, path, TDM_E_CHECKPOINT);
    if (status == TDM_OK || !tdm__file_is_folder(NULL, path)) return status;
    TDM_FAIL(TDM_E_CHECKPOINT, "%s: a model is one file, found a folder; tdm_model_export makes one of a run", path);
}

tdm_status tdm_model_open(tdm_model **out, const char *path, const tdm_model_options *options) {
    tdm_model *model;
    if (out == NULL || path == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_model_open: out or path is NULL");
    *out = NULL;
    TDM_TRY(new_model(&model, path, options));
    tdm_status status = open_map(&model->map, path);
    if (status == TDM_OK && !tdm__limit_book(model->host, model->map.count))
        status = tdm__out_of_memory(model->host, path, model->map.count);
    if (status == TDM_OK) status = tdm__network_refuse(path, TDM_E_CHECKPOINT, "a model of tandem");
    if (status == TDM_OK) status = open_parts(model, model->map.bytes, model->map.count);
    if (status != TDM_OK) return fail_closed(model);
    *out = model;
    return TDM_OK;
}

tdm_status tdm_model_open_memory(tdm_model **out, const void *bytes, size_t count, const tdm_model_options *options) {
    tdm_model *model;
    if (out == NULL || bytes == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_model_open_memory: out or bytes is NULL");
    *out = NULL;
    TDM_TRY(new_model(&model, "model in memory", options));
    const tdm_status status = open_parts(model, bytes, count);
    if (status != TDM_OK) return fail_closed(model);
    *out = model;
    return TDM_OK;
}

void tdm_model_close(tdm_model *model) {
    if (model == NULL) return;
    const tdm_host *host = model->host;
    for (int i = 0; i < TDM_MODEL_PIECES; i++) {
        for (tdm_workspace *w = model->piece[i].free, *next; w != NULL; w = next) {
            next = w->next;
            tdm__workspace_close(model, w);
        }
        tdm__plan_free(model->piece[i].plan);
    }
    for (tdm_picture_desk *desk = model->desks, *next; desk != NULL; desk = next) {
        next = desk->next;
        tdm__picture_input_close(desk->input);
        tdm__delete(host, desk);
    }
    for (tdm_model_threads *t = model->threads, *next; t != NULL; t = next) {
        next = t->next;
        tdm__threads_close(t->threads);
        tdm__delete(host, t);
    }
    tdm__model_free_packs(model);
    if (model->has_lock) pthread_mutex_destroy(&model->lock);
    tdm__delete_pages(host, model->copies);
    tdm__compute_close(&model->compute, host);
    tdm__transform_deinit(&model->transform);
    tdm_config_free(model->config);
    tdm__tensor_file_close(model->file);
    tdm__map_close(&model->map);
    tdm__zone_deinit(&model->zone);
    tdm__delete(host, model);
    tdm__limit_close(host);
}

/* ---- what it says of itself ---- */

tdm_status tdm_model_get_info(const tdm_model *model, tdm_model_info *out) {
    if (model == NULL || out == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_model_get_info: a pointer is NULL");
    TDM_TRY(tdm__sized_check("tdm_model_get_info: tdm_model_info", out, TDM_SIZED_ANY, sizeof(*out)));
    const tdm_shape *input = &model->graph->sample;
    tdm_model_info info = {.input_ndim = input->ndim,
                           .input_width = tdm__shape_count(input),
                           .output_width = tdm_graph_output_width(model->graph),
                           .parameters = tdm_graph_param_count(model->graph),
                           .classes = model->classes.count,
                           .has_labels = tdm_job_has_labels(&model->job),
                           .has_logits = tdm_job_has_logits(&model->job),
                           .name = model->job.name,
                           .origin = tdm__tensor_file_note(model->file, TDM_NOTE_ORIGIN),
                           .text = tdm__tensor_file_note(model->file, TDM_NOTE_MODEL),
                           .used_bytes = model->used_bytes,
                           .copied_bytes = model->copied_bytes,
                           .packed_bytes = model->packed_bytes};
    memcpy(info.input, input->dim, (size_t)input->ndim * sizeof(*info.input));
    tdm__sized_give(out, &info);
    return TDM_OK;
}

int tdm_model_input_count(const tdm_model *model) {
    return model != NULL ? tdm_graph_input_count(model->graph) : 0;
}

tdm_status tdm_model_get_input(const tdm_model *model, int index, tdm_input_info *out) {
    return tdm__graph_get_input("tdm_model_get_input", model != NULL ? model->graph : NULL, index, out);
}

const char *tdm_model_property(const tdm_model *model, const char *key) {
    int count = 0;
    if (model == NULL || key == NULL) return NULL;
    const tdm_property *property = tdm__tensor_file_properties(model->file, &count);
    for (int i = 0; i < count; i++) {
        if (strcmp(property[i].key, key) == 0) return property[i].text;
    }
    return NULL;
}

const char *tdm_model_property_key(const tdm_model *model, int index) {
    int count = 0;
    if (model == NULL) return NULL;
    const tdm_property *property = tdm__tensor_file_properties(model->file, &count);
    return index >= 0 && index < count ? property[index].key : NULL;
}

const char *tdm_model_class_name(const tdm_model *model, int64_t index) {
    if (model == NULL || index < 0 || index >= model->classes.count) return NULL;
    return model->classes.name[index];
}
