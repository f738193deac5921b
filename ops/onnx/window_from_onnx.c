/* Layers with windows, out of ONNX nodes. */
#include <stdio.h>
#include <string.h>

#include "ops/onnx/from_onnx.h"
#include "ops/ops.h"

void tdm__onnx_set_sizes(tdm_onnx_reader *from, const char *key, int axes, const int64_t *values) {
    const bool same = axes == 1 || values[0] == values[1];
    from->calls->set_integers(from, key, same ? 1 : axes, values);
}

bool tdm__onnx_sizes_fit(const tdm_window *window, int axes) {
    const int64_t *const all[] = {window->kernel, window->stride, window->dilation};
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < axes; i++)
            if (all[k][i] < 1 || all[k][i] > TDM_MAX_WINDOW) return false;
    return true;
}

static void same_pads(int64_t in, int64_t stride, int64_t reach, bool upper, int64_t *before, int64_t *after) {
    const int64_t total = ((in + stride - 1) / stride - 1) * stride + reach - in, all = total > 0 ? total : 0;
    *before = upper ? all / 2 : all - all / 2;
    *after = all - *before;
}

bool tdm__onnx_pads(tdm_onnx_reader *from, const tdm_onnx_node *node, int axes, const int64_t *in,
                    const tdm_window *window, int64_t before[2], int64_t after[2]) {
    const char *word = from->calls->word(from, node, "auto_pad", "NOTSET");
    const bool upper = strcmp(word, "SAME_UPPER") == 0;
    int64_t pads[4] = {0, 0, 0, 0};
    if (strcmp(word, "NOTSET") == 0) {
        const int count = from->calls->list(from, node, "pads", 4, pads);
        if (count >= 0 && count != 2 * axes) return false;
    }
    for (int i = 0; i < axes; i++) {
        before[i] = pads[i];
        after[i] = pads[axes + i];
        if (upper || strcmp(word, "SAME_LOWER") == 0)
            same_pads(in[i], window->stride[i], tdm__window_reach(window, i), upper, &before[i], &after[i]);
        if (before[i] < 0 || after[i] < 0 || before[i] > TDM_MAX_WINDOW || after[i] > TDM_MAX_WINDOW) return false;
    }
    return true;
}

/* ---- pooling ---- */

/* How many windows there are along an axis, in ONNX's way, or in that of a layer with the same padding on both sides. */
static int64_t windows(int64_t room, int64_t stride, bool ceil) {
    return room < 0 ? 0 : (room + (ceil ? stride - 1 : 0)) / stride + 1;
}

static bool gives(const tdm_window *window, int axes, const int64_t *in, const int64_t before[2],
                  const int64_t after[2], bool ceil_here, bool ceil_there) {
    for (int i = 0; i < axes; i++) {
        const int64_t stride = window->stride[i], reach = tdm__window_reach(window, i);
        int64_t here = windows(in[i] + 2 * before[i] - reach, stride, ceil_here);
        if (ceil_here && (here - 1) * stride >= in[i] + before[i]) here--;
        int64_t there = windows(in[i] + before[i] + after[i] - reach, stride, ceil_there);
        if (ceil_there && (there - 1) * stride >= in[i] + before[i]) there--;
        if (here != there) return false;
    }
    return true;
}

static bool set_pool(tdm_onnx_reader *from, const tdm_window *window, int axes, const int64_t before[2], bool ceil,
                     bool leaves_out) {
    const bool strides = memcmp(window->stride, window->kernel, (size_t)axes * sizeof(*window->stride)) != 0;
    tdm__onnx_set_sizes(from, "kernel", axes, window->kernel);
    if (strides) tdm__onnx_set_sizes(from, "stride", axes, window->stride);
    tdm__onnx_set_sizes(from, "padding", axes, before);
    if (ceil) from->calls->set_word(from, "ceil_mode", "true");
    if (leaves_out) from->calls->set_word(from, "count_include_pad", "false");
    return true;
}

