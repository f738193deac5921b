/* The graph of an ONNX file: of the layers that were found those that the output depends on, with their names. */
#include "runtime/onnx/import.h"

#include <string.h>

#include "runtime/base/log.h"
#include "runtime/base/call/extra.h"
#include "runtime/base/status.h"
#include "runtime/base/text/text.h"

/* ---- the layers that stay ---- */

typedef struct copying {
    const tdm_onnx_draft *draft;
    tdm_graph *graph;
    tdm_value *of; /* by value of the draft: that of the graph */
    size_t *index; /* by node of the graph: that of the draft */
} copying;

static tdm_status copy_layer(copying *c, size_t index) {
    const tdm_graph_node *node = &c->draft->graph->nodes[index];
    const tdm_onnx_layer_made *made = &c->draft->made[index];
    tdm_value x[TDM_MAX_INPUTS];
    const char *name;
    for (int i = 0; i < node->input_count; i++) x[i] = c->of[node->input[i]];
    TDM_TRY(tdm__onnx_layer_name(c->draft, (int)index, c->graph, &name));
    c->index[c->graph->node_count] = index;
    return tdm_graph_add(c->graph, node->op->name, name, x, node->input_count, made->attr, made->attr_count,
                         &c->of[node->output]);
}

static tdm_status copy_input(copying *c, int index) {
    const tdm_graph *draft = c->draft->graph;
    const tdm_shape *shape = &draft->values[index].shape;
    const char *name = draft->inputs[index].name;
    return name != NULL ? tdm_graph_add_input(c->graph, name, shape->ndim, shape->dim, &c->of[index])
                        : tdm_graph_input(c->graph, shape->ndim, shape->dim, &c->of[index]);
}

static tdm_status copy_layers(copying *c, tdm_value output) {
    const tdm_graph *draft = c->draft->graph;
    tdm_zone *zone = &c->draft->file->zone;
    bool *used;
    TDM_TRY(tdm__zone_new(zone, &used, draft->node_count, sizeof(*used)));
    TDM_TRY(tdm__zone_new(zone, &c->of, draft->value_count, sizeof(*c->of)));
    TDM_TRY(tdm__zone_new(zone, &c->index, draft->node_count, sizeof(*c->index)));
    tdm__graph_find_used(draft, output, used);
    for (int k = 0; k < draft->input_count; k++) TDM_TRY(copy_input(c, k));
    for (size_t i = 0; i < draft->node_count; i++)
        if (used[i]) TDM_TRY(copy_layer(c, i));
    for (int k = 0; k < c->graph->input_count; k++)
        if (c->graph->values[k].consumer_count == 0)
            TDM_FAIL(TDM_E_UNSUPPORTED, "%s: the output does not depend on the input '%s'; export the model without it",
                     c->draft->file->source.path, c->graph->inputs[k].name);
    return TDM_OK;
}

/* Two layers with one constant have one parameter in the program that wrote the file, or two that happened to be equal. */
static void note_use(tdm_onnx_import *import, const tdm_onnx_param *param) {
    tdm_onnx_tensor *tensor = param->tensor;
    if (tensor == NULL) return;
    if (tensor->trained == NULL) {
        tensor->trained = param->of->name;
        tensor->trained_by = param->of->node;
    } else if (tensor->trained_by != param->of->node && import->shared.constant == NULL) {
        import->shared = (tdm_onnx_shared){tensor->name, { tensor->trained, param->of->name }};
    }
}

static tdm_status list_params(tdm_onnx_import *import, const copying *c) {
    const tdm_graph *graph = c->graph;
    TDM_TRY(tdm__zone_new(&import->file->zone, &import->param, graph->param_count + graph->buffer_count,
                          sizeof(*import->param)));
    for (size_t k = 0; k < graph->param_count; k++) {
        const tdm_graph_param *param = &graph->params[k];
        const tdm_onnx_found *found = &c->draft->made[c->index[param->node]].found;
        tdm__onnx_param_init(c->draft, &import->param[import->param_count++], param,
                             &found->param[k - (size_t)graph->nodes[param->node].first_param]);
        note_use(import, &import->param[import->param_count - 1]);
    }
    for (size_t k = 0; k < graph->buffer_count; k++) {
        const tdm_graph_param *buffer = &graph->buffers[k];
        const tdm_onnx_found *found = &c->draft->made[c->index[buffer->node]].found;
        tdm__onnx_param_init(c->draft, &import->param[import->param_count++], buffer,
                             &found->buffer[k - (size_t)graph->nodes[buffer->node].first_buffer]);
    }
    return TDM_OK;
}

