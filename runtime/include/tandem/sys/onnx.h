/* tandem/sys/onnx.h - how an op is written into an ONNX file. For writers of ops.
 *
 * The member `onnx` of a tdm_op_def writes the nodes of one layer, of opset 17 (TDM_ONNX_OPSET), for evaluation: inputs
 * and output have the batch in front of the shapes that are given here. Calls cannot fail: what is short of memory is
 * told at the end. Names live as long as the writer. */
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

TDM_END_DECLS
#endif
