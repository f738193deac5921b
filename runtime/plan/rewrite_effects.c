/* The effects: what a row of the table does to the nodes of its chain. */
#include <stdio.h>
#include <string.h>

#include "runtime/plan/rewrite.h"

#include "runtime/base/status.h"

/* What a kernel would have to run after a rewrite, and its answer. */
typedef struct tdm_trial {
    tdm_kernel_desc desc;
    tdm_kernel_fit fit;
} tdm_trial;

static tdm_plan_node *node_at(const tdm_build *build, const tdm_chain *chain, int i) {
    return &build->plan->nodes[chain->node[i]];
}

/* All readers of `from` read `to` instead. */
static void redirect(tdm_build *build, int from, int to) {
    tdm_plan *plan = build->plan;
    for (int i = build->of_value[from].producer + 1; i < plan->node_count && build->of_value[from].readers > 0; i++) {
        for (int k = 0; k < plan->nodes[i].desc.input_count; k++)
            if (plan->nodes[i].x[k] == from && !build->of_node[i].removed) tdm__build_set_x(build, i, k, to);
    }
    if (plan->output == from) plan->output = to;
}

static void remove_node(tdm_build *build, int index) {
    build->of_node[index].removed = true;
    for (int k = 0; k < build->plan->nodes[index].desc.input_count; k++) tdm__build_set_x(build, index, k, -1);
}

/* Is the op behind the chain that of the chain's last node but one? */
static bool ends_in_same(const tdm_build *build, const tdm_chain *chain) {
    const int after = tdm__build_sole_reader(build, build->plan->nodes[chain->node[chain->count - 1]].y);
    return after >= 0 && build->plan->nodes[after].op == build->plan->nodes[chain->node[chain->count - 2]].op;
}

/* ---- asking kernels ---- */

static bool same_layouts(const tdm_kernel_desc *desc, const tdm_kernel_fit *fit) {
    for (int i = 0; i < desc->input_count; i++) {
        if (fit->x_layout[i] != desc->x_layout[i]) return false;
    }
    return fit->y_layout == desc->y_layout;
}

static tdm_status ask(const tdm_build *build, int node, tdm_trial *trial, bool *takes) {
    TDM_TRY(tdm__build_ask(build, build->plan->nodes[node].kernel, &trial->desc, &trial->fit, takes));
    *takes = *takes && same_layouts(&trial->desc, &trial->fit);
    return TDM_OK;
}

static void accept_trial(tdm_build *build, int node, const tdm_trial *trial) {
    build->plan->nodes[node].desc = trial->desc;
    build->of_node[node].fit = trial->fit;
}

/* ---- fuse ---- */

/* Does a node from `first` up to `last` read the value? Gradients are added in the order of the nodes, and a reader
 * that moves to `first` must not overtake another. */
static bool is_read_before(const tdm_build *build, int first, int last, int value) {
    for (int i = first; i < last; i++) {
        for (int k = 0; k < build->plan->nodes[i].desc.input_count; k++)
            if (build->plan->nodes[i].x[k] == value) return true;
    }
    return false;
}

/* Adds the node's inputs from outside the chain to those of the first node. */
static bool add_inputs(const tdm_build *build, const tdm_chain *chain, int i, tdm_trial *trial, int *x) {
    const tdm_plan_node *node = node_at(build, chain, i);
    const int from = node_at(build, chain, i - 1)->y;
    if (node->desc.param_count > 0 || node->desc.buffer_count > 0 || node->desc.epilogue != 0 ||
        (node->reads & TDM_OP_READS_X) != 0)
        return false;
    for (int k = 0; k < node->desc.input_count; k++) {
        const int value = node->x[k], at = trial->desc.input_count;
        if (value == from) continue;
        if (at == TDM_MAX_INPUTS || build->of_value[value].producer >= chain->node[0] ||
            is_read_before(build, chain->node[0], chain->node[i], value))
            return false;
        x[at] = value;
        trial->desc.x[at] = node->desc.x[k];
        trial->desc.x_layout[at] = node->desc.x_layout[k];
        trial->desc.needs_dx[at] = node->desc.needs_dx[k];
        trial->desc.input_count++;
    }
    return true;
}

static void note(tdm_plan_node *node, const char *what) {
    const size_t used = strlen(node->also);
    snprintf(node->also + used, sizeof(node->also) - used, ", %s", what);
}

/* The first node takes over the work of the others. */
static void merge(tdm_build *build, const tdm_chain *chain, const tdm_trial *trial, const int *x) {
    const int first = chain->node[0];
    const int last_y = node_at(build, chain, chain->count - 1)->y;
    for (int i = 1; i < chain->count; i++) {
        tdm_plan_node *taken = node_at(build, chain, i);
        node_at(build, chain, 0)->reads |= taken->reads;
        note(node_at(build, chain, 0), taken->op->name);
        remove_node(build, chain->node[i]);
    }
    accept_trial(build, first, trial);
    for (int k = 0; k < trial->desc.input_count; k++) {
        tdm__build_set_x(build, first, k, x[k]);
        if (trial->desc.needs_dx[k]) build->plan->nodes[first].needs_backward = true;
    }
    const int y = build->plan->nodes[first].y;
    build->of_value[y].needs_gradient = build->of_value[last_y].needs_gradient;
    redirect(build, last_y, y);
}

