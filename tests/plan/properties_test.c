/* What holds for the plan of any graph, whatever its kernels offer. The memory of a step is played: who wrote what last
 * into which bytes is known by the order of the steps alone, and every read must find what it is meant to find. */
#include "runtime/base/text/pattern.h"
#include "tests/plan/random_graph.h"

enum { GRAPHS = 800, MAX_VALUES = 1024, MAX_ACCESSES = 64 };

/* ---- what a step touches ---- */

typedef struct {
    int value;
    bool writes;
} access;

typedef struct {
    access of[MAX_ACCESSES];
    int count;
} accesses;

static void touch(accesses *all, int value, bool writes) {
    if (value >= 0) all->of[all->count++] = (access){value, writes};
}

/* By the op and the epilogue, not by what the plan says that it reads. */
static unsigned reads_in_backward(const tdm_plan_node *node) {
    const bool relu = tdm_has_epilogue(&node->desc, TDM_EPILOGUE_RELU);
    return (node->op->flags & (TDM_OP_READS_X | TDM_OP_READS_Y)) | (relu ? TDM_OP_READS_Y : 0u);
}

static void touch_forward(const tdm_plan_node *node, accesses *all) {
    for (int k = 0; k < node->desc.input_count; k++) touch(all, node->x[k], false);
    touch(all, node->scratch_forward, true);
    touch(all, node->saved, true);
    touch(all, node->y, true);
}

static bool writes_parameters(const tdm_plan_node *node) {
    return node->desc.param_count > 0 || node->summed_bias >= 0;
}

/* Floats of the gradients that the node's kernel writes: of all its parameters or of none, and those of frozen ones are
 * unwanted. */
static size_t written_floats(const tdm_plan *plan, const tdm_plan_node *node, bool unwanted) {
    const int summed = tdm__plan_dsum(plan, node);
    size_t trained = 0, frozen = 0, other = 0;
    for (int k = 0; k < node->desc.param_count; k++) {
        const tdm_plan_param *param = &plan->params[node->param[k]];
        if (node->dparam[k] >= 0) trained += tdm__plan_floats((size_t)param->stored);
        if (plan->frozen[param->graph_param]) frozen += tdm__plan_floats((size_t)param->stored);
    }
    if (summed >= 0) other = tdm__plan_floats((size_t)plan->params[summed].stored);
    return !unwanted ? trained + other : trained > 0 ? frozen : 0;
}

static int in_backward(const tdm_plan *plan, int value) {
    return plan->values[value].again >= 0 ? plan->values[value].again : value;
}

static void touch_recompute(const tdm_plan *plan, const tdm_plan_node *node, accesses *all) {
    CHECK(node->kernel->recompute != NULL && plan->values[node->y].again >= 0);
    for (int k = 0; k < node->desc.input_count; k++) touch(all, node->x[k], false);
    touch(all, node->saved, false);
    touch(all, node->scratch_backward, true);
    touch(all, plan->values[node->y].again, true);
}

static void touch_backward(const tdm_plan *plan, const tdm_plan_node *node, accesses *all) {
    const unsigned reads = reads_in_backward(node);
    touch(all, node->dy, false);
    touch(all, node->saved, false);
    if ((reads & TDM_OP_READS_Y) != 0) touch(all, in_backward(plan, node->y), false);
    const int of_op =
        node->desc.input_count - tdm_has_epilogue(&node->desc, TDM_EPILOGUE_ADD); /* without what it adds */
    for (int k = 0; k < of_op && (reads & TDM_OP_READS_X) != 0; k++) touch(all, in_backward(plan, node->x[k]), false);
    touch(all, node->scratch_backward, true);
    if (writes_parameters(node)) touch(all, plan->stages[node->stage].temp, true);
    if (written_floats(plan, node, true) > 0) {
        CHECK(plan->stages[node->stage].unwanted >= 0);
        touch(all, plan->stages[node->stage].unwanted, true);
    }
    for (int k = 0; k < node->desc.input_count; k++)
        touch(all, node->dx_adds[k] ? node->dx_temp[k] : node->dx[k], true);
    for (int k = 0; k < node->desc.input_count; k++) {
        if (!node->dx_adds[k]) continue;
        touch(all, node->dx[k], false);
        touch(all, node->dx[k], true);
    }
}

