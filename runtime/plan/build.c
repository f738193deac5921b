/* What the passes have in common. */
#include "runtime/plan/build.h"

#include <stdio.h>
#include <string.h>

#include "runtime/base/status.h"

tdm_status tdm__build_value(tdm_build *build, int *out, const char *name, const tdm_shape *shape, tdm_layout layout,
                            size_t bytes) {
    tdm_plan *plan = build->plan;
    size_t count = (size_t)plan->value_count;
    TDM_TRY(tdm__grow(build->host, &plan->values, &build->value_room, count + 1, sizeof(*plan->values), "plan values"));
    TDM_TRY(tdm__grow(build->host, &build->of_value, &build->of_value_room, count + 1, sizeof(*build->of_value),
                      "plan values"));
    tdm_plan_value *value = &plan->values[count];
    *value = (tdm_plan_value){.layout = layout,
                              .kind = TDM_PLACE_ARENA,
                              .alias_of = -1,
                              .again = -1,
                              .first = -1,
                              .last = -1,
                              .bytes = bytes};
    if (shape != NULL) value->shape = *shape;
    snprintf(value->name, sizeof(value->name), "%s", name);
    build->of_value[count] = (tdm_build_value){.producer = -1, .gradient = -1};
    plan->value_count++;
    *out = (int)count;
    return TDM_OK;
}

tdm_status tdm__build_node(tdm_build *build, int *out, const char *name, int graph_node, const tdm_op_def *op) {
    tdm_plan *plan = build->plan;
    size_t count = (size_t)plan->node_count;
    TDM_TRY(tdm__grow(build->host, &plan->nodes, &build->node_room, count + 1, sizeof(*plan->nodes), "plan nodes"));
    TDM_TRY(tdm__grow(build->host, &build->of_node, &build->of_node_room, count + 1, sizeof(*build->of_node),
                      "plan nodes"));
    tdm_plan_node *node = &plan->nodes[count];
    *node = (tdm_plan_node){.graph_node = graph_node, .op = op, .reads = op->flags & (TDM_OP_READS_X | TDM_OP_READS_Y)};
    snprintf(node->name, sizeof(node->name), "%s", name);
    node->summed_bias = node->y = node->dy = node->saved = node->scratch_forward = node->scratch_backward = -1;
    for (int i = 0; i < TDM_MAX_INPUTS; i++) node->x[i] = node->dx[i] = node->dx_temp[i] = -1;
    for (int i = 0; i < TDM_MAX_PARAMS; i++) node->graph_param[i] = node->param[i] = node->dparam[i] = -1;
    for (int i = 0; i < TDM_MAX_BUFFERS; i++) node->buffer[i] = -1;
    build->of_node[count] = (tdm_build_node){.removed = false};
    plan->node_count++;
    *out = (int)count;
    return TDM_OK;
}

static void count_reader(tdm_build *build, int value, int node, int change) {
    build->of_value[value].readers += change;
    build->of_value[value].reader_sum += change * (int64_t)node;
}

static void permute(tdm_build *build, const int *order, int count, tdm_plan_node *nodes, tdm_build_node *of_node) {
    for (int v = 0; v < build->plan->value_count; v++)
        build->of_value[v].readers = 0, build->of_value[v].reader_sum = 0;
    for (int i = 0; i < count; i++) {
        nodes[i] = build->plan->nodes[order[i]];
        of_node[i] = build->of_node[order[i]];
        build->of_value[nodes[i].y].producer = i;
        for (int k = 0; k < nodes[i].desc.input_count; k++) count_reader(build, nodes[i].x[k], i, 1);
    }
}

tdm_status tdm__build_keep_nodes(tdm_build *build, const int *order, int count) {
    tdm_plan_node *nodes = NULL;
    tdm_build_node *of_node = NULL;
    TDM_TRY(tdm__new(build->host, &nodes, (size_t)count, sizeof(*nodes), "plan nodes"));
    tdm_status status = tdm__new(build->host, &of_node, (size_t)count, sizeof(*of_node), "plan nodes");
    if (status != TDM_OK) {
        tdm__delete(build->host, nodes);
        return status;
    }
    permute(build, order, count, nodes, of_node);
    tdm__delete(build->host, build->plan->nodes);
    tdm__delete(build->host, build->of_node);
    build->plan->nodes = nodes;
    build->of_node = of_node;
    build->plan->node_count = count;
    build->node_room = build->of_node_room = (size_t)count;
    return TDM_OK;
}

tdm_status tdm__build_move_appended(tdm_build *build, int count) {
    const int total = build->plan->node_count;
    int *order = NULL, used = 0, appended = count;
    TDM_TRY(tdm__new(build->host, &order, (size_t)total, sizeof(*order), "plan"));
    for (int i = 0; i <= count; i++) {
        while (appended < total && build->of_node[appended].before == i) order[used++] = appended++;
        if (i < count) order[used++] = i;
    }
    const tdm_status status = tdm__build_keep_nodes(build, order, used);
    tdm__delete(build->host, order);
    return status;
}

void tdm__build_set_x(tdm_build *build, int node, int k, int value) {
    int *x = &build->plan->nodes[node].x[k];
    if (*x >= 0) count_reader(build, *x, node, -1);
    *x = value;
    if (*x >= 0) count_reader(build, *x, node, 1);
}

int tdm__build_sole_reader(const tdm_build *build, int value) {
    const tdm_build_value *of = &build->of_value[value];
    return of->readers == 1 && value != build->plan->output ? (int)of->reader_sum : -1;
}

bool tdm__build_is_free_batch(const tdm_build *build, int value) {
    return build->plan->options.ingests && value == build->plan->input && tdm__build_sole_reader(build, value) >= 0;
}

tdm_status tdm__build_ask(const tdm_build *build, const tdm_kernel *kernel, const tdm_kernel_desc *desc,
                          tdm_kernel_fit *fit, bool *fits) {
    const bool is_widened = build->plan->options.precision == TDM_BF16 && desc->precision != TDM_BF16;
    memset(fit, 0, sizeof(*fit)); /* TDM_LAYOUT_PLAIN is 0 */
    if (desc->replicas > 1 && kernel->statistics == NULL) {
        *fits = false;
        snprintf(fit->why, sizeof fit->why, "no statistics of several replicas");
        return TDM_OK;
    }
    *fits = kernel->fits == NULL || kernel->fits(desc, fit);
    if (fit->no_memory) TDM_FAIL(TDM_E_MEMORY, "%s, kernel %s: %s", desc->op, kernel->variant, fit->why);
    if (is_widened) fit->epilogue &= TDM_EPILOGUES_OF_FLOATS;
    *fits = *fits && (fit->epilogue & desc->epilogue) == desc->epilogue;
    return TDM_OK;
}

int tdm__plan_root(const tdm_plan *plan, int value) {
    const int owner = plan->values[value].alias_of;
    return owner >= 0 ? owner : value;
}