bool tdm__onnx_from_pool(tdm_onnx_reader *from, const tdm_onnx_node *node, tdm_onnx_found *out, int axes,
                         tdm_onnx_pooled what) {
    tdm_window window = {.stride = {1, 1}, .dilation = {1, 1}};
    tdm_shape shape;
    int64_t before[2], after[2];
    const bool ceil_there = from->calls->integer(from, node, "ceil_mode", 0) != 0;
    if (!from->calls->plain(from, node->input[0], &shape) || shape.ndim != 1 + axes) return false;
    (void)from->calls->list(from, node, "strides", axes, window.stride);
    (void)from->calls->list(from, node, "dilations", axes, window.dilation);
    if (from->calls->list(from, node, "kernel_shape", axes, window.kernel) != axes ||
        !tdm__onnx_sizes_fit(&window, axes) ||
        !tdm__onnx_pads(from, node, axes, shape.dim + 1, &window, before, after)) {
        snprintf(out->why, sizeof(out->why), "its window is none that tandem has");
        return false;
    }
    const size_t bytes = (size_t)axes * sizeof(*before);
    const bool padded = before[0] > 0 || (axes == 2 && before[1] > 0), even = memcmp(before, after, bytes) == 0;
    const bool counts = what == TDM_ONNX_MEAN && from->calls->integer(from, node, "count_include_pad", 0) != 0;
    const bool leaves_out = what == TDM_ONNX_MEAN && !counts && padded;
    out->x[out->input_count++] = node->input[0];
    if (window.dilation[0] != 1 || (axes == 2 && window.dilation[1] != 1))
        tdm__onnx_set_sizes(from, "dilation", axes, window.dilation);
    if (ceil_there && even) return set_pool(from, &window, axes, before, true, leaves_out);
    for (int ceil = 0; ceil <= 1; ceil++) {
        if (counts && (ceil == 1 || ceil_there)) break; /* the mean would divide by another number */
        if (gives(&window, axes, shape.dim + 1, before, after, ceil != 0, ceil_there))
            return set_pool(from, &window, axes, before, ceil != 0, leaves_out);
    }
    snprintf(out->why, sizeof(out->why), "its padding differs in front and behind; tandem pads both sides alike");
    return false;
}

/* ---- adaptive pooling ---- */

static bool lacks(tdm_onnx_reader *from, const tdm_onnx_node *node, const char *name) {
    return from->calls->integer(from, node, name, -1) == -1;
}

/* PyTorch's newer exporter takes the mean of a series as that of an image of one row. */
static const tdm_onnx_view one_row = {.ndim = 4, .axis = {TDM_ONNX_BATCH, 0, TDM_ONNX_ONE, 1}};

static bool is_one_row(tdm_onnx_reader *from, const char *value) {
    tdm_onnx_view x;
    return from->calls->view(from, value, &x) && x.ndim == one_row.ndim &&
           memcmp(x.axis, one_row.axis, (size_t)x.ndim * sizeof(*x.axis)) == 0;
}

static bool even_row(tdm_onnx_reader *from, const tdm_onnx_node *node, int64_t *points) {
    int64_t kernel[2], stride[2], pads[4] = {0, 0, 0, 0};
    tdm_onnx_view x;
    (void)from->calls->list(from, node, "pads", 4, pads);
    if (!from->calls->view(from, node->input[0], &x) || from->calls->list(from, node, "kernel_shape", 2, kernel) != 2 ||
        from->calls->list(from, node, "strides", 2, stride) != 2 || from->calls->has(from, node, "dilations"))
        return false;
    if (kernel[0] != 1 || stride[0] != 1 || kernel[1] < 1 || kernel[1] != stride[1] || pads[1] != 0 || pads[3] != 0 ||
        pads[0] != 0 || pads[2] != 0 || x.shape.dim[1] % kernel[1] != 0)
        return false;
    *points = x.shape.dim[1] / kernel[1];
    return true;
}

