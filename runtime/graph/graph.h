/* The graph: values, nodes and parameters. Nodes keep their position in the user's file, for messages. */
#ifndef TDM_GRAPH_GRAPH_H
#define TDM_GRAPH_GRAPH_H

#include <tandem/graph.h>
#include <tandem/job.h>
#include <tandem/sys/module.h>
#include <tandem/sys/op.h>
#include <tandem/sys/optim.h>
#include <tandem/sys/rewrite.h>

#include "runtime/base/text/names.h"
#include "runtime/base/text/text.h"

typedef struct tdm_graph_value {
    tdm_shape shape; /* without the batch dimension */
    int producer;    /* node index; -1: an input */
    int consumer_count;
} tdm_graph_value;

/* An input: a range of a sample, which is one row of numbers. Input k is value k. */
typedef struct tdm_named_input {
    const char *name; /* NULL: the only one, of tdm_graph_input */
    int64_t first, count;
} tdm_named_input;
enum { TDM_GRAPH_INPUTS = 32 };

typedef struct tdm_graph_param {
    const char *name; /* "features.0.weight" */
    tdm_param_def def;
    int node;
    int64_t count;
} tdm_graph_param;

typedef struct tdm_graph_owners tdm_graph_owners;

typedef struct tdm_graph_node {
    const tdm_op_def *op;
    const char *name;
    const void *attrs;
    int input_count;
    tdm_value input[TDM_MAX_INPUTS];
    tdm_value output;
    int stage;                      /* in which parallel.stages runs it; -1: that of the layer before it */
    int first_param, param_count;   /* in graph->params, in PyTorch's order of construction */
    int first_buffer, buffer_count; /* in graph->buffers */
    double flops;
    int64_t least_rows, least_rows_in_evaluation; /* the fewest rows of a pass; 0: any number */
    int64_t statistics;                           /* of tdm_infer */
    int64_t index_below, picks_first;             /* as in tdm_infer */
    bool picks;
    tdm_origin origin;
} tdm_graph_node;

/* A module whose ops a graph may use beside tandem's. */
typedef struct tdm_graph_module {
    const tdm_module *module;
    const char *file; /* of its library, without the folder; NULL: the program has it itself */
} tdm_graph_module;

struct tdm_graph {
    tdm_graph_owners *owners;
    tdm_zone zone;
    const tdm_host *host;
    size_t value_count, node_count, param_count, buffer_count;
    size_t value_room, node_room, param_room, buffer_room;
    tdm_graph_value *values;
    tdm_graph_node *nodes; /* in order of execution */
    tdm_graph_param *params, *buffers;
    tdm_names names; /* of the nodes */
    tdm_graph_module *modules;
    size_t module_count, module_room;
    tdm_named_input inputs[TDM_GRAPH_INPUTS];
    int input_count;
    tdm_shape sample; /* that of the only input; of several: a row of the numbers of all, one input after the other */
    tdm_value output;
    bool finished;
    const char *shared[2]; /* parameters that were one constant in the file of the graph: the first two; NULL: none */
};

/* ---- inputs (inputs.c) ---- */
static inline bool tdm__graph_is_input(const tdm_graph *graph, tdm_value value) {
    return value >= 0 && value < graph->input_count;
}
int tdm__graph_find_input(const tdm_graph *graph, const char *name); /* -1: none */
/* May an input be called so? Letters, digits and _, at most 64, no digit first; in files `input` means the input of a
 * model that has one, and ONNX files have the output `output`. */
enum { TDM_INPUT_NAME_MAX = 64 };
bool tdm__graph_is_input_name(const char *name);
/* "image 3x32x32, facts 7" */
/* tdm_graph_get_input of a public function `call`, for its messages. graph NULL: the object that has it is. */
tdm_status tdm__graph_get_input(const char *call, const tdm_graph *graph, int index, tdm_input_info *out);
void tdm__graph_print_inputs(const tdm_graph *graph, tdm_text *out);
tdm_status tdm__graph_check_inputs(const tdm_graph *graph); /* does a layer take each of them? */

