/* The layers of a graph as nodes. What an op becomes is said in its folder (tdm_op_def.onnx). */
#include "runtime/base/status.h"
#include "runtime/model/onnx/onnx.h"
#include "runtime/onnx/fields.h"
#include "runtime/onnx/wire.h"

const char tdm__onnx_output[] = "output";

const char *tdm__onnx_input_name(const tdm_graph *graph, int index) {
    return graph->inputs[index].name != NULL ? graph->inputs[index].name : "input";
}

static tdm_onnx_writer *writer_of(tdm_onnx *to) {
    return (tdm_onnx_writer *)(void *)to;
}

static void end_node(tdm_onnx_writer *w) {
    if (w->has_node) tdm__wire_message(&w->nodes, GRAPH_NODE, &w->node);
    w->has_node = false;
    w->node.length = 0;
}

/* Without memory the nodes are marked as failed. */
static void add_numbers(tdm_onnx_writer *w, tdm_onnx_numbers numbers) {
    tdm_onnx_numbers *kept;
    if (tdm__zone_new(&w->zone, &kept, 1, sizeof(*kept)) != TDM_OK) {
        w->nodes.failed = true;
        return;
    }
    *kept = numbers;
    *w->last = kept;
    w->last = &kept->next;
}

/* The index of a tensor of the model; -1: it has none of this name. */
static int find_tensor(const tdm_onnx_source *source, const char *name) {
    int i = 0;
    while (i < source->tensor_count && strcmp(source->tensor[i].name, name) != 0) i++;
    return i < source->tensor_count ? i : -1;
}

/* A tensor of the model is in the file if a node reads it. */
static void read_tensor(tdm_onnx_writer *w, const char *name) {
    const int i = find_tensor(w->source, name);
    if (i < 0 || w->is_written[i]) return;
    const tdm_tensor *tensor = &w->source->tensor[i];
    tdm_onnx_numbers numbers = {.name = name, .type = TDM_ONNX_FLOAT, .data = tensor->data, .bytes = tensor->bytes};
    numbers.shape.ndim = tensor->ndim;
    memcpy(numbers.shape.dim, tensor->dim, (size_t)tensor->ndim * sizeof(*tensor->dim));
    add_numbers(w, numbers);
    w->is_written[i] = true;
}

/* ---- what ops call ---- */

static void node(tdm_onnx *to, const char *op, const char *y, int count, const char *const *x) {
    tdm_onnx_writer *w = writer_of(to);
    end_node(w);
    for (int i = 0; i < count; i++) {
        tdm__wire_text(&w->node, NODE_INPUT, x[i]);
        read_tensor(w, x[i]);
    }
    tdm__wire_text(&w->node, NODE_OUTPUT, y);
    tdm__wire_text(&w->node, NODE_NAME, y == w->y ? w->layer : y);
    tdm__wire_text(&w->node, NODE_OP, op);
    w->has_node = true;
}

static void add_attribute(tdm_onnx *to, const char *name, int type, tdm_text *rest) {
    tdm_onnx_writer *w = writer_of(to);
    tdm_text attribute;
    tdm__text_init(&attribute, w->zone.host);
    tdm__wire_text(&attribute, ATTRIBUTE_NAME, name);
    tdm__text_add(&attribute, rest->data != NULL ? rest->data : "", rest->length);
    tdm__wire_integer(&attribute, ATTRIBUTE_TYPE, type);
    attribute.failed = attribute.failed || rest->failed;
    tdm__wire_message(&w->node, NODE_ATTRIBUTE, &attribute);
    tdm__text_deinit(&attribute);
    tdm__text_deinit(rest);
}

static void integer(tdm_onnx *to, const char *name, int64_t value) {
    tdm_text rest;
    tdm__text_init(&rest, writer_of(to)->zone.host);
    tdm__wire_integer(&rest, ATTRIBUTE_I, value);
    add_attribute(to, name, TYPE_INT, &rest);
}

static void integers(tdm_onnx *to, const char *name, int count, const int64_t *values) {
    tdm_text rest;
    tdm__text_init(&rest, writer_of(to)->zone.host);
    for (int i = 0; i < count; i++) tdm__wire_integer(&rest, ATTRIBUTE_INTS, values[i]);
    add_attribute(to, name, TYPE_INTS, &rest);
}

static void number(tdm_onnx *to, const char *name, double value) {
    tdm_text rest;
    tdm__text_init(&rest, writer_of(to)->zone.host);
    tdm__wire_float(&rest, ATTRIBUTE_F, (float)value);
    add_attribute(to, name, TYPE_FLOAT, &rest);
}

static void word(tdm_onnx *to, const char *name, const char *value) {
    tdm_text rest;
    tdm__text_init(&rest, writer_of(to)->zone.host);
    tdm__wire_text(&rest, ATTRIBUTE_S, value);
    add_attribute(to, name, TYPE_STRING, &rest);
}

