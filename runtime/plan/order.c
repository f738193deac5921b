/* The order of everything: parameters in their arenas, steps, and the gradient buckets between them.
 *
 * Parameters lie in the order in which backward finishes their gradients, the last layer first. Buckets are cut
 * greedily in that order as DistributedDataParallel does: a bucket is closed once it has reached its limit,
 * first_bucket_mb for the first, which is small so that communication starts early, bucket_cap_mb for the others. */
#include "runtime/base/status.h"
#include "runtime/base/text/pattern.h"
#include "runtime/plan/build.h"

static int group_of(const tdm_plan *plan, const char *name) {
    const tdm_param_groups *groups = plan->options.groups;
    for (int i = 0; groups != NULL && i < groups->count; i++)
        if (tdm__patterns_find(&groups->item[i].params, name) >= 0) return i + 1;
    return 0;
}

static void add_param(tdm_plan *plan, int node, int k) {
    const int graph_param = plan->nodes[node].graph_param[k];
    const tdm_graph_param *param = &plan->graph->params[graph_param];
    int index = plan->param_count++;
    plan->params[index] = (tdm_plan_param){.name = param->name,
                                           .def = param->def,
                                           .count = param->count,
                                           .stored = param->count,
                                           .offset = plan->param_floats,
                                           .graph_param = graph_param,
                                           .node = node,
                                           .group = group_of(plan, param->name)};
    tdm_plan_param *added = &plan->params[index];
    if (k == 0 && plan->nodes[node].weight.filled > 0) {
        added->form = plan->nodes[node].weight;
        added->stored = added->form.outer * added->form.b * added->form.filled;
        plan->has_forms = true;
    }
    plan->param_of_graph[graph_param] = index;
    plan->nodes[node].param[k] = index;
    if (!plan->frozen[graph_param]) plan->nodes[node].dparam[k] = index;
    plan->param_floats += tdm__plan_floats((size_t)added->stored);
}

static void add_params(tdm_plan *plan, bool frozen) {
    for (int i = plan->node_count - 1; i >= 0; i--) {
        for (int k = 0; k < plan->nodes[i].desc.param_count; k++)
            if (plan->frozen[plan->nodes[i].graph_param[k]] == frozen) add_param(plan, i, k);
    }
}

static size_t param_end(const tdm_plan *plan, int param) {
    return param + 1 < plan->trained_count ? plan->params[param + 1].offset : plan->trained_floats;
}

static tdm_status find_runs(tdm_plan *plan) {
    TDM_TRY(tdm__zone_new(&plan->zone, &plan->runs, (size_t)plan->trained_count, sizeof(*plan->runs)));
    for (int i = 0; i < plan->trained_count; i++) {
        const tdm_plan_param *param = &plan->params[i];
        tdm_plan_run *last = plan->run_count > 0 ? &plan->runs[plan->run_count - 1] : NULL;
        if (last == NULL || last->group != param->group) {
            last = &plan->runs[plan->run_count++];
            *last = (tdm_plan_run){.offset = param->offset, .group = param->group};
        }
        last->count = param_end(plan, i) - last->offset;
    }
    return TDM_OK;
}

/* A kernel that writes the gradients of several parameters writes all of them or none. */
static void find_unwanted(tdm_plan *plan, tdm_plan_node *node) {
    bool writes = false;
    for (int k = 0; k < node->desc.param_count; k++) writes = writes || node->dparam[k] >= 0;
    for (int k = 0; writes && k < node->desc.param_count; k++)
        if (plan->frozen[node->graph_param[k]]) node->unwanted |= 1u << k;
}

/* In PyTorch's order; those of a stage lie together. */
static void add_buffers(tdm_plan *plan) {
    const tdm_graph *graph = plan->graph;
    for (size_t i = 0; i < graph->buffer_count; i++) {
        const tdm_graph_param *from = &graph->buffers[i];
        plan->buffers[plan->buffer_count++] =
            (tdm_plan_buffer){.name = from->name, .def = from->def, .count = from->count};
    }
    for (int stage = 0; stage < plan->stage_count; stage++) {
        tdm_plan_stage *of = &plan->stages[stage];
        of->buffer_at = plan->buffer_bytes;
        for (int i = 0; i < plan->node_count; i++) {
            const tdm_plan_node *node = &plan->nodes[i];
            for (int k = 0; node->stage == stage && k < node->desc.buffer_count; k++) {
                tdm_plan_buffer *buffer = &plan->buffers[node->buffer[k]];
                buffer->offset = plan->buffer_bytes;
                plan->buffer_bytes += tdm__round_up(tdm__plan_buffer_bytes(buffer), TDM_ALIGN);
            }
        }
        of->buffer_bytes = plan->buffer_bytes - of->buffer_at;
    }
}

