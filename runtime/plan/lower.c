/* Graph nodes to plan nodes: which kernel runs each, in which layout its values lie, which relu runs inside its
 * producer, and what may share memory. */
#include <stdio.h>
#include <string.h>

#include "runtime/base/status.h"
#include "runtime/plan/build.h"

tdm_status tdm__build_value(tdm_build *build, int *out, const char *name, const tdm_shape *shape, tdm_layout layout,
                            size_t bytes) {
    tdm_plan *plan = build->plan;
    size_t count = (size_t)plan->value_count;
    TDM_TRY(tdm__grow(build->host, &plan->values, &build->value_room, count + 1, sizeof(*plan->values), "plan values"));
    TDM_TRY(tdm__grow(build->host, &build->extra, &build->extra_room, count + 1, sizeof(*build->extra), "plan values"));
    tdm_plan_value *value = &plan->values[count];
    *value = (tdm_plan_value){
        .layout = layout, .kind = TDM_PLACE_ARENA, .alias_of = -1, .first = -1, .last = -1, .bytes = bytes};
    if (shape != NULL) value->shape = *shape;
    snprintf(value->name, sizeof(value->name), "%s", name);
    tdm_build_value *extra = &build->extra[count];
    *extra = (tdm_build_value){.producer = -1, .gradient = -1};
    for (int i = 0; i < TDM_LAYOUT_COUNT; i++) extra->copy[i] = -1;
    plan->value_count++;
    *out = (int)count;
    return TDM_OK;
}

static tdm_shape with_rows(const tdm_shape *sample, int64_t rows) {
    tdm_shape shape = {.ndim = sample->ndim + 1, .dim = {rows}};
    for (int i = 0; i < sample->ndim; i++) shape.dim[i + 1] = sample->dim[i];
    return shape;
}

static tdm_status new_activation(tdm_build *build, int *out, tdm_value graph_value, tdm_layout layout) {
    const tdm_graph_value *from = &build->graph->values[graph_value];
    tdm_shape shape = with_rows(&from->shape, build->plan->options.rows);
    char name[40];
    snprintf(name, sizeof(name), "v%d", (int)graph_value);
    TDM_TRY(tdm__build_value(build, out, name, &shape, layout,
                             (size_t)tdm__shape_count(&shape) * build->plan->element_bytes));
    build->extra[*out].needs_gradient = build->needs_gradient[graph_value];
    build->extra[*out].shared = from->consumer_count > 1;
    return TDM_OK;
}

static tdm_status new_node(tdm_build *build, tdm_plan_node **out, const char *name, int graph_node) {
    tdm_plan *plan = build->plan;
    size_t count = (size_t)plan->node_count;
    TDM_TRY(tdm__grow(build->host, &plan->nodes, &build->node_room, count + 1, sizeof(*plan->nodes), "plan nodes"));
    tdm_plan_node *node = &plan->nodes[count];
    memset(node, 0, sizeof(*node));
    snprintf(node->name, sizeof(node->name), "%s", name);
    node->graph_node = graph_node;
    node->sums_for = -1;
    node->y = node->dy = node->saved = node->scratch_forward = node->scratch_backward = -1;
    for (int i = 0; i < TDM_MAX_INPUTS; i++) node->x[i] = node->dx[i] = node->dx_temp[i] = -1;
    for (int i = 0; i < TDM_MAX_PARAMS; i++) node->param[i] = -1;
    for (int i = 0; i < TDM_MAX_BUFFERS; i++) node->buffer[i] = -1;
    plan->node_count++;
    *out = node;
    return TDM_OK;
}

/* ---- kernels ---- */

static tdm_status ask(const tdm_kernel *kernel, const tdm_kernel_desc *desc, tdm_kernel_fit *fit, bool *fits) {
    memset(fit, 0, sizeof(*fit));
    *fits = true;
    if (kernel->fits != NULL)
        *fits = kernel->fits(desc, fit);
    else
        fit->y_layout = strcmp(desc->op, "reorder") == 0 ? desc->y_layout : TDM_LAYOUT_PLAIN;
    if (fit->no_memory) TDM_FAIL(TDM_E_MEMORY, "%s, kernel %s: %s", desc->op, kernel->variant, fit->why);
    return TDM_OK;
}

