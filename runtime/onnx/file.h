/* An ONNX file as it is read: its nodes, and where its numbers lie. Everything is checked against the limits below
 * before memory is taken for it; numbers stay in the file until they are asked for. */
#ifndef TDM_ONNX_FILE_H
#define TDM_ONNX_FILE_H

#include <tandem/sys/onnx.h>

#include "runtime/base/text/names.h"
#include "runtime/onnx/wire_in.h"

/* What a file may have. One beyond it is refused. */
enum {
    TDM_ONNX_NODES = 50 * 1000,
    TDM_ONNX_CONSTANTS = 50 * 1000,
    TDM_ONNX_PARTS = 1000 * 1000, /* names, attributes and small numbers, together */
    TDM_ONNX_NAME = 1024,         /* bytes of a text */
    TDM_ONNX_NODE_INPUTS = 1024,  /* of one node; each op looks at all of them */
    TDM_ONNX_NODE_OUTPUTS = 64,
    TDM_ONNX_NODE_ATTRIBUTES = 64,
    TDM_ONNX_EXTERNAL = 16, /* other files that hold numbers */
    TDM_ONNX_NEWEST = 30    /* opset; what later ones change nobody knows yet */
};

/* Types of TensorProto. */
enum { TDM_ONNX_INT32 = 6, TDM_ONNX_BOOL = 9, TDM_ONNX_FLOAT16 = 10, TDM_ONNX_DOUBLE = 11, TDM_ONNX_BFLOAT16 = 16 };

/* Numbers: an initializer, or an attribute of a node. */
typedef struct tdm_onnx_tensor {
    const char *name;
    int type, ndim;
    int64_t dim[TDM_ONNX_AXES], count;
    const tdm_wire_source *source;
    tdm_wire_span span;
    bool is_varints;      /* one number behind the other, as the wire has them; else as in memory */
    double number;        /* source NULL: the one number */
    const int64_t *items; /* source NULL: integers; NULL: it is that one number */
    enum { TDM_ONNX_UNSEEN, TDM_ONNX_SAME, TDM_ONNX_MIXED } look; /* are all numbers `same`? Looked at once */
    double same;
    const char *trained; /* the first parameter that has these numbers; NULL: none yet */
    int trained_by;      /* its layer, by index */
} tdm_onnx_tensor;

typedef struct tdm_onnx_attribute {
    const char *name;
    int type; /* of AttributeProto; 0: one that no layer needs */
    float f;
    int64_t i;
    const char *s;
    int count;
    const int64_t *ints;
    const char **texts;
    const float *floats;
    tdm_onnx_tensor *t;
} tdm_onnx_attribute;

typedef struct tdm_onnx_file_node {
    tdm_onnx_node base;  /* first: ops see this */
    size_t first_output; /* its place among the outputs of all nodes */
    const char *scope;   /* the modules that it is from, as PyTorch's exporter lists them; NULL: not told */
    int attribute_count;
    const tdm_onnx_attribute *attribute;
} tdm_onnx_file_node;

/* The model's own input or output. */
typedef struct tdm_onnx_port {
    const char *name;
    int ndim; /* 0: not told */
    int64_t dim[TDM_ONNX_AXES];
    const char *dim_name[TDM_ONNX_AXES]; /* of a dimension without a size; NULL: it has one, or no name */
} tdm_onnx_port;

typedef struct tdm_onnx_file {
    const tdm_host *host;
    tdm_zone zone;
    tdm_wire_source source;
    tdm_wire_source external[TDM_ONNX_EXTERNAL]; /* other files that hold numbers; their paths are whole */
    const char *external_name[TDM_ONNX_EXTERNAL];
    int external_count;
    const char *producer;
    int64_t opset;
    tdm_onnx_file_node *node;
    size_t node_count, node_room, node_output_count;
    tdm_onnx_tensor *tensor; /* initializers */
    size_t tensor_count, tensor_room;
    tdm_onnx_port *input, *output;
    size_t input_count, input_room, output_count, output_room;
    size_t parts;
    tdm_names tensors, makers; /* by name: initializers; nodes by their outputs */
} tdm_onnx_file;

/* Opens and reads a file; `memory` NULL: `path` names it, else it is called so. TDM_E_CHECKPOINT: it is damaged or no
 * ONNX file, says where; TDM_E_UNSUPPORTED: it is of a kind that tandem does not read, says what to do. */
tdm_status tdm__onnx_file_open(tdm_onnx_file **out, const tdm_host *host, const char *path, const void *memory,
                               size_t count);
void tdm__onnx_file_close(tdm_onnx_file *file); /* NULL is fine */

/* ---- parts.c, external.c, numbers.c: for the files of this folder ---- */

/* A message of the file; they fill in *out, and fail as tdm__wire_fail does. */
bool tdm__onnx_read_node(tdm_onnx_file *file, tdm_wire_in *in, tdm_wire_span message, tdm_onnx_file_node *out);
bool tdm__onnx_read_tensor(tdm_onnx_file *file, tdm_wire_in *in, tdm_wire_span message, tdm_onnx_tensor *out);
bool tdm__onnx_read_port(tdm_onnx_file *file, tdm_wire_in *in, tdm_wire_span message, tdm_onnx_port *out);
/* Counts parts against the limit. */
bool tdm__onnx_count(tdm_onnx_file *file, tdm_wire_in *in, uint64_t at, size_t more);
bool tdm__onnx_text(tdm_onnx_file *file, tdm_wire_in *in, const tdm_wire_field *field, const char **out);
/* The tensor's numbers are in another file of the same folder (ONNX's external data): opens it, and says where they are.
 */
tdm_status tdm__onnx_external(tdm_onnx_file *file, tdm_onnx_tensor *tensor, const char *name, const char *offset,
                              const char *length);

/* Bytes of a number of this type; 0: of a type that tandem does not read. */
int tdm__onnx_bytes_of(int type);
/* safetensors' name of the type; NULL: it is not one of floats. */
const char *tdm__onnx_dtype(int type);
/* The first `most` numbers of a tensor, at most TDM_ONNX_FEW, as integers or as doubles. */
tdm_status tdm__onnx_integers(const tdm_onnx_tensor *tensor, int64_t most, int64_t *out);
tdm_status tdm__onnx_numbers(const tdm_onnx_tensor *tensor, int64_t most, double *out);

#endif