/* Reads what the forward or backward behind it reads. */
static void touch_statistics(const tdm_plan *plan, const tdm_plan_step *step, accesses *all) {
    const tdm_plan_node *node = &plan->nodes[step->index];
    const bool forward = step < plan->steps + plan->forward_steps;
    const int adds = tdm_has_epilogue(&node->desc, TDM_EPILOGUE_ADD);
    for (int k = 0; k < node->desc.input_count && forward; k++) touch(all, node->x[k], false);
    for (int k = 0; k < node->desc.input_count - adds && !forward; k++)
        touch(all, in_backward(plan, node->x[k]), false);
    touch(all, forward ? node->scratch_forward : node->scratch_backward, true);
    if (forward) return;
    if ((node->reads & TDM_OP_READS_Y) != 0) touch(all, in_backward(plan, node->y), false);
    touch(all, node->dy, false);
    touch(all, node->saved, false);
    /* A kernel may write the gradient of what it adds already; where it lies on dy, backward reads the same numbers. */
    const int added = node->desc.input_count - 1;
    const int gradient = !adds ? -1 : node->dx_adds[added] ? node->dx_temp[added] : node->dx[added];
    if (gradient >= 0 && tdm__plan_root(plan, gradient) != tdm__plan_root(plan, node->dy)) touch(all, gradient, true);
}

static accesses accesses_of(const tdm_plan *plan, const tdm_plan_step *step) {
    accesses all = {.count = 0};
    if (step->kind == TDM_STEP_STATISTICS) touch_statistics(plan, step, &all);
    if (step->kind == TDM_STEP_FORWARD) touch_forward(&plan->nodes[step->index], &all);
    if (step->kind == TDM_STEP_RECOMPUTE) touch_recompute(plan, &plan->nodes[step->index], &all);
    if (step->kind == TDM_STEP_BACKWARD) touch_backward(plan, &plan->nodes[step->index], &all);
    if (step->kind != TDM_STEP_LOSS) return all;
    touch(&all, plan->output, false);
    touch(&all, plan->d_output, true);
    return all;
}

/* ---- memory as it is played ---- */

typedef struct {
    const tdm_plan *plan;
    int same_as[MAX_VALUES]; /* the value whose numbers these are: an alias has those of another */
    int holds[MAX_VALUES];   /* by owner of bytes: whose numbers are there; -1: nobody's */
    int first[MAX_VALUES], last[MAX_VALUES];
} memory;

/* An alias has x's numbers, what is made again those of the first time, and an alias hands dy's on where it is the
 * first to write. */
static void find_same(memory *m) {
    const tdm_plan *plan = m->plan;
    for (int v = 0; v < plan->value_count; v++) m->same_as[v] = v;
    for (int i = 0; i < plan->node_count; i++)
        if (plan->nodes[i].kernel == NULL) m->same_as[plan->nodes[i].y] = m->same_as[plan->nodes[i].x[0]];
    for (int v = 0; v < plan->value_count; v++)
        if (plan->values[v].again >= 0) m->same_as[plan->values[v].again] = m->same_as[v];
    for (int i = plan->node_count - 1; i >= 0; i--) {
        const tdm_plan_node *node = &plan->nodes[i];
        if (node->kernel == NULL && node->dx[0] >= 0 && !node->dx_adds[0])
            m->same_as[node->dx[0]] = m->same_as[node->dy];
    }
}

static bool overlap(const tdm_plan_value *a, const tdm_plan_value *b) {
    return a->kind == TDM_PLACE_ARENA && b->kind == TDM_PLACE_ARENA && a->stage == b->stage &&
           a->is_shared == b->is_shared && a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
}

static void write_value(memory *m, int value) {
    const tdm_plan *plan = m->plan;
    const int owner = tdm__plan_root(plan, value);
    for (int v = 0; v < plan->value_count; v++)
        if (v != owner && plan->values[v].alias_of < 0 && overlap(&plan->values[owner], &plan->values[v]))
            m->holds[v] = -1;
    m->holds[owner] = m->same_as[value];
}