/* The first kernel of the list that fits. With try_relu it is asked again with the relu inside if it can do that. */
static tdm_status choose_kernel(tdm_build *build, tdm_plan_node *node, bool try_relu, tdm_kernel_fit *fit) {
    size_t said = 0;
    bool fits;
    for (const tdm_kernel *const *k = build->plan->options.kernels; *k != NULL; k++) {
        if (strcmp((*k)->op, node->desc.op) != 0) continue;
        TDM_TRY(ask(*k, &node->desc, fit, &fits));
        if (fits) {
            node->kernel = *k;
            if (!try_relu || !fit->relu) return TDM_OK;
            node->desc.relu = true;
            TDM_TRY(ask(*k, &node->desc, fit, &fits));
            if (fits) return TDM_OK;
            node->desc.relu = false;
            return ask(*k, &node->desc, fit, &fits);
        }
        int n = snprintf(node->declined + said, sizeof(node->declined) - said, "%s%s: %s", said ? "; " : "",
                         (*k)->variant, fit->why);
        said += n > 0 && (size_t)n < sizeof(node->declined) - said ? (size_t)n : 0;
    }
    const tdm_origin *origin = node->graph_node >= 0 ? &build->graph->nodes[node->graph_node].origin : NULL;
    TDM_FAIL_AT(origin, TDM_E_UNSUPPORTED, "no kernel on this device for %s '%s'%s%s", node->desc.op, node->name,
                node->declined[0] ? ": " : "", node->declined);
}

static tdm_status book(tdm_build *build, tdm_plan_node *node, const tdm_kernel_fit *fit) {
    int index = (int)(node - build->plan->nodes);
    char name[40];
    if (fit->saved_bytes > 0) {
        snprintf(name, sizeof(name), "saved %d", index);
        TDM_TRY(tdm__build_value(build, &node->saved, name, NULL, TDM_LAYOUT_PLAIN, fit->saved_bytes));
    }
    if (fit->scratch_bytes > 0) {
        snprintf(name, sizeof(name), "scratch %d", index);
        TDM_TRY(tdm__build_value(build, &node->scratch_forward, name, NULL, TDM_LAYOUT_PLAIN, fit->scratch_bytes));
        if (build->plan->options.training)
            TDM_TRY(tdm__build_value(build, &node->scratch_backward, name, NULL, TDM_LAYOUT_PLAIN, fit->scratch_bytes));
    }
    return TDM_OK;
}

/* ---- layouts ---- */

/* The batch, read by one layer alone: it is brought in the layout that this one likes. */
static bool is_free_batch(const tdm_build *build, int value) {
    return build->plan->options.ingests && value == build->plan->input && !build->extra[value].shared;
}

static void bring_batch_in(tdm_build *build, tdm_layout layout) {
    tdm_plan_value *batch = &build->plan->values[build->plan->input];
    const int64_t group = layout == TDM_LAYOUT_NHWC4 ? 4 : layout == TDM_LAYOUT_NHWC8 ? 8 : 1;
    const int64_t channels = batch->shape.dim[1], filled = (channels + group - 1) / group * group;
    batch->layout = layout;
    batch->bytes = batch->bytes / (size_t)channels * (size_t)filled;
}

static tdm_status in_layout(tdm_build *build, int value, tdm_layout layout, int *out) {
    *out = value;
    const tdm_plan_value from = build->plan->values[value];
    if (from.layout == layout) return TDM_OK;
    if (is_free_batch(build, value)) {
        bring_batch_in(build, layout);
        return TDM_OK;
    }
    if (build->extra[value].copy[layout] >= 0) {
        *out = build->extra[value].copy[layout];
        return TDM_OK;
    }
    int copy = -1;
    char name[48];
    snprintf(name, sizeof(name), "%.36s'", from.name);
    TDM_TRY(tdm__build_value(build, &copy, name, &from.shape, layout, from.bytes));
    build->extra[copy].needs_gradient = build->extra[value].needs_gradient;
    build->extra[copy].shared = build->extra[value].shared;
    build->extra[value].copy[layout] = copy;

    tdm_plan_node *node = NULL;
    TDM_TRY(new_node(build, &node, "reorder", -1));
    node->desc = (tdm_kernel_desc){.op = "reorder",
                                   .input_count = 1,
                                   .threads = build->plan->options.threads,
                                   .precision = build->plan->options.precision};
    node->desc.x[0] = node->desc.y = from.shape;
    node->desc.x_layout[0] = from.layout, node->desc.y_layout = layout;
    node->desc.wants_dx[0] = node->needs_backward = build->extra[value].needs_gradient;
    node->x[0] = value, node->y = copy;
    build->extra[copy].producer = (int)(node - build->plan->nodes);
    tdm_kernel_fit fit;
    TDM_TRY(choose_kernel(build, node, false, &fit));
    TDM_TRY(book(build, node, &fit));
    *out = copy;
    return TDM_OK;
}