static tdm_status make_graph(tdm_onnx_import *import, const tdm_onnx_draft *draft) {
    copying c = {.draft = draft, .graph = import->graph};
    const tdm_value output = tdm__onnx_value_of(draft, import->file->output[0].name)->value;
    TDM_TRY(copy_layers(&c, output));
    import->output = c.of[output];
    return list_params(import, &c);
}

/* ---- opening ---- */

static void end_draft(tdm_onnx_draft *draft) {
    const tdm_host *host = draft->file->host;
    tdm_graph_free(draft->graph);
    tdm__delete(host, draft->made);
    tdm__delete(host, draft->value);
}

static tdm_status open_import(tdm_onnx_import *import, const tdm_host *host, const char *path, const void *memory,
                              size_t count) {
    TDM_TRY(tdm__onnx_file_open(&import->file, host, path, memory, count));
    tdm_onnx_draft draft = {.base = {.calls = &tdm__onnx_reader_calls}, .file = import->file};
    TDM_TRY(tdm_graph_new(&draft.graph, host));
    tdm_status status = tdm_graph_new(&import->graph, host);
    if (status == TDM_OK) status = tdm__onnx_draft_layers(&draft);
    if (status == TDM_OK) status = make_graph(import, &draft);
    end_draft(&draft);
    return status;
}

tdm_status tdm__onnx_import_open(tdm_onnx_import **out, const tdm_host *host, const char *path, const void *memory,
                                 size_t count) {
    tdm_onnx_import *import;
    *out = NULL;
    TDM_TRY(tdm__new(host, &import, 1, sizeof(*import), "an ONNX file"));
    const tdm_status status = open_import(import, host, path, memory, count);
    if (status == TDM_OK) {
        *out = import;
        return TDM_OK;
    }
    if (import->file == NULL)
        tdm__delete(host, import);
    else
        tdm__onnx_import_close(import);
    return status;
}

tdm_graph *tdm__onnx_import_take(tdm_onnx_import *import) {
    tdm_graph *graph = import->graph;
    const tdm_onnx_shared *shared = &import->shared;
    if (shared->constant != NULL)
        TDM_WARN(
            import->file->host, "onnx",
            "%s: '%s' and '%s' are one constant, '%s'; tandem trains a copy for each layer that shares one, and the "
            "copies go apart",
            import->file->source.path, shared->param[0], shared->param[1], shared->constant);
    memcpy(graph->shared, shared->param, sizeof(graph->shared));
    import->graph = NULL;
    return graph;
}

void tdm__onnx_import_close(tdm_onnx_import *import) {
    if (import == NULL) return;
    const tdm_host *host = import->file->host;
    tdm_graph_free(import->graph);
    tdm__onnx_file_close(import->file);
    tdm__delete(host, import);
}

bool tdm__onnx_named(const char *path) {
    return tdm__text_ends_in(path, ".onnx");
}

/* Every writer begins with the version of the format, a number below 128. */
bool tdm__onnx_begins(const void *bytes, size_t count) {
    const unsigned char *first = bytes;
    return count > 2 && first[0] == 0x08 && first[1] > 0 && first[1] < 0x80;
}

/* ---- for programs ---- */

static tdm_status graph_from(tdm_graph **out, tdm_value *output, const tdm_host *host, const char *path,
                             const void *memory, size_t count) {
    tdm_onnx_import *import;
    TDM_EXTRA(ONNX);
    TDM_TRY(tdm__host_take(&host));
    TDM_TRY(tdm__onnx_import_open(&import, host, path, memory, count));
    *output = import->output;
    *out = tdm__onnx_import_take(import);
    tdm__onnx_import_close(import);
    return TDM_OK;
}

tdm_status tdm_graph_from_onnx(tdm_graph **out, tdm_value *output, const tdm_host *host, const char *path) {
    if (out != NULL) *out = NULL;
    if (out == NULL || output == NULL || path == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_graph_from_onnx: a pointer is NULL");
    return graph_from(out, output, host, path, NULL, 0);
}

tdm_status tdm_graph_from_onnx_memory(tdm_graph **out, tdm_value *output, const tdm_host *host, const void *bytes,
                                      size_t count) {
    if (out != NULL) *out = NULL;
    if (out == NULL || output == NULL || bytes == NULL)
        TDM_FAIL(TDM_E_USAGE, "tdm_graph_from_onnx_memory: a pointer is NULL");
    return graph_from(out, output, host, "memory", bytes, count);
}
