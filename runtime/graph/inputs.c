/* The inputs of a graph, and its values, of which they are the first. A sample is one row of numbers; of a model with
 * several inputs it has the numbers of all, one input after the other. */
#include <string.h>

#include "runtime/base/call/sized.h"
#include "runtime/base/status.h"
#include "runtime/base/text/text.h"
#include "runtime/graph/graph.h"

int tdm__graph_find_input(const tdm_graph *graph, const char *name) {
    for (int k = 0; k < graph->input_count; k++)
        if (graph->inputs[k].name != NULL && strcmp(graph->inputs[k].name, name) == 0) return k;
    return -1;
}

bool tdm__graph_is_input_name(const char *name) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    const size_t length = strspn(name, letters);
    return length > 0 && length <= TDM_INPUT_NAME_MAX && name[length] == '\0' && (name[0] < '0' || name[0] > '9') &&
           strcmp(name, "input") != 0 && strcmp(name, "output") != 0;
}

tdm_status tdm__graph_add_value(tdm_graph *graph, const tdm_shape *shape, int producer, tdm_value *out) {
    TDM_TRY(tdm__grow(graph->host, &graph->values, &graph->value_room, graph->value_count + 1, sizeof(*graph->values),
                      "graph values"));
    graph->values[graph->value_count] = (tdm_graph_value){.shape = *shape, .producer = producer};
    *out = (tdm_value)graph->value_count++;
    return TDM_OK;
}

/* Of all inputs together. */
static tdm_status take_width(tdm_graph *graph, int64_t *first, int64_t count) {
    *first = graph->input_count > 0 ? tdm__shape_count(&graph->sample) : 0;
    if (count > TDM_GRAPH_COUNT_MAX - *first)
        TDM_FAIL(TDM_E_CONFIG, "model.inputs must have at most 2^40 elements together");
    return TDM_OK;
}

static tdm_status take_input(tdm_graph *graph, const char *name, int ndim, const int64_t *dim, tdm_value *out) {
    const char *const key = name != NULL ? "model.inputs." : "model.input", *const of = name != NULL ? name : "";
    int64_t first;
    if (ndim < 1 || ndim >= TDM_MAX_DIMS)
        TDM_FAIL(TDM_E_CONFIG, "%s%s must have 1 to %d dimensions, got %d", key, of, TDM_MAX_DIMS - 1, ndim);
    tdm_shape shape = {.ndim = ndim};
    for (int i = 0; i < ndim; i++) shape.dim[i] = dim[i];
    if (!tdm__shape_is_sane(&shape))
        TDM_FAIL(TDM_E_CONFIG, "%s%s must have dimensions of at least 1 and at most 2^40 elements", key, of);
    const int64_t count = tdm__shape_count(&shape);
    TDM_TRY(take_width(graph, &first, count));
    tdm_named_input *input = &graph->inputs[graph->input_count];
    *input = (tdm_named_input){.first = first, .count = count};
    TDM_TRY(tdm__zone_text(&graph->zone, &input->name, name));
    TDM_TRY(tdm__graph_add_value(graph, &shape, -1, out));
    graph->sample = graph->input_count == 0 ? shape : (tdm_shape){1, {first + count}};
    graph->input_count++;
    return TDM_OK;
}

