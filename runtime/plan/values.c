/* Numbers the values that are left in the order in which they are made, adds what kernels save and their scratch, and
 * decides which values share memory. */
#include <stdio.h>

#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/plan/build.h"
#include "runtime/plan/widened.h"

/* A node without a backward reads nothing there. */
static unsigned backward_reads(const tdm_plan_node *node) {
    return node->needs_backward ? node->reads : 0;
}

/* May another value be written over this one and those that it lies on? Only if nobody reads the old bytes again: it
 * has one reader, and its producer's backward does not look at it. (Nor may the reader's: may_overwrite.) */
static bool is_free(const tdm_build *build, int value) {
    const tdm_plan_value *v = &build->plan->values[value];
    const int producer = build->of_value[value].producer;
    return v->kind == TDM_PLACE_ARENA && producer >= 0 && tdm__build_sole_reader(build, value) >= 0 &&
           (backward_reads(&build->plan->nodes[producer]) & TDM_OP_READS_Y) == 0;
}

static bool may_overwrite(const tdm_build *build, const tdm_plan_node *node) {
    const tdm_plan *plan = build->plan;
    return !plan->options.repeats && (node->op->flags & TDM_OP_IN_PLACE) != 0 &&
           (backward_reads(node) & TDM_OP_READS_X) == 0 && build->of_value[node->x[0]].is_free &&
           plan->values[node->x[0]].bytes == plan->values[node->y].bytes;
}

/* y may take over the bytes of x. The owner of the bytes is then the root of both. */
static void share(tdm_build *build, const tdm_plan_node *node) {
    const int x = node->x[0];
    tdm_plan_value *y = &build->plan->values[node->y];
    const bool shares = !node->transfers && (node->kernel == NULL || may_overwrite(build, node));
    if (shares) {
        y->alias_of = tdm__plan_root(build->plan, x);
        y->kind = build->plan->values[x].kind;
    }
    build->of_value[node->y].is_free = is_free(build, node->y) && (!shares || build->of_value[x].is_free);
}

static tdm_status book(tdm_build *build, int index) {
    const tdm_kernel_fit *fit = &build->of_node[index].fit;
    char name[40];
    int saved = -1, forward = -1, backward = -1;
    snprintf(name, sizeof(name), "saved %d", index);
    if (fit->saved_bytes > 0 && build->plan->options.training)
        TDM_TRY(tdm__build_value(build, &saved, name, NULL, TDM_LAYOUT_PLAIN, fit->saved_bytes));
    snprintf(name, sizeof(name), "scratch %d", index);
    const tdm_plan_node *of = &build->plan->nodes[index];
    const size_t own = fit->scratch_bytes;
    const size_t scratch = tdm__plan_widens(build->plan, of) ? tdm__widened_of(of, own).total : own;
    if (scratch > 0) TDM_TRY(tdm__build_value(build, &forward, name, NULL, TDM_LAYOUT_PLAIN, scratch));
    if (scratch > 0 && build->plan->options.training)
        TDM_TRY(tdm__build_value(build, &backward, name, NULL, TDM_LAYOUT_PLAIN, scratch));
    tdm_plan_node *node = &build->plan->nodes[index];
    node->own_scratch = own;
    node->call_bytes = fit->call_bytes;
    node->kept_bytes = fit->kept_bytes;
    node->saved = saved, node->scratch_forward = forward, node->scratch_backward = backward;
    return TDM_OK;
}

/* Appends the value as it was, under a new number. */
static tdm_status take(tdm_build *build, const tdm_plan_value *value, const tdm_build_value *of, int *number) {
    TDM_TRY(tdm__build_value(build, number, value->name, &value->shape, value->layout, value->bytes));
    build->plan->values[*number] = *value;
    build->of_value[*number] = *of;
    return TDM_OK;
}

static tdm_status number_values(tdm_build *build, const tdm_plan_value *values, const tdm_build_value *of,
                                int *number) {
    tdm_plan *plan = build->plan;
    const int input = plan->input, output = plan->output;
    plan->output = -1;
    TDM_TRY(take(build, &values[input], &of[input], &number[input]));
    plan->input = number[input];
    for (int i = 0; i < plan->node_count; i++) {
        tdm_plan_node *node = &plan->nodes[i];
        const int y = node->y;
        for (int k = 0; k < node->desc.input_count; k++) node->x[k] = number[node->x[k]];
        TDM_TRY(take(build, &values[y], &of[y], &number[y]));
        node->y = number[y];
        if (y == output) plan->output = node->y;
        share(build, node);
        TDM_TRY(book(build, i));
    }
    return TDM_OK;
}

tdm_status tdm__build_values(tdm_build *build) {
    tdm_plan *plan = build->plan;
    tdm_plan_value *values = plan->values;
    tdm_build_value *of = build->of_value;
    int *number = NULL;
    TDM_TRY(tdm__new(build->host, &number, (size_t)plan->value_count, sizeof(*number), "plan"));
    plan->values = NULL;
    build->of_value = NULL;
    build->value_room = build->of_value_room = 0;
    plan->value_count = 0;
    tdm_status status = number_values(build, values, of, number);
    tdm__delete(build->host, values);
    tdm__delete(build->host, of);
    tdm__delete(build->host, number);
    plan->input_row_bytes = status == TDM_OK ? plan->values[plan->input].bytes / (size_t)plan->options.rows : 0;
    return status;
}
