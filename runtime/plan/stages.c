/* Which stage runs each node, and what crosses from one stage into the next.
 *
 * A cut lies in front of the first node whose layer belongs to a later stage. A value that is read behind a cut is
 * copied across it by a transfer, the last thing that the stage in front does with it; across several cuts it goes from
 * stage to stage. So a stage hands on to its neighbours only, and a value's gradients are added in the order in which
 * one device adds them. */
#include <stdio.h>
#include <string.h>

#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/plan/build.h"

static const tdm_op_def transfer_op = {
    .name = "transfer", .doc = "a value for the next stage", .min_inputs = 1, .max_inputs = 1};

/* ---- cuts ---- */

static bool has_param(const tdm_plan_node *node, int graph_param) {
    for (int k = 0; k < node->desc.param_count; k++)
        if (node->graph_param[k] == graph_param) return true;
    return false;
}

/* A kernel that sums the gradient of another node's bias writes it in the stage that has the bias: the two stay
 * together. */
static int moved_back(const tdm_plan *plan, int cut) {
    for (int i = cut; i < plan->node_count; i++) {
        int owner = plan->nodes[i].summed_bias >= 0 ? i - 1 : -1;
        while (owner >= 0 && !has_param(&plan->nodes[owner], plan->nodes[i].summed_bias)) owner--;
        if (owner >= 0 && owner < cut) cut = i + 1;
    }
    return cut;
}

/* The first node of each stage. */
static void find_cuts(const tdm_plan *plan, const int *stage_of_layer, int *cut) {
    int stage = 0;
    for (int k = 1; k < plan->stage_count; k++) cut[k] = plan->node_count;
    for (int i = 0; i < plan->node_count; i++) {
        const int layer = plan->nodes[i].graph_node;
        while (layer >= 0 && stage < stage_of_layer[layer]) cut[++stage] = i;
    }
    for (int k = 1; k < plan->stage_count; k++) {
        cut[k] = moved_back(plan, cut[k]);
        if (cut[k] < cut[k - 1]) cut[k] = cut[k - 1];
    }
}

static tdm_status check_stage(const tdm_plan *plan, const int *stage_of_layer, int stage) {
    const tdm_graph *graph = plan->graph;
    for (int i = 0; i < plan->node_count; i++)
        if (plan->nodes[i].stage == stage && plan->nodes[i].desc.param_count > 0) return TDM_OK;
    int first = 0;
    while (stage_of_layer[first] < stage) first++;
    TDM_FAIL_AT(&graph->nodes[first].origin, TDM_E_CONFIG,
                "the graph cannot be cut in front of %s '%s': its kernel runs together with the layer before it, which "
                "leaves stage %d without parameters; begin the stage at another layer",
                graph->nodes[first].op->name, graph->nodes[first].name, stage);
}

static tdm_status assign(tdm_build *build, int *cut) {
    tdm_plan *plan = build->plan;
    int *stage_of_layer = NULL;
    double *flops = NULL;
    TDM_TRY(tdm__zone_new(&plan->zone, &stage_of_layer, plan->graph->node_count, sizeof(int)));
    TDM_TRY(tdm__zone_new(&plan->zone, &flops, plan->graph->node_count, sizeof(*flops)));
    TDM_TRY(tdm__graph_step_flops(plan->graph, plan->frozen, flops));
    TDM_TRY(tdm__graph_stages(plan->graph, flops, plan->stage_count, stage_of_layer));
    find_cuts(plan, stage_of_layer, cut);
    for (int i = 0, stage = 0; i < plan->node_count; i++) {
        while (stage + 1 < plan->stage_count && cut[stage + 1] <= i) stage++;
        plan->nodes[i].stage = stage;
    }
    for (int k = 0; k < plan->stage_count; k++) TDM_TRY(check_stage(plan, stage_of_layer, k));
    for (int i = 0; i < (int)plan->graph->node_count; i++) plan->stages[stage_of_layer[i]].flops += flops[i];
    return TDM_OK;
}

/* ---- transfers ---- */

static bool is_read_behind(const tdm_plan *plan, int value, int cut, int count) {
    for (int i = cut; i < count; i++)
        for (int k = 0; k < plan->nodes[i].desc.input_count; k++)
            if (plan->nodes[i].x[k] == value) return true;
    return false;
}

