/* Finds the layers among the nodes: each node is shown to the ops, in the order of the file. */
#include <string.h>

#include "runtime/base/status.h"
#include "runtime/base/text/text.h"
#include "runtime/onnx/import.h"

static tdm_status add_value(tdm_onnx_draft *draft, const char *name, const tdm_onnx_value *value) {
    TDM_TRY(tdm__grow(draft->file->host, &draft->value, &draft->value_room, draft->value_count + 1,
                      sizeof(*draft->value), "an ONNX file"));
    TDM_TRY(tdm__names_add(&draft->values, &draft->file->zone, name, (int)draft->value_count));
    draft->value[draft->value_count++] = *value;
    return TDM_OK;
}

/* ---- what a Constant node holds ---- */

static tdm_status read_constant(tdm_onnx_draft *draft, size_t index) {
    const tdm_onnx_file_node *node = &draft->file->node[index];
    tdm_onnx_tensor *made;
    if (strcmp(node->base.op, "Constant") != 0 || node->attribute_count != 1) return TDM_OK;
    const tdm_onnx_attribute *of = node->attribute;
    if (strcmp(of->name, "value") == 0) {
        draft->constant[index] = of->t;
        return TDM_OK;
    }
    TDM_TRY(tdm__zone_new(&draft->file->zone, &made, 1, sizeof(*made)));
    *made = (tdm_onnx_tensor){.name = node->base.name, .type = TDM_ONNX_INT64, .count = 1};
    if (strcmp(of->name, "value_float") == 0) {
        made->type = TDM_ONNX_FLOAT;
        made->number = (double)of->f;
    } else if (strcmp(of->name, "value_int") == 0) {
        made->items = &of->i;
    } else if (strcmp(of->name, "value_ints") == 0) {
        made->ndim = 1;
        made->dim[0] = made->count = of->count;
        made->items = of->ints;
    } else {
        return TDM_OK;
    }
    draft->constant[index] = made;
    return TDM_OK;
}

/* ---- a layer that was found ---- */

static tdm_onnx_view plain_view(const tdm_shape *shape) {
    tdm_onnx_view view = {.ndim = shape->ndim + 1, .shape = *shape};
    for (int i = 0; i < view.ndim; i++) view.axis[i] = i + TDM_ONNX_BATCH;
    return view;
}

static const tdm_shape *shape_of(const tdm_onnx_draft *draft, tdm_value value) {
    return &draft->graph->values[value].shape;
}

/* Does the view name each dimension of the shape once, but for some of 1? */
static bool fits(const tdm_onnx_view *view) {
    int named[TDM_MAX_DIMS] = {0}, batches = 0;
    for (int i = 0; i < view->ndim; i++) {
        batches += view->axis[i] == TDM_ONNX_BATCH;
        if (view->axis[i] >= view->shape.ndim) return false;
        if (view->axis[i] >= 0) named[view->axis[i]]++;
    }
    for (int i = 0; i < view->shape.ndim; i++)
        if (named[i] > 1 || (named[i] == 0 && view->shape.dim[i] != 1)) return false;
    return batches == 1;
}

static tdm_status say_why(tdm_onnx_draft *draft, const char *why) {
    const char **said = &draft->why[draft->asked];
    return why[0] != '\0' && *said == NULL ? tdm__zone_text(&draft->file->zone, said, why) : TDM_OK;
}

/* Adds a node to the draft's graph; *added is false if its shapes do not fit, which is no failure. */
static tdm_status add_node(tdm_onnx_draft *draft, const char *op, const tdm_value *x, const tdm_onnx_layer_made *layer,
                           tdm_value *out, bool *added) {
    TDM_TRY(tdm__grow(draft->file->host, &draft->made, &draft->made_room, draft->graph->node_count + 1,
                      sizeof(*draft->made), "an ONNX file"));
    tdm_error before;
    tdm__error_save(&before);
    const tdm_status status =
        tdm_graph_add(draft->graph, op, NULL, x, layer->found.input_count, layer->attr, layer->attr_count, out);
    *added = status == TDM_OK;
    if (status == TDM_E_CONFIG || status == TDM_E_UNSUPPORTED) {
        TDM_TRY(say_why(draft, tdm_error_message()));
        (void)tdm__error_restore(&before, NULL);
        return TDM_OK;
    }
    TDM_TRY(status);
    draft->made[draft->graph->node_count - 1] = *layer;
    return TDM_OK;
}

