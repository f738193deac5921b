/* tandem/sys/onnx.h - how an op is written into an ONNX file, and found in one. For writers of ops.
 *
 * Writing. The member `onnx` of a tdm_op_def writes the nodes of one layer, of opset 17 (TDM_ONNX_OPSET), for
 * evaluation: inputs and output have the batch in front of the shapes that are given here. Calls cannot fail: what is
 * short of memory is told at the end. Names live as long as the writer.
 *
 * Reading. The member `from_onnx` looks at one output of a node and at what is in front of it, and says whether they
 * are a layer of its op: the node is the layer's last. It is asked for each node in the order of the file, after the
 * ops in front of it in the list of ops. Where nodes of a layer are layers of their own, too (a gelu has a tanh in it),
 * the whole wins, because nothing reads what is inside it. */
#ifndef TANDEM_SYS_ONNX_H
#define TANDEM_SYS_ONNX_H

#include <tandem/sys/op.h>

TDM_BEGIN_DECLS

enum { TDM_ONNX_OPSET = 17, TDM_ONNX_FLOAT = 1, TDM_ONNX_INT64 = 7 }; /* the last two: types of TensorProto */

typedef struct tdm_onnx tdm_onnx;

/* A layer. Its parameters and buffers are tensors of the file where nodes name them. */
typedef struct tdm_onnx_layer {
    const char *layer; /* for messages: "conv2d 'features.0'" */
    const void *attrs;
    int input_count, param_count;
    tdm_shape input[TDM_MAX_INPUTS], output, param_shape[TDM_MAX_PARAMS]; /* without the batch dimension */
    const char *x[TDM_MAX_INPUTS], *y, *param[TDM_MAX_PARAMS], *buffer[TDM_MAX_BUFFERS];
    const float *weight[TDM_MAX_PARAMS]; /* the numbers of the parameters, for those that ONNX has in another order */
} tdm_onnx_layer;

typedef struct tdm_onnx_calls {
    /* Adds a node with one output; the next four give it attributes. */
    void (*node)(tdm_onnx *to, const char *op, const char *y, int count, const char *const *x);
    void (*integer)(tdm_onnx *to, const char *name, int64_t value);
    void (*integers)(tdm_onnx *to, const char *name, int count, const int64_t *values);
    void (*number)(tdm_onnx *to, const char *name, double value);
    void (*word)(tdm_onnx *to, const char *name, const char *value);
    const char *(*value)(tdm_onnx *to); /* a name for a value between nodes */
    /* Constants; the numbers are copied. */
    const char *(*floats)(tdm_onnx *to, const tdm_shape *shape, const float *numbers);
    const char *(*indices)(tdm_onnx *to, int count, const int64_t *numbers);
} tdm_onnx_calls;

struct tdm_onnx {
    const tdm_onnx_calls *calls;
    const tdm_host *host; /* memory for what an op needs meanwhile */
};

/* ---- reading ---- */

enum { TDM_ONNX_AXES = 8, TDM_ONNX_FEW = 64, TDM_ONNX_WHY = 200 };

/* A node. Its attributes are asked for by name. */
typedef struct tdm_onnx_node {
    const char *op, *domain; /* op_type; domain "": ONNX's own */
    const char *name;
    int input_count, output_count;
    const char *const *input, *const *output; /* names of values; "": left out */
} tdm_onnx_node;

/* A value that a layer makes, or the model's input, as nodes see it: with the batch, perhaps with its dimensions in
 * another order, and with dimensions of 1 that the layer's output does not have, or without some that it has. */
enum { TDM_ONNX_BATCH = -1, TDM_ONNX_ONE = -2 };
typedef struct tdm_onnx_view {
    int ndim;
    int axis[TDM_ONNX_AXES]; /* of `shape`, from 0; or one of the two above */
    tdm_shape shape;         /* of the layer's output, without the batch */
} tdm_onnx_view;

/* Numbers that do not depend on the model's input. */
typedef struct tdm_onnx_constant {
    int type; /* of TensorProto */
    tdm_shape shape;
    int64_t count;
} tdm_onnx_constant;

