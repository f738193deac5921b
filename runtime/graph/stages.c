/* Which stage runs each layer, where a replica has several devices (parallel.stages). Layers run in the order in which
 * they were added, so a stage is a range of them. */
#include "runtime/base/memory.h"
#include "runtime/base/status.h"
#include "runtime/graph/graph.h"

/* ---- as the layers say ---- */

static bool has_stages(const tdm_graph *graph) {
    for (size_t i = 0; i < graph->node_count; i++)
        if (graph->nodes[i].stage >= 0) return true;
    return false;
}

static tdm_status take_named(const tdm_graph *graph, int stages, int *out) {
    for (size_t i = 0; i < graph->node_count; i++) {
        const tdm_graph_node *node = &graph->nodes[i];
        const int before = i > 0 ? out[i - 1] : 0;
        out[i] = node->stage >= 0 ? node->stage : before;
        if (out[i] >= stages)
            TDM_FAIL_AT(&node->origin, TDM_E_CONFIG, "%s '%s' is in stage %d, but parallel.stages is %d",
                        node->op->name, node->name, out[i], stages);
        if (out[i] < before)
            TDM_FAIL_AT(&node->origin, TDM_E_CONFIG,
                        "%s '%s' is in stage %d, but %s '%s' before it is in stage %d; the graph cannot be cut there, "
                        "because stages run in the order of the layers",
                        node->op->name, node->name, out[i], graph->nodes[i - 1].op->name, graph->nodes[i - 1].name,
                        before);
    }
    return TDM_OK;
}

/* ---- by the layers' work ---- */

bool tdm__graph_is_trained(const tdm_graph_node *node, const bool *frozen) {
    for (int i = 0; i < node->param_count; i++)
        if (frozen == NULL || !frozen[node->first_param + i]) return true;
    return false;
}

/* needs[n]: a gradient of node n's output is needed, for its parameters or those of nodes before it. */
static bool needs_dx(const tdm_graph *graph, const tdm_graph_node *node, const bool *needs) {
    for (int i = 0; i < node->input_count; i++) {
        const int producer = graph->values[node->input[i]].producer;
        if (producer >= 0 && needs[producer]) return true;
    }
    return false;
}

tdm_status tdm__graph_step_flops(const tdm_graph *graph, const bool *frozen, double *out) {
    bool *needs = NULL;
    TDM_TRY(tdm__new(graph->host, &needs, graph->node_count, sizeof(*needs), "gradients"));
    for (size_t i = 0; i < graph->node_count; i++) {
        const tdm_graph_node *node = &graph->nodes[i];
        const bool trained = tdm__graph_is_trained(node, frozen), dx = needs_dx(graph, node, needs);
        needs[i] = trained || dx;
        out[i] = node->flops * (1 + trained + dx);
    }
    tdm__delete(graph->host, needs);
    return TDM_OK;
}

/* Layers that stay together: one with parameters, and those without that follow it. */
typedef struct unit {
    size_t first; /* node */
    double flops_before;
} unit;

typedef struct balance {
    size_t count;
    unit *unit;          /* [count + 1]; the last is the end */
    const double *flops; /* of each node in a step */
    /* cost[n]: if the stages so far share the first n units, the flops of the most expensive stage, at best. */
    double *cost; /* [count + 1] */
    int *cut;     /* [stages][count + 1]: with that, the first unit of the last stage */
} balance;

static void list_units(const tdm_graph *graph, balance *b) {
    double flops = 0;
    for (size_t i = 0; i < graph->node_count; i++) {
        if (graph->nodes[i].param_count > 0) {
            b->unit[b->count] = b->count == 0 ? (unit){0, 0} : (unit){i, flops};
            b->count++;
        }
        flops += b->flops[i];
    }
    b->unit[b->count] = (unit){graph->node_count, flops};
}

/* One more stage: turns `cost` of `stage` stages into that of one more. From the last unit to the first, because each
 * new cost is made of old ones of fewer units. */
