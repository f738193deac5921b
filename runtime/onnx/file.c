/* An ONNX file as a whole: a ModelProto, and other files that hold its numbers. */
#include "runtime/onnx/file.h"

#include <string.h>
#include <unistd.h>

#include "runtime/base/status.h"
#include "runtime/base/system/file.h"
#include "runtime/onnx/fields.h"

/* ---- the model ---- */

static bool grow(tdm_onnx_file *file, tdm_wire_in *in, void *items, size_t *room, size_t needed, size_t bytes) {
    in->status = tdm__grow_at(file->host, items, room, needed, bytes, "an ONNX file");
    return in->status == TDM_OK;
}

static bool add_port(tdm_onnx_file *file, tdm_wire_in *in, tdm_wire_span message, tdm_onnx_port **list, size_t *count,
                     size_t *room) {
    return tdm__onnx_count(file, in, message.at, 1) && grow(file, in, list, room, *count + 1, sizeof(**list)) &&
           tdm__onnx_read_port(file, in, message, &(*list)[(*count)++]);
}

static bool add_graph_field(tdm_onnx_file *file, tdm_wire_in *in, const tdm_wire_field *field) {
    switch (field->number) {
    case GRAPH_NODE:
        if (file->node_count == TDM_ONNX_NODES)
            return tdm__wire_fail(in, field->span.at, "the model has too many nodes");
        return grow(file, in, &file->node, &file->node_room, file->node_count + 1, sizeof(*file->node)) &&
               tdm__onnx_read_node(file, in, field->span, &file->node[file->node_count++]);
    case GRAPH_NUMBERS:
        if (file->tensor_count == TDM_ONNX_CONSTANTS)
            return tdm__wire_fail(in, field->span.at, "the model has too many tensors");
        return grow(file, in, &file->tensor, &file->tensor_room, file->tensor_count + 1, sizeof(*file->tensor)) &&
               tdm__onnx_read_tensor(file, in, field->span, &file->tensor[file->tensor_count++]);
    case GRAPH_INPUT:
        return add_port(file, in, field->span, &file->input, &file->input_count, &file->input_room);
    case GRAPH_OUTPUT:
        return add_port(file, in, field->span, &file->output, &file->output_count, &file->output_room);
    default:
        return true;
    }
}

static bool is_graph_field(const tdm_wire_field *field) {
    return field->number == GRAPH_NODE || field->number == GRAPH_NUMBERS || field->number == GRAPH_INPUT ||
           field->number == GRAPH_OUTPUT;
}

static bool read_graph(tdm_onnx_file *file, tdm_wire_in *in, tdm_wire_span message) {
    tdm_wire_field field;
    while (tdm__wire_next(in, &message, &field)) {
        if (is_graph_field(&field) && !tdm__wire_is(in, &field, TDM_WIRE_COUNTED)) return false;
        if (!add_graph_field(file, in, &field)) return false;
    }
    return in->status == TDM_OK;
}

static bool read_opset(tdm_onnx_file *file, tdm_wire_in *in, tdm_wire_span message) {
    const char *domain = "";
    int64_t version = 0;
    tdm_wire_field field;
    while (tdm__wire_next(in, &message, &field)) {
        if (field.number == OPSET_DOMAIN && !tdm__onnx_text(file, in, &field, &domain)) return false;
        if (field.number == OPSET_VERSION) version = (int64_t)field.value;
    }
    if (strcmp(domain, "") == 0 || strcmp(domain, "ai.onnx") == 0) file->opset = version;
    return in->status == TDM_OK;
}

static bool read_model(tdm_onnx_file *file, tdm_wire_in *in) {
    tdm_wire_span message = {0, file->source.bytes}, graph = {0, 0};
    tdm_wire_field field;
    while (tdm__wire_next(in, &message, &field)) {
        const bool is_message = field.number == MODEL_GRAPH || field.number == MODEL_OPSET;
        if (is_message && !tdm__wire_is(in, &field, TDM_WIRE_COUNTED)) return false;
        if (field.number == MODEL_OPSET && !read_opset(file, in, field.span)) return false;
        if (field.number == MODEL_PRODUCER && !tdm__onnx_text(file, in, &field, &file->producer)) return false;
        if (field.number != MODEL_GRAPH) continue;
        if (graph.end > 0) return tdm__wire_fail(in, field.span.at, "a second graph begins");
        graph = field.span;
    }
    if (in->status == TDM_OK && graph.end == 0) return tdm__wire_fail(in, 0, "no model begins");
    return read_graph(file, in, graph);
}