static void play_step(memory *m, int index) {
    const tdm_plan *plan = m->plan;
    const accesses all = accesses_of(plan, &plan->steps[index]);
    for (int i = 0; i < all.count; i++) {
        const int value = all.of[i].value, owner = tdm__plan_root(plan, value);
        if (m->first[owner] < 0) m->first[owner] = index;
        m->last[owner] = index;
        for (int k = 0; k < i; k++) {
            const int other = tdm__plan_root(plan, all.of[k].value);
            CHECK(other == owner || !overlap(&plan->values[owner], &plan->values[other]));
        }
        if (all.of[i].writes)
            write_value(m, value);
        else
            CHECK_INT(m->holds[owner], m->same_as[value]);
    }
}

static void check_memory(const tdm_plan *plan) {
    static memory m;
    REQUIRE(plan->value_count <= MAX_VALUES);
    m.plan = plan;
    find_same(&m);
    for (int v = 0; v < plan->value_count; v++) m.holds[v] = m.first[v] = m.last[v] = -1;
    m.holds[plan->input] = plan->input;
    for (int i = 0; i < plan->step_count; i++) play_step(&m, i);
    for (int v = 0; v < plan->value_count; v++) {
        CHECK(plan->values[v].offset == plan->values[tdm__plan_root(plan, v)].offset);
        CHECK(plan->values[v].bytes <= plan->values[tdm__plan_root(plan, v)].bytes);
        if (plan->values[v].alias_of >= 0) continue;
        CHECK_INT(plan->values[v].first, m.first[v]);
        CHECK_INT(plan->values[v].last, m.last[v]);
    }
}

/* ---- the peak ---- */

static void check_peak(const tdm_plan *plan) {
    size_t end[TDM_STAGES_MAX][2] = {{0}}, sum = 0;
    char says[64];
    tdm_text text;
    for (int v = 0; v < plan->value_count; v++) {
        const tdm_plan_value *value = &plan->values[v];
        if (value->kind != TDM_PLACE_ARENA || value->alias_of >= 0 || value->first < 0) continue;
        CHECK_INT(value->offset % TDM_ALIGN, 0);
        const size_t its = value->offset + (value->bytes + TDM_ALIGN - 1) / TDM_ALIGN * TDM_ALIGN;
        if (its > end[value->stage][value->is_shared]) end[value->stage][value->is_shared] = its;
    }
    for (int k = 0; k < plan->stage_count; k++) {
        CHECK_INT(plan->stages[k].activation_bytes, end[k][0]);
        CHECK_INT(plan->stages[k].shared_bytes, end[k][1]);
        CHECK(plan->stages[k].in_flight > 1 || end[k][1] == 0);
        sum += end[k][0] * (size_t)plan->stages[k].in_flight + end[k][1];
    }
    CHECK_INT(plan->activation_bytes, sum);
    tdm__text_init(&text, tdm_host_default());
    tdm__plan_print(plan, &text);
    snprintf(says, sizeof(says), "  activations %zu B  ", sum);
    CHECK_HAS(text.data, says);
    tdm__text_deinit(&text);
}

/* ---- stages ---- */

/* The stage whose device runs the step. */
static int stage_of_step(const tdm_plan *plan, int step) {
    for (int k = 0; k < plan->stage_count; k++) {
        const tdm_plan_stage *stage = &plan->stages[k];
        if (step >= stage->forward && step < stage->forward_end) return k;
        if (step >= stage->backward && step < stage->backward_end) return k;
    }
    return -1;
}

/* A step touches its own stage's memory; a transfer also that of a neighbour, and transfers come last in their stage.
 */
static void check_step_stage(const tdm_plan *plan, int index) {
    const tdm_plan_step *step = &plan->steps[index];
    const int stage = stage_of_step(plan, index);
    if (step->kind == TDM_STEP_LOSS) return;
    CHECK(stage >= 0);
    if (step->kind == TDM_STEP_READY) {
        const tdm_plan_bucket *bucket = &plan->buckets[step->index];
        for (int k = 0; k < bucket->param_count; k++)
            CHECK_INT(plan->nodes[plan->params[bucket->first_param + k].node].stage, stage);
        return;
    }
    const tdm_plan_node *node = &plan->nodes[step->index];
    const bool forward = step->kind == TDM_STEP_FORWARD;
    const int sends_at = forward ? plan->stages[stage].send : plan->stages[stage].give_back;
    CHECK_INT(node->transfers, index >= sends_at);
    CHECK_INT(node->stage, node->transfers && !forward ? stage - 1 : stage);
    const accesses all = accesses_of(plan, step);
    for (int i = 0; i < all.count; i++) {
        const int other = forward ? stage + 1 : stage - 1, its = plan->values[all.of[i].value].stage;
        CHECK_INT(its, node->transfers && all.of[i].writes ? other : stage);
        /* The receiver may be at another micro-batch then. */
        if (node->transfers && all.of[i].writes) CHECK(!plan->values[all.of[i].value].is_shared);
    }
}

