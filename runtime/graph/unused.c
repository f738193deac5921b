/* Layers that the model's output does not depend on. Their parameters have no gradient. */
#include <stdio.h>
#include <string.h>

#include "runtime/graph/graph.h"

void tdm__graph_find_used(const tdm_graph *graph, tdm_value output, bool *used) {
    memset(used, 0, graph->node_count * sizeof(*used));
    for (size_t i = graph->node_count; i-- > 0;) {
        const tdm_graph_node *node = &graph->nodes[i];
        used[i] = used[i] || node->output == output;
        for (int k = 0; used[i] && k < node->input_count; k++) {
            const int producer = graph->values[node->input[k]].producer;
            if (producer >= 0) used[producer] = true;
        }
    }
}

int tdm__graph_list_unused(const tdm_graph *graph, const bool *used, const bool *among, char out[TDM_UNUSED_LIST]) {
    int count = 0;
    size_t length = 0;
    out[0] = '\0';
    for (size_t i = 0; i < graph->param_count; i++) {
        const int node = graph->params[i].node;
        if (used[node] || (among != NULL && !among[node])) continue;
        count++;
        if (length + 4 >= TDM_UNUSED_LIST) continue;
        const int room = (int)(TDM_UNUSED_LIST - length);
        const int wrote = snprintf(out + length, (size_t)room, "%s%s", count > 1 ? ", " : "", graph->params[i].name);
        if (wrote < room - 8) {
            length += (size_t)wrote;
        } else {
            snprintf(out + length, (size_t)room, ", ...");
            length = TDM_UNUSED_LIST;
        }
    }
    return count;
}
