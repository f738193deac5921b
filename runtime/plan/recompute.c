/* Which outputs are made again for backward, so that their memory is free in between.
 *
 * An output qualifies if its kernel can make it again from inputs that are kept for backward in any case: then the
 * memory of the output is saved, and a pass over it is the price. */
#include <stdio.h>

#include "runtime/base/status.h"
#include "runtime/plan/build.h"
#include "runtime/plan/widened.h"

static bool has_alias(const tdm_plan *plan, int value) {
    for (int v = 0; v < plan->value_count; v++)
        if (plan->values[v].alias_of == value) return true;
    return false;
}

/* A kept input is there until the node's own backward, which is the last to read what is made again. */
static bool keeps_inputs(const tdm_plan *plan, const tdm_plan_node *node) {
    for (int k = 0; k < node->desc.input_count; k++)
        if (!tdm__plan_backward_reads(node, k) || plan->values[node->x[k]].again >= 0) return false;
    return true;
}

static bool is_read_in_backward(const tdm_plan *plan, int producer) {
    const int value = plan->nodes[producer].y;
    if ((plan->nodes[producer].reads & TDM_OP_READS_Y) != 0) return true;
    for (int i = producer + 1; i < plan->node_count; i++) {
        const tdm_plan_node *node = &plan->nodes[i];
        for (int k = 0; k < node->desc.input_count; k++)
            if (node->x[k] == value && tdm__plan_backward_reads(node, k)) return true;
    }
    return false;
}

static bool qualifies(const tdm_plan *plan, int index) {
    const tdm_plan_node *node = &plan->nodes[index];
    const tdm_plan_value *y = &plan->values[node->y];
    if (node->kernel == NULL || node->kernel->recompute == NULL || !node->needs_backward ||
        tdm__plan_widens(plan, node) || y->bytes < plan->options.recompute)
        return false;
    return node->y != plan->output && y->kind == TDM_PLACE_ARENA && y->alias_of < 0 && !has_alias(plan, node->y) &&
           keeps_inputs(plan, node) && is_read_in_backward(plan, index);
}

tdm_status tdm__build_recompute(tdm_build *build) {
    tdm_plan *plan = build->plan;
    for (int i = 0; plan->options.training && i < plan->node_count; i++) {
        if (!qualifies(plan, i)) continue;
        const int value = plan->nodes[i].y;
        const tdm_plan_value y = plan->values[value];
        char name[sizeof y.name + 1];
        int again = -1;
        snprintf(name, sizeof name, "%s'", y.name);
        TDM_TRY(tdm__build_value(build, &again, name, &y.shape, y.layout, y.bytes));
        build->of_value[again].producer = i;
        plan->values[value].again = again;
    }
    return TDM_OK;
}