/* Parameters lie in the order of nodes, so those of a stage are two ranges: those that are trained, the others. */
static void find_ranges(const tdm_plan *plan, tdm_plan_stage *stage, int index) {
    stage->frozen_at = plan->trained_floats;
    for (int i = 0; i < plan->param_count; i++) {
        const tdm_plan_param *param = &plan->params[i];
        const bool trained = i < plan->trained_count;
        size_t *at = trained ? &stage->trained_at : &stage->frozen_at;
        size_t *floats = trained ? &stage->trained_floats : &stage->frozen_floats;
        if (plan->nodes[param->node].stage != index) continue;
        if (*floats == 0) *at = param->offset;
        if (trained) stage->trained_count++;
        *floats += tdm__plan_floats((size_t)param->stored);
    }
}

tdm_status tdm__build_params(tdm_build *build) {
    tdm_plan *plan = build->plan;
    const tdm_graph *graph = build->graph;
    TDM_TRY(tdm__zone_new(&plan->zone, &plan->params, graph->param_count, sizeof(*plan->params)));
    TDM_TRY(tdm__zone_new(&plan->zone, &plan->param_of_graph, graph->param_count, sizeof(int)));
    TDM_TRY(tdm__zone_new(&plan->zone, &plan->buffers, graph->buffer_count, sizeof(*plan->buffers)));
    add_params(plan, false);
    plan->trained_count = plan->param_count;
    plan->trained_floats = plan->param_floats;
    add_params(plan, true);
    TDM_TRY(find_runs(plan));
    for (int i = 0; i < plan->node_count; i++) {
        const int summed = tdm__plan_dsum(plan, &plan->nodes[i]);
        tdm_plan_node *owner = summed >= 0 ? &plan->nodes[plan->params[summed].node] : NULL;
        for (int k = 0; owner != NULL && k < owner->desc.param_count; k++)
            if (owner->param[k] == summed) owner->dparam[k] = -1;
    }
    for (int i = 0; i < plan->node_count; i++) find_unwanted(plan, &plan->nodes[i]);
    add_buffers(plan);
    for (int k = 0; k < plan->stage_count; k++) find_ranges(plan, &plan->stages[k], k);
    return TDM_OK;
}

static tdm_status add_step(tdm_build *build, tdm_step_kind kind, int index) {
    tdm_plan *plan = build->plan;
    TDM_TRY(tdm__grow(build->host, &plan->steps, &build->step_room, (size_t)plan->step_count + 1, sizeof(*plan->steps),
                      "plan steps"));
    plan->steps[plan->step_count++] = (tdm_plan_step){kind, index};
    return TDM_OK;
}

static int stage_of(const tdm_plan *plan, int param) {
    return plan->nodes[plan->params[param].node].stage;
}

static tdm_status build_buckets(tdm_build *build) {
    tdm_plan *plan = build->plan;
    double cap = plan->options.bucket_cap_mb * 1048576.0, limit = plan->options.first_bucket_mb * 1048576.0;
    for (int first = 0; first < plan->trained_count;) {
        int end = first;
        double bytes = 0;
        while (end < plan->trained_count &&
               (end == first || (bytes < limit && stage_of(plan, end) == stage_of(plan, first))))
            bytes += 4.0 * (double)plan->params[end++].count;
        TDM_TRY(tdm__grow(build->host, &plan->buckets, &build->bucket_room, (size_t)plan->bucket_count + 1,
                          sizeof(*plan->buckets), "plan buckets"));
        size_t offset = plan->params[first].offset;
        plan->buckets[plan->bucket_count++] = (tdm_plan_bucket){.offset = offset,
                                                                .count = param_end(plan, end - 1) - offset,
                                                                .first_param = first,
                                                                .param_count = end - first};
        first = end;
        limit = cap;
    }
    return TDM_OK;
}

/* Puts the steps that make outputs again in front of the first backward that reads them. */
static tdm_status recompute_for(tdm_build *build, int index) {
    tdm_plan *plan = build->plan;
    const tdm_plan_node *node = &plan->nodes[index];
    int read[TDM_MAX_INPUTS + 1], count = 0;
    if ((node->reads & TDM_OP_READS_Y) != 0) read[count++] = node->y;
    for (int k = 0; k < node->desc.input_count; k++)
        if (tdm__plan_backward_reads(node, k)) read[count++] = node->x[k];
    for (int i = 0; i < count; i++) {
        const int producer = build->of_value[read[i]].producer;
        if (plan->values[read[i]].again < 0 || build->of_node[producer].has_step_again) continue;
        build->of_node[producer].has_step_again = true;
        TDM_TRY(add_step(build, TDM_STEP_RECOMPUTE, producer));
    }
    return TDM_OK;
}