/* Memory for gradients that are added later or not wanted is that of the node in the stage that writes most. */
static void check_temporary(const tdm_plan *plan, int stage) {
    const int value[2] = {plan->stages[stage].temp, plan->stages[stage].unwanted};
    size_t most[2] = {0};
    for (int i = 0; i < plan->node_count; i++)
        for (int k = 0; k < 2; k++) {
            const size_t floats = written_floats(plan, &plan->nodes[i], k == 1);
            if (plan->nodes[i].stage == stage && floats > most[k]) most[k] = floats;
        }
    if (!plan->options.accumulates) most[0] = 0;
    for (int k = 0; k < 2; k++)
        CHECK_INT(value[k] >= 0 ? plan->values[value[k]].bytes : 0, plan->options.training ? most[k] * 4 : 0);
}

static void check_stages(const tdm_plan *plan) {
    size_t trained = 0, frozen = 0, buffers = 0;
    for (int i = 0; i < plan->step_count; i++) check_step_stage(plan, i);
    for (int k = plan->stage_count - 1; k >= 0; k--) { /* parameters lie with the last stage first */
        const tdm_plan_stage *stage = &plan->stages[k];
        if (stage->trained_floats > 0) CHECK_INT(stage->trained_at, trained);
        trained += stage->trained_floats;
        frozen += stage->frozen_floats;
    }
    for (int k = 0; k < plan->stage_count; k++) {
        CHECK_INT(plan->stages[k].buffer_at, buffers);
        buffers += plan->stages[k].buffer_bytes;
        check_temporary(plan, k);
    }
    CHECK_INT(trained, plan->trained_floats);
    CHECK_INT(trained + frozen, plan->param_floats);
    CHECK_INT(buffers, plan->buffer_bytes);
}

/* ---- gradients ---- */

static void check_gradients(const tdm_plan *plan) {
    static int writers[MAX_VALUES];
    memset(writers, 0, sizeof(writers));
    if (plan->d_output < 0) return;
    writers[plan->d_output] = 1; /* the loss */
    for (int i = plan->node_count - 1; i >= 0; i--) {
        const tdm_plan_node *node = &plan->nodes[i];
        if (!node->needs_backward) continue;
        CHECK_INT(writers[node->dy], 1);
        for (int k = 0; k < node->desc.input_count; k++) {
            CHECK(node->dx[k] >= 0 ? node->desc.needs_dx[k] : !node->desc.needs_dx[k]);
            if (node->dx[k] < 0) continue;
            CHECK_INT(writers[node->dx[k]], node->dx_adds[k] ? 1 : 0);
            CHECK(!node->dx_adds[k] || node->kernel == NULL || node->dx_temp[k] >= 0);
            if (!node->dx_adds[k]) writers[node->dx[k]]++;
        }
    }
}