/* ---- ops (ops.c) ---- */
/* tandem's op of this name, or that of one of the graph's modules; NULL: none. */
const tdm_op_def *tdm__graph_op(const tdm_graph *graph, const char *name);
const tdm_op_def *tdm__module_op(const tdm_module *module, const char *name);
/* The module that an op is of; NULL: it is tandem's. */
const tdm_graph_module *tdm__graph_module_of(const tdm_graph *graph, const tdm_op_def *op);
/* Is it the name of a library that may be looked for in folders? */
bool tdm__graph_is_file_name(const char *name);
/* Checks the module's ops, and lets the graph use them. Does nothing if it does already. */
tdm_status tdm__graph_add_module(tdm_graph *graph, const tdm_module *module, const char *file);
/* The kernels of the graph's modules, then `others`; in the zone. */
tdm_status tdm__graph_own_kernels(const tdm_graph *graph, tdm_zone *zone, const tdm_kernel *const *others,
                                  const tdm_kernel *const **out);

/* All ops, losses and optimizers, from the lists in ops/; NULL-terminated. Defined in ops/, found at link time. */
extern const tdm_op_def *const tdm_builtin_ops[];
extern const tdm_loss_def *const tdm_builtin_losses[];
extern const tdm_optim_def *const tdm_builtin_optims[]; /* indexed by job.optimizer.type */
/* Not a layer: the plan inserts it between kernels that need different layouts. */
extern const tdm_op_def *const tdm_builtin_layout_op;
/* Takes one of several inputs out of a sample; the plan inserts it. Its attributes, in the zone: the range. */
extern const tdm_op_def *const tdm_builtin_input_op;
tdm_status tdm_builtin_input_attrs(tdm_zone *zone, int64_t first, int64_t count, const void **out);
extern const tdm_rewrite tdm_builtin_rewrites[]; /* ends with a NULL name */
/* Built-in CPU kernels ("ref"), and the flat loops for the best instruction set of this machine. */
extern const tdm_kernel *const tdm_builtin_kernels[];
const tdm_flat_kernels *tdm_builtin_flat(void);     /* for that instruction set */
const tdm_flat_kernels *tdm_builtin_flat_ref(void); /* plain C, the reference for tests */

const tdm_op_def *tdm__op_find(const char *name);

/* Runs the op's infer. Refuses tensors with more elements than any machine can hold. */
tdm_status tdm__op_infer(const tdm_op_def *op, tdm_infer *infer);

/* The first of the patterns (base/text/pattern.h) that matches no parameter; -1: each matches one. */
int tdm__graph_unmatched(const tdm_graph *graph, const tdm_texts *patterns);
/* A pattern that does match and is spelt much like this one. False: there is none. */
enum { TDM_PATTERN_HINT = 160 };
bool tdm__graph_nearest_pattern(const tdm_graph *graph, const char *pattern, char out[TDM_PATTERN_HINT]);

/* used[i]: does `output` depend on node i? */
void tdm__graph_find_used(const tdm_graph *graph, tdm_value output, bool *used);
/* Lists the parameters of nodes that are not used; `among`: only of these nodes, NULL: of all. Returns how many. */
enum { TDM_UNUSED_LIST = 200 };
int tdm__graph_list_unused(const tdm_graph *graph, const bool *used, const bool *among, char out[TDM_UNUSED_LIST]);

typedef struct tdm_rows_fault {
    const tdm_graph_node *node; /* NULL: no fault */
    char text[512];
} tdm_rows_fault;
/* Says which layer needs more than `rows` rows in a pass, the first if there are several. 0 rows: there is no pass.
 * With sync_batchnorm: the rows of all devices. */
tdm_rows_fault tdm__graph_rows_fault(const tdm_graph *graph, int64_t rows, bool training);

