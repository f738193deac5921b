/* What ranks must agree on before the first step, as one hash: model, kernels, arenas, buckets. */
#include "runtime/base/field/field.h"
#include "runtime/base/status.h"
#include "runtime/base/text/text.h"
#include "runtime/plan/build.h"

tdm_status tdm__build_hash(tdm_build *build) {
    tdm_plan *plan = build->plan;
    tdm_text text;
    tdm__text_init(&text, build->host);
    for (int i = 0; i < plan->node_count; i++) {
        const tdm_plan_node *node = &plan->nodes[i];
        tdm__text_printf(&text, "%s %s %s %d %d;", node->name, node->desc.op,
                         node->kernel != NULL ? node->kernel->variant : "alias", (int)node->desc.epilogue,
                         node->desc.y_layout);
        const tdm_field *rows = node->op->attrs;
        for (; rows != NULL && rows->key != NULL; rows++) tdm__field_print(rows, node->desc.attrs, &text);
        for (int k = 0; k < node->desc.input_count; k++) tdm__text_printf(&text, " %d", node->x[k]);
        for (int d = 0; d < node->desc.y.ndim; d++) tdm__text_printf(&text, ",%lld", (long long)node->desc.y.dim[d]);
    }
    for (int i = 0; i < plan->param_count; i++) {
        const tdm_plan_param *param = &plan->params[i];
        tdm__text_printf(&text, "%s %lld @%zu %lld,%lld %d;", param->name, (long long)param->count, param->offset,
                         (long long)param->form.b, (long long)param->form.filled, param->group);
    }
    for (int i = 0; i < plan->bucket_count; i++)
        tdm__text_printf(&text, "[%zu+%zu)", plan->buckets[i].offset, plan->buckets[i].count);
    tdm__text_printf(&text, "trained %d fast %d loss %d precision %d", plan->trained_count, plan->options.fast,
                     plan->options.loss, plan->options.precision);
    if (plan->statistics_bytes > 0) tdm__text_printf(&text, " replicas %d", plan->options.replicas);
    for (int i = 0; plan->stage_count > 1 && i < plan->node_count; i++)
        tdm__text_printf(&text, " %d", plan->nodes[i].stage);
    if (text.failed) {
        tdm__text_deinit(&text);
        TDM_FAIL(TDM_E_MEMORY, "plan: out of memory");
    }
    plan->hash = tdm__hash(text.data, text.length);
    tdm__text_deinit(&text);
    return TDM_OK;
}