/* Where in the steps the gradient of each parameter is written; who writes more than once is found. */
static void check_parameters(const tdm_plan *plan) {
    static int writers[MAX_VALUES], at[MAX_VALUES];
    memset(writers, 0, sizeof(writers));
    CHECK_INT(plan->param_count, plan->graph->param_count);
    for (int s = plan->forward_steps + 1; s < plan->step_count; s++) {
        if (plan->steps[s].kind != TDM_STEP_BACKWARD) continue;
        const tdm_plan_node *node = &plan->nodes[plan->steps[s].index];
        for (int k = 0; k < node->desc.param_count; k++)
            if (node->dparam[k] >= 0) writers[node->dparam[k]]++, at[node->dparam[k]] = s;
        const int summed = tdm__plan_dsum(plan, node);
        if (summed >= 0) writers[summed]++, at[summed] = s;
    }
    size_t end = 0;
    for (int p = 0; p < plan->param_count; p++) {
        const bool trained =
            plan->options.training && tdm__patterns_find(plan->options.freeze, plan->params[p].name) < 0;
        CHECK_INT(writers[p], trained);
        CHECK_INT(p < plan->trained_count, trained || !plan->options.training);
        CHECK(plan->params[p].offset >= end && plan->params[p].stored >= plan->params[p].count);
        CHECK_INT(plan->param_of_graph[plan->params[p].graph_param], p);
        end = plan->params[p].offset + (size_t)plan->params[p].stored;
    }
    CHECK(end <= plan->param_floats);
    for (int s = 0; s < plan->step_count; s++) {
        if (plan->steps[s].kind != TDM_STEP_READY) continue;
        const tdm_plan_bucket *bucket = &plan->buckets[plan->steps[s].index];
        int last = 0;
        for (int k = 0; k < bucket->param_count; k++)
            if (at[bucket->first_param + k] > last) last = at[bucket->first_param + k];
        CHECK(last < s && bucket->ready_after >= last && bucket->ready_after < s);
        CHECK_INT(plan->steps[bucket->ready_after].kind, TDM_STEP_BACKWARD);
    }
}

static void check_buckets(const tdm_plan *plan) {
    size_t end = 0;
    int params = 0, ready = 0;
    for (int i = 0; i < plan->bucket_count; i++) {
        CHECK_INT(plan->buckets[i].offset, end);
        CHECK_INT(plan->buckets[i].first_param, params);
        end += plan->buckets[i].count;
        params += plan->buckets[i].param_count;
    }
    for (int s = 0; s < plan->step_count; s++)
        if (plan->steps[s].kind == TDM_STEP_READY) CHECK_INT(plan->steps[s].index, ready++);
    CHECK_INT(ready, plan->bucket_count);
    CHECK_INT(end, plan->options.training ? plan->trained_floats : 0);
    CHECK_INT(params, plan->options.training ? plan->trained_count : 0);
}

/* ---- order ---- */

static void check_order(const tdm_plan *plan) {
    int forward = 0, backward = 0, at = -1;
    for (int s = 0; s < plan->step_count; s++) {
        const tdm_plan_step *step = &plan->steps[s];
        if (step->kind == TDM_STEP_LOSS) {
            CHECK_INT(s, plan->forward_steps);
            at = plan->node_count;
        } else if (step->kind == TDM_STEP_STATISTICS) {
            const tdm_plan_step *next = &plan->steps[s + 1];
            CHECK_INT(next->index, step->index);
            CHECK_INT(next->kind, s < plan->forward_steps ? TDM_STEP_FORWARD : TDM_STEP_BACKWARD);
        } else if (step->kind != TDM_STEP_READY && step->kind != TDM_STEP_RECOMPUTE) {
            CHECK(step->kind == TDM_STEP_FORWARD ? step->index > at : step->index < at);
            CHECK(step->kind == TDM_STEP_FORWARD ? s < plan->forward_steps : s > plan->forward_steps);
            at = step->index;
            forward += step->kind == TDM_STEP_FORWARD;
            backward += step->kind == TDM_STEP_BACKWARD;
        }
    }
    for (int i = 0; i < plan->node_count; i++) {
        forward -= plan->nodes[i].kernel != NULL || plan->nodes[i].transfers;
        backward -= plan->nodes[i].needs_backward;
    }
    CHECK_INT(forward, 0);
    CHECK_INT(backward, 0);
}

/* ---- the same again ---- */

static void print_rewritten(const tdm_build *build, tdm_text *out) {
    plan_print_nodes(build->plan, out);
    for (int v = 0; v < build->plan->value_count; v++) tdm__text_printf(out, " %zu", build->plan->values[v].bytes);
}