tdm_status tdm_graph_input(tdm_graph *graph, int ndim, const int64_t *dim, tdm_value *out) {
    if (graph == NULL || dim == NULL || out == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_graph_input: a pointer is NULL");
    if (graph->finished || graph->value_count != 0)
        TDM_FAIL(TDM_E_USAGE, "tdm_graph_input: the input comes once, before any layer; several have names, see "
                              "tdm_graph_add_input");
    return take_input(graph, NULL, ndim, dim, out);
}

tdm_status tdm_graph_add_input(tdm_graph *graph, const char *name, int ndim, const int64_t *dim, tdm_value *out) {
    if (graph == NULL || name == NULL || dim == NULL || out == NULL)
        TDM_FAIL(TDM_E_USAGE, "tdm_graph_add_input: a pointer is NULL");
    if (graph->finished || graph->node_count != 0)
        TDM_FAIL(TDM_E_USAGE, "tdm_graph_add_input: the input '%.80s' comes before any layer", name);
    if (graph->input_count > 0 && graph->inputs[0].name == NULL)
        TDM_FAIL(TDM_E_USAGE, "tdm_graph_add_input: the graph has the input of tdm_graph_input, which is its only one");
    if (graph->input_count == TDM_GRAPH_INPUTS)
        TDM_FAIL(TDM_E_CONFIG, "model.inputs: a model has at most %d inputs", TDM_GRAPH_INPUTS);
    if (!tdm__graph_is_input_name(name))
        TDM_FAIL(TDM_E_CONFIG,
                 "model.inputs: the name of an input must have 1 to %d letters, digits and _, not begin with a digit, "
                 "and not be `input` or `output`, got '%.80s'",
                 TDM_INPUT_NAME_MAX, name);
    if (tdm__graph_find_input(graph, name) >= 0)
        TDM_FAIL(TDM_E_CONFIG, "model.inputs: two inputs are called '%s'; names must differ", name);
    return take_input(graph, name, ndim, dim, out);
}

tdm_status tdm__graph_check_inputs(const tdm_graph *graph) {
    for (int k = 0; graph->input_count > 1 && k < graph->input_count; k++) {
        if (graph->values[k].consumer_count == 0)
            TDM_FAIL(TDM_E_CONFIG, "model.inputs: no layer takes the input '%s'; use it, or remove it",
                     graph->inputs[k].name);
    }
    return TDM_OK;
}

void tdm__graph_print_inputs(const tdm_graph *graph, tdm_text *out) {
    for (int k = 0; k < graph->input_count; k++) {
        const char *const name = graph->inputs[k].name;
        tdm__text_printf(out, "%s%s%s%s", k > 0 ? ", " : "", name != NULL ? name : "", name != NULL ? " " : "",
                         tdm__shape_text(&graph->values[k].shape).text);
    }
}

/* ---- what the inputs are ---- */

int tdm_graph_input_count(const tdm_graph *graph) {
    return graph != NULL ? graph->input_count : 0;
}

static bool is_looked_up(const tdm_graph *graph, int index) {
    const int64_t first = graph->inputs[index].first, end = first + graph->inputs[index].count;
    tdm_graph_indices from;
    for (size_t at = 0; tdm__graph_next_indices(graph, &at, &from);)
        if (from.count > 0 && from.first < end && from.first + from.count > first) return true;
    return false;
}

tdm_status tdm__graph_get_input(const char *call, const tdm_graph *graph, int index, tdm_input_info *out) {
    if (graph == NULL || out == NULL) TDM_FAIL(TDM_E_USAGE, "%s: a pointer is NULL", call);
    TDM_TRY(tdm__sized_check("tdm_input_info", out, TDM_SIZED_ANY, sizeof(*out)));
    if (index < 0 || index >= graph->input_count)
        TDM_FAIL(TDM_E_USAGE, "%s: inputs are 0 to %d, got %d", call, graph->input_count - 1, index);
    const tdm_shape *shape = &graph->values[index].shape;
    tdm_input_info info = {.name = graph->inputs[index].name,
                           .ndim = shape->ndim,
                           .first = graph->inputs[index].first,
                           .count = graph->inputs[index].count,
                           .is_looked_up = is_looked_up(graph, index)};
    memcpy(info.dim, shape->dim, (size_t)shape->ndim * sizeof(*info.dim));
    tdm__sized_give(out, &info);
    return TDM_OK;
}

tdm_status tdm_graph_get_input(const tdm_graph *graph, int index, tdm_input_info *out) {
    return tdm__graph_get_input("tdm_graph_get_input", graph, index, out);
}
