/* Turns graph nodes into plan nodes, one to one; in front of them, where the graph has several inputs, stands a node
 * for each. Later passes choose kernels, layouts, and what runs together. */
#include <stdio.h>

#include "runtime/base/status.h"
#include "runtime/plan/build.h"

static tdm_shape with_rows(const tdm_shape *sample, int64_t rows) {
    tdm_shape shape = {.ndim = sample->ndim + 1, .dim = {rows}};
    for (int i = 0; i < sample->ndim; i++) shape.dim[i + 1] = sample->dim[i];
    return shape;
}

/* The graph's values keep their numbers: both the graph and this pass add the inputs first, then each node's output. */
static tdm_status lower_value(tdm_build *build, tdm_value graph_value, bool needs_gradient) {
    const tdm_plan *plan = build->plan;
    const tdm_shape shape = with_rows(&build->graph->values[graph_value].shape, plan->options.rows);
    char name[40];
    int value;
    snprintf(name, sizeof(name), "v%d", (int)graph_value);
    TDM_TRY(tdm__build_value(build, &value, name, &shape, TDM_LAYOUT_PLAIN,
                             (size_t)tdm__shape_count(&shape) * plan->element_bytes));
    if (value != graph_value)
        TDM_FAIL(TDM_E_INTERNAL, "plan: value %d of the graph became %d", (int)graph_value, value);
    build->of_value[value].needs_gradient = needs_gradient;
    return TDM_OK;
}

static void describe(const tdm_build *build, const tdm_graph_node *from, tdm_plan_node *node) {
    const tdm_plan *plan = build->plan;
    const tdm_plan_options *options = &plan->options;
    node->desc = (tdm_kernel_desc){.op = from->op->name,
                                   .attrs = from->attrs,
                                   .input_count = from->input_count,
                                   .param_count = from->param_count,
                                   .buffer_count = from->buffer_count,
                                   .y = plan->values[node->y].shape,
                                   .training = options->training,
                                   .threads = options->threads,
                                   .precision = options->precision,
                                   .fast = options->fast};
    const bool trained = tdm__graph_is_trained(from, build->plan->frozen), used = plan->used[node->graph_node];
    node->evaluates = options->training && from->buffer_count > 0 && from->param_count > 0 && !trained && used;
    node->needs_backward = options->training && trained;
    const bool exchanges = options->training && options->replicas > 1 && !node->evaluates;
    node->statistics_bytes = exchanges ? (size_t)from->statistics * sizeof(double) : 0;
    node->desc.replicas = node->statistics_bytes > 0 ? options->replicas : 1;
    for (int i = 0; i < from->input_count; i++) {
        node->desc.x[i] = plan->values[node->x[i]].shape;
        node->desc.needs_dx[i] = options->training && used && build->of_value[node->x[i]].needs_gradient;
        node->needs_backward = node->needs_backward || node->desc.needs_dx[i];
    }
    for (int i = 0; i < from->param_count; i++) {
        node->graph_param[i] = from->first_param + i;
        node->desc.param[i] = build->graph->params[from->first_param + i].def.shape;
    }
    for (int i = 0; i < from->buffer_count; i++) node->buffer[i] = from->first_buffer + i;
}

static tdm_status lower_node(tdm_build *build, int graph_node) {
    const tdm_graph_node *from = &build->graph->nodes[graph_node];
    bool needs_gradient = tdm__graph_is_trained(from, build->plan->frozen); /* it or something upstream is trained */
    int index;
    for (int i = 0; i < from->input_count; i++)
        needs_gradient = needs_gradient || build->of_value[from->input[i]].needs_gradient;
    TDM_TRY(tdm__build_node(build, &index, from->name, graph_node, from->op));
    TDM_TRY(lower_value(build, from->output, needs_gradient));
    build->of_value[from->output].producer = index;
    build->plan->nodes[index].y = from->output;
    for (int i = 0; i < from->input_count; i++) tdm__build_set_x(build, index, i, from->input[i]);
    describe(build, from, &build->plan->nodes[index]);
    return TDM_OK;
}

/* ---- inputs ---- */

/* In a batch the numbers of an input do not lie together, so that a node copies them out of its rows. */
static tdm_status lower_input(tdm_build *build, int input) {
    int index;
    TDM_TRY(lower_value(build, input, false));
    if (build->graph->input_count == 1) return TDM_OK;
    TDM_TRY(tdm__build_node(build, &index, build->graph->inputs[input].name, -1, tdm_builtin_input_op));
    build->of_value[input].producer = index;
    build->plan->nodes[index].y = input;
    return TDM_OK;
}

static tdm_status describe_input(tdm_build *build, int input) {
    tdm_plan *plan = build->plan;
    tdm_plan_node *node = &plan->nodes[input];
    const tdm_named_input *from = &build->graph->inputs[input];
    const void *attrs;
    TDM_TRY(tdm_builtin_input_attrs(&plan->zone, from->first, from->count, &attrs));
    tdm__build_set_x(build, input, 0, plan->input);
    node->desc = (tdm_kernel_desc){.op = node->op->name,
                                   .attrs = attrs,
                                   .input_count = 1,
                                   .x = {plan->values[plan->input].shape},
                                   .y = plan->values[node->y].shape,
                                   .training = plan->options.training,
                                   .threads = plan->options.threads,
                                   .precision = plan->options.precision,
                                   .fast = plan->options.fast,
                                   .replicas = 1};
    return TDM_OK;
}

/* With one input that is the batch. With several the batch is a value of its own, behind those of the graph. */
static tdm_status lower_batch(tdm_build *build) {
    tdm_plan *plan = build->plan;
    const tdm_graph *graph = build->graph;
    plan->input = 0;
    if (graph->input_count > 1) {
        const tdm_shape rows = with_rows(&graph->sample, plan->options.rows);
        TDM_TRY(tdm__build_value(build, &plan->input, "batch", &rows, TDM_LAYOUT_PLAIN,
                                 (size_t)tdm__shape_count(&rows) * plan->element_bytes));
        for (int k = 0; k < graph->input_count; k++) TDM_TRY(describe_input(build, k));
    }
    plan->values[plan->input].kind = TDM_PLACE_EXTERNAL;
    return TDM_OK;
}

tdm_status tdm__build_lower(tdm_build *build) {
    const tdm_graph *graph = build->graph;
    tdm_plan *plan = build->plan;
    for (int k = 0; k < graph->input_count; k++) TDM_TRY(lower_input(build, k));
    for (int i = 0; i < (int)graph->node_count; i++) TDM_TRY(lower_node(build, i));
    TDM_TRY(lower_batch(build));
    plan->output = graph->output;
    plan->output_width = tdm__shape_count(&graph->values[graph->output].shape);
    return TDM_OK;
}
