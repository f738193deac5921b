/* How ops are found in ONNX files: what several share. tandem/sys/onnx.h has the contract. */
#ifndef TDM_OPS_FROM_ONNX_H
#define TDM_OPS_FROM_ONNX_H

#include "ops/onnx/onnx.h"
#include "ops/window.h"

/* Is it output 0 of such a node, with at least so many inputs? */
bool tdm__onnx_is(const tdm_onnx_node *node, int output, const char *op, int inputs);
/* The node of this op that makes a value; NULL: another or none makes it. */
const tdm_onnx_node *tdm__onnx_made_by(tdm_onnx_reader *from, const char *value, const char *op, int inputs);
/* Input `index` of a node; "": the node does not have it. */
const char *tdm__onnx_input_of(const tdm_onnx_node *node, int index);
bool tdm__onnx_is_constant(tdm_onnx_reader *from, const char *value);
/* A constant of one number, which is this one to six digits. */
bool tdm__onnx_is_scalar(tdm_onnx_reader *from, const char *value, double number);
/* The input of a sum or product of two that is no constant, and the one that is; false: both or none are,
 * or there are not two. */
bool tdm__onnx_split(tdm_onnx_reader *from, const tdm_onnx_node *node, const char **value, const char **constant);
/* Does a value consist of this number alone, whatever its shape? A value that is left out consists of zeros. */
bool tdm__onnx_is_full_of(tdm_onnx_reader *from, const char *value, double number);

/* An elementwise layer of input 0, which keeps how that is seen. */
bool tdm__onnx_keeps_view(tdm_onnx_reader *from, const tdm_onnx_node *node, tdm_onnx_found *out);
/* The function `from_onnx` of an op that is one node of one input, without attributes. */
#define TDM_FROM_ONNX_UNARY(op)                                                                                \
    static bool from_onnx(tdm_onnx_reader *from, const tdm_onnx_node *node, int output, tdm_onnx_found *out) { \
        return tdm__onnx_is(node, output, op, 1) && tdm__onnx_keeps_view(from, node, out);                     \
    }

/* The numbers of a constant, as they are in the file. */
static inline tdm_onnx_weight tdm__onnx_weight_of(const char *value) {
    return (tdm_onnx_weight){.value = value};
}

/* Axes of a node: its attribute `axes`, or its input `index` where later opsets have them; counted from 0 in `ndim`
 * dimensions. Returns how many; -1: they are not known. */
int tdm__onnx_axes(tdm_onnx_reader *from, const tdm_onnx_node *node, int index, int ndim, int64_t out[TDM_ONNX_AXES]);

/* Integers that nodes compute from shapes: sizes for a Reshape or a Resize. The batch stands as TDM_ONNX_ROWS. */
#define TDM_ONNX_ROWS INT64_MIN
typedef struct tdm_onnx_dims {
    int count;
    int64_t item[TDM_ONNX_AXES];
} tdm_onnx_dims;
bool tdm__onnx_dims(tdm_onnx_reader *from, const char *value, tdm_onnx_dims *out);

/* ---- window_from_onnx.c: layers with windows. `axes` as in window_onnx.h ---- */

/* Are kernel, stride and dilation such as a layer of tandem may have? */
bool tdm__onnx_sizes_fit(const tdm_window *window, int axes);
/* Sets one number if all are equal. */
void tdm__onnx_set_sizes(tdm_onnx_reader *from, const char *key, int axes, const int64_t *values);
/* The padding of a node in front of its input and behind, by its attributes pads or auto_pad; false: they are none. */
bool tdm__onnx_pads(tdm_onnx_reader *from, const tdm_onnx_node *node, int axes, const int64_t *in,
                    const tdm_window *window, int64_t before[2], int64_t after[2]);
/* A pooling layer with windows of one size. Of a mean it is read, too, whether padding counts. */
typedef enum tdm_onnx_pooled { TDM_ONNX_LARGEST, TDM_ONNX_MEAN } tdm_onnx_pooled;
bool tdm__onnx_from_pool(tdm_onnx_reader *from, const tdm_onnx_node *node, tdm_onnx_found *out, int axes,
                         tdm_onnx_pooled what);
/* Is the node what adaptive pooling is exported as: windows side by side, and no word of what pooling may do beside? */
bool tdm__onnx_is_even(tdm_onnx_reader *from, const tdm_onnx_node *node, int axes);
/* An adaptive pooling layer: over all points, by nodes `all` or `reduce`, or windows of node `pool`. */
bool tdm__onnx_from_adaptive(tdm_onnx_reader *from, const tdm_onnx_node *node, tdm_onnx_found *out, int axes,
                             const char *all, const char *reduce, const char *pool);

#endif
