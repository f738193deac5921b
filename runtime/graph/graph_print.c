/* The graph as a table, one line per layer. */
#include <stdio.h>

#include "runtime/base/field/field.h"
#include "runtime/base/status.h"
#include "runtime/base/text/text.h"
#include "runtime/graph/graph.h"

static void print_inputs(char *out, size_t bytes, const tdm_graph_node *node) {
    size_t at = 0;
    out[0] = '\0';
    for (int i = 0; i < node->input_count && at < bytes; i++) {
        int n = snprintf(out + at, bytes - at, "%sv%d", i ? " " : "", (int)node->input[i]);
        at += n > 0 ? (size_t)n : 0;
    }
}

static int64_t params_of(const tdm_graph *graph, const tdm_graph_node *node) {
    int64_t count = 0;
    for (int i = 0; i < node->param_count; i++) count += graph->params[node->first_param + i].count;
    return count;
}

static void print_node(const tdm_graph *graph, const tdm_graph_node *node, size_t index, tdm_text *text) {
    char inputs[64], shape[64];
    print_inputs(inputs, sizeof(inputs), node);
    tdm__shape_print(shape, sizeof(shape), &graph->values[node->output].shape);
    tdm__text_printf(text, "%3zu  %-18s %-20s %-10s v%-5d %-14s %10lld %9.3f ", index, node->op->name, node->name,
                     inputs, (int)node->output, shape, (long long)params_of(graph, node), node->flops * 1e-6);
    tdm__fields_print(node->op->attrs, node->attrs, text);
    tdm__text_puts(text, "\n");
}

/* "v0 3x32x32", or with a name "v1 facts 7" */
static void print_input(const tdm_graph *graph, int index, tdm_text *text) {
    const char *const name = graph->inputs[index].name;
    tdm__text_printf(text, "%s v%d %s%s%s", index > 0 ? "," : "", index, name != NULL ? name : "",
                     name != NULL ? " " : "", tdm__shape_text(&graph->values[index].shape).text);
}

tdm_status tdm_graph_print(const tdm_graph *graph, char **out) {
    if (graph == NULL || out == NULL) TDM_FAIL(TDM_E_USAGE, "tdm_graph_print: a pointer is NULL");
    tdm_text text;
    tdm__text_init(&text, graph->host);
    double flops = 0;
    for (size_t i = 0; i < graph->node_count; i++) flops += graph->nodes[i].flops;
    tdm__text_puts(&text, graph->input_count > 1 ? "graph  inputs" : "graph  input");
    for (int k = 0; k < graph->input_count; k++) print_input(graph, k, &text);
    tdm__text_printf(&text, "  layers %zu  parameters %lld  forward %.3f MFLOP a sample\n", graph->node_count,
                     (long long)tdm_graph_param_count(graph), flops * 1e-6);
    tdm__text_printf(&text, "%3s  %-18s %-20s %-10s %-6s %-14s %10s %9s  %s\n", "#", "kind", "name", "reads", "makes",
                     "shape", "parameters", "MFLOP", "attributes");
    for (size_t i = 0; i < graph->node_count; i++) print_node(graph, &graph->nodes[i], i, &text);
    return tdm__text_take_public(&text, out);
}