static tdm_status add_transfer(tdm_build *build, int value, int stage, int cut, int count) {
    const tdm_plan_value from = build->plan->values[value];
    char name[sizeof(from.name) + 16];
    int copy, index;
    snprintf(name, sizeof(name), "%.*s@%d", (int)strcspn(from.name, "@"), from.name, stage);
    TDM_TRY(tdm__build_value(build, &copy, name, &from.shape, from.layout, from.bytes));
    TDM_TRY(tdm__build_node(build, &index, transfer_op.name, -1, &transfer_op));
    tdm_plan *plan = build->plan;
    const tdm_build_value of = build->of_value[value];
    plan->values[copy].channels = from.channels;
    build->of_value[copy] = (tdm_build_value){.needs_gradient = of.needs_gradient,
                                              .producer = index,
                                              .gradient = -1,
                                              .channels = of.channels,
                                              .points = of.points};
    build->of_node[index].before = cut;
    tdm_plan_node *node = &plan->nodes[index];
    node->stage = stage - 1;
    node->transfers = true;
    node->y = copy;
    node->needs_backward = plan->options.training && of.needs_gradient;
    node->desc = (tdm_kernel_desc){.op = transfer_op.name,
                                   .input_count = 1,
                                   .x = {from.shape},
                                   .y = from.shape,
                                   .x_layout = {from.layout},
                                   .y_layout = from.layout,
                                   .needs_dx = {node->needs_backward},
                                   .training = plan->options.training,
                                   .threads = plan->options.threads,
                                   .precision = plan->options.precision};
    tdm__build_set_x(build, index, 0, value);
    for (int i = cut; i < count; i++)
        for (int k = 0; k < plan->nodes[i].desc.input_count; k++)
            if (plan->nodes[i].x[k] == value) tdm__build_set_x(build, i, k, copy);
    plan->stages[stage - 1].sent_bytes += from.bytes;
    if (node->needs_backward) plan->stages[stage - 1].returned_bytes += from.bytes;
    return TDM_OK;
}

static bool is_made_before(const tdm_build *build, int value, int cut, int count) {
    const int producer = build->of_value[value].producer;
    return producer < cut || producer >= count; /* the batch, a node, or a transfer across an earlier cut */
}

static tdm_status cut_all(tdm_build *build) {
    tdm_plan *plan = build->plan;
    const int count = plan->node_count;
    int cut[TDM_STAGES_MAX] = {0};
    TDM_TRY(assign(build, cut));
    for (int stage = 1; stage < plan->stage_count; stage++) {
        const int values = plan->value_count;
        for (int v = 0; v < values; v++)
            if (is_made_before(build, v, cut[stage], count) && is_read_behind(plan, v, cut[stage], count))
                TDM_TRY(add_transfer(build, v, stage, cut[stage], count));
    }
    return tdm__build_move_appended(build, count);
}

/* 1F1B: the last stage runs backward right behind forward, the stage in front of it has one more in flight, and so on.
 */
static int in_flight(const tdm_plan *plan, int stage) {
    const int64_t most = plan->stage_count - stage;
    const int64_t micro = plan->options.training && plan->options.micro_batches > 1 ? plan->options.micro_batches : 1;
    return (int)(micro < most ? micro : most);
}

tdm_status tdm__build_stages(tdm_build *build) {
    tdm_plan *plan = build->plan;
    if (plan->stage_count > TDM_STAGES_MAX)
        TDM_FAIL(TDM_E_CONFIG, "parallel.stages: a replica has at most %d stages, got %d", TDM_STAGES_MAX,
                 plan->stage_count);
    TDM_TRY(tdm__zone_new(&plan->zone, &plan->stages, (size_t)plan->stage_count, sizeof(*plan->stages)));
    for (int k = 0; k < plan->stage_count; k++)
        plan->stages[k] = (tdm_plan_stage){.in_flight = in_flight(plan, k), .unwanted = -1, .temp = -1};
    return plan->stage_count > 1 ? cut_all(build) : TDM_OK;
}

int64_t tdm__plan_crossing(const tdm_plan *plan, int64_t rows) {
    size_t most = 0;
    for (int k = 0; k < plan->stage_count; k++) most += plan->stages[k].sent_bytes + plan->stages[k].returned_bytes;
    return (int64_t)(most / (size_t)plan->options.rows) * rows;
}