/* ---- what is where, by name ---- */

static tdm_status add_name(tdm_onnx_file *file, tdm_names *names, const char *name, size_t number) {
    if (tdm__names_find(&file->tensors, name) >= 0 || tdm__names_find(&file->makers, name) >= 0)
        TDM_FAIL(TDM_E_CHECKPOINT, "%s: two parts of the model are called '%s'; it is damaged", file->source.path,
                 name);
    return tdm__names_add(names, &file->zone, name, (int)number);
}

/* A node's inputs are there before it: what stands above it, initializers, or the model's input. */
static tdm_status index_parts(tdm_onnx_file *file) {
    for (size_t i = 0; i < file->tensor_count; i++) TDM_TRY(add_name(file, &file->tensors, file->tensor[i].name, i));
    for (size_t i = 0; i < file->node_count; i++) {
        const tdm_onnx_node *node = &file->node[i].base;
        file->node[i].first_output = file->node_output_count;
        file->node_output_count += (size_t)node->output_count;
        for (int k = 0; k < node->output_count; k++)
            if (node->output[k][0] != '\0') TDM_TRY(add_name(file, &file->makers, node->output[k], i));
    }
    return TDM_OK;
}

static tdm_status check_kind(const tdm_onnx_file *file) {
    if (file->opset >= 1 && file->opset <= TDM_ONNX_NEWEST) return TDM_OK;
    TDM_FAIL(TDM_E_UNSUPPORTED, "%s: it is of opset %lld, and tandem reads 1 to %d; export it with opset_version=%d",
             file->source.path, (long long)file->opset, TDM_ONNX_NEWEST, TDM_ONNX_OPSET);
}

static tdm_status read_file(tdm_onnx_file *file) {
    tdm_wire_in *in;
    TDM_TRY(tdm__new(file->host, &in, 1, sizeof(*in), "an ONNX file"));
    in->source = &file->source;
    in->status = TDM_OK;
    (void)read_model(file, in);
    const tdm_status status = in->status;
    tdm__delete(file->host, in);
    TDM_TRY(status);
    TDM_TRY(check_kind(file));
    return index_parts(file);
}

static tdm_status open_file(tdm_onnx_file *file, const char *path, const void *memory, size_t count) {
    TDM_TRY(tdm__zone_text(&file->zone, &file->source.path, path));
    if (memory == NULL) {
        TDM_TRY(tdm__file_open(&file->source.fd, &file->source.bytes, NULL, path, TDM_E_CHECKPOINT));
    } else {
        file->source.memory = memory;
        file->source.bytes = count;
    }
    return read_file(file);
}

tdm_status tdm__onnx_file_open(tdm_onnx_file **out, const tdm_host *host, const char *path, const void *memory,
                               size_t count) {
    tdm_onnx_file *file;
    *out = NULL;
    TDM_TRY(tdm__new(host, &file, 1, sizeof(*file), "an ONNX file"));
    file->host = host;
    file->source.fd = -1;
    file->producer = "";
    tdm__zone_init(&file->zone, host);
    TDM_TRY_ELSE(open_file(file, path, memory, count), tdm__onnx_file_close(file));
    *out = file;
    return TDM_OK;
}

void tdm__onnx_file_close(tdm_onnx_file *file) {
    if (file == NULL) return;
    if (file->source.fd >= 0) (void)close(file->source.fd);
    for (int i = 0; i < file->external_count; i++) (void)close(file->external[i].fd);
    tdm__zone_deinit(&file->zone);
    tdm__delete(file->host, file->node);
    tdm__delete(file->host, file->tensor);
    tdm__delete(file->host, file->input);
    tdm__delete(file->host, file->output);
    tdm__delete(file->host, file);
}