static bool even_windows(tdm_onnx_reader *from, const tdm_onnx_node *node, int axes, int64_t out[2]) {
    tdm_shape shape;
    int64_t kernel[2], stride[2], pads[4] = {0, 0, 0, 0}, dilation[2];
    if (!from->calls->plain(from, node->input[0], &shape) || shape.ndim != 1 + axes) return false;
    if (from->calls->list(from, node, "kernel_shape", 2, kernel) != axes ||
        from->calls->list(from, node, "strides", 2, stride) != axes)
        return false;
    (void)from->calls->list(from, node, "pads", 4, pads);
    bool even = lacks(from, node, "ceil_mode") && lacks(from, node, "count_include_pad") &&
                from->calls->list(from, node, "dilations", 2, dilation) < 0;
    for (int i = 0; i < axes && even; i++) {
        even = kernel[i] == stride[i] && kernel[i] > 0 && shape.dim[1 + i] % kernel[i] == 0 && pads[i] == 0 &&
               pads[axes + i] == 0;
        if (even) out[i] = shape.dim[1 + i] / kernel[i];
    }
    return even;
}

bool tdm__onnx_is_even(tdm_onnx_reader *from, const tdm_onnx_node *node, int axes) {
    int64_t out[2];
    return even_windows(from, node, axes, out);
}

/* Do the axes of the node name all points, and nothing else but dimensions of 1? Then *out is how its output is seen. */
static bool reduces_points(tdm_onnx_reader *from, const tdm_onnx_node *node, int axes, tdm_onnx_view *out) {
    int64_t axis[TDM_ONNX_AXES];
    bool chosen[TDM_ONNX_AXES] = {false};
    tdm_onnx_view x;
    if (!from->calls->view(from, node->input[0], &x) || x.shape.ndim != 1 + axes) return false;
    const int count = tdm__onnx_axes(from, node, 1, x.ndim, axis);
    for (int i = 0; i < count; i++) chosen[axis[i]] = true;
    const bool keeps = from->calls->integer(from, node, "keepdims", 1) != 0;
    *out = (tdm_onnx_view){.ndim = 0};
    for (int i = 0; i < x.ndim; i++) {
        const bool is_point = x.axis[i] > 0;
        if (x.axis[i] != TDM_ONNX_ONE && is_point != chosen[i]) return false;
        if (keeps || !chosen[i]) out->axis[out->ndim++] = x.axis[i];
    }
    return count > 0;
}

/* [batch, channels], as layers behind it want them. */
static bool is_row(const tdm_onnx_view *view) {
    return view->ndim == 2 && view->axis[0] == TDM_ONNX_BATCH && view->axis[1] == 0;
}

bool tdm__onnx_from_adaptive(tdm_onnx_reader *from, const tdm_onnx_node *node, tdm_onnx_found *out, int axes,
                             const char *all, const char *reduce, const char *pool) {
    int64_t points[2] = {1, 1};
    tdm_shape shape;
    const bool reduces = node->input_count > 0 && strcmp(node->op, reduce) == 0;
    if (node->input_count < 1) return false;
    const bool row = axes == 1 && strcmp(node->op, pool) == 0 && is_one_row(from, node->input[0]);
    if (row) out->view = one_row;
    if (reduces ? !reduces_points(from, node, axes, &out->view)
                : !row && (!from->calls->plain(from, node->input[0], &shape) || shape.ndim != 1 + axes))
        return false;
    const bool is = reduces || strcmp(node->op, all) == 0 || (row && even_row(from, node, points)) ||
                    (strcmp(node->op, pool) == 0 && even_windows(from, node, axes, points));
    if (!is) return false;
    out->x[out->input_count++] = node->input[0];
    tdm__onnx_set_sizes(from, "out", axes, points);
    if (is_row(&out->view)) out->then = "flatten", out->view.ndim = 0;
    return true;
}