tdm_status tdm__rewrite_fuse(tdm_build *build, const tdm_rewrite *row, tdm_chain *chain) {
    const tdm_plan_node *first = node_at(build, chain, 0);
    tdm_trial trial = {.desc = first->desc};
    int x[TDM_MAX_INPUTS];
    bool takes = false;
    if ((build->of_node[chain->node[0]].fit.epilogue & row->epilogue) != row->epilogue ||
        (first->desc.epilogue & row->epilogue) != 0)
        return TDM_OK;
    memcpy(x, first->x, sizeof(x));
    for (int i = 1; i < chain->count; i++)
        if (!add_inputs(build, chain, i, &trial, x)) return TDM_OK;
    const int added = (row->epilogue & TDM_EPILOGUE_ADD) != 0; /* no more than one */
    if (trial.desc.input_count != first->desc.input_count + added) return TDM_OK;
    trial.desc.epilogue |= row->epilogue;
    TDM_TRY(ask(build, chain->node[0], &trial, &takes));
    if (!takes) return TDM_OK;
    merge(build, chain, &trial, x);
    chain->rewritten = true;
    return TDM_OK;
}

/* ---- swap ---- */

/* a -> inner -> outer becomes a -> outer -> inner. The nodes swap numbers too, so that each reads an earlier value. */
static void swap(tdm_build *build, int inner, int outer) {
    tdm_plan *plan = build->plan;
    const tdm_plan_node was_inner = plan->nodes[inner], was_outer = plan->nodes[outer];
    const tdm_build_node of_inner = build->of_node[inner], of_outer = build->of_node[outer];
    const int a = was_inner.x[0], middle = was_inner.y, end = was_outer.y;
    tdm__build_set_x(build, inner, 0, -1);
    tdm__build_set_x(build, outer, 0, -1);
    redirect(build, end, middle);
    plan->nodes[inner] = was_outer, plan->nodes[outer] = was_inner;
    build->of_node[inner] = of_outer, build->of_node[outer] = of_inner;
    plan->nodes[inner].x[0] = plan->nodes[outer].x[0] = -1;
    tdm__build_set_x(build, inner, 0, a);
    tdm__build_set_x(build, outer, 0, end);
    build->of_value[end].producer = inner;
    build->of_value[middle].producer = outer;
    tdm_plan_value *y = &plan->values[middle];
    y->shape = plan->values[end].shape;
    y->bytes = plan->values[end].bytes;
    y->layout = plan->values[end].layout;
}

tdm_status tdm__rewrite_swap(tdm_build *build, const tdm_rewrite *row, tdm_chain *chain) {
    const int inner = chain->node[chain->count - 2], outer = chain->node[chain->count - 1];
    const tdm_plan_node *moves = &build->plan->nodes[inner], *stays = &build->plan->nodes[outer];
    bool takes = false, fits = false;
    if (moves->desc.input_count != 1 || stays->desc.input_count != 1 || moves->desc.epilogue != 0 ||
        stays->desc.epilogue != 0 || moves->desc.x_layout[0] != moves->desc.y_layout ||
        ends_in_same(build, chain)) /* such an op follows already, and one is enough */
        return TDM_OK;
    tdm_trial taken = {.desc = stays->desc}, moved = {.desc = moves->desc};
    taken.desc.epilogue |= row->epilogue;
    TDM_TRY(ask(build, outer, &taken, &takes));
    moved.desc.x[0] = moved.desc.y = stays->desc.y;
    moved.desc.x_layout[0] = moved.desc.y_layout = stays->desc.y_layout;
    TDM_TRY(ask(build, inner, &moved, &fits));
    if (!takes || !fits) return TDM_OK;
    swap(build, inner, outer);
    accept_trial(build, outer, &moved);
    chain->rewritten = true;
    return TDM_OK;
}

/* ---- biases ---- */

/* Which parameter of the node is a bias; -1: none. */
static int bias_of(const tdm_build *build, const tdm_plan_node *node) {
    for (int k = 0; k < node->desc.param_count; k++)
        if (build->graph->params[node->graph_param[k]].def.is_bias) return k;
    return -1;
}

static void move_bias(tdm_build *build, tdm_plan_node *from, tdm_plan_node *to, int bias) {
    char behind[sizeof(to->also)];
    memcpy(behind, to->also[0] != '\0' ? to->also : from->also, sizeof(behind));
    from->also[0] = to->also[0] = '\0';
    to->graph_param[to->desc.param_count] = from->graph_param[bias];
    from->graph_param[bias] = -1;
    note(to, build->graph->params[to->graph_param[to->desc.param_count]].def.suffix);
    if (behind[0] != '\0') note(to, behind + 2);
}

