/* flatten: definition. torch.nn.Flatten: the same numbers as one row of features. */
#include <stdio.h>
#include <string.h>

#include "ops/onnx/from_onnx.h"
#include "ops/onnx/onnx.h"
#include "ops/ops.h"

static tdm_status infer(tdm_infer *infer) {
    infer->output = (tdm_shape){1, {tdm__shape_count(&infer->input[0])}};
    infer->flops = 0;
    return TDM_OK;
}

TDM_ONNX_UNARY("Flatten")

/* Is the size one that a batch may have here? */
static bool is_batch(tdm_onnx_reader *from, int64_t size) {
    return size == TDM_ONNX_ROWS || size == -1 || (size > 0 && size == from->calls->batch(from));
}

/* The same dimensions in the same order, but for some of 1 that come or go: only seen in another way. */
static bool changes_view(tdm_onnx_reader *from, const tdm_onnx_view *x, const tdm_onnx_dims *to, tdm_onnx_view *out) {
    int at = 0;
    *out = (tdm_onnx_view){.ndim = to->count};
    for (int i = 0; i < to->count; i++) {
        while (at < x->ndim && x->axis[at] == TDM_ONNX_ONE) at++;
        const int axis = at < x->ndim ? x->axis[at] : TDM_ONNX_ONE;
        const int64_t size = to->item[i];
        const bool fits =
            axis == TDM_ONNX_BATCH ? is_batch(from, size) : axis >= 0 && (size == x->shape.dim[axis] || size == -1);
        if (!fits && size != 1) return false;
        out->axis[i] = fits ? axis : TDM_ONNX_ONE;
        at += fits;
    }
    while (at < x->ndim && x->axis[at] == TDM_ONNX_ONE) at++;
    return at == x->ndim;
}

/* The sizes behind a Flatten or a Reshape; false: they are not known. */
static bool find_sizes(tdm_onnx_reader *from, const tdm_onnx_node *node, const tdm_onnx_view *x, tdm_onnx_dims *out) {
    if (strcmp(node->op, "Flatten") == 0) {
        *out = (tdm_onnx_dims){2, {TDM_ONNX_ROWS, -1}};
        return from->calls->integer(from, node, "axis", 1) == 1;
    }
    if (strcmp(node->op, "Reshape") != 0) return false;
    const bool copies = from->calls->integer(from, node, "allowzero", 0) == 0;
    if (from->calls->opset(from) < 5)
        out->count = from->calls->list(from, node, "shape", TDM_ONNX_AXES, out->item);
    else if (!tdm__onnx_dims(from, tdm__onnx_input_of(node, 1), out))
        return false;
    for (int i = 0; i < out->count; i++) {
        if (out->item[i] != 0) continue;
        if (!copies || i >= x->ndim || x->axis[i] == TDM_ONNX_ONE) return false;
        out->item[i] = x->axis[i] == TDM_ONNX_BATCH ? TDM_ONNX_ROWS : x->shape.dim[x->axis[i]];
    }
    return out->count > 0;
}

/* Squeeze takes dimensions of 1 away, Unsqueeze adds them. */
static bool squeezes(tdm_onnx_reader *from, const tdm_onnx_node *node, const tdm_onnx_view *x, tdm_onnx_view *out) {
    int64_t axes[TDM_ONNX_AXES];
    bool chosen[TDM_ONNX_AXES] = {false};
    const bool adds = strcmp(node->op, "Unsqueeze") == 0;
    const bool all = !adds && tdm__onnx_input_of(node, 1)[0] == '\0' && !from->calls->has(from, node, "axes");
    int count = all ? 0 : tdm__onnx_axes(from, node, 1, adds ? TDM_ONNX_AXES : x->ndim, axes);
    if (adds && count >= 0) /* its axes are those of the output, which has as many dimensions more as there are axes */
        count = x->ndim + count > TDM_ONNX_AXES ? -1 : tdm__onnx_axes(from, node, 1, x->ndim + count, axes);
    if (count < 0) return false;
    for (int i = 0; i < count; i++) {
        if (chosen[axes[i]]) return false;
        chosen[axes[i]] = true;
    }
    *out = (tdm_onnx_view){.ndim = 0};
    for (int i = 0, at = 0; i < (adds ? x->ndim + count : x->ndim); i++) {
        const int axis = adds && chosen[i] ? TDM_ONNX_ONE : x->axis[at++];
        const bool is_one = axis == TDM_ONNX_ONE || (axis >= 0 && x->shape.dim[axis] == 1);
        if (!adds && chosen[i] && !is_one) return false;
        if (!adds && (chosen[i] || (all && is_one))) continue;
        out->axis[out->ndim++] = axis;
    }
    return true;
}

/* A row of features, [batch, all of them]. */
static bool is_row(tdm_onnx_reader *from, const tdm_onnx_view *x, const tdm_onnx_dims *to) {
    const int64_t count = tdm__shape_count(&x->shape);
    return to->count == 2 && is_batch(from, to->item[0]) && (to->item[1] == count || to->item[1] == -1) &&
           (to->item[0] != -1 || to->item[1] == count);
}

static bool from_onnx(tdm_onnx_reader *from, const tdm_onnx_node *node, int output, tdm_onnx_found *out) {
    tdm_onnx_view x;
    tdm_onnx_dims to;
    if (output != 0 || node->input_count < 1 || !from->calls->view(from, node->input[0], &x)) return false;
    const bool squeeze = strcmp(node->op, "Squeeze") == 0 || strcmp(node->op, "Unsqueeze") == 0;
    out->x[out->input_count++] = node->input[0];
    if (squeeze) {
        out->is_view = squeezes(from, node, &x, &out->view);
        if (!out->is_view) return false;
        const bool row = out->view.ndim == 2 && out->view.axis[0] == TDM_ONNX_BATCH && out->view.axis[1] >= 0;
        out->is_view = !row || x.shape.ndim == 1;
        if (!out->is_view) out->view.ndim = 0;
        return true;
    }
    if (!find_sizes(from, node, &x, &to)) return false;
    out->is_view = changes_view(from, &x, &to, &out->view);
    if (out->is_view) return true;
    out->view.ndim = 0;
    bool in_order = x.axis[0] == TDM_ONNX_BATCH;
    for (int i = 1, last = -1; i < x.ndim && in_order; i++) {
        in_order = x.axis[i] == TDM_ONNX_ONE || x.axis[i] > last;
        if (x.axis[i] >= 0) last = x.axis[i];
    }
    if (in_order && is_row(from, &x, &to)) return true;
    if (strcmp(node->op, "Reshape") == 0)
        snprintf(out->why, sizeof(out->why), "tandem reshapes a sample to one row of features only (flatten)");
    return false;
}

const tdm_op_def tdm__flatten_op = {
    .name = "flatten",
    .also_called = "reshape view",
    .doc = "channels x height x width as one list of features (torch.nn.Flatten)",
    .doc_zh = "展平为一维特征（torch.nn.Flatten）",
    .min_inputs = 1,
    .max_inputs = 1,
    .flags = TDM_OP_ALIAS,
    .infer = infer,
    .onnx = TDM_OF_ONNX(onnx),
    .from_onnx = TDM_OF_ONNX(from_onnx),
};
