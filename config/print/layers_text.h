/* The layers of a graph as the list of model.layers. */
#ifndef TDM_CONFIG_LAYERS_TEXT_H
#define TDM_CONFIG_LAYERS_TEXT_H

#include "runtime/base/text/text.h"
#include "runtime/graph/graph.h"

typedef struct tdm_layers_form {
    bool is_brief; /* values that are the defaults are left out, as a person would write it; else none is */
    /* Layer `changed` has `value` for its main key, which is a number; -1: none. */
    int changed;
    int64_t value;
} tdm_layers_form;

/* The model's input, or its inputs with their names. */
void tdm__print_graph_inputs(const tdm_graph *graph, tdm_text *out);
tdm_status tdm__print_graph_layers(const tdm_graph *graph, const tdm_layers_form *form, tdm_text *out);

#endif
