/* Looking at the nodes of an ONNX file. */
#include "ops/onnx/from_onnx.h"

#include <math.h>
#include <string.h>

bool tdm__onnx_is(const tdm_onnx_node *node, int output, const char *op, int inputs) {
    return output == 0 && strcmp(node->op, op) == 0 && node->input_count >= inputs;
}

const tdm_onnx_node *tdm__onnx_made_by(tdm_onnx_reader *from, const char *value, const char *op, int inputs) {
    const tdm_onnx_node *node = from->calls->producer(from, value);
    const bool is = node != NULL && node->domain[0] == '\0' && tdm__onnx_is(node, 0, op, inputs);
    return is && strcmp(node->output[0], value) == 0 ? node : NULL;
}

const char *tdm__onnx_input_of(const tdm_onnx_node *node, int index) {
    return index < node->input_count ? node->input[index] : "";
}

bool tdm__onnx_is_constant(tdm_onnx_reader *from, const char *value) {
    tdm_onnx_constant constant;
    return from->calls->constant(from, value, &constant);
}

bool tdm__onnx_is_scalar(tdm_onnx_reader *from, const char *value, double number) {
    double found;
    return from->calls->numbers(from, value, 1, &found) == 1 && fabs(found - number) <= 1e-6 * fabs(number);
}

bool tdm__onnx_split(tdm_onnx_reader *from, const tdm_onnx_node *node, const char **value, const char **constant) {
    const bool first = node->input_count == 2 && tdm__onnx_is_constant(from, node->input[0]);
    if (node->input_count != 2 || first == tdm__onnx_is_constant(from, node->input[1])) return false;
    *value = node->input[first ? 1 : 0];
    *constant = node->input[first ? 0 : 1];
    return true;
}

bool tdm__onnx_keeps_view(tdm_onnx_reader *from, const tdm_onnx_node *node, tdm_onnx_found *out) {
    out->x[0] = node->input[0];
    out->input_count = 1;
    return from->calls->view(from, node->input[0], &out->view);
}

/* Nodes that only move or repeat the numbers of their first input. */
static bool only_moves(const tdm_onnx_node *node) {
    static const char *const ops[] = {"Expand",  "Slice",    "Squeeze", "Unsqueeze", "Transpose",
                                      "Reshape", "Identity", "Cast",    NULL};
    int i = 0;
    while (ops[i] != NULL && strcmp(node->op, ops[i]) != 0) i++;
    return ops[i] != NULL && node->input_count > 0;
}

bool tdm__onnx_is_full_of(tdm_onnx_reader *from, const char *value, double number) {
    enum { MOST_STEPS = 12 };
    double sum = 0;
    if (value[0] == '\0') return number == 0.0;
    for (int i = 0; i < MOST_STEPS; i++) {
        const tdm_onnx_node *node = from->calls->producer(from, value);
        double added;
        if (from->calls->all(from, value, number - sum)) return true;
        if (node == NULL) return false;
        if (strcmp(node->op, "ConstantOfShape") == 0)
            return from->calls->number(from, node, "value", 0.0) == number - sum;
        if (strcmp(node->op, "Add") == 0 && node->input_count == 2) {
            if (from->calls->numbers(from, node->input[1], 1, &added) != 1) return false;
            sum += added;
        } else if (!only_moves(node)) {
            return false;
        }
        value = node->input[0];
    }
    return false;
}

int tdm__onnx_axes(tdm_onnx_reader *from, const tdm_onnx_node *node, int index, int ndim, int64_t out[TDM_ONNX_AXES]) {
    int count = from->calls->list(from, node, "axes", TDM_ONNX_AXES, out);
    if (count < 0 && index < node->input_count)
        count = from->calls->integers(from, node->input[index], TDM_ONNX_AXES, out);
    for (int i = 0; i < count; i++) {
        if (out[i] < 0) out[i] += ndim;
        if (out[i] < 0 || out[i] >= ndim) return -1;
    }
    return count;
}

/* ---- shapes that nodes compute ---- */

enum { MOST_ASKED = 64 };

static bool find_dims(tdm_onnx_reader *from, const char *value, tdm_onnx_dims *out, int *asked);

static int64_t clamp(int64_t at, int64_t count) {
    if (at < 0) at += count;
    return at < 0 ? 0 : at > count ? count : at;
}

static void keep(tdm_onnx_dims *dims, int64_t begin, int64_t end) {
    const int count = end > begin ? (int)(end - begin) : 0;
    memmove(dims->item, dims->item + begin, (size_t)count * sizeof(*dims->item));
    dims->count = count;
}