/* ---- sharing memory ---- */

/* May y be written over x? Only if nobody reads the old bytes again: x has this one reader, and neither this op's nor
 * x's producer's backward looks at them. */
static bool may_overwrite(const tdm_build *build, const tdm_op_def *op, int x) {
    if ((op->flags & TDM_OP_IN_PLACE) == 0 || (op->flags & TDM_OP_READS_X) != 0) return false;
    for (int v = x; v >= 0; v = build->plan->values[v].alias_of) {
        const tdm_build_value *extra = &build->extra[v];
        if (build->plan->values[v].kind != TDM_PLACE_ARENA || extra->shared || extra->producer < 0) return false;
        const tdm_plan_node *producer = &build->plan->nodes[extra->producer];
        if (producer->desc.relu || (producer->op != NULL && (producer->op->flags & TDM_OP_READS_Y) != 0)) return false;
        for (int l = 0; l < TDM_LAYOUT_COUNT; l++) {
            if (extra->copy[l] >= 0) return false;
        }
    }
    return true;
}

/* ---- nodes ---- */

/* The one layer that reads its output and nothing else; -1. */
static int sole_consumer(const tdm_build *build, const tdm_graph_node *from) {
    const tdm_graph *graph = build->graph;
    if (graph->values[from->output].consumer_count != 1) return -1;
    for (size_t i = 0; i < graph->node_count; i++) {
        const tdm_graph_node *node = &graph->nodes[i];
        if (node->input_count == 1 && node->input[0] == from->output) return (int)i;
    }
    return -1;
}

static bool is_relu(const tdm_build *build, int graph_node) {
    return graph_node >= 0 && strcmp(build->graph->nodes[graph_node].op->name, "relu") == 0;
}

/* The relu behind `from` that nothing else stands beside; -1. */
static int sole_relu(const tdm_build *build, const tdm_graph_node *from) {
    if (strcmp(from->op->name, "relu") == 0) return -1;
    int next = sole_consumer(build, from);
    return is_relu(build, next) ? next : -1;
}

/* Would the kernel that will run it do a relu as well? */
static tdm_status takes_relu(const tdm_build *build, const tdm_graph_node *from, bool *takes) {
    tdm_kernel_desc desc = {.op = from->op->name,
                            .attrs = from->attrs,
                            .input_count = from->input_count,
                            .threads = build->plan->options.threads,
                            .precision = build->plan->options.precision};
    desc.y = with_rows(&build->graph->values[from->output].shape, build->plan->options.rows);
    desc.x[0] = with_rows(&build->graph->values[from->input[0]].shape, build->plan->options.rows);
    for (const tdm_kernel *const *k = build->plan->options.kernels; *k != NULL; k++) {
        tdm_kernel_fit fit;
        bool fits;
        if (strcmp((*k)->op, desc.op) != 0) continue;
        TDM_TRY(ask(*k, &desc, &fit, &fits));
        *takes = fits && fit.relu;
        if (fits) break;
    }
    return TDM_OK;
}

/* A layer that swaps with the relu in front of it and has a kernel for both: it takes the relu over. -1: there is none.
 */
static tdm_status later_relu(const tdm_build *build, int relu, int *later) {
    int next = relu >= 0 ? sole_consumer(build, &build->graph->nodes[relu]) : -1;
    bool takes = false;
    *later = -1;
    if (next < 0 || (build->graph->nodes[next].op->flags & TDM_OP_SWAPS_WITH_RELU) == 0) return TDM_OK;
    if (sole_relu(build, &build->graph->nodes[next]) >= 0) return TDM_OK; /* one relu is enough */
    TDM_TRY(takes_relu(build, &build->graph->nodes[next], &takes));
    if (takes) *later = next;
    return TDM_OK;
}

