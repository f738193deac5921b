/* tandem/graph.h - build a model from C. The YAML reader uses the same calls for the `model:` section.
 *
 *   const int64_t shape[] = {784};
 *   const tdm_attr hidden = {"out", "128", {NULL, 0, 0}}, classes = {"out", "10", {NULL, 0, 0}};
 *   tdm_graph *g; tdm_value x, h, y;
 *   tdm_graph_new(&g, NULL);
 *   tdm_graph_input(g, 1, shape, &x);
 *   tdm_graph_add(g, "linear", "fc1", &x, 1, &hidden, 1, &h);
 *   tdm_graph_add(g, "relu", NULL, &h, 1, NULL, 0, &h);
 *   tdm_graph_add(g, "linear", "fc2", &h, 1, &classes, 1, &y);
 *   tdm_graph_finish(g, y);
 *
 * Shapes leave out the batch dimension. Names, attributes and shapes that are passed in are copied.
 *
 * Threads: one thread at a time builds a graph. A finished graph is immutable and may be shared between threads. */
#ifndef TANDEM_GRAPH_H
#define TANDEM_GRAPH_H

#include <tandem/host.h>

TDM_BEGIN_DECLS

typedef struct tdm_graph tdm_graph;
typedef int32_t tdm_value; /* an output of a layer, or an input */

typedef struct tdm_attr {
    const char *key, *text; /* {"kernel", "3"}, {"stride", "[2, 1]"}, {"bias", "false"} */
    tdm_origin origin;      /* where the user's file has the value, for messages; zero if there is no file */
} tdm_attr;

/* Makes an empty graph in *out; end it with tdm_graph_free. host NULL: tdm_host_default(). */
TDM_API tdm_status tdm_graph_new(tdm_graph **out, const tdm_host *host);
TDM_API void tdm_graph_free(tdm_graph *graph); /* NULL is allowed */
/* Declares the shape of one sample, C,H,W or a feature count, and returns the input's value in *out. Call it first, and
 * once per graph. */
TDM_API tdm_status tdm_graph_input(tdm_graph *graph, int ndim, const int64_t *dim, tdm_value *out);
/* Instead of that, for a model with several inputs, such as a picture and numbers about it: declares one of them,
 * before any layer, and returns its value in *out. A sample is then one row, the numbers of all inputs in the order of
 * these calls. name: 1 to 64 letters, digits and _, no digit first, not `input` or `output`; no layer may have the
 * same. At most 32 inputs; a layer must take each of them (tdm_graph_finish). */
TDM_API tdm_status tdm_graph_add_input(tdm_graph *graph, const char *name, int ndim, const int64_t *dim,
                                       tdm_value *out);
/* What an input is. Set `size` with TDM_INPUT_INFO_INIT. */
typedef struct tdm_input_info {
    uint32_t size;
    const char *name; /* NULL: that of tdm_graph_input. Owned by the graph, the run or the model that was asked */
    int ndim;
    int64_t dim[6];
    int64_t first, count; /* its numbers in the row of a sample: first to first + count - 1 */
    int is_looked_up;     /* 1: some are whole numbers by which a layer so far looks something up, as embedding does */
} tdm_input_info;
#define TDM_INPUT_INFO_INIT \
    { sizeof(tdm_input_info), NULL, 0, {0, 0, 0, 0, 0, 0}, 0, 0, 0 }
/* Returns how many inputs there are so far, and fills *out for one of them, counted from 0. TDM_E_USAGE if there is no
 * such input. */
TDM_API int tdm_graph_input_count(const tdm_graph *graph);
TDM_API tdm_status tdm_graph_get_input(const tdm_graph *graph, int index, tdm_input_info *out);
/* Adds a layer with `op` as listed by `tandem explain layers`, and returns its output in *out. name NULL: the layer is
 * called by its index, as in torch.nn.Sequential. Its parameters are called "<name>.<suffix>". Wrong attributes and
 * shapes are TDM_E_CONFIG, and the message names the layer. */