/* Why one of the layer's parameters cannot have its numbers; NULL: they all can. */
static const char *params_fault(const tdm_onnx_draft *draft, const tdm_onnx_found *found) {
    const tdm_graph *graph = draft->graph;
    const tdm_graph_node *node = &graph->nodes[graph->node_count - 1];
    const char *fault = NULL;
    for (int i = 0; i < node->param_count && fault == NULL; i++)
        fault = tdm__onnx_param_fault(draft, &graph->params[node->first_param + i].def, &found->param[i]);
    for (int i = 0; i < node->buffer_count && fault == NULL; i++)
        fault = tdm__onnx_param_fault(draft, &graph->buffers[node->first_buffer + i].def, &found->buffer[i]);
    return fault;
}

static tdm_status add_layer(tdm_onnx_draft *draft, size_t index, const tdm_op_def *op, const tdm_onnx_found *found,
                            tdm_onnx_value *out, bool *added) {
    tdm_onnx_layer_made layer = {.found = *found, .attr_count = draft->attr_count};
    tdm_value x[TDM_MAX_INPUTS];
    layer.named = found->named != NULL ? found->named : &draft->file->node[index].base;
    for (int i = 0; i < found->input_count; i++) x[i] = tdm__onnx_value_of(draft, found->x[i])->value;
    TDM_TRY(tdm__zone_new(&draft->file->zone, &layer.attr, (size_t)draft->attr_count, sizeof(*layer.attr)));
    memcpy(layer.attr, draft->attr, (size_t)draft->attr_count * sizeof(*layer.attr));
    TDM_TRY(add_node(draft, op->name, x, &layer, &out->value, added));
    const char *fault = *added ? params_fault(draft, found) : NULL;
    if (fault != NULL) {
        *added = false;
        return say_why(draft, fault);
    }
    if (!*added || found->then == NULL) return TDM_OK;
    const tdm_onnx_layer_made behind = {.found = {.input_count = 1}, .named = layer.named};
    x[0] = out->value;
    return add_node(draft, found->then, x, &behind, &out->value, added);
}

/* The values that the layer reads are there. */
static bool has_inputs(const tdm_onnx_draft *draft, const tdm_onnx_found *found) {
    bool good = found->input_count > 0;
    for (int i = 0; i < found->input_count; i++) good = good && tdm__onnx_value_of(draft, found->x[i]) != NULL;
    return good;
}

/* The output `name` of a node becomes a value. */
static tdm_status take(tdm_onnx_draft *draft, size_t index, const char *name, const tdm_op_def *op,
                       const tdm_onnx_found *found, bool *taken) {
    tdm_onnx_value value = {.maker = &draft->file->node[index].base};
    if (!has_inputs(draft, found)) return TDM_OK;
    if (found->is_view) {
        value = *tdm__onnx_value_of(draft, found->x[0]);
    } else {
        TDM_TRY(add_layer(draft, index, op, found, &value, taken));
        if (!*taken) return TDM_OK;
    }
    const tdm_shape shape = *shape_of(draft, value.value);
    if (found->is_view || found->view.ndim > 0)
        value.view = found->view;
    else
        value.view = plain_view(&shape);
    value.view.shape = shape;
    *taken = fits(&value.view);
    return *taken ? add_value(draft, name, &value) : TDM_OK;
}

static tdm_status read_output(tdm_onnx_draft *draft, size_t index, int output) {
    const tdm_onnx_node *node = &draft->file->node[index].base;
    bool taken = false;
    for (int k = 0; tdm_builtin_ops[k] != NULL && !taken; k++) {
        tdm_onnx_found found = {.input_count = 0};
        if (tdm_builtin_ops[k]->from_onnx == NULL) continue;
        draft->attr_count = 0;
        const bool is = tdm_builtin_ops[k]->from_onnx(&draft->base, node, output, &found);
        TDM_TRY(draft->status);
        if (is)
            TDM_TRY(take(draft, index, node->output[output], tdm_builtin_ops[k], &found, &taken));
        else
            TDM_TRY(say_why(draft, found.why));
    }
    return TDM_OK;
}

static tdm_status read_nodes(tdm_onnx_draft *draft) {
    const tdm_onnx_file *file = draft->file;
    for (size_t i = 0; i < file->node_count; i++) {
        const tdm_onnx_node *node = &file->node[i].base;
        TDM_TRY(read_constant(draft, i));
        if (draft->constant[i] != NULL || node->domain[0] != '\0') continue;
        for (int k = 0; k < node->output_count; k++) {
            draft->asked = file->node[i].first_output + (size_t)k;
            if (node->output[k][0] != '\0') TDM_TRY(read_output(draft, i, k));
        }
    }
    return TDM_OK;
}

/* ---- the model's input and output ---- */

