/* Gradients: who writes each one first, who adds to it later, and which share memory. */
#include <stdio.h>

#include "runtime/base/status.h"
#include "runtime/plan/build.h"

static tdm_status new_gradient(tdm_build *build, int value, int *out) {
    const tdm_plan_value of = build->plan->values[value];
    char name[48];
    snprintf(name, sizeof(name), "d%.38s", of.name);
    TDM_TRY(tdm__build_value(build, out, name, &of.shape, of.layout, of.bytes));
    build->of_value[value].gradient = *out;
    return TDM_OK;
}

/* Only this node reads the gradient of y, so an op with one input may write dx over it. */
static bool may_take_over(const tdm_plan *plan, const tdm_plan_node *node) {
    const unsigned flags = TDM_OP_ALIAS | (plan->options.repeats ? 0 : TDM_OP_IN_PLACE);
    return node->desc.input_count == 1 && (node->op->flags & flags) != 0;
}

static tdm_status write_dx(tdm_build *build, int index, int input) {
    tdm_plan *plan = build->plan;
    tdm_plan_node *node = &plan->nodes[index];
    const int value = node->x[input];
    if (build->of_value[value].gradient >= 0) {
        node->dx[input] = build->of_value[value].gradient;
        node->dx_adds[input] = true;
        if (node->kernel == NULL) return TDM_OK; /* the executor adds dy itself */
        const tdm_plan_value of = plan->values[value];
        return tdm__build_value(build, &node->dx_temp[input], "temp", &of.shape, of.layout, of.bytes);
    }
    TDM_TRY(new_gradient(build, value, &node->dx[input]));
    if (may_take_over(plan, node) || tdm__plan_is_added(node, input))
        plan->values[node->dx[input]].alias_of = tdm__plan_root(plan, node->dy);
    return TDM_OK;
}

/* Floats of the parameter gradients that a node writes. */
static size_t written_floats(const tdm_plan *plan, const tdm_plan_node *node) {
    const int summed = tdm__plan_dsum(plan, node);
    size_t floats = summed >= 0 ? tdm__plan_floats((size_t)plan->params[summed].stored) : 0;
    for (int k = 0; k < node->desc.param_count; k++)
        if (node->dparam[k] >= 0) floats += tdm__plan_floats((size_t)plan->params[node->dparam[k]].stored);
    return floats;
}

static size_t unwanted_floats(const tdm_plan *plan, const tdm_plan_node *node) {
    size_t floats = 0;
    for (int k = 0; k < node->desc.param_count; k++)
        if ((node->unwanted >> k & 1) != 0) floats += tdm__plan_floats((size_t)plan->params[node->param[k]].stored);
    return floats;
}

/* Gives a stage memory beside its gradients: for those of a further micro-batch until they are added, and for those of
 * frozen parameters, which a kernel writes along with others. */
static tdm_status add_temporary(tdm_build *build, int stage) {
    tdm_plan *plan = build->plan;
    size_t floats = 0, unwanted = 0;
    for (int i = 0; i < plan->node_count; i++) {
        if (plan->nodes[i].stage != stage) continue;
        const size_t own = written_floats(plan, &plan->nodes[i]), dropped = unwanted_floats(plan, &plan->nodes[i]);
        if (own > floats) floats = own;
        if (dropped > unwanted) unwanted = dropped;
    }
    if (unwanted > 0)
        TDM_TRY(tdm__build_value(build, &plan->stages[stage].unwanted, "unwanted grad", NULL, TDM_LAYOUT_PLAIN,
                                 unwanted * sizeof(float)));
    if (!plan->options.accumulates || floats == 0) return TDM_OK;
    return tdm__build_value(build, &plan->stages[stage].temp, "temp grad", NULL, TDM_LAYOUT_PLAIN,
                            floats * sizeof(float));
}

tdm_status tdm__build_backward(tdm_build *build) {
    tdm_plan *plan = build->plan;
    if (!plan->options.training) return TDM_OK;
    TDM_TRY(new_gradient(build, plan->output, &plan->d_output));
    for (int i = plan->node_count - 1; i >= 0; i--) {
        if (!plan->nodes[i].needs_backward) continue;
        plan->nodes[i].dy = build->of_value[plan->nodes[i].y].gradient;
        if (plan->nodes[i].dy < 0)
            TDM_FAIL(TDM_E_INTERNAL, "plan: nothing makes the gradient of '%s'", plan->nodes[i].name);
        for (int k = 0; k < plan->nodes[i].desc.input_count; k++) {
            if (plan->nodes[i].desc.needs_dx[k]) TDM_TRY(write_dx(build, i, k));
        }
    }
    for (int stage = 0; stage < plan->stage_count; stage++) TDM_TRY(add_temporary(build, stage));
    return TDM_OK;
}
