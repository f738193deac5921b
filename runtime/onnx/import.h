/* From the nodes of an ONNX file to layers. Which nodes are a layer is said in the folder of its op (from_onnx); here
 * is what they ask, the graph that comes of it, and where the numbers of its parameters are. */
#ifndef TDM_ONNX_IMPORT_H
#define TDM_ONNX_IMPORT_H

#include "runtime/graph/graph.h"
#include "runtime/onnx/file.h"

/* A parameter or a buffer of the graph. */
typedef struct tdm_onnx_param {
    const tdm_graph_param *of;
    tdm_onnx_weight weight;
    tdm_onnx_tensor *tensor; /* NULL: all numbers are weight.fill */
    const char *dtype;       /* safetensors' name of the type that tdm__onnx_param_read gives */
    size_t element;          /* bytes of a number */
} tdm_onnx_param;

/* One constant of the file that two layers train, the first of its kind. The names are the graph's. */
typedef struct tdm_onnx_shared {
    const char *constant, *param[2]; /* NULL: none is shared */
} tdm_onnx_shared;

typedef struct tdm_onnx_import {
    tdm_onnx_file *file;
    tdm_graph *graph;
    tdm_value output;
    tdm_onnx_param *param; /* parameters, then buffers, in the order of the graph's */
    int param_count;
    tdm_onnx_shared shared;
} tdm_onnx_import;

/* Reads a file (tdm__onnx_file_open) and makes the graph of it, which is not finished. TDM_E_UNSUPPORTED names the
 * first node that is no layer. */
tdm_status tdm__onnx_import_open(tdm_onnx_import **out, const tdm_host *host, const char *path, const void *memory,
                                 size_t count);
/* The graph becomes the caller's. A warning says if layers of it share constants: each trains a copy. */
tdm_graph *tdm__onnx_import_take(tdm_onnx_import *import);
void tdm__onnx_import_close(tdm_onnx_import *import); /* NULL is fine */
/* Reads the numbers of a parameter. */
tdm_status tdm__onnx_param_read(const tdm_onnx_import *import, const tdm_onnx_param *param, void *to);
bool tdm__onnx_named(const char *path);                 /* .onnx */
bool tdm__onnx_begins(const void *bytes, size_t count); /* does a file in memory begin so? */

/* ---- between the files of this folder ---- */

/* A value that nodes read. */
typedef struct tdm_onnx_value {
    tdm_value value; /* of the draft */
    tdm_onnx_view view;
    const tdm_onnx_node *maker; /* NULL: the model's input */
} tdm_onnx_value;

/* A layer of the draft: node i of its graph. */
typedef struct tdm_onnx_layer_made {
    tdm_onnx_found found;
    const tdm_onnx_node *named;
    tdm_attr *attr;
    int attr_count;
} tdm_onnx_layer_made;

enum { TDM_ONNX_ATTRS = 16 };
/* All layers that were found, those within others too; the graph is made of those that the output depends on. */
typedef struct tdm_onnx_draft {
    tdm_onnx_reader base; /* first: ops see this */
    tdm_onnx_file *file;
    int64_t batch;     /* the rows that the file is made for; 0: any number */
    tdm_status status; /* of what ops have asked */
    tdm_graph *graph;
    tdm_onnx_layer_made *made;
    size_t made_room;
    tdm_names values;
    tdm_onnx_value *value;
    size_t value_count, value_room;
    tdm_onnx_tensor **constant;    /* by node: what a Constant node holds; NULL: it is no such node */
    const char **why;              /* by output of all nodes: why it is no layer's; NULL: not said */
    size_t asked;                  /* of them the one that is being found */
    tdm_attr attr[TDM_ONNX_ATTRS]; /* of the layer that is being found */
    int attr_count;
} tdm_onnx_draft;

extern const tdm_onnx_reader_calls tdm__onnx_reader_calls;
/* The numbers behind a name; NULL: none. Nodes that only pass constants on are passed by. */
tdm_onnx_tensor *tdm__onnx_constant_of(const tdm_onnx_draft *draft, const char *name);
const tdm_onnx_value *tdm__onnx_value_of(const tdm_onnx_draft *draft, const char *name);
bool tdm__onnx_view_is_plain(const tdm_onnx_view *view);
/* Finds the layers; then fails if the model's output is not the output of one. */
tdm_status tdm__onnx_draft_layers(tdm_onnx_draft *draft);
/* Why a parameter cannot have these numbers; NULL: it can. */
const char *tdm__onnx_param_fault(const tdm_onnx_draft *draft, const tdm_param_def *def, const tdm_onnx_weight *weight);
void tdm__onnx_param_init(const tdm_onnx_draft *draft, tdm_onnx_param *out, const tdm_graph_param *of,
                          const tdm_onnx_weight *weight);
/* The name that layer `index` of the draft gets behind the graph's last, in the zone of the file; NULL: its index. */
tdm_status tdm__onnx_layer_name(const tdm_onnx_draft *draft, int index, const tdm_graph *graph, const char **out);

#endif