/* Is one of its parameters not frozen? frozen: by index of the parameter; NULL: none is. */
bool tdm__graph_is_trained(const tdm_graph_node *node, const bool *frozen);
/* The flops of each node in a step of one row, [node_count]: those of forward, as many for the gradient of its
 * parameters, and as many for that of its inputs, where these are needed. */
tdm_status tdm__graph_step_flops(const tdm_graph *graph, const bool *frozen, double *out);
/* The stage of each node, [node_count], if a replica has `stages` of them: those that the layers name, or, if none
 * does, stages of which the one with the most of these flops has as few as can be. TDM_E_CONFIG, with the layer's
 * position, if the graph cannot be cut so. */
enum { TDM_STAGES_MAX = 64 };
tdm_status tdm__graph_stages(const tdm_graph *graph, const double *flops, int stages, int *out);
/* Replicas on the job's devices: each has a device for each stage. */
int tdm__job_replicas(const tdm_job *job);
/* What people should know of a job, though nothing is wrong with it; false: nothing. That batch norm across stages
 * takes the statistics of micro-batches; that gradients are compressed once for all micro-batches. */
enum { TDM_REMARK = 256 };
bool tdm__remark_statistics(const tdm_job *job, const tdm_graph *graph, char out[TDM_REMARK]);
bool tdm__remark_compression(const tdm_job *job, char out[TDM_REMARK]);
/* What parallel.ddp.compress does to the numbers of a training. */
void tdm__compression_text(const tdm_job *job, char out[TDM_REMARK]);
/* As tdm_job_check; what it needs meanwhile is the host's memory. */
tdm_status tdm__job_check(const tdm_host *host, const tdm_job *job);
/* As tdm_job_print and tdm_config_print_model, into a text that was initialised. */
tdm_status tdm__job_print(const tdm_job *job, tdm_text *out);
tdm_status tdm__model_print(const tdm_job *job, const tdm_graph *graph, tdm_text *out);
/* A copy of the job, with all that it points to, in the zone. The job is checked. */
tdm_status tdm__job_copy(tdm_zone *zone, const tdm_job **out, const tdm_job *job);

/* One more value, which node `producer` makes, -1: an input (inputs.c). */
tdm_status tdm__graph_add_value(tdm_graph *graph, const tdm_shape *shape, int producer, tdm_value *out);
/* One more owner of a finished graph, who ends it with tdm_graph_free. Any thread. */
const tdm_graph *tdm__graph_keep(const tdm_graph *graph);
void tdm__graph_leave(const tdm_graph *graph); /* the same as tdm_graph_free; NULL is fine */

/* The most elements of a value or parameter in one row: 2^40 floats are 4 TiB, and leave room for batches in 64 bits.
 */
#define TDM_GRAPH_COUNT_MAX (INT64_C(1) << 40)
bool tdm__shape_is_sane(const tdm_shape *shape); /* dimensions of at least 1, and not more elements than that */
int64_t tdm__shape_count(const tdm_shape *shape);
bool tdm__shape_equal(const tdm_shape *a, const tdm_shape *b);
void tdm__shape_print(char *out, size_t bytes, const tdm_shape *shape); /* "64x32x32" */
/* The same by value, for messages: it lives to the end of the expression. */
typedef struct tdm_shape_text {
    char text[128];
} tdm_shape_text;
tdm_shape_text tdm__shape_text(const tdm_shape *shape);

/* Numbers of the model's input that stand for something, as categories do. */
typedef struct tdm_graph_indices {
    const tdm_graph_node *node; /* that reads them */
    int64_t first, count;       /* of a row of the input */
} tdm_graph_indices;
/* The next node from *at on that reads indices; *at moves behind it. False: there is none. Where they do not come from
 * the model's input unchanged, count is 0. */
bool tdm__graph_next_indices(const tdm_graph *graph, size_t *at, tdm_graph_indices *out);

#endif