/* An image that becomes a row of features, for one layer that weighs them: they may stay in the order of NHWC. */
static bool keeps_channels_last(const tdm_build *build, const tdm_graph_node *from, int x) {
    const tdm_graph *graph = build->graph;
    int next = sole_consumer(build, from);
    return build->plan->options.ingests && build->plan->values[x].layout == TDM_LAYOUT_NHWC && next >= 0 &&
           (graph->nodes[next].op->flags & TDM_OP_WEIGHS_FEATURES) != 0 &&
           graph->values[from->input[0]].shape.ndim == 3 && graph->values[from->output].shape.ndim == 1;
}

static tdm_status lower_alias(tdm_build *build, tdm_plan_node *node, const tdm_graph_node *from) {
    int index = (int)(node - build->plan->nodes);
    int y = -1;
    TDM_TRY(new_activation(build, &y, from->output, TDM_LAYOUT_PLAIN));
    build->plan->values[y].alias_of = node->x[0];
    build->plan->values[y].kind = build->plan->values[tdm__plan_root(build->plan, node->x[0])].kind;
    build->extra[y].producer = index;
    if (build->plan->values[node->x[0]].layout == TDM_LAYOUT_NHWC) {
        const tdm_shape *image = &build->graph->values[from->input[0]].shape;
        build->extra[y].channels = image->dim[0];
        build->extra[y].points = image->dim[1] * image->dim[2];
    }
    node->y = y;
    build->value_of[from->output] = y;
    return TDM_OK;
}

static void describe(const tdm_build *build, const tdm_graph_node *from, const int *x, tdm_kernel_desc *desc) {
    const tdm_plan *plan = build->plan;
    *desc = (tdm_kernel_desc){.op = from->op->name,
                              .attrs = from->attrs,
                              .input_count = from->input_count,
                              .param_count = from->param_count,
                              .buffer_count = from->buffer_count,
                              .threads = plan->options.threads,
                              .precision = plan->options.precision,
                              .fast = plan->options.fast};
    desc->y = with_rows(&build->graph->values[from->output].shape, plan->options.rows);
    for (int i = 0; i < from->input_count; i++) {
        desc->x[i] = plan->values[x[i]].shape;
        desc->x_layout[i] = plan->values[x[i]].layout;
        desc->wants_dx[i] = plan->options.training && build->extra[x[i]].needs_gradient;
    }
    desc->from_batch = from->input_count == 1 && is_free_batch(build, x[0]);
    for (int i = 0; i < from->param_count; i++) desc->param[i] = build->graph->params[from->first_param + i].def.shape;
}

/* How the kernel's first parameter lies: as it asked for, or in the order of the features that it gets. */
static tdm_param_form weight_form(const tdm_build *build, const tdm_plan_node *node) {
    const tdm_shape *weight = &node->desc.param[0];
    const tdm_build_value *x = &build->extra[node->x[0]];
    if (node->desc.weight_channels > 0) {
        const int64_t out = weight->dim[0], in = weight->dim[1];
        return (tdm_param_form){out, in, tdm__shape_count(weight) / (out * in), node->desc.weight_channels};
    }
    if (x->channels == 0) return (tdm_param_form){0};
    return (tdm_param_form){weight->dim[0], x->channels, x->points, x->channels};
}

/* The gradient of a bias is the sum of what comes back to its channels: where one layer sends that back, it adds on the
 * way what another would have to read again. */
static void take_sums(tdm_build *build, tdm_plan_node *node) {
    tdm_plan *plan = build->plan;
    const tdm_build_value *x = &build->extra[node->x[0]];
    if (!plan->options.training || !plan->options.ingests || x->shared || x->producer < 0) return;
    tdm_plan_node *producer = &plan->nodes[x->producer];
    if (producer->op == NULL || (producer->op->flags & TDM_OP_ADDS_BIAS) == 0 || producer->desc.param_count < 2 ||
        producer->desc.relu || producer->y != node->x[0])
        return;
    producer->desc.bias_is_summed = true;
    node->desc.sums_dx = true;
    node->sums_for = x->producer;
}