/* Files of old versions list initializers as inputs, too. */
static bool is_input(const tdm_onnx_file *file, const tdm_onnx_port *port) {
    return tdm__names_find(&file->tensors, port->name) < 0;
}

static tdm_status check_input(const tdm_onnx_file *file, const tdm_onnx_port *input) {
    if (tdm__names_find(&file->makers, input->name) >= 0)
        TDM_FAIL(TDM_E_CHECKPOINT, "%s: two parts of the model are called '%s'; it is damaged", file->source.path,
                 input->name);
    if (input->ndim < 2 || input->ndim > TDM_MAX_DIMS)
        TDM_FAIL(
            TDM_E_UNSUPPORTED,
            "%s: the input '%s' has %d dimensions; tandem needs the batch and 1 to %d others, all with their sizes",
            file->source.path, input->name, input->ndim, TDM_MAX_DIMS - 1);
    for (int i = 1; i < input->ndim; i++) {
        if (input->dim[i] >= 1) continue;
        TDM_FAIL(TDM_E_UNSUPPORTED,
                 "%s: dimension %d of the input '%s' is open ('%s'), and tandem needs its size; export the model with "
                 "a fixed one (only dimension 0, the batch, may be open)",
                 file->source.path, i, input->name, input->dim_name[i] != NULL ? input->dim_name[i] : "?");
    }
    return TDM_OK;
}

/* Only one of several needs its name. */
static tdm_status add_input(tdm_onnx_draft *draft, const tdm_onnx_port *input, bool has_name) {
    const char *path = draft->file->source.path;
    tdm_onnx_value value = {.maker = NULL};
    TDM_TRY(check_input(draft->file, input));
    const tdm_status status =
        has_name ? tdm_graph_add_input(draft->graph, input->name, input->ndim - 1, input->dim + 1, &value.value)
                 : tdm_graph_input(draft->graph, input->ndim - 1, input->dim + 1, &value.value);
    if (status == TDM_E_CONFIG)
        TDM_FAIL(TDM_E_UNSUPPORTED, "%s: the input '%s': %s", path, input->name, tdm_error_message());
    TDM_TRY(status);
    value.view = plain_view(shape_of(draft, value.value));
    return add_value(draft, input->name, &value);
}

/* The rows that an input has; 0: any number. */
static int64_t batch_of(const tdm_onnx_port *input) {
    return input->ndim > 0 && input->dim[0] > 0 ? input->dim[0] : 0;
}

/* An input with rows of its own is no part of a sample. */
static tdm_status set_batch(tdm_onnx_draft *draft) {
    const tdm_onnx_file *file = draft->file;
    const tdm_onnx_port *first = NULL;
    for (size_t i = 0; i < file->input_count; i++) {
        const tdm_onnx_port *input = &file->input[i];
        if (!is_input(file, input)) continue;
        if (first == NULL) first = input;
        if (batch_of(input) != batch_of(first))
            TDM_FAIL(TDM_E_UNSUPPORTED,
                     "%s: dimension 0, the batch, is %lld of the input '%s' and %lld of '%s' (0: open), and tandem "
                     "needs the same; export the model so",
                     file->source.path, (long long)batch_of(first), first->name, (long long)batch_of(input),
                     input->name);
    }
    draft->batch = batch_of(first);
    return TDM_OK;
}

static tdm_status add_inputs(tdm_onnx_draft *draft) {
    const tdm_onnx_file *file = draft->file;
    int count = 0;
    for (size_t i = 0; i < file->input_count; i++) count += is_input(file, &file->input[i]);
    if (count == 0) TDM_FAIL(TDM_E_UNSUPPORTED, "%s: the model has no input", file->source.path);
    TDM_TRY(set_batch(draft));
    for (size_t i = 0; i < file->input_count; i++)
        if (is_input(file, &file->input[i])) TDM_TRY(add_input(draft, &file->input[i], count > 1));
    return TDM_OK;
}

/* ---- what could not be read ---- */

/* The nodes that a value needs and that are no layers; the first of them, and the first of which is known why. */
typedef struct search {
    const tdm_onnx_draft *draft;
    const char **needed; /* by node: which of its outputs; NULL: none */
    size_t first, told;  /* the number of nodes: none */
    const char *lacks;   /* what the first reads and nothing makes; NULL: it has all */
} search;

/* False: nothing makes the value. */
static bool need(search *s, const char *name) {
    const tdm_onnx_file *file = s->draft->file;
    const int node = tdm__names_find(&file->makers, name);
    if (tdm__onnx_value_of(s->draft, name) != NULL || tdm__onnx_constant_of(s->draft, name) != NULL) return true;
    if (node >= 0) s->needed[node] = name;
    return node >= 0 || name[0] == '\0';
}

