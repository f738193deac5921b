/* Before the passes: which parameters are trained. A frozen one has no gradient and no optimizer state, and what lies
 * in front of the first trained layer has no backward. */
#include "runtime/base/status.h"
#include "runtime/base/text/pattern.h"
#include "runtime/plan/build.h"

bool tdm__build_is_trained(const tdm_build *build, const tdm_graph_node *node) {
    for (int i = 0; i < node->param_count; i++)
        if (!build->plan->frozen[node->first_param + i]) return true;
    return false;
}

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

tdm_status tdm__build_frozen(tdm_build *build) {
    tdm_plan *plan = build->plan;
    const tdm_graph *graph = build->graph;
    const tdm_texts *freeze = plan->options.freeze;
    const tdm_param_groups *groups = plan->options.groups;
    size_t frozen = 0;
    TDM_TRY(tdm__zone_new(&plan->zone, &plan->frozen, graph->param_count, sizeof(*plan->frozen)));
    if (freeze != NULL) TDM_TRY(check(graph, "model.freeze", freeze));
    for (int i = 0; groups != NULL && i < groups->count; i++)
        TDM_TRY(check(graph, "optimizer.groups", &groups->item[i].params));
    if (!plan->options.training || freeze == NULL) return TDM_OK;
    for (size_t i = 0; i < graph->param_count; i++) {
        plan->frozen[i] = tdm__patterns_find(freeze, graph->params[i].name) >= 0;
        frozen += plan->frozen[i];
    }
    if (frozen > 0 && frozen == graph->param_count)
        TDM_FAIL(TDM_E_CONFIG, "model.freeze: every parameter is frozen, so there is nothing to train; leave out a "
                               "pattern");
    return TDM_OK;
}