static void add_stage(balance *b, size_t stage) {
    int *cut = b->cut + stage * (b->count + 1);
    for (size_t end = b->count; end > stage; end--) {
        double least = -1;
        for (size_t begin = end - 1; begin >= stage && begin > 0; begin--) {
            const double own = b->unit[end].flops_before - b->unit[begin].flops_before, before = b->cost[begin];
            const double cost = own > before ? own : before;
            if (least < 0 || cost < least) least = cost, cut[end] = (int)begin;
            if (own > before) break; /* from here on it grows */
        }
        b->cost[end] = least;
    }
}

static tdm_status balance_stages(const tdm_graph *graph, int stages, balance *b, int *out) {
    list_units(graph, b);
    if (b->count < (size_t)stages)
        TDM_FAIL(TDM_E_CONFIG,
                 "parallel.stages: every stage needs a layer with parameters, and the model has %zu of them for %d "
                 "stages; write at most %zu",
                 b->count, stages, b->count);
    for (size_t end = 1; end <= b->count; end++) b->cost[end] = b->unit[end].flops_before;
    for (size_t stage = 1; stage < (size_t)stages; stage++) add_stage(b, stage);
    size_t end = b->count, node = graph->node_count;
    for (int stage = stages - 1; stage >= 0; stage--) {
        const size_t begin = stage > 0 ? (size_t)b->cut[(size_t)stage * (b->count + 1) + end] : 0;
        while (node > b->unit[begin].first) out[--node] = stage;
        end = begin;
    }
    return TDM_OK;
}

static tdm_status take_balanced(const tdm_graph *graph, const double *flops, int stages, int *out) {
    balance b = {.flops = flops};
    tdm_zone zone;
    tdm__zone_init(&zone, graph->host);
    const size_t room = graph->node_count + 1;
    tdm_status status = tdm__zone_new(&zone, &b.unit, room, sizeof(*b.unit));
    if (status == TDM_OK) status = tdm__zone_new(&zone, &b.cost, room, sizeof(*b.cost));
    if (status == TDM_OK) status = tdm__zone_new(&zone, &b.cut, (size_t)stages * room, sizeof(*b.cut));
    if (status == TDM_OK) status = balance_stages(graph, stages, &b, out);
    tdm__zone_deinit(&zone);
    return status;
}

/* ---- both ---- */

static tdm_status check_params(const tdm_graph *graph, int stages, const int *of_node) {
    int node = 0;
    for (int stage = 0; stage < stages; stage++) {
        bool has_params = false;
        const int first = node;
        for (; node < (int)graph->node_count && of_node[node] == stage; node++)
            has_params = has_params || graph->nodes[node].param_count > 0;
        if (has_params) continue;
        if (node == first)
            TDM_FAIL(TDM_E_CONFIG,
                     "parallel.stages: no layer is in stage %d of %d; give one `stage: %d`, or write fewer", stage,
                     stages, stage);
        TDM_FAIL_AT(&graph->nodes[first].origin, TDM_E_CONFIG,
                    "stage %d has no layer with parameters: %s '%s' and what follows it belong in another stage", stage,
                    graph->nodes[first].op->name, graph->nodes[first].name);
    }
    return TDM_OK;
}

tdm_status tdm__graph_stages(const tdm_graph *graph, const double *flops, int stages, int *out) {
    if (stages > TDM_STAGES_MAX)
        TDM_FAIL(TDM_E_CONFIG, "parallel.stages: a replica has at most %d stages, got %d", TDM_STAGES_MAX, stages);
    if (!has_stages(graph)) return take_balanced(graph, flops, stages, out);
    TDM_TRY(take_named(graph, stages, out));
    return check_params(graph, stages, out);
}

int tdm__job_replicas(const tdm_job *job) {
    const int64_t stages = job->parallel.stages > 0 ? job->parallel.stages : 1; /* the job may be unchecked */
    const int64_t replicas = job->parallel.device_ids.count / stages;
    return replicas > 0 ? (int)replicas : 1;
}
