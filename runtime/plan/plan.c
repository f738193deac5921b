/* graph -> plan: the passes in order. */
#include "runtime/plan/plan.h"

#include <string.h>

#include "runtime/base/status.h"
#include "runtime/plan/build.h"

static tdm_status check_options(const tdm_graph *graph, const tdm_plan_options *options) {
    if (!graph->finished) TDM_FAIL(TDM_E_USAGE, "plan: the graph is not finished");
    if (options->rows < 1)
        TDM_FAIL(TDM_E_CONFIG, "plan: a replica needs at least 1 row, got %lld", (long long)options->rows);
    for (size_t i = 0; i < graph->value_count; i++) {
        size_t bytes = 0;
        if (!tdm__mul_fits((size_t)tdm__shape_count(&graph->values[i].shape), (size_t)options->rows * sizeof(float),
                           &bytes) ||
            bytes > SIZE_MAX / 64)
            TDM_FAIL(TDM_E_CONFIG, "plan: a batch of %lld rows is too large for this model", (long long)options->rows);
    }
    return TDM_OK;
}

/* The ops of modules have kernels for the CPU, which read the host's memory. */
static tdm_status add_own_kernels(tdm_plan *plan) {
    const tdm_graph *graph = plan->graph;
    if (graph->module_count == 0) return TDM_OK;
    for (size_t i = 0; i < graph->node_count && plan->options.ingests; i++) {
        const tdm_graph_node *node = &graph->nodes[i];
        if (tdm__graph_module_of(graph, node->op) != NULL)
            TDM_FAIL_AT(&node->origin, TDM_E_UNSUPPORTED,
                        "%s '%s': layers of modules have kernels for the CPU only; write parallel.device: cpu",
                        node->op->name, node->name);
    }
    return tdm__graph_own_kernels(graph, &plan->zone, plan->options.kernels, &plan->options.kernels);
}

/* ---- the passes ---- */

static const struct {
    const char *name;
    tdm_status (*run)(tdm_build *build);
} passes[] = {{"lower", tdm__build_lower},       {"layout", tdm__build_layout},
              {"rewrite", tdm__build_rewrite},   {"stages", tdm__build_stages},
              {"values", tdm__build_values},     {"params", tdm__build_params},
              {"backward", tdm__build_backward}, {"recompute", tdm__build_recompute},
              {"steps", tdm__build_steps},       {"places", tdm__build_places},
              {"hash", tdm__build_hash}};
enum { PASSES = sizeof(passes) / sizeof(passes[0]) };

const char *tdm__plan_pass(int index) {
    return index < PASSES ? passes[index].name : NULL;
}

static tdm_status run_passes(tdm_build *build) {
    const char *after = build->plan->options.after;
    for (int i = 0; i < PASSES; i++) {
        TDM_TRY(passes[i].run(build));
        if (after != NULL && strcmp(after, passes[i].name) == 0) break;
    }
    return TDM_OK;
}

tdm_status tdm__plan_build(tdm_plan **out, const tdm_host *host, const tdm_graph *graph,
                           const tdm_plan_options *options) {
    *out = NULL;
    TDM_TRY(check_options(graph, options));
    tdm_plan *plan = NULL;
    TDM_TRY(tdm__new(host, &plan, 1, sizeof(*plan), "plan"));
    tdm__zone_init(&plan->zone, host);
    plan->graph = graph;
    plan->options = *options;
    plan->stage_count = options->stages > 1 ? options->stages : 1;
    plan->element_bytes = options->precision == TDM_BF16 ? 2 : sizeof(float);
    plan->input = plan->output = plan->d_output = -1;
    tdm_build build = {.host = host, .graph = graph, .plan = plan};
    tdm_status status = add_own_kernels(plan);
    if (status == TDM_OK) status = tdm__build_frozen(&build);
    if (status == TDM_OK) status = run_passes(&build);
    tdm__delete(host, build.of_value);
    tdm__delete(host, build.of_node);
    if (status != TDM_OK) {
        tdm__plan_free(plan);
        return status;
    }
    *out = plan;
    return TDM_OK;
}

void tdm__plan_free(tdm_plan *plan) {
    if (plan == NULL) return;
    const tdm_host *host = plan->zone.host;
    tdm__delete(host, plan->values);
    tdm__delete(host, plan->nodes);
    tdm__delete(host, plan->steps);
    tdm__delete(host, plan->buckets);
    tdm__zone_deinit(&plan->zone);
    tdm__delete(host, plan);
}
