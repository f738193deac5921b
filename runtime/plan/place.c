/* When each value is alive, and where it lies in the activation arena: largest first, each into the smallest gap that
 * nothing alive at the same time occupies. */
#include <stdlib.h>

#include "runtime/base/status.h"
#include "runtime/plan/build.h"

static void touch(tdm_plan *plan, int value, int step) {
    if (value < 0) return;
    tdm_plan_value *v = &plan->values[tdm__plan_root(plan, value)];
    if (v->first < 0) v->first = step;
    v->last = step;
}

static void touch_forward(tdm_plan *plan, const tdm_plan_node *node, int step) {
    for (int i = 0; i < node->desc.input_count; i++) touch(plan, node->x[i], step);
    touch(plan, node->y, step);
    touch(plan, node->saved, step);
    touch(plan, node->scratch_forward, step);
}

static void touch_recompute(tdm_plan *plan, const tdm_plan_node *node, int step) {
    for (int i = 0; i < node->desc.input_count; i++) touch(plan, node->x[i], step);
    touch(plan, tdm__plan_in_backward(plan, node->y), step);
    touch(plan, node->saved, step);
    touch(plan, node->scratch_backward, step);
}

static void touch_backward(tdm_plan *plan, const tdm_plan_node *node, int step) {
    for (int i = 0; i < node->desc.input_count; i++) {
        if (tdm__plan_backward_reads(node, i)) touch(plan, tdm__plan_in_backward(plan, node->x[i]), step);
        touch(plan, node->dx[i], step);
        touch(plan, node->dx_temp[i], step);
    }
    if ((node->reads & TDM_OP_READS_Y) != 0) touch(plan, tdm__plan_in_backward(plan, node->y), step);
    touch(plan, node->dy, step);
    touch(plan, node->saved, step);
    touch(plan, node->scratch_backward, step);
    if (node->desc.param_count > 0 || node->summed_bias >= 0) touch(plan, plan->stages[node->stage].temp, step);
    if (node->unwanted != 0) touch(plan, plan->stages[node->stage].unwanted, step);
}

/* Of what the forward or backward that follows touches: all that it reads, its scratch, and the gradients of inputs
 * that an epilogue adds, which a kernel may write already. */
static void touch_statistics(tdm_plan *plan, const tdm_plan_node *node, int step) {
    const bool forward = step < plan->forward_steps;
    for (int i = 0; i < node->desc.input_count; i++) {
        if (forward)
            touch(plan, node->x[i], step);
        else if (tdm__plan_backward_reads(node, i))
            touch(plan, tdm__plan_in_backward(plan, node->x[i]), step);
        if (forward || !tdm__plan_is_added(node, i)) continue;
        touch(plan, node->dx[i], step);
        touch(plan, node->dx_temp[i], step);
    }
    touch(plan, forward ? node->scratch_forward : node->scratch_backward, step);
    if (forward) return;
    if ((node->reads & TDM_OP_READS_Y) != 0) touch(plan, tdm__plan_in_backward(plan, node->y), step);
    touch(plan, node->dy, step);
    touch(plan, node->saved, step);
}

static void find_lives(tdm_plan *plan) {
    for (int i = 0; i < plan->step_count; i++) {
        const tdm_plan_step *step = &plan->steps[i];
        if (step->kind == TDM_STEP_STATISTICS) touch_statistics(plan, &plan->nodes[step->index], i);
        if (step->kind == TDM_STEP_FORWARD) touch_forward(plan, &plan->nodes[step->index], i);
        if (step->kind == TDM_STEP_RECOMPUTE) touch_recompute(plan, &plan->nodes[step->index], i);
        if (step->kind == TDM_STEP_BACKWARD) touch_backward(plan, &plan->nodes[step->index], i);
        if (step->kind == TDM_STEP_LOSS) {
            touch(plan, plan->output, i);
            touch(plan, plan->d_output, i);
        }
    }
}

static int larger_first(const void *a, const void *b, void *user) {
    const tdm_plan *plan = user;
    const tdm_plan_value *p = &plan->values[*(const int *)a], *q = &plan->values[*(const int *)b];
    if (p->bytes != q->bytes) return p->bytes > q->bytes ? -1 : 1;
    return *(const int *)a - *(const int *)b;
}

static size_t rounded(size_t bytes) {
    return tdm__round_up(bytes, TDM_ALIGN);
}

/* `placed` is sorted by offset. */
static size_t best_gap(const tdm_plan *plan, const int *placed, int count, const tdm_plan_value *value) {
    size_t end = 0, best = SIZE_MAX, best_size = SIZE_MAX, needed = rounded(value->bytes);
    for (int i = 0; i < count; i++) {
        const tdm_plan_value *other = &plan->values[placed[i]];
        if (other->last < value->first || other->first > value->last) continue;
        if (other->offset > end && other->offset - end >= needed && other->offset - end < best_size) {
            best = end;
            best_size = other->offset - end;
        }
        if (other->offset + rounded(other->bytes) > end) end = other->offset + rounded(other->bytes);
    }
    return best != SIZE_MAX ? best : end;
}