static void check_rewrites_settle(const tdm_graph *graph, const tdm_plan_options *options) {
    tdm_plan *plan = NULL;
    tdm_text once, twice;
    REQUIRE_OK(tdm__new(tdm_host_default(), &plan, 1, sizeof(*plan), "plan"));
    tdm__zone_init(&plan->zone, tdm_host_default());
    plan->graph = graph;
    plan->options = *options;
    plan->element_bytes = sizeof(float);
    tdm_build build = {.host = tdm_host_default(), .graph = graph, .plan = plan};
    tdm__text_init(&once, build.host);
    tdm__text_init(&twice, build.host);
    CHECK_OK(tdm__build_frozen(&build));
    CHECK_OK(tdm__build_lower(&build));
    CHECK_OK(tdm__build_layout(&build));
    CHECK_OK(tdm__build_rewrite(&build));
    print_rewritten(&build, &once);
    CHECK_OK(tdm__build_rewrite(&build));
    print_rewritten(&build, &twice);
    CHECK_TEXT(twice.data, once.data);
    tdm__text_deinit(&once);
    tdm__text_deinit(&twice);
    tdm__delete(build.host, build.of_value);
    tdm__delete(build.host, build.of_node);
    tdm__plan_free(plan);
}

static unsigned epilogues(const tdm_plan *plan) {
    unsigned all = 0;
    for (int i = 0; i < plan->node_count; i++) all |= plan->nodes[i].desc.epilogue;
    return all;
}

static bool same_hash(const tdm_plan *a, const tdm_plan *b) {
    return memcmp(&a->hash, &b->hash, sizeof(a->hash)) == 0;
}

/* One that has an epilogue, and one with the same kernels that offer none. */
static void check_hash(const tdm_plan *plan) {
    tdm_plan_options options = plan->options;
    tdm_plan *again = NULL, *without = NULL;
    CHECK_OK(tdm__plan_build(&again, tdm_host_default(), plan->graph, &options));
    options.kernels = plan_kernels_without_epilogues();
    CHECK_OK(tdm__plan_build(&without, tdm_host_default(), plan->graph, &options));
    if (again != NULL && without != NULL) {
        CHECK(same_hash(again, plan));
        CHECK_INT(epilogues(without), 0);
        CHECK(same_hash(without, plan) == (epilogues(plan) == 0));
    }
    tdm__plan_free(again);
    tdm__plan_free(without);
}

/* ---- all of them ---- */

static void check_plan(const tdm_plan *plan) {
    check_memory(plan);
    check_peak(plan);
    check_stages(plan);
    check_gradients(plan);
    check_parameters(plan);
    check_buckets(plan);
    check_order(plan);
    check_hash(plan);
}

/* So that a drawing that makes nothing of interest is noticed. */
typedef struct {
    int relu, sum, add, bias, filled, in_place, adders, reorders, again, most_nodes;
    int staged, transfers, refused; /* plans of several stages, and graphs that cannot be cut so */
    int shared, frozen, unwanted;   /* stages whose micro-batches share memory; parameters, and gradients of these */
} seen;

static void look(seen *s, const tdm_plan *plan) {
    for (int i = 0; i < plan->node_count; i++) {
        const tdm_plan_node *node = &plan->nodes[i];
        s->relu += tdm_has_epilogue(&node->desc, TDM_EPILOGUE_RELU);
        s->sum += tdm_has_epilogue(&node->desc, TDM_EPILOGUE_SUM_DX);
        s->add += tdm_has_epilogue(&node->desc, TDM_EPILOGUE_ADD);
        s->bias += tdm_has_epilogue(&node->desc, TDM_EPILOGUE_BIAS);
        s->filled += node->desc.x_channels > 0;
        s->reorders += node->graph_node < 0 && !node->transfers;
        s->transfers += node->transfers;
        s->in_place += node->kernel != NULL && plan->values[node->y].alias_of >= 0;
        for (int k = 0; k < node->desc.input_count; k++) s->adders += node->dx_adds[k];
        s->unwanted += node->unwanted != 0;
    }
    for (int k = 0; k < plan->stage_count; k++) s->shared += plan->stages[k].shared_bytes > 0;
    s->frozen += plan->param_count - plan->trained_count;
    for (int i = 0; i < plan->step_count; i++) s->again += plan->steps[i].kind == TDM_STEP_RECOMPUTE;
    s->staged += plan->stage_count > 1;
    if (plan->node_count > s->most_nodes) s->most_nodes = plan->node_count;
}