static bool dims_of_shape(tdm_onnx_reader *from, const tdm_onnx_node *node, tdm_onnx_dims *out) {
    tdm_onnx_view view;
    if (!from->calls->view(from, node->input[0], &view)) return false;
    out->count = view.ndim;
    for (int i = 0; i < view.ndim; i++)
        out->item[i] = view.axis[i] == TDM_ONNX_BATCH ? TDM_ONNX_ROWS
                       : view.axis[i] == TDM_ONNX_ONE ? 1
                                                      : view.shape.dim[view.axis[i]];
    keep(out, clamp(from->calls->integer(from, node, "start", 0), out->count),
         clamp(from->calls->integer(from, node, "end", out->count), out->count));
    return true;
}

static bool dims_of_gather(tdm_onnx_reader *from, const tdm_onnx_node *node, tdm_onnx_dims *out, int *asked) {
    tdm_onnx_dims all;
    int64_t index[TDM_ONNX_AXES];
    out->count = from->calls->integers(from, tdm__onnx_input_of(node, 1), TDM_ONNX_AXES, index);
    if (out->count < 1 || !find_dims(from, node->input[0], &all, asked)) return false;
    for (int i = 0; i < out->count; i++) {
        if (index[i] < 0) index[i] += all.count;
        if (index[i] < 0 || index[i] >= all.count) return false;
        out->item[i] = all.item[index[i]];
    }
    return true;
}

static bool dims_of_concat(tdm_onnx_reader *from, const tdm_onnx_node *node, tdm_onnx_dims *out, int *asked) {
    out->count = 0;
    for (int i = 0; i < node->input_count; i++) {
        tdm_onnx_dims part;
        if (!find_dims(from, node->input[i], &part, asked) || out->count + part.count > TDM_ONNX_AXES) return false;
        memcpy(out->item + out->count, part.item, (size_t)part.count * sizeof(*part.item));
        out->count += part.count;
    }
    return true;
}

static bool dims_of_slice(tdm_onnx_reader *from, const tdm_onnx_node *node, tdm_onnx_dims *out, int *asked) {
    int64_t start, end, step = 1;
    const bool known = from->calls->integers(from, tdm__onnx_input_of(node, 1), 1, &start) == 1 &&
                       from->calls->integers(from, tdm__onnx_input_of(node, 2), 1, &end) == 1;
    const char *steps = tdm__onnx_input_of(node, 4);
    if (!known || (steps[0] != '\0' && from->calls->integers(from, steps, 1, &step) != 1) || step != 1) return false;
    if (!find_dims(from, node->input[0], out, asked)) return false;
    keep(out, clamp(start, out->count), clamp(end, out->count));
    return true;
}

/* The batch times 1 is the batch still. */
static bool dims_of_mul(tdm_onnx_reader *from, const tdm_onnx_node *node, tdm_onnx_dims *out, int *asked) {
    const int64_t most = INT64_C(1) << 31;
    tdm_onnx_dims by;
    if (node->input_count != 2 || !find_dims(from, node->input[0], out, asked) ||
        !find_dims(from, node->input[1], &by, asked) || out->count != by.count)
        return false;
    for (int i = 0; i < out->count; i++) {
        const int64_t a = out->item[i], b = by.item[i];
        const bool fits = a == 1 || b == 1 || (a >= 0 && b >= 0 && a < most && b < most);
        if (!fits) return false;
        out->item[i] = a == 1 ? b : b == 1 ? a : a * b;
    }
    return true;
}

static bool find_dims(tdm_onnx_reader *from, const char *value, tdm_onnx_dims *out, int *asked) {
    static const char *const same[] = {"Unsqueeze", "Squeeze", "Cast", "Identity", "Reshape", NULL};
    if ((*asked)++ > MOST_ASKED) return false;
    out->count = from->calls->integers(from, value, TDM_ONNX_AXES, out->item);
    if (out->count >= 0) return true;
    const tdm_onnx_node *node = from->calls->producer(from, value);
    if (node == NULL || node->input_count < 1) return false;
    for (int i = 0; same[i] != NULL; i++)
        if (strcmp(node->op, same[i]) == 0) return find_dims(from, node->input[0], out, asked);
    if (strcmp(node->op, "Shape") == 0) return dims_of_shape(from, node, out);
    if (strcmp(node->op, "Gather") == 0) return dims_of_gather(from, node, out, asked);
    if (strcmp(node->op, "Concat") == 0) return dims_of_concat(from, node, out, asked);
    if (strcmp(node->op, "Mul") == 0) return dims_of_mul(from, node, out, asked);
    return strcmp(node->op, "Slice") == 0 && dims_of_slice(from, node, out, asked);
}

bool tdm__onnx_dims(tdm_onnx_reader *from, const char *value, tdm_onnx_dims *out) {
    int asked = 0;
    return find_dims(from, value, out, &asked);
}