/* A node's forward or backward. If replicas exchange statistics here, a step that takes them comes first. Two such
 * steps in a row have memory of their own: in single, where replicas take turns and share it, one writes its next block
 * before another has read the last ones. */
static tdm_status add_node_step(tdm_build *build, tdm_step_kind kind, int index) {
    tdm_plan *plan = build->plan;
    tdm_plan_node *node = &plan->nodes[index];
    if (node->statistics_bytes == 0) return add_step(build, kind, index);
    size_t *at = kind == TDM_STEP_FORWARD ? &node->statistics_forward : &node->statistics_backward;
    *at = build->statistics_count++ % 2 == 0 ? 0 : plan->statistics_bytes / 2;
    TDM_TRY(add_step(build, TDM_STEP_STATISTICS, index));
    return add_step(build, kind, index);
}

static void book_statistics(tdm_plan *plan) {
    size_t most = 0;
    for (int i = 0; i < plan->node_count; i++) {
        const tdm_plan_node *node = &plan->nodes[i];
        if (node->statistics_bytes > most) most = node->statistics_bytes;
    }
    plan->statistics_bytes = 2 * tdm__round_up(most * (size_t)plan->options.replicas, TDM_ALIGN);
}

/* The last step so far is this node's forward, so its stage reaches to here. */
static void extend_forward(tdm_plan *plan, const tdm_plan_node *node) {
    tdm_plan_stage *stage = &plan->stages[node->stage];
    stage->forward_end = plan->step_count;
    if (!node->transfers) stage->send = plan->step_count;
}

/* The same for backward. There a transfer belongs to the stage that received in forward: it gives the gradient back. */
static void extend_backward(tdm_plan *plan, const tdm_plan_node *node) {
    tdm_plan_stage *stage = &plan->stages[node->stage + (node->transfers ? 1 : 0)];
    stage->backward_end = plan->step_count;
    if (!node->transfers) stage->give_back = plan->step_count;
}

/* A stage's first step follows the last one of the stage that runs before it. */
static void find_first_steps(tdm_plan *plan) {
    int step = 0;
    for (int k = 0; k < plan->stage_count; k++) {
        tdm_plan_stage *stage = &plan->stages[k];
        stage->forward = step;
        if (stage->send < step) stage->send = step;
        if (stage->forward_end < step) stage->forward_end = step;
        step = stage->forward_end;
    }
    step = plan->forward_steps + 1;
    for (int k = plan->stage_count - 1; k >= 0; k--) {
        tdm_plan_stage *stage = &plan->stages[k];
        stage->backward = step;
        if (stage->give_back < step) stage->give_back = step;
        if (stage->backward_end < step) stage->backward_end = step;
        step = stage->backward_end;
    }
}

static tdm_status add_backward_steps(tdm_build *build) {
    tdm_plan *plan = build->plan;
    TDM_TRY(build_buckets(build));
    int bucket = 0;
    for (int i = plan->node_count - 1; i >= 0; i--) {
        const tdm_plan_node *node = &plan->nodes[i];
        if (!node->needs_backward) continue;
        TDM_TRY(recompute_for(build, i));
        TDM_TRY(add_node_step(build, TDM_STEP_BACKWARD, i));
        const int written = plan->step_count - 1;
        while (bucket < plan->bucket_count) {
            const tdm_plan_bucket *b = &plan->buckets[bucket];
            if (plan->params[b->first_param + b->param_count - 1].node < i) break;
            plan->buckets[bucket].ready_after = written;
            TDM_TRY(add_step(build, TDM_STEP_READY, bucket++));
        }
        extend_backward(plan, node);
    }
    return TDM_OK;
}

tdm_status tdm__build_steps(tdm_build *build) {
    tdm_plan *plan = build->plan;
    book_statistics(plan);
    for (int i = 0; i < plan->node_count; i++) {
        const tdm_plan_node *node = &plan->nodes[i];
        if (node->kernel != NULL || node->transfers) TDM_TRY(add_node_step(build, TDM_STEP_FORWARD, i));
        extend_forward(plan, node);
    }
    plan->forward_steps = plan->step_count;
    TDM_TRY(add_step(build, TDM_STEP_LOSS, 0));
    if (plan->options.training) TDM_TRY(add_backward_steps(build));
    find_first_steps(plan);
    return TDM_OK;
}
