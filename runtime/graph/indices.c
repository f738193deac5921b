/* Which numbers of the model's input layers look something up by. */
#include "runtime/graph/graph.h"

bool tdm__graph_next_indices(const tdm_graph *graph, size_t *at, tdm_graph_indices *out) {
    while (*at < graph->node_count && graph->nodes[*at].index_below == 0) ++*at;
    if (*at >= graph->node_count) return false;
    *out = (tdm_graph_indices){.node = &graph->nodes[(*at)++]};
    tdm_value value = out->node->input[0];
    const int64_t count = tdm__shape_count(&graph->values[value].shape);
    for (int producer; (producer = graph->values[value].producer) >= 0;) {
        const tdm_graph_node *node = &graph->nodes[producer];
        const bool is_alias = (node->op->flags & TDM_OP_ALIAS) != 0;
        if (!node->picks && !is_alias) return true;
        if (node->picks) out->first += node->picks_first;
        value = node->input[0];
    }
    out->first += graph->inputs[value].first;
    out->count = count;
    return true;
}
