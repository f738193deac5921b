/* A model as an ONNX file. */
#ifndef TDM_MODEL_ONNX_ONNX_H
#define TDM_MODEL_ONNX_ONNX_H

#include <tandem/sys/onnx.h>

#include "runtime/base/memory.h"
#include "runtime/base/text/text.h"
#include "runtime/ckpt/ckpt.h"
#include "runtime/graph/graph.h"

typedef struct tdm_onnx_source {
    const tdm_file_ops *ops; /* that take the file */
    const tdm_graph *graph;
    const char *name;         /* of the model */
    const tdm_tensor *tensor; /* all of the graph's, with their data */
    int tensor_count;
    const char *note[TDM_NOTES];  /* become properties of the file; NULL: none */
    const tdm_property *property; /* and these */
    int property_count;
} tdm_onnx_source;

/* Writes a new file, which must not exist. *bytes: its size. TDM_E_UNSUPPORTED names a layer that ONNX does not have,
 * or says that the file would be too large. */
tdm_status tdm__onnx_write(const tdm_host *host, const tdm_onnx_source *source, const char *to, uint64_t *bytes);

/* ---- between the files of this folder ---- */

/* Numbers of the file: a tensor of the model that a node reads, or a constant. */
typedef struct tdm_onnx_numbers {
    struct tdm_onnx_numbers *next;
    const char *name;
    int type; /* of TensorProto */
    tdm_shape shape;
    const void *data;
    size_t bytes;
} tdm_onnx_numbers;

typedef struct tdm_onnx_writer {
    tdm_onnx base; /* first: ops see this */
    const tdm_onnx_source *source;
    tdm_zone zone;
    const char *layer; /* whose nodes are written */
    const char *y;     /* its output */
    int count;         /* names that were made for it */
    tdm_text node;     /* the last node, unless it is in `nodes` already */
    bool has_node;
    tdm_text nodes;   /* fields of the graph */
    bool *is_written; /* by tensor */
    tdm_onnx_numbers *first, **last;
} tdm_onnx_writer;

/* nodes.c: the nodes of all layers, and the numbers that they read. */
tdm_status tdm__onnx_nodes(tdm_onnx_writer *w);

/* The names of the model's own. */
extern const char tdm__onnx_output[];
const char *tdm__onnx_input_name(const tdm_graph *graph, int index);

#endif