static void set_stage(tdm_plan *plan, int value, int stage) {
    if (value >= 0) plan->values[value].stage = stage;
}

static void set_received(tdm_plan *plan, int value) {
    if (value >= 0) plan->values[tdm__plan_root(plan, value)].is_received = true;
}

/* In whose arena each value lies. */
static void find_stages(tdm_plan *plan) {
    for (int i = 0; i < plan->node_count; i++) {
        const tdm_plan_node *node = &plan->nodes[i];
        const int stage = node->stage, behind = stage + (node->transfers ? 1 : 0);
        set_stage(plan, node->y, behind);
        set_stage(plan, tdm__plan_in_backward(plan, node->y), behind);
        set_stage(plan, node->dy, behind);
        if (node->transfers) set_received(plan, node->y);
        if (node->transfers) set_received(plan, node->dx[0]);
        set_stage(plan, node->saved, stage);
        set_stage(plan, node->scratch_forward, stage);
        set_stage(plan, node->scratch_backward, stage);
        for (int k = 0; k < node->desc.input_count; k++) {
            set_stage(plan, node->dx[k], stage);
            set_stage(plan, node->dx_temp[k], stage);
        }
    }
    set_stage(plan, plan->d_output, plan->stage_count - 1);
    for (int k = 0; k < plan->stage_count; k++) {
        set_stage(plan, plan->stages[k].temp, k);
        set_stage(plan, plan->stages[k].unwanted, k);
    }
}

/* Must the value survive other micro-batches? It does if its own micro-batch uses it in forward and in backward, or if
 * a neighbour writes it at a time of its own. */
static bool is_kept(const tdm_plan *plan, const tdm_plan_value *value) {
    return value->is_received || (value->first < plan->forward_steps && value->last > plan->forward_steps);
}

/* Values that own bytes in the stage's arena, largest first: of those that are kept, or the others, or all. */
typedef enum subset { ALL, KEPT, SHARED } subset;
static int list_values(tdm_plan *plan, int stage, subset which, int *out) {
    int count = 0;
    for (int i = 0; i < plan->value_count; i++) {
        const tdm_plan_value *value = &plan->values[i];
        if (value->alias_of >= 0 || value->kind != TDM_PLACE_ARENA || value->first < 0 || value->stage != stage)
            continue;
        if (which == ALL || is_kept(plan, value) == (which == KEPT)) out[count++] = i;
    }
    qsort_r(out, (size_t)count, sizeof(int), larger_first, plan);
    return count;
}

static size_t place_subset(tdm_plan *plan, int stage, subset which, int *order, int *placed) {
    size_t end = 0;
    const int count = list_values(plan, stage, which, order);
    for (int i = 0; i < count; i++) {
        tdm_plan_value *value = &plan->values[order[i]];
        value->is_shared = which == SHARED;
        value->offset = best_gap(plan, placed, i, value);
        if (value->offset + rounded(value->bytes) > end) end = value->offset + rounded(value->bytes);
        int at = i;
        while (at > 0 && plan->values[placed[at - 1]].offset > value->offset) placed[at] = placed[at - 1], at--;
        placed[at] = order[i];
    }
    return end;
}

/* Several micro-batches in flight: each has memory of its own for its kept values, and all use the same memory, one
 * after another, for the others. Or each has memory of its own for all values, if that takes less: then the others can
 * lie in gaps between kept values. */
static void place_stage(tdm_plan *plan, int index, int *order, int *placed) {
    tdm_plan_stage *stage = &plan->stages[index];
    const size_t in_flight = (size_t)stage->in_flight;
    size_t apart = SIZE_MAX;
    if (in_flight > 1)
        apart = place_subset(plan, index, KEPT, order, placed) * in_flight +
                place_subset(plan, index, SHARED, order, placed);
    stage->activation_bytes = place_subset(plan, index, ALL, order, placed);
    if (stage->activation_bytes * in_flight <= apart) return;
    stage->activation_bytes = place_subset(plan, index, KEPT, order, placed);
    stage->shared_bytes = place_subset(plan, index, SHARED, order, placed);
}

tdm_status tdm__build_places(tdm_build *build) {
    tdm_plan *plan = build->plan;
    int *order = NULL, *placed = NULL;
    find_lives(plan);
    find_stages(plan);
    TDM_TRY(tdm__zone_new(&plan->zone, &order, (size_t)plan->value_count, sizeof(int)));
    TDM_TRY(tdm__zone_new(&plan->zone, &placed, (size_t)plan->value_count, sizeof(int)));
    for (int k = 0; k < plan->stage_count; k++) {
        place_stage(plan, k, order, placed);
        plan->activation_bytes += tdm__stage_activation_bytes(&plan->stages[k]);
    }
    for (int i = 0; i < plan->value_count; i++) {
        const tdm_plan_value *owner = &plan->values[tdm__plan_root(plan, i)];
        plan->values[i].offset = owner->offset;
        plan->values[i].is_shared = owner->is_shared;
    }
    plan->has_offsets = true;
    return TDM_OK;
}
