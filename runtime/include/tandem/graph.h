/* tandem/graph.h - build a model from C. config/ uses these very calls for the `model:` section.
 *
 *   tdm_graph *g; tdm_value x, h, y;
 *   tdm_graph_new(&g, NULL);
 *   tdm_graph_input(g, 1, (int64_t[]){784}, &x);
 *   tdm_graph_add(g, "linear", "fc1", &x, 1, (tdm_attr[]){{"out", "128"}}, 1, &h);
 *   tdm_graph_add(g, "relu", NULL, &h, 1, NULL, 0, &h);
 *   tdm_graph_add(g, "linear", "fc2", &h, 1, (tdm_attr[]){{"out", "10"}}, 1, &y);
 *   tdm_graph_finish(g, y);
 *
 * Shapes leave the batch dimension out. A graph is immutable and may be shared between threads once finished. */
#ifndef TANDEM_GRAPH_H
#define TANDEM_GRAPH_H

#include <tandem/host.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tdm_graph tdm_graph;
typedef int32_t tdm_value; /* an output of a layer, or the input */

typedef struct tdm_attr {
    const char *key, *text; /* {"kernel", "3"}, {"stride", "[2, 1]"}, {"bias", "false"} */
    tdm_origin origin;      /* of the value in the user's file; zero if none */
} tdm_attr;

/* host NULL: tdm_host_default(). Free with tdm_graph_free. */
TDM_API tdm_status tdm_graph_new(tdm_graph **out, const tdm_host *host);
TDM_API void tdm_graph_free(tdm_graph *graph);
/* The sample's shape: C,H,W or a feature count. Once per graph, first. */
TDM_API tdm_status tdm_graph_input(tdm_graph *graph, int ndim, const int64_t *dim, tdm_value *out);
/* Adds a layer; `op` is a name of `tandem explain layers`. name NULL: the layer's index, as in torch.nn.Sequential.
 * Parameters are called "<name>.<suffix>". Wrong attributes and shapes are TDM_E_CONFIG and name the layer. */
TDM_API tdm_status tdm_graph_add(tdm_graph *graph, const char *op, const char *name, const tdm_value *inputs,
                                 int input_count, const tdm_attr *attrs, int attr_count, tdm_value *out);
/* As tdm_graph_add, with the place in the user's file for messages. */
TDM_API tdm_status tdm_graph_add_at(tdm_graph *graph, const tdm_origin *origin, const char *op, const char *name,
                                    const tdm_value *inputs, int input_count, const tdm_attr *attrs, int attr_count,
                                    tdm_value *out);
/* `output` is what the loss sees. Every layer must lead there. */
TDM_API tdm_status tdm_graph_finish(tdm_graph *graph, tdm_value output);
/* Dimensions of a value, without the batch; returns their number. dim has room for 6. */
TDM_API int tdm_graph_shape(const tdm_graph *graph, tdm_value value, int64_t *dim);
/* Numbers of the model's output for one sample; 0 before the graph is finished. */
TDM_API int64_t tdm_graph_output_width(const tdm_graph *graph);
/* Learnable numbers; and a table of the graph as text (release with tdm_free). */
TDM_API int64_t tdm_graph_param_count(const tdm_graph *graph);
TDM_API tdm_status tdm_graph_print(const tdm_graph *graph, char **out);

#ifdef __cplusplus
}
#endif
#endif