/* Why the node's output that is needed is no layer's; NULL: not said. */
static const char *why_not(const search *s, size_t index) {
    const tdm_onnx_file_node *node = &s->draft->file->node[index];
    int k = 0;
    while (strcmp(node->base.output[k], s->needed[index]) != 0) k++;
    return s->draft->why[node->first_output + (size_t)k];
}

/* Inputs come before the nodes that read them, so one pass from the end finds all. */
static void find_needed(search *s, const char *output) {
    const tdm_onnx_file *file = s->draft->file;
    (void)need(s, output);
    for (size_t i = file->node_count; i > 0; i--) {
        const tdm_onnx_node *node = &file->node[i - 1].base;
        if (s->needed[i - 1] == NULL) continue;
        s->first = i - 1;
        s->lacks = NULL;
        if (why_not(s, i - 1) != NULL) s->told = i - 1;
        for (int k = 0; k < node->input_count; k++)
            if (!need(s, node->input[k]) && s->lacks == NULL) s->lacks = node->input[k];
    }
}

/* "node 'fc' (Gemm), output 'y'"; a node without a name is called by its place in the file. */
static void put_node(const search *s, size_t index, tdm_text *out) {
    const tdm_onnx_file *file = s->draft->file;
    const tdm_onnx_node *node = &file->node[index].base;
    if (node->name[0] != '\0')
        tdm__text_printf(out, "node '%s'", node->name);
    else
        tdm__text_printf(out, "node %zu of %zu", index + 1, file->node_count);
    tdm__text_printf(out, " (%s%s%s), output '%s'", node->domain, node->domain[0] != '\0' ? ":" : "", node->op,
                     s->needed[index]);
}

static tdm_status fail_at(const search *s) {
    const tdm_onnx_draft *draft = s->draft;
    const size_t index = s->lacks == NULL && s->told < draft->file->node_count ? s->told : s->first;
    const char *why = why_not(s, index), *path = draft->file->source.path;
    tdm_text node;
    tdm__text_init(&node, draft->file->host);
    put_node(s, index, &node);
    const char *words = node.failed ? "a node" : node.data;
    tdm_status status;
    if (s->lacks != NULL)
        status =
            tdm__fail(TDM_E_CHECKPOINT, __FILE__, __LINE__, NULL,
                      "%s: %s: no node, constant or input is its '%s'; the file is damaged", path, words, s->lacks);
    else
        status = tdm__fail(TDM_E_UNSUPPORTED, __FILE__, __LINE__, NULL, "%s: %s: %s", path, words,
                           why != NULL ? why : "tandem has no layer that computes it");
    tdm__text_deinit(&node);
    return status;
}

static tdm_status check_output(tdm_onnx_draft *draft) {
    const tdm_onnx_file *file = draft->file;
    if (file->output_count != 1)
        TDM_FAIL(TDM_E_UNSUPPORTED, "%s: the model has %zu outputs, and tandem's models have one; export it with one",
                 file->source.path, file->output_count);
    const char *name = file->output[0].name;
    const tdm_onnx_value *value = tdm__onnx_value_of(draft, name);
    if (value != NULL && (value->maker == NULL || !tdm__onnx_view_is_plain(&value->view)))
        TDM_FAIL(TDM_E_UNSUPPORTED, "%s: the output '%s' is %s", file->source.path, name,
                 value->maker == NULL ? "the model's input, so there is nothing to train"
                                      : "a layer's with its dimensions in another order");
    if (value != NULL) return TDM_OK;
    search s = {.draft = draft, .first = file->node_count, .told = file->node_count};
    TDM_TRY(tdm__zone_new(&draft->file->zone, &s.needed, file->node_count, sizeof(*s.needed)));
    find_needed(&s, name);
    if (s.first == file->node_count)
        TDM_FAIL(TDM_E_UNSUPPORTED, "%s: no node makes the output '%s'", file->source.path, name);
    return fail_at(&s);
}

tdm_status tdm__onnx_draft_layers(tdm_onnx_draft *draft) {
    const size_t count = draft->file->node_count;
    TDM_TRY(tdm__zone_new(&draft->file->zone, &draft->constant, count, sizeof(*draft->constant)));
    TDM_TRY(tdm__zone_new(&draft->file->zone, &draft->why, draft->file->node_output_count, sizeof(*draft->why)));
    TDM_TRY(add_inputs(draft));
    TDM_TRY(read_nodes(draft));
    return check_output(draft);
}