static tdm_status lower_kernel(tdm_build *build, tdm_plan_node **node_io, const tdm_graph_node *from,
                               const tdm_kernel_fit *fit) {
    tdm_plan_node node = **node_io; /* reorders in between may move the array */
    tdm_plan *plan = build->plan;
    plan->node_count--;
    for (int i = 0; i < from->input_count; i++) {
        TDM_TRY(in_layout(build, node.x[i], fit->x_layout[i], &node.x[i]));
        node.desc.x_layout[i] = fit->x_layout[i];
    }
    node.desc.y_layout = fit->y_layout;
    node.desc.weight_channels = plan->options.ingests ? fit->weight_channels : 0;
    node.weight = weight_form(build, &node);
    tdm_plan_node *place = NULL;
    TDM_TRY(new_node(build, &place, node.name, node.graph_node));
    *place = node;
    int index = plan->node_count - 1;
    if (fit->sums_dx) take_sums(build, &plan->nodes[index]);
    int y = -1;
    TDM_TRY(new_activation(build, &y, from->output, fit->y_layout));
    if (may_overwrite(build, from->op, node.x[0]) && plan->values[node.x[0]].bytes == plan->values[y].bytes)
        plan->values[y].alias_of = node.x[0];
    build->extra[y].producer = index;
    plan->nodes[index].y = y;
    build->value_of[from->output] = y;
    *node_io = &plan->nodes[index];
    return book(build, *node_io, fit);
}

static tdm_status lower_node(tdm_build *build, int graph_node) {
    const tdm_graph_node *from = &build->graph->nodes[graph_node];
    if (build->fused[graph_node]) {
        build->value_of[from->output] = build->value_of[from->input[0]];
        build->extra[build->value_of[from->output]].shared = build->graph->values[from->output].consumer_count > 1;
        return TDM_OK;
    }
    int x[TDM_MAX_INPUTS] = {0};
    for (int i = 0; i < from->input_count; i++) x[i] = build->value_of[from->input[i]];
    bool alias = (from->op->flags & TDM_OP_ALIAS) != 0;
    if (alias && !keeps_channels_last(build, from, x[0])) TDM_TRY(in_layout(build, x[0], TDM_LAYOUT_PLAIN, &x[0]));
    tdm_plan_node *node = NULL;
    TDM_TRY(new_node(build, &node, from->name, graph_node));
    node->op = from->op;
    node->flops = from->flops;
    describe(build, from, x, &node->desc);
    memcpy(node->x, x, (size_t)from->input_count * sizeof(int));
    for (int i = 0; i < from->input_count; i++) node->needs_backward = node->needs_backward || node->desc.wants_dx[i];
    node->needs_backward = build->plan->options.training && (node->needs_backward || from->param_count > 0);
    for (int i = 0; i < from->buffer_count; i++) node->buffer[i] = from->first_buffer + i;
    if (alias) return lower_alias(build, node, from);
    int relu = sole_relu(build, from), later;
    tdm_kernel_fit fit;
    TDM_TRY(later_relu(build, relu, &later));
    if (later >= 0) {
        build->takes_relu[later] = build->fused[relu] = true;
        relu = -1;
    }
    TDM_TRY(choose_kernel(build, node, relu >= 0 || build->takes_relu[graph_node], &fit));
    if (relu >= 0 && node->desc.relu) build->fused[relu] = true;
    if (build->takes_relu[graph_node] && !node->desc.relu)
        TDM_FAIL(TDM_E_INTERNAL, "plan: the kernel of '%s' takes no relu after all", node->name);
    return lower_kernel(build, &node, from, &fit);
}

static void mark_gradients(tdm_build *build) {
    for (size_t i = 0; i < build->graph->node_count; i++) {
        const tdm_graph_node *node = &build->graph->nodes[i];
        bool needs = node->param_count > 0;
        for (int k = 0; k < node->input_count; k++) needs = needs || build->needs_gradient[node->input[k]];
        build->needs_gradient[node->output] = needs;
    }
}

tdm_status tdm__build_lower(tdm_build *build) {
    const tdm_graph *graph = build->graph;
    tdm_plan *plan = build->plan;
    mark_gradients(build);
    TDM_TRY(new_activation(build, &plan->input, graph->input, TDM_LAYOUT_PLAIN));
    plan->values[plan->input].kind = TDM_PLACE_EXTERNAL;
    build->value_of[graph->input] = plan->input;
    for (int i = 0; i < (int)graph->node_count; i++) TDM_TRY(lower_node(build, i));
    TDM_TRY(in_layout(build, build->value_of[graph->output], TDM_LAYOUT_PLAIN, &plan->output));
    plan->output_width = tdm__shape_count(&graph->values[graph->output].shape);
    return TDM_OK;
}