/* In so many stages, or in one if the graph cannot be cut so. */
static void build_in_stages(tdm_plan **out, const tdm_graph *graph, tdm_plan_options *options, int stages, seen *s) {
    options->stages = stages;
    const tdm_status status = tdm__plan_build(out, tdm_host_default(), graph, options);
    if (status == TDM_OK || stages == 1) {
        CHECK_OK(status);
        return;
    }
    CHECK_STATUS(status, TDM_E_CONFIG);
    s->refused++;
    build_in_stages(out, graph, options, 1, s);
}

static void check_graph(random_kind kind, uint64_t *state, seen *s) {
    char offers[4096];
    tdm_graph *graph = random_graph(kind, 2 + draw(state, 26), state);
    REQUIRE(graph != NULL);
    random_offers(offers, sizeof(offers), state);
    tdm_plan_options options = plan_options(plan_kernels(offers));
    options.training = draw_chance(state, 75);
    options.accumulates = draw_chance(state, 50);
    options.replicas = draw_chance(state, 25) ? 2 : 1;
    options.ingests = draw_chance(state, 50);
    options.first_bucket_mb = draw_chance(state, 50) ? 0.001 : 1;
    options.bucket_cap_mb = draw_chance(state, 50) ? 0.002 : 25;
    options.micro_batches = 1 + draw(state, 4);
    const int stages = 1 + draw(state, 4);
    tdm_texts freeze;
    random_freeze(&freeze, graph, state);
    options.freeze = &freeze;
    tdm_plan *plan = NULL;
    build_in_stages(&plan, graph, &options, stages, s);
    if (plan != NULL) {
        look(s, plan);
        check_plan(plan);
        check_rewrites_settle(graph, &options);
    }
    tdm__plan_free(plan);
    tdm_graph_free(graph);
}

TEST(plans_of_random_graphs) {
    seen s = {.in_place = 0};
    for (uint64_t seed = 1; seed <= GRAPHS; seed++) {
        const int before = tdm_test_failures;
        uint64_t state = seed;
        const random_kind kind = draw_chance(&state, 50) ? RANDOM_ALL : RANDOM_RESIDUAL;
        check_graph(kind, &state, &s);
        if (tdm_test_failures == before) continue;
        fprintf(stderr, "  with the seed %llu\n", (unsigned long long)seed);
        return;
    }
    printf(
        "       %d relu, %d sum, %d add, %d bias, %d filled, %d in place, %d adders, %d reorders, %d again, %d nodes\n",
        s.relu, s.sum, s.add, s.bias, s.filled, s.in_place, s.adders, s.reorders, s.again, s.most_nodes);
    printf("       %d in stages with %d transfers, %d share memory, %d refused; %d frozen, %d unwanted\n", s.staged,
           s.transfers, s.shared, s.refused, s.frozen, s.unwanted);
    CHECK(s.staged > 100 && s.transfers > 200 && s.shared > 50 && s.frozen > 500 && s.unwanted > 100);
    CHECK(s.relu > 100 && s.sum > 50 && s.add > 10 && s.bias > 3 && s.filled > 3);
    CHECK(s.in_place > 100 && s.adders > 100 && s.reorders > 100 && s.again > 100 && s.most_nodes > 30);
}

TEST(plans_of_random_series) {
    seen s = {.in_place = 0};
    for (uint64_t seed = 1; seed <= GRAPHS / 2; seed++) {
        const int before = tdm_test_failures;
        uint64_t state = seed;
        check_graph(RANDOM_SERIES, &state, &s);
        if (tdm_test_failures == before) continue;
        fprintf(stderr, "  with the seed %llu\n", (unsigned long long)seed);
        return;
    }
    CHECK(s.staged > 100 && s.relu > 50 && s.in_place > 100 && s.adders > 100);
}

TEST(plans_of_several_inputs) {
    seen s = {.in_place = 0};
    for (uint64_t seed = 1; seed <= GRAPHS / 2; seed++) {
        const int before = tdm_test_failures;
        uint64_t state = seed;
        check_graph(RANDOM_INPUTS, &state, &s);
        if (tdm_test_failures == before) continue;
        fprintf(stderr, "  with the seed %llu\n", (unsigned long long)seed);
        return;
    }
    CHECK(s.staged > 100 && s.relu > 50 && s.in_place > 100 && s.adders > 100);
}

TEST_MAIN(RUN(plans_of_random_graphs); RUN(plans_of_random_series); RUN(plans_of_several_inputs);)
