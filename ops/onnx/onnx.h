/* How ops are written as ONNX nodes: what several share. tandem/sys/onnx.h has the contract. */
#ifndef TDM_OPS_ONNX_H
#define TDM_OPS_ONNX_H

#include <tandem/sys/onnx.h>

#include "runtime/base/call/extra.h"
#include "runtime/base/status.h"

/* A function of an op's definition: the members `onnx` and `from_onnx`. NULL in a build without the extra, which leaves
 * it out. */
#define TDM_OF_ONNX(function) (TDM_WITH_ONNX ? (function) : NULL)

/* A node of inputs that are given one by one: TDM_ONNX_NODE(to, "Mul", y, a, b). */
#define TDM_ONNX_NODE(to, op, y, ...)                                                                 \
    (to)->calls->node((to), (op), (y), (int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)), \
                      (const char *[]){__VA_ARGS__})

/* One node of the layer's input, without attributes: the function `onnx` of an op's file. */
#define TDM_ONNX_UNARY(op)                                              \
    static tdm_status onnx(tdm_onnx *to, const tdm_onnx_layer *layer) { \
        TDM_ONNX_NODE(to, op, layer->y, layer->x[0]);                   \
        return TDM_OK;                                                  \
    }

/* A constant without dimensions. */
static inline const char *tdm__onnx_scalar(tdm_onnx *to, float number) {
    const tdm_shape shape = {0};
    return to->calls->floats(to, &shape, &number);
}

/* The names of all inputs of a node that ends with as many parameters as the layer has. */
static inline int tdm__onnx_with_params(const tdm_onnx_layer *layer, const char *x,
                                        const char *out[1 + TDM_MAX_PARAMS]) {
    out[0] = x;
    for (int i = 0; i < layer->param_count; i++) out[1 + i] = layer->param[i];
    return 1 + layer->param_count;
}

#endif
