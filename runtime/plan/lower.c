/* Graph nodes to plan nodes, one to one: what each reads, writes and is described by. Which kernel runs it, in which
 * layout, and together with what, is for the passes that follow. */
#include <stdio.h>

#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/plan/build.h"

/* Parallel to the graph's values. */
typedef struct lowered {
    int value;
    bool needs_gradient; /* something upstream has parameters */
} lowered;

static tdm_shape with_rows(const tdm_shape *sample, int64_t rows) {
    tdm_shape shape = {.ndim = sample->ndim + 1, .dim = {rows}};
    for (int i = 0; i < sample->ndim; i++) shape.dim[i + 1] = sample->dim[i];
    return shape;
}

static tdm_status lower_value(tdm_build *build, tdm_value graph_value, lowered *at) {
    const tdm_plan *plan = build->plan;
    const tdm_shape shape = with_rows(&build->graph->values[graph_value].shape, plan->options.rows);
    char name[40];
    snprintf(name, sizeof(name), "v%d", (int)graph_value);
    TDM_TRY(tdm__build_value(build, &at->value, name, &shape, TDM_LAYOUT_PLAIN,
                             (size_t)tdm__shape_count(&shape) * plan->element_bytes));
    build->of_value[at->value].needs_gradient = at->needs_gradient;
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
    node->needs_backward = options->training && from->param_count > 0;
    for (int i = 0; i < from->input_count; i++) {
        node->desc.x[i] = plan->values[node->x[i]].shape;
        node->desc.wants_dx[i] = options->training && build->of_value[node->x[i]].needs_gradient;
        node->needs_backward = node->needs_backward || node->desc.wants_dx[i];
    }
    for (int i = 0; i < from->param_count; i++) {
        node->graph_param[i] = from->first_param + i;
        node->desc.param[i] = build->graph->params[from->first_param + i].def.shape;
    }
    for (int i = 0; i < from->buffer_count; i++) node->buffer[i] = from->first_buffer + i;
}

static tdm_status lower_node(tdm_build *build, int graph_node, lowered *of) {
    const tdm_graph_node *from = &build->graph->nodes[graph_node];
    lowered *y = &of[from->output];
    int index;
    y->needs_gradient = from->param_count > 0;
    for (int i = 0; i < from->input_count; i++)
        y->needs_gradient = y->needs_gradient || of[from->input[i]].needs_gradient;
    TDM_TRY(tdm__build_node(build, &index, from->name, graph_node, from->op));
    TDM_TRY(lower_value(build, from->output, y));
    build->of_value[y->value].producer = index;
    tdm_plan_node *node = &build->plan->nodes[index];
    node->y = y->value;
    for (int i = 0; i < from->input_count; i++) tdm__build_set_x(build, index, i, of[from->input[i]].value);
    describe(build, from, node);
    return TDM_OK;
}

static tdm_status lower_all(tdm_build *build, lowered *of) {
    const tdm_graph *graph = build->graph;
    tdm_plan *plan = build->plan;
    TDM_TRY(lower_value(build, graph->input, &of[graph->input]));
    plan->input = of[graph->input].value;
    plan->values[plan->input].kind = TDM_PLACE_EXTERNAL;
    for (int i = 0; i < (int)graph->node_count; i++) TDM_TRY(lower_node(build, i, of));
    plan->output = of[graph->output].value;
    plan->output_width = tdm__shape_count(&graph->values[graph->output].shape);
    return TDM_OK;
}

tdm_status tdm__build_lower(tdm_build *build) {
    lowered *of = NULL;
    TDM_TRY(tdm__new(build->host, &of, build->graph->value_count, sizeof(*of), "plan"));
    tdm_status status = lower_all(build, of);
    tdm__delete(build->host, of);
    return status;
}
