/* Before the passes: which parameters are trained. A frozen one has no gradient and no optimizer state, and what lies
 * in front of the first trained layer has no backward. Nor is a parameter trained that the loss does not depend on:
 * PyTorch's has a gradient of None, and its optimizers leave it alone. */
#include "runtime/base/status.h"
#include "runtime/base/text/pattern.h"
#include "runtime/plan/build.h"

int64_t tdm__plan_trained_numbers(const tdm_plan *plan) {
    int64_t count = 0;
    for (int i = 0; i < plan->trained_count; i++) count += plan->params[i].count;
    return count;
}

static tdm_status check(const tdm_graph *graph, const char *key, const tdm_texts *patterns) {
    const int wrong = tdm__graph_unmatched(graph, patterns);
    if (wrong < 0) return TDM_OK;
    char hint[TDM_PATTERN_HINT];
    if (tdm__graph_nearest_pattern(graph, patterns->item[wrong], hint))
        TDM_FAIL(TDM_E_CONFIG, "%s: no parameter of the model matches '%s'; did you mean '%s'?", key,
                 patterns->item[wrong], hint);
    TDM_FAIL(TDM_E_CONFIG, "%s: no parameter of the model matches '%s'", key, patterns->item[wrong]);
}

static tdm_status check_unused(const tdm_graph *graph, const bool *used) {
    char list[TDM_UNUSED_LIST];
    size_t first = 0;
    while (first < graph->node_count && used[first]) first++;
    if (first == graph->node_count) return TDM_OK;
    const tdm_graph_node *node = &graph->nodes[first];
    if (tdm__graph_list_unused(graph, used, NULL, list) == 0)
        TDM_FAIL_AT(&node->origin, TDM_E_CONFIG, "the model's output does not depend on %s '%s'; remove it",
                    node->op->name, node->name);
    TDM_FAIL_AT(&node->origin, TDM_E_CONFIG,
                "the model's output does not depend on %s '%s': no gradient reaches %s; use its output, remove it, or "
                "set parallel.ddp.find_unused_parameters",
                node->op->name, node->name, list);
}

/* Parameters of layers that are not used get no gradient. */
static tdm_status find_unused(tdm_build *build) {
    tdm_plan *plan = build->plan;
    const tdm_graph *graph = build->graph;
    TDM_TRY(tdm__zone_new(&plan->zone, &plan->used, graph->node_count, sizeof(*plan->used)));
    tdm__graph_find_used(graph, graph->output, plan->used);
    if (!plan->options.allows_unused) TDM_TRY(check_unused(graph, plan->used));
    for (size_t i = 0; plan->options.training && i < graph->param_count; i++)
        plan->frozen[i] = !plan->used[graph->params[i].node];
    return TDM_OK;
}

tdm_status tdm__build_frozen(tdm_build *build) {
    tdm_plan *plan = build->plan;
    const tdm_graph *graph = build->graph;
    const tdm_texts *freeze = plan->options.freeze;
    const tdm_param_groups *groups = plan->options.groups;
    size_t frozen = 0;
    TDM_TRY(tdm__zone_new(&plan->zone, &plan->frozen, graph->param_count, sizeof(*plan->frozen)));
    TDM_TRY(find_unused(build));
    if (freeze != NULL) TDM_TRY(check(graph, "model.freeze", freeze));
    for (int i = 0; groups != NULL && i < groups->count; i++)
        TDM_TRY(check(graph, "optimizer.groups", &groups->item[i].params));
    if (!plan->options.training || freeze == NULL) return TDM_OK;
    for (size_t i = 0; i < graph->param_count; i++) {
        plan->frozen[i] = plan->frozen[i] || tdm__patterns_find(freeze, graph->params[i].name) >= 0;
        frozen += plan->frozen[i];
    }
    if (freeze->count > 0 && frozen == graph->param_count)
        TDM_FAIL(TDM_E_CONFIG, "model.freeze: every parameter is frozen, so there is nothing to train; leave out a "
                               "pattern");
    return TDM_OK;
}