/* No layer's name has a slash at its end; those of tensors have a point. */
static const char *new_value(tdm_onnx *to) {
    tdm_onnx_writer *w = writer_of(to);
    const char *name;
    if (tdm__zone_printf(&w->zone, &name, "%s/%d", w->layer, ++w->count) == TDM_OK) return name;
    w->nodes.failed = true;
    return "";
}

static const char *constant(tdm_onnx *to, int type, const tdm_shape *shape, const void *numbers, size_t each) {
    tdm_onnx_writer *w = writer_of(to);
    const size_t count = (size_t)tdm__shape_count(shape);
    const char *name = new_value(to);
    char *copy;
    if (tdm__zone_new(&w->zone, &copy, count, each) != TDM_OK) {
        w->nodes.failed = true;
        return name;
    }
    memcpy(copy, numbers, count * each);
    add_numbers(w,
                (tdm_onnx_numbers){.name = name, .type = type, .shape = *shape, .data = copy, .bytes = count * each});
    return name;
}

static const char *floats(tdm_onnx *to, const tdm_shape *shape, const float *numbers) {
    return constant(to, TDM_ONNX_FLOAT, shape, numbers, sizeof(*numbers));
}

static const char *indices(tdm_onnx *to, int count, const int64_t *numbers) {
    const tdm_shape shape = {1, {count}};
    return constant(to, TDM_ONNX_INT64, &shape, numbers, sizeof(*numbers));
}

static const tdm_onnx_calls calls = {node, integer, integers, number, word, new_value, floats, indices};

/* ---- layers ---- */

static tdm_status name_value(tdm_onnx_writer *w, tdm_value value, const char **out) {
    const tdm_graph *graph = w->source->graph;
    *out = tdm__graph_is_input(graph, value) ? tdm__onnx_input_name(graph, value) : tdm__onnx_output;
    if (tdm__graph_is_input(graph, value) || value == graph->output) return TDM_OK;
    return tdm__zone_printf(&w->zone, out, "%s/", graph->nodes[graph->values[value].producer].name);
}

/* Finds the tensor of a parameter or a buffer, which the graph says must be there. */
static tdm_status find_numbers(const tdm_onnx_source *source, const tdm_graph_param *param, const float **out) {
    const int i = find_tensor(source, param->name);
    *out = NULL;
    if (i < 0) TDM_FAIL(TDM_E_CHECKPOINT, "the tensor '%s' of the model is missing", param->name);
    if (source->tensor[i].dtype != TDM_ST_F32 || !tdm__tensor_has_shape(&source->tensor[i], &param->def.shape))
        TDM_FAIL(TDM_E_CHECKPOINT, "tensor '%s' must be F32 %s, as its model says", param->name,
                 tdm__shape_text(&param->def.shape).text);
    *out = source->tensor[i].data;
    return TDM_OK;
}

static tdm_status write_node(tdm_onnx_writer *w, const tdm_graph_node *from) {
    const tdm_graph *graph = w->source->graph;
    tdm_onnx_layer layer = {.attrs = from->attrs,
                            .input_count = from->input_count,
                            .param_count = from->param_count,
                            .output = graph->values[from->output].shape};
    TDM_TRY(tdm__zone_printf(&w->zone, &layer.layer, "%s '%s'", from->op->name, from->name));
    if (from->op->onnx == NULL) TDM_FAIL(TDM_E_UNSUPPORTED, "%s has no counterpart in ONNX", layer.layer);
    for (int i = 0; i < from->input_count; i++) {
        layer.input[i] = graph->values[from->input[i]].shape;
        TDM_TRY(name_value(w, from->input[i], &layer.x[i]));
    }
    TDM_TRY(name_value(w, from->output, &layer.y));
    for (int i = 0; i < from->param_count; i++) {
        const tdm_graph_param *param = &graph->params[from->first_param + i];
        layer.param[i] = param->name;
        layer.param_shape[i] = param->def.shape;
        TDM_TRY(find_numbers(w->source, param, &layer.weight[i]));
    }
    for (int i = 0; i < from->buffer_count && i < TDM_MAX_BUFFERS; i++) {
        const tdm_graph_param *buffer = &graph->buffers[from->first_buffer + i];
        const float *numbers;
        layer.buffer[i] = buffer->name;
        if (!buffer->def.is_counter) TDM_TRY(find_numbers(w->source, buffer, &numbers));
    }
    w->layer = from->name;
    w->y = layer.y;
    w->count = 0;
    return from->op->onnx(&w->base, &layer);
}

tdm_status tdm__onnx_nodes(tdm_onnx_writer *w) {
    const tdm_graph *graph = w->source->graph;
    w->base.calls = &calls;
    w->base.host = w->zone.host;
    for (size_t i = 0; i < graph->node_count; i++) TDM_TRY(write_node(w, &graph->nodes[i]));
    end_node(w);
    if (w->nodes.failed || w->node.failed) TDM_FAIL(TDM_E_MEMORY, "out of memory for the nodes of an ONNX file");
    return TDM_OK;
}
