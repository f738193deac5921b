/* graph -> plan: the passes in order. */
#include "runtime/plan/plan.h"

#include "runtime/base/status.h"
#include "runtime/plan/build.h"

int tdm__plan_root(const tdm_plan *plan, int value) {
    while (plan->values[value].alias_of >= 0) value = plan->values[value].alias_of;
    return value;
}

static tdm_status check_options(const tdm_graph *graph, const tdm_plan_options *options) {
    if (!graph->finished) TDM_FAIL(TDM_E_USAGE, "plan: the graph is not finished");
    if (options->rows < 1)
        TDM_FAIL(TDM_E_CONFIG, "plan: a replica wants at least 1 row, got %lld", (long long)options->rows);
    for (size_t i = 0; i < graph->value_count; i++) {
        size_t bytes = 0;
        if (!tdm__mul_fits((size_t)tdm__shape_count(&graph->values[i].shape), (size_t)options->rows * sizeof(float),
                           &bytes) ||
            bytes > SIZE_MAX / 64)
            TDM_FAIL(TDM_E_CONFIG, "plan: a batch of %lld rows is too large for this model", (long long)options->rows);
    }
    return TDM_OK;
}

static tdm_status open_build(tdm_build *build) {
    const tdm_graph *graph = build->graph;
    TDM_TRY(tdm__new(build->host, &build->value_of, graph->value_count, sizeof(int), "plan"));
    TDM_TRY(tdm__new(build->host, &build->needs_gradient, graph->value_count, sizeof(bool), "plan"));
    TDM_TRY(tdm__new(build->host, &build->fused, graph->node_count, sizeof(bool), "plan"));
    TDM_TRY(tdm__new(build->host, &build->takes_relu, graph->node_count, sizeof(bool), "plan"));
    return TDM_OK;
}

static tdm_status run_passes(tdm_build *build) {
    TDM_TRY(open_build(build));
    TDM_TRY(tdm__build_lower(build));
    build->plan->input_row_bytes = build->plan->values[build->plan->input].bytes / (size_t)build->plan->options.rows;
    TDM_TRY(tdm__build_params(build));
    if (build->plan->options.training) TDM_TRY(tdm__build_backward(build));
    TDM_TRY(tdm__build_steps(build));
    tdm__build_liveness(build->plan);
    TDM_TRY(tdm__build_places(build));
    return tdm__build_hash(build);
}

tdm_status tdm__plan_build(tdm_plan **out, const tdm_host *host, const tdm_graph *graph,
                           const tdm_plan_options *options) {
    *out = NULL;
    TDM_TRY(check_options(graph, options));
    tdm_plan *plan = NULL;
    TDM_TRY(tdm__new(host, &plan, 1, sizeof(*plan), "plan"));
    tdm__arena_init(&plan->arena, host);
    plan->graph = graph;
    plan->options = *options;
    plan->element_bytes = options->precision == TDM_BF16 ? 2 : sizeof(float);
    plan->input = plan->output = plan->d_output = plan->temp = -1;
    tdm_build build = {.host = host, .graph = graph, .plan = plan};
    tdm_status status = run_passes(&build);
    tdm__delete(host, build.extra);
    tdm__delete(host, build.value_of);
    tdm__delete(host, build.needs_gradient);
    tdm__delete(host, build.fused);
    tdm__delete(host, build.takes_relu);
    if (status != TDM_OK) {
        tdm__plan_free(plan);
        return status;
    }
    *out = plan;
    return TDM_OK;
}

void tdm__plan_free(tdm_plan *plan) {
    if (plan == NULL) return;
    const tdm_host *host = plan->arena.host;
    tdm__delete(host, plan->values);
    tdm__delete(host, plan->nodes);
    tdm__delete(host, plan->steps);
    tdm__delete(host, plan->buckets);
    tdm__arena_deinit(&plan->arena);
    tdm__delete(host, plan);
}