TDM_API tdm_status tdm_graph_add(tdm_graph *graph, const char *op, const char *name, const tdm_value *inputs,
                                 int input_count, const tdm_attr *attrs, int attr_count, tdm_value *out);
/* The same, with the layer's position in the user's file for messages. */
TDM_API tdm_status tdm_graph_add_at(tdm_graph *graph, const tdm_origin *origin, const char *op, const char *name,
                                    const tdm_value *inputs, int input_count, const tdm_attr *attrs, int attr_count,
                                    tdm_value *out);
/* Says how many inputs a layer with `op` takes: *least to *most. Either may be NULL. TDM_E_CONFIG if there is no such
 * op; the message names the nearest. Any thread. */
TDM_API tdm_status tdm_graph_op_inputs(const char *op, int *least, int *most);
/* Lets the graph use layers of the program's own, which tandem/sys/module.h describes: tdm_graph_add then knows their
 * names. Call them before the layers are added. The module is borrowed for as long as the graph and all that is made of
 * it, as runs and models. TDM_E_USAGE says what is wrong with an op, TDM_E_UNSUPPORTED that the module is of another
 * interface, or has no ops.
 *
 * tdm_graph_use_file takes them from a shared library. A path without '/' is looked for in the folders that the
 * environment variable TANDEM_OP_PATH names, as those of YAML files are, and only there. Checkpoints name a model's
 * libraries; those of a model with a module of tdm_graph_use do not carry their model. Libraries stay loaded. */
struct tdm_module;
TDM_API tdm_status tdm_graph_use(tdm_graph *graph, const struct tdm_module *module);
TDM_API tdm_status tdm_graph_use_file(tdm_graph *graph, const char *path);
/* Makes the graph of an ONNX file in *out, and its output in *output: finish it with tdm_graph_finish, or add layers
 * first. Layers have the names that PyTorch gave their parameters, where the file tells them; `tandem explain layers`
 * says what layers there are, runtime/docs/models.md which nodes become them. Their weights are read where a path of
 * weights is: job.weights, tdm_run_load, tdm_run_load_memory. Numbers in other files beside the file are read, too;
 * from memory a file must be whole. TDM_E_UNSUPPORTED names the first node that is no layer; TDM_E_CHECKPOINT: the file
 * is damaged, or no ONNX file. `bytes` are not needed afterwards. Any thread. */
TDM_API tdm_status tdm_graph_from_onnx(tdm_graph **out, tdm_value *output, const tdm_host *host, const char *path);
TDM_API tdm_status tdm_graph_from_onnx_memory(tdm_graph **out, tdm_value *output, const tdm_host *host,
                                              const void *bytes, size_t count);
/* Says in which of parallel.stages the layer that makes `value` runs; stages count from 0. A layer without a stage runs
 * in that of the layer added before it. If no layer has one, the stages are cut by the layers' work. */
TDM_API tdm_status tdm_graph_set_stage(tdm_graph *graph, tdm_value value, int stage);
/* Finishes the graph. `output` is what the loss gets; every layer must contribute to it, unless the job says
 * parallel.ddp.find_unused_parameters. No layer can be added afterwards. */
TDM_API tdm_status tdm_graph_finish(tdm_graph *graph, tdm_value output);
/* Writes the dimensions of a value, without the batch, into `dim`, which has space for 6, and returns how many there
 * are. */
TDM_API int tdm_graph_shape(const tdm_graph *graph, tdm_value value, int64_t *dim);
/* Returns how many numbers the model outputs for one sample; 0 before the graph is finished. */
TDM_API int64_t tdm_graph_output_width(const tdm_graph *graph);
/* Returns how many numbers the model learns. */
TDM_API int64_t tdm_graph_param_count(const tdm_graph *graph);
/* Prints the graph as a table into *out; free it with tdm_free. */
TDM_API tdm_status tdm_graph_print(const tdm_graph *graph, char **out);

TDM_END_DECLS
#endif