/* What the epilogue did behind the bias moves with it; the row says what may move. */
tdm_status tdm__rewrite_move_bias(tdm_build *build, const tdm_rewrite *row, tdm_chain *chain) {
    tdm_plan_node *from = node_at(build, chain, 0), *to = node_at(build, chain, chain->count - 1);
    const int bias = bias_of(build, from), at = to->desc.param_count;
    bool gives = false, takes = false;
    const unsigned behind = row->epilogue & ~(unsigned)TDM_EPILOGUE_BIAS;
    if (bias < 0 || bias != from->desc.param_count - 1 || at == TDM_MAX_PARAMS ||
        (from->desc.epilogue & ~behind) != 0 || (to->desc.epilogue & ~behind) != 0 ||
        (build->of_node[chain->node[0]].fit.epilogue & TDM_EPILOGUE_GIVES_BIAS) == 0)
        return TDM_OK;
    tdm_trial without = {.desc = from->desc}, with = {.desc = to->desc};
    without.desc.epilogue = 0;
    without.desc.param_count--;
    with.desc.epilogue |= TDM_EPILOGUE_BIAS | from->desc.epilogue;
    with.desc.param[at] = from->desc.param[bias];
    with.desc.param_count++;
    TDM_TRY(ask(build, chain->node[0], &without, &gives));
    TDM_TRY(ask(build, chain->node[chain->count - 1], &with, &takes));
    if (!gives || !takes) return TDM_OK;
    move_bias(build, from, to, bias);
    accept_trial(build, chain->node[0], &without);
    accept_trial(build, chain->node[chain->count - 1], &with);
    chain->rewritten = true;
    return TDM_OK;
}

tdm_status tdm__rewrite_sum_bias(tdm_build *build, const tdm_rewrite *row, tdm_chain *chain) {
    tdm_plan_node *owner = node_at(build, chain, 0), *sums = node_at(build, chain, chain->count - 1);
    const int bias = bias_of(build, owner), index = chain->node[chain->count - 1];
    bool takes = false;
    if (bias < 0 || build->plan->frozen[owner->graph_param[bias]] || owner->desc.epilogue != 0 ||
        sums->x[0] != owner->y || (build->of_node[index].fit.epilogue & row->epilogue) == 0)
        return TDM_OK;
    tdm_trial trial = {.desc = sums->desc};
    trial.desc.epilogue |= row->epilogue;
    TDM_TRY(ask(build, index, &trial, &takes));
    if (!takes) return TDM_OK;
    accept_trial(build, index, &trial);
    sums->summed_bias = owner->graph_param[bias];
    chain->rewritten = true;
    return TDM_OK;
}

/* ---- channels ---- */

tdm_status tdm__rewrite_pad_channels(tdm_build *build, const tdm_rewrite *row, tdm_chain *chain) {
    tdm_plan_node *node = node_at(build, chain, 0);
    const int64_t channels = build->of_node[chain->node[0]].fit.x_channels;
    (void)row;
    if (channels == node->desc.x_channels) return TDM_OK; /* none are needed, or they are there */
    if (!node->desc.may_fill)
        TDM_FAIL(TDM_E_INTERNAL, "plan: the kernel of '%s' needs channels of a batch that other layers read too",
                 node->name);
    tdm_plan_value *batch = &build->plan->values[node->x[0]];
    batch->bytes = batch->bytes / (size_t)batch->shape.dim[1] * (size_t)channels;
    batch->channels = node->desc.x_channels = channels;
    chain->rewritten = true;
    return TDM_OK;
}

/* What PyTorch has as [outputs][channels][taps] lies as [outputs][taps][weight_channels]; and behind a row of features
 * in the order of NHWC, what PyTorch has as [outputs][channels][points] lies as [outputs][points][channels]. */
tdm_status tdm__rewrite_order_weights(tdm_build *build, const tdm_rewrite *row, tdm_chain *chain) {
    tdm_plan_node *node = node_at(build, chain, 0);
    const tdm_build_value *x = &build->of_value[node->x[0]];
    const tdm_shape *weight = &node->desc.param[0];
    const int64_t stored = build->of_node[chain->node[0]].fit.weight_channels;
    (void)row;
    if (x->channels > 0)
        node->weight = (tdm_param_form){weight->dim[0], x->channels, x->points, x->channels};
    else if (stored > 0)
        node->weight = (tdm_param_form){weight->dim[0], weight->dim[1],
                                        tdm__shape_count(weight) / (weight->dim[0] * weight->dim[1]), stored};
    node->desc.weight_channels = stored;
    chain->rewritten = node->weight.filled > 0;
    return TDM_OK;
}