/* A parameter or a buffer: the numbers of a constant, in the order of the file unless it says otherwise. */
typedef struct tdm_onnx_weight {
    const char *value; /* a constant; NULL: each number is `fill` */
    float fill;
    bool turned;      /* the constant is a matrix of which the parameter is the transpose */
    bool ones_behind; /* the constant has dimensions of 1 behind those of the parameter */
    /* Not 0: the numbers are so many runs of `each` numbers; run i begins at number first + order[i] * each. */
    int runs, order[4];
    int64_t first, each;
} tdm_onnx_weight;

/* What was found. All 0 at first. */
typedef struct tdm_onnx_found {
    int input_count;
    const char *x[TDM_MAX_INPUTS];                                  /* values of layers above, or the model's input */
    tdm_onnx_weight param[TDM_MAX_PARAMS], buffer[TDM_MAX_BUFFERS]; /* in the order of the op's */
    tdm_onnx_view
        view;     /* how nodes see the layer's output, which decides `shape` itself; ndim 0: with the batch in front */
    bool is_view; /* there is no layer: the output is x[0], seen so */
    const char *then;           /* an op without attributes and parameters that runs behind the layer; NULL: none */
    const tdm_onnx_node *named; /* the node whose name the layer has; NULL: the one that was asked about */
    char why[TDM_ONNX_WHY];     /* of a node that only this op can be: why it is not; else "" */
} tdm_onnx_found;

typedef struct tdm_onnx_reader tdm_onnx_reader;
typedef struct tdm_onnx_reader_calls {
    /* The node that makes a value; NULL: none. */
    const tdm_onnx_node *(*producer)(tdm_onnx_reader *from, const char *value);
    /* The node of the layer that makes a value: what only changes how it is seen is passed by. */
    const tdm_onnx_node *(*maker)(tdm_onnx_reader *from, const char *value);
    /* False: no layer makes the value. `plain`: only where the view is the layer's output with the batch in front. */
    bool (*view)(tdm_onnx_reader *from, const char *value, tdm_onnx_view *out);
    bool (*plain)(tdm_onnx_reader *from, const char *value, tdm_shape *out);
    int64_t (*batch)(tdm_onnx_reader *from); /* the rows that the file is made for; 0: any number */
    int (*opset)(tdm_onnx_reader *from);
    /* False or -1: the value is no constant, or not of such numbers, or of more than `most` (at most TDM_ONNX_FEW). */
    bool (*constant)(tdm_onnx_reader *from, const char *value, tdm_onnx_constant *out);
    int (*integers)(tdm_onnx_reader *from, const char *value, int most, int64_t *out);
    int (*numbers)(tdm_onnx_reader *from, const char *value, int most, double *out);
    bool (*all)(tdm_onnx_reader *from, const char *value, double number); /* a constant of nothing else */
    /* Attributes of a node; `initial`, or -1, if it does not have the attribute. */
    int64_t (*integer)(tdm_onnx_reader *from, const tdm_onnx_node *node, const char *name, int64_t initial);
    int (*list)(tdm_onnx_reader *from, const tdm_onnx_node *node, const char *name, int most, int64_t *out);
    double (*number)(tdm_onnx_reader *from, const tdm_onnx_node *node, const char *name, double initial);
    const char *(*word)(tdm_onnx_reader *from, const tdm_onnx_node *node, const char *name, const char *initial);
    /* Attributes of the layer; a number has the fewest digits that give the float in the file. */
    void (*set_integer)(tdm_onnx_reader *from, const char *key, int64_t value);
    void (*set_integers)(tdm_onnx_reader *from, const char *key, int count, const int64_t *values);
    void (*set_number)(tdm_onnx_reader *from, const char *key, double value);
    void (*set_word)(tdm_onnx_reader *from, const char *key, const char *value);
    /* Does a node have the attribute, of whatever type? */
    bool (*has)(tdm_onnx_reader *from, const tdm_onnx_node *node, const char *name);
    /* As `list`; a word that is longer than any name is "". They live as long as the reader. */
    int (*words)(tdm_onnx_reader *from, const tdm_onnx_node *node, const char *name, int most, const char **out);
    bool (*is_output)(tdm_onnx_reader *from, const char *value); /* Is the value the model's output? */
} tdm_onnx_reader_calls;

struct tdm_onnx_reader {
    const tdm_onnx_reader_calls *calls;
};

TDM_END_DECLS
#endif
