/* The checks of a model's output by its loss. */
#include "runtime/graph/loss_use.h"

#include <string.h>

#include "runtime/base/status.h"

const tdm_loss_use *tdm__loss_use(const tdm_loss_def *loss) {
    const tdm_loss_use *use = tdm_builtin_loss_uses;
    while (use->loss != NULL && strcmp(use->loss, loss->name) != 0) use++;
    return use;
}

/* The layer that computes a value. Layers that only change its shape are passed over. NULL: it is the model's input. */
static const tdm_graph_node *computed_by(const tdm_graph *graph, tdm_value value) {
    for (;;) {
        const int producer = graph->values[value].producer;
        if (producer < 0) return NULL;
        const tdm_graph_node *node = &graph->nodes[producer];
        if ((node->op->flags & TDM_OP_ALIAS) == 0) return node;
        value = node->input[0];
    }
}

tdm_status tdm__loss_take_output(const tdm_loss_def *loss, const tdm_loss_section *section, const tdm_graph *graph,
                                 tdm_value output, const tdm_origin *origin, int64_t *classes) {
    const tdm_loss_use *use = tdm__loss_use(loss);
    const tdm_graph_node *last = computed_by(graph, output);
    *classes = 0;
    if (loss->infer != NULL) TDM_TRY(loss->infer(section, &graph->values[output].shape, origin, classes));
    if (use->needs == NULL || (last != NULL && strcmp(last->op->name, use->needs) == 0)) return TDM_OK;
    TDM_FAIL_AT(origin, TDM_E_CONFIG,
                "the loss %s needs a model that ends in the layer %s, but it ends in %s%s%s%s; add `- %s` as the last "
                "layer, or use the loss %s, which contains it",
                loss->name, use->needs, last != NULL ? last->op->name : "its input", last != NULL ? " '" : "",
                last != NULL ? last->name : "", last != NULL ? "'" : "", use->needs, use->instead);
}
