/* Building the graph. Each layer is looked up, its attributes are read with the op's own table, and its shape is
 * inferred at once, so that a fault is reported at its layer. */
#include "runtime/graph/graph.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/field/field_range.h"
#include "runtime/base/status.h"
#include "runtime/base/text/text.h"

/* A finished graph does not change, so that runs share it with the program. */
struct tdm_graph_owners {
    tdm_graph *graph;
    atomic_int count;
};

enum { MAX_NAME = 200, MAX_NODES = 10000 }; /* with at most 5 tensors each, the limit of a checkpoint */
tdm_status tdm_graph_new(tdm_graph **out, const tdm_host *host) {
    if (out == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_graph_new: out is NULL");
    *out = NULL;
    TDM_TRY(tdm__host_take(&host));
    tdm_graph *graph = NULL;
    TDM_TRY(tdm__new(host, &graph, 1, sizeof(*graph), "graph"));
    graph->host = host;
    graph->output = -1;
    tdm__zone_init(&graph->zone, host);
    const tdm_status status = tdm__zone_new(&graph->zone, &graph->owners, 1, sizeof(*graph->owners));
    if (status != TDM_OK) {
        tdm__delete(host, graph);
        return status;
    }
    graph->owners->graph = graph;
    atomic_init(&graph->owners->count, 1);
    *out = graph;
    return TDM_OK;
}

void tdm_graph_free(tdm_graph *graph) {
    if (graph == NULL || atomic_fetch_sub(&graph->owners->count, 1) > 1) return;
    const tdm_host *host = graph->host;
    tdm__zone_deinit(&graph->zone);
    tdm__delete(host, graph->values);
    tdm__delete(host, graph->nodes);
    tdm__delete(host, graph->params);
    tdm__delete(host, graph->buffers);
    tdm__delete(host, graph->modules);
    tdm__delete(host, graph);
}

const tdm_graph *tdm__graph_keep(const tdm_graph *graph) {
    atomic_fetch_add(&graph->owners->count, 1);
    return graph;
}

void tdm__graph_leave(const tdm_graph *graph) {
    if (graph != NULL) tdm_graph_free(graph->owners->graph);
}

tdm_status tdm__op_infer(const tdm_op_def *op, tdm_infer *infer) {
    TDM_TRY(op->infer(infer));
    if (!tdm__shape_is_sane(&infer->output))
        TDM_FAIL_AT(&infer->origin, TDM_E_CONFIG, "%s: its output %s has more elements than any machine can hold",
                    infer->layer, tdm__shape_text(&infer->output).text);
    for (int i = 0; i < infer->param_count; i++)
        if (!tdm__shape_is_sane(&infer->param[i].shape))
            TDM_FAIL_AT(&infer->origin, TDM_E_CONFIG, "%s: its %s %s has more elements than any machine can hold",
                        infer->layer, infer->param[i].suffix, tdm__shape_text(&infer->param[i].shape).text);
    return TDM_OK;
}

static tdm_status unknown_op(const char *op, const tdm_origin *origin) {
    const char *names[256];
    int count = 0;
    for (int i = 0; tdm_builtin_ops[i] != NULL && count < 256; i++) names[count++] = tdm_builtin_ops[i]->name;
    const char *near = tdm_text_nearest(op, names, count);
    if (near != NULL) TDM_FAIL_AT(origin, TDM_E_CONFIG, "unknown layer kind '%s'; did you mean '%s'?", op, near);
    TDM_FAIL_AT(origin, TDM_E_CONFIG, "unknown layer kind '%s'; `tandem explain layers` lists them", op);
}

tdm_status tdm_graph_op_inputs(const char *op, int *least, int *most) {
    if (op == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_graph_op_inputs: op is NULL");
    const tdm_op_def *found = tdm__op_find(op);
    if (found == NULL) return unknown_op(op, NULL);
    if (least != NULL) *least = found->min_inputs;
    if (most != NULL) *most = found->max_inputs;
    return TDM_OK;
}

static tdm_status set_one_attr(tdm_graph *graph, const tdm_op_def *op, const char *layer, const tdm_attr *attr,
                               const tdm_origin *origin, void *object, tdm_text *why) {
    const tdm_origin *at = attr->origin.line != 0 ? &attr->origin : origin;
    const tdm_field *row = op->attrs != NULL ? tdm__field_find(op->attrs, attr->key) : NULL;
    if (row == NULL) {
        const char *names[64];
        int count = 0;
        for (const tdm_field *f = op->attrs; f != NULL && f->key != NULL && count < 64; f++) names[count++] = f->key;
        const char *near = tdm_text_nearest(attr->key, names, count);
        TDM_FAIL_AT(at, TDM_E_CONFIG, "%s has no attribute '%s'%s%s%s", layer, attr->key,
                    near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    }
    if (tdm__field_set_text(row, object, attr->text, &graph->zone, why)) return TDM_OK;
    if (tdm__field_lacks_memory(why)) TDM_FAIL_AT(at, TDM_E_MEMORY, "%s: %s: out of memory", layer, attr->key);
    TDM_FAIL_AT(at, TDM_E_CONFIG, "%s: %s %s", layer, attr->key, why->data != NULL ? why->data : "has a wrong value");
}

static bool is_repeated(const tdm_attr *attrs, int index) {
    int i = 0;
    while (i < index && strcmp(attrs[i].key, attrs[index].key) != 0) i++;
    return i < index;
}

static tdm_status repeated_attr(const char *layer, const tdm_attr *attr, const tdm_origin *origin) {
    TDM_FAIL_AT(attr->origin.line != 0 ? &attr->origin : origin, TDM_E_CONFIG,
                "%s: attribute '%s' is given twice; give it once", layer, attr->key);
}

static tdm_status read_attrs(tdm_graph *graph, const tdm_op_def *op, const char *layer, const tdm_origin *origin,
                             const tdm_attr *attrs, int attr_count, const void **out) {
    void *object = NULL;
    *out = NULL;
    if (op->attrs == NULL && attr_count == 0) return TDM_OK;
    TDM_TRY(tdm__zone_new(&graph->zone, &object, 1, op->attrs_bytes > 0 ? op->attrs_bytes : 1));
    if (op->attrs != NULL) TDM_TRY(tdm__field_set_initial(op->attrs, object, &graph->zone));
    tdm_text why;
    tdm__text_init(&why, graph->host);
    tdm_status status = TDM_OK;
    for (int i = 0; i < attr_count && status == TDM_OK; i++)
        status = is_repeated(attrs, i) ? repeated_attr(layer, &attrs[i], origin)
                                       : set_one_attr(graph, op, layer, &attrs[i], origin, object, &why);
    tdm__text_deinit(&why);
    if (status != TDM_OK) return status;
    for (const tdm_field *row = op->attrs; row != NULL && row->key != NULL; row++) {
        bool given = false;
        for (int i = 0; i < attr_count; i++) given = given || strcmp(attrs[i].key, row->key) == 0;
        if ((row->flags & TDM_FIELD_REQUIRED) != 0 && !given)
            TDM_FAIL_AT(origin, TDM_E_CONFIG, "%s needs '%s': %s", layer, row->key, row->help);
    }
    *out = object;
    return TDM_OK;
}

static tdm_status add_tensors(tdm_graph *graph, const char *layer, const tdm_param_def *defs, int count, int node,
                              tdm_graph_param **list, size_t *list_count, size_t *room) {
    TDM_TRY(tdm__grow(graph->host, list, room, *list_count + (size_t)count, sizeof(**list), "graph parameters"));
    for (int i = 0; i < count; i++) {
        tdm_graph_param param = {.def = defs[i], .node = node, .count = tdm__shape_count(&defs[i].shape)};
        TDM_TRY(tdm__zone_printf(&graph->zone, &param.name, "%s.%s", layer, defs[i].suffix));
        (*list)[(*list_count)++] = param;
    }
    return TDM_OK;
}

static tdm_status check_inputs(const tdm_graph *graph, const tdm_op_def *op, const char *layer,
                               const tdm_origin *origin, const tdm_value *inputs, int input_count) {
    if (input_count < op->min_inputs || input_count > op->max_inputs || input_count > TDM_MAX_INPUTS) {
        if (op->min_inputs == op->max_inputs)
            TDM_FAIL_AT(origin, TDM_E_CONFIG, "%s needs %d input%s, got %d", layer, op->min_inputs,
                        op->min_inputs == 1 ? "" : "s", input_count);
        TDM_FAIL_AT(origin, TDM_E_CONFIG, "%s needs %d to %d inputs, got %d", layer, op->min_inputs, op->max_inputs,
                    input_count);
    }
    for (int i = 0; i < input_count; i++) {
        if (inputs[i] < 0 || (size_t)inputs[i] >= graph->value_count)
            TDM_FAIL_AT(origin, TDM_E_USAGE, "%s: input %d is not a value of this graph", layer, i);
    }
    return TDM_OK;
}

static tdm_status check_name(const tdm_graph *graph, const char *name, const tdm_origin *origin) {
    size_t length = strlen(name);
    if (length == 0 || length > MAX_NAME || name[0] == '.' || name[length - 1] == '.' || strstr(name, "..") != NULL)
        TDM_FAIL_AT(origin, TDM_E_CONFIG,
                    "layer name '%s' must have 1 to %d characters, with dots only between parts: features.0, fc1", name,
                    MAX_NAME);
    if (!tdm__text_is_utf8(name, length, NULL)) TDM_FAIL_AT(origin, TDM_E_CONFIG, "a layer name is not valid UTF-8");
    if (tdm__names_find(&graph->names, name) >= 0)
        TDM_FAIL_AT(origin, TDM_E_CONFIG, "two layers are called '%s'; names must differ", name);
    if (tdm__graph_find_input(graph, name) >= 0)
        TDM_FAIL_AT(origin, TDM_E_CONFIG, "a layer and an input are called '%s'; names must differ", name);
    return TDM_OK;
}

static tdm_status append(tdm_graph *graph, tdm_graph_node *node, const tdm_infer *infer) {
    int index = (int)graph->node_count;
    node->first_param = (int)graph->param_count, node->param_count = infer->param_count;
    node->first_buffer = (int)graph->buffer_count, node->buffer_count = infer->buffer_count;
    TDM_TRY(
        tdm__grow(graph->host, &graph->nodes, &graph->node_room, graph->node_count + 1, sizeof(*node), "graph nodes"));
    TDM_TRY(add_tensors(graph, node->name, infer->param, infer->param_count, index, &graph->params, &graph->param_count,
                        &graph->param_room));
    TDM_TRY(add_tensors(graph, node->name, infer->buffer, infer->buffer_count, index, &graph->buffers,
                        &graph->buffer_count, &graph->buffer_room));
    TDM_TRY(tdm__graph_add_value(graph, &infer->output, index, &node->output));
    TDM_TRY(tdm__names_add(&graph->names, &graph->zone, node->name, index));
    for (int i = 0; i < node->input_count; i++) graph->values[node->input[i]].consumer_count++;
    graph->nodes[graph->node_count++] = *node;
    return TDM_OK;
}

static tdm_status check_arguments(const tdm_graph *graph, const char *op_name, const tdm_value *inputs,
                                  const tdm_attr *attrs, int attr_count, const tdm_value *out) {
    if (graph == NULL || op_name == NULL || inputs == NULL || out == NULL || (attrs == NULL && attr_count > 0))
        TDM_FAIL(TDM_E_USAGE, "tdm_graph_add: a pointer is NULL");
    for (int i = 0; i < attr_count; i++) {
        if (attrs[i].key == NULL || attrs[i].text == NULL)
            TDM_FAIL(TDM_E_USAGE, "tdm_graph_add: attribute %d has no key or no text", i);
    }
    return TDM_OK;
}

tdm_status tdm_graph_add_at(tdm_graph *graph, const tdm_origin *origin, const char *op_name, const char *name,
                            const tdm_value *inputs, int input_count, const tdm_attr *attrs, int attr_count,
                            tdm_value *out) {
    TDM_TRY(check_arguments(graph, op_name, inputs, attrs, attr_count, out));
    if (graph->finished) TDM_FAIL(TDM_E_USAGE, "tdm_graph_add: the graph is finished");
    if (graph->input_count == 0)
        TDM_FAIL(TDM_E_USAGE, "tdm_graph_add: call tdm_graph_input or tdm_graph_add_input first");
    if (graph->node_count >= MAX_NODES) TDM_FAIL(TDM_E_CONFIG, "a model has at most %d layers", MAX_NODES);
    const tdm_op_def *op = tdm__graph_op(graph, op_name);
    if (op == NULL) return unknown_op(op_name, origin);

    tdm_graph_node node = {.op = op, .input_count = input_count, .stage = -1};
    if (name != NULL)
        TDM_TRY(tdm__zone_text(&graph->zone, &node.name, name));
    else
        TDM_TRY(tdm__zone_printf(&graph->zone, &node.name, "%zu", graph->node_count));
    if (origin != NULL) {
        node.origin = *origin;
        TDM_TRY(tdm__zone_text(&graph->zone, &node.origin.file, origin->file));
    }
    TDM_TRY(check_name(graph, node.name, &node.origin));
    const char *layer = NULL;
    TDM_TRY(tdm__zone_printf(&graph->zone, &layer, "%s '%s'", op->name, node.name));
    TDM_TRY(check_inputs(graph, op, layer, &node.origin, inputs, input_count));
    TDM_TRY(read_attrs(graph, op, layer, &node.origin, attrs, attr_count, &node.attrs));

    tdm_infer infer = {.attrs = node.attrs, .input_count = input_count, .layer = layer, .origin = node.origin};
    for (int i = 0; i < input_count; i++) {
        node.input[i] = inputs[i];
        infer.input[i] = graph->values[inputs[i]].shape;
    }
    TDM_TRY(tdm__op_infer(op, &infer));

    node.flops = infer.flops;
    node.least_rows = infer.least_rows, node.least_rows_in_evaluation = infer.least_rows_in_evaluation;
    node.statistics = infer.statistics;
    node.index_below = infer.index_below, node.picks = infer.picks, node.picks_first = infer.picks_first;
    size_t params = graph->param_count, buffers = graph->buffer_count, values = graph->value_count;
    tdm_status status = append(graph, &node, &infer);
    if (status != TDM_OK) { /* take back what `append` has added */
        graph->param_count = params, graph->buffer_count = buffers, graph->value_count = values;
        return tdm__frame(status, __FILE__, __LINE__);
    }
    *out = node.output;
    return TDM_OK;
}

tdm_status tdm_graph_add(tdm_graph *graph, const char *op, const char *name, const tdm_value *inputs, int input_count,
                         const tdm_attr *attrs, int attr_count, tdm_value *out) {
    return tdm_graph_add_at(graph, NULL, op, name, inputs, input_count, attrs, attr_count, out);
}

tdm_status tdm_graph_set_stage(tdm_graph *graph, tdm_value value, int stage) {
    if (graph == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_graph_set_stage: graph is NULL");
    if (graph->finished) TDM_FAIL(TDM_E_USAGE, "tdm_graph_set_stage: the graph is finished");
    if (value < 0 || (size_t)value >= graph->value_count || graph->values[value].producer < 0)
        TDM_FAIL(TDM_E_USAGE, "tdm_graph_set_stage: no layer of this graph makes the value %d", (int)value);
    if (stage < 0 || stage >= TDM_STAGES_MAX)
        TDM_FAIL(TDM_E_USAGE, "tdm_graph_set_stage: stages are 0 to %d, got %d", TDM_STAGES_MAX - 1, stage);
    graph->nodes[graph->values[value].producer].stage = stage;
    return TDM_OK;
}

/* ---- names of tensors ---- */

static const tdm_graph_param *tensor_at(const tdm_graph *graph, size_t i) {
    return i < graph->param_count ? &graph->params[i] : &graph->buffers[i - graph->param_count];
}

/* In PyTorch a tensor of a module and a module inside it cannot have the same name. So beside a linear layer `fc`, the
 * layer names `fc.weight` and `fc.weight.x` are refused. */
static tdm_status check_layer(const tdm_graph *graph, const tdm_names *tensors, const tdm_graph_node *node) {
    char part[MAX_NAME + 1];
    for (size_t length = strcspn(node->name, "."); length > 0;) {
        snprintf(part, sizeof(part), "%.*s", (int)length, node->name);
        const int number = tdm__names_find(tensors, part);
        if (number >= 0) {
            const tdm_graph_node *outer = &graph->nodes[tensor_at(graph, (size_t)number)->node];
            TDM_FAIL_AT(&node->origin, TDM_E_CONFIG,
                        "the layer name '%s' is taken: '%s' is a tensor of %s '%s'; choose another name", node->name,
                        part, outer->op->name, outer->name);
        }
        length = node->name[length] == '.' ? length + 1 + strcspn(node->name + length + 1, ".") : 0;
    }
    return TDM_OK;
}

static tdm_status check_tensors(tdm_graph *graph) {
    tdm_names tensors = {0};
    for (size_t i = 0; i < graph->param_count + graph->buffer_count; i++)
        TDM_TRY(tdm__names_add(&tensors, &graph->zone, tensor_at(graph, i)->name, (int)i));
    for (size_t i = 0; i < graph->node_count; i++) TDM_TRY(check_layer(graph, &tensors, &graph->nodes[i]));
    return TDM_OK;
}

tdm_status tdm_graph_finish(tdm_graph *graph, tdm_value output) {
    if (graph == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_graph_finish: graph is NULL");
    if (graph->finished) TDM_FAIL(TDM_E_USAGE, "tdm_graph_finish: the graph is finished already");
    if (output < 0 || (size_t)output >= graph->value_count)
        TDM_FAIL(TDM_E_USAGE, "tdm_graph_finish: the output is not a value of this graph");
    if (graph->param_count == 0) TDM_FAIL(TDM_E_CONFIG, "the model has no parameters to train");
    if (graph->values[output].consumer_count != 0)
        TDM_FAIL(TDM_E_CONFIG, "another layer uses the model's output; the output must be the last value");
    TDM_TRY(tdm__graph_check_inputs(graph));
    TDM_TRY(check_tensors(graph));
    graph->output = output;
    graph->finished = true;
    return TDM_OK;
}

tdm_rows_fault tdm__graph_rows_fault(const tdm_graph *graph, int64_t rows, bool training) {
    tdm_rows_fault fault = {.node = NULL};
    for (size_t i = 0; rows > 0 && fault.node == NULL && i < graph->node_count; i++) {
        const tdm_graph_node *node = &graph->nodes[i];
        const int64_t least = training ? node->least_rows : node->least_rows_in_evaluation;
        if (rows >= least) continue;
        fault.node = node;
        snprintf(fault.text, sizeof(fault.text),
                 "%s '%s' needs at least %lld rows in every batch of %s on a device, but one has %lld", node->op->name,
                 node->name, (long long)least, training ? "training" : "evaluation", (long long)rows);
    }
    return fault;
}

int tdm_graph_shape(const tdm_graph *graph, tdm_value value, int64_t *dim) {
    if (graph == NULL || dim == NULL || value < 0 || (size_t)value >= graph->value_count) return 0;
    const tdm_shape *shape = &graph->values[value].shape;
    memcpy(dim, shape->dim, (size_t)shape->ndim * sizeof(*dim));
    return shape->ndim;
}

int64_t tdm_graph_output_width(const tdm_graph *graph) {
    return graph != NULL && graph->finished ? tdm__shape_count(&graph->values[graph->output].shape) : 0;
}

int64_t tdm_graph_param_count(const tdm_graph *graph) {
    int64_t count = 0;
    for (size_t i = 0; graph != NULL && i < graph->param_count; i++) count += graph->params[i].count;
    return count;
}
