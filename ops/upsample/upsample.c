/* upsample: definition. torch.nn.Upsample. */
#include "ops/upsample/upsample.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ops/onnx/from_onnx.h"
#include "ops/onnx/onnx.h"
#include "ops/ops.h"
#include "ops/window.h"
#include "runtime/base/field/field_rows.h"
#include "runtime/base/memory.h"

static const char *const mode_names[] = {"nearest", "bilinear", NULL};
static const tdm_field fields[] = {
    {FIELD(FLOAT, tdm_upsample_attrs, scale, "null"), RANGE(0, TDM_MAX_WINDOW), FLAGS(NULLABLE | MAIN | OPEN_MIN),
     HELP("how many times the height and width of the input those of the output are, rounded down",
          "输出的高和宽为输入的多少倍，向下取整")},
    {FIELD(PAIR, tdm_upsample_attrs, size, "null"), RANGE(1, TDM_MAX_FEATURES), FLAGS(NULLABLE),
     HELP("height and width of the output, instead of scale", "输出的高和宽，代替 scale")},
    {FIELD(ENUM, tdm_upsample_attrs, mode, "nearest"), .names = mode_names,
     HELP("the nearest point of the input, or between four points", "取输入中最近的点，或在四点之间插值")},
    {FIELD(BOOL, tdm_upsample_attrs, align_corners, "false"),
     HELP("bilinear: whether the corners of input and output are the same points",
          "bilinear 时输入与输出的四角是否为相同的点")},
    {0},
};

static tdm_status infer(tdm_infer *infer) {
    const tdm_upsample_attrs *attrs = infer->attrs;
    const bool has_scale = !isnan(attrs->scale), has_size = attrs->size[0] > 0;
    TDM_TRY(tdm__infer_check_image(infer));
    if (has_scale == has_size)
        TDM_INFER_FAIL(infer, "%s needs `scale` or `size`, and not both, got %s", infer->layer,
                       has_scale ? "both" : "neither");
    if (attrs->align_corners && attrs->mode != TDM_UPSAMPLE_BILINEAR)
        TDM_INFER_FAIL(infer, "%s: align_corners is for `mode: bilinear`; remove it, or choose that mode",
                       infer->layer);
    infer->output = infer->input[0];
    for (int axis = 0; axis < 2; axis++) {
        const double points =
            has_scale ? floor((double)infer->input[0].dim[1 + axis] * attrs->scale) : (double)attrs->size[axis];
        if (points < 1.0 || points > 9007199254740992.0)
            TDM_INFER_FAIL(infer, "%s: with scale %g its input %s would have an output of %.0f points along %s",
                           infer->layer, attrs->scale, tdm__shape_text(&infer->input[0]).text, points,
                           axis == 0 ? "the height" : "the width");
        infer->output.dim[1 + axis] = (int64_t)points;
    }
    infer->flops = attrs->mode == TDM_UPSAMPLE_BILINEAR ? 9.0 * (double)tdm__shape_count(&infer->output) : 0.0;
    return TDM_OK;
}

/* Readers find the size of the output by the scale, in float or in double: floor(in * scale). */
static float scale_of(const tdm_upsample_attrs *attrs, int64_t in, int64_t out) {
    const float scale = isnan(attrs->scale) ? (float)out / (float)in : (float)attrs->scale;
    if ((double)in * scale < (double)out) return nextafterf(scale, INFINITY);
    return floorf((float)in * scale) > (float)out ? nextafterf(scale, 0.0f) : scale;
}

/* Does onnxruntime choose PyTorch's points? It divides by this scale, PyTorch multiplies by the other one. */
static bool chooses_the_same(const tdm_upsample_axis *of, float scale) {
    for (int64_t at = 0; at < of->out; at++) {
        const int64_t point = (int64_t)floorf((float)at / scale);
        if ((point < of->in - 1 ? point : of->in - 1) != tdm__upsample_nearest(of, at)) return false;
    }
    return true;
}

/* The points of both axes, one axis after the other. */
static tdm_status gather(tdm_onnx *to, const tdm_onnx_layer *layer, const tdm_upsample_axis axis[2]) {
    const char *x = layer->x[0];
    for (int i = 0; i < 2; i++) {
        int64_t *points;
        TDM_TRY(tdm__new(to->host, &points, (size_t)axis[i].out, sizeof(*points), layer->layer));
        for (int64_t at = 0; at < axis[i].out; at++) points[at] = tdm__upsample_nearest(&axis[i], at);
        const char *y = i == 0 ? to->calls->value(to) : layer->y;
        TDM_ONNX_NODE(to, "Gather", y, x, to->calls->indices(to, (int)axis[i].out, points));
        to->calls->integer(to, "axis", 2 + i);
        tdm__delete(to->host, points);
        x = y;
    }
    return TDM_OK;
}

static tdm_status onnx(tdm_onnx *to, const tdm_onnx_layer *layer) {
    const tdm_upsample_attrs *attrs = layer->attrs;
    const bool bilinear = attrs->mode == TDM_UPSAMPLE_BILINEAR;
    const tdm_shape shape = {1, {4}};
    tdm_upsample_axis axis[2];
    float scales[4] = {1, 1, 1, 1};
    bool same = true;
    for (int i = 0; i < 2; i++) {
        axis[i] = tdm__upsample_axis(attrs, layer->input[0].dim[1 + i], layer->output.dim[1 + i]);
        scales[2 + i] = scale_of(attrs, axis[i].in, axis[i].out);
        same = same && chooses_the_same(&axis[i], scales[2 + i]);
    }
    if (!bilinear && !same) return gather(to, layer, axis);
    TDM_ONNX_NODE(to, "Resize", layer->y, layer->x[0], "", to->calls->floats(to, &shape, scales));
    to->calls->word(to, "mode", bilinear ? "linear" : "nearest");
    to->calls->word(to, "coordinate_transformation_mode",
                    !bilinear              ? "asymmetric"
                    : attrs->align_corners ? "align_corners"
                                           : "half_pixel");
    if (!bilinear) to->calls->word(to, "nearest_mode", "floor");
    return TDM_OK;
}

/* A scale of few digits in place of the floats next to it, of which scale_of may have taken another for each axis. */
static void take_short(double scale[2]) {
    const double brief = round(scale[0] * 1e5) / 1e5;
    if (fabs(scale[0] - brief) < 2e-7 * brief && fabs(scale[1] - brief) < 2e-7 * brief) scale[0] = scale[1] = brief;
}

/* The scale, if it is one for both; else the size. `size`: that of the output. */
static bool find_size(tdm_onnx_reader *from, const tdm_onnx_node *node, const tdm_shape *in, int64_t size[2]) {
    const char *sizes = tdm__onnx_input_of(node, 3);
    double scale[4];
    tdm_onnx_dims dims;
    if (sizes[0] != '\0') {
        if (!tdm__onnx_dims(from, sizes, &dims) || dims.count != 4 || dims.item[1] != in->dim[0]) return false;
        memcpy(size, dims.item + 2, 2 * sizeof(*size));
        tdm__onnx_set_sizes(from, "size", 2, size);
        return true;
    }
    const int at = from->calls->opset(from) < 11 ? 1 : 2;
    if (from->calls->numbers(from, tdm__onnx_input_of(node, at), 4, scale) != 4 || scale[0] != 1.0 || scale[1] != 1.0)
        return false;
    take_short(scale + 2);
    bool whole = true, exact = true;
    for (int i = 0; i < 2; i++) {
        const double points = (double)in->dim[1 + i] * scale[2 + i], nearest = round(points);
        if (!(points >= 1 && points < TDM_MAX_FEATURES)) return false;
        whole = whole && fabs(points - nearest) < 1e-5 * points; /* a ratio of sizes, rounded to a float */
        exact = exact && points == nearest;
        size[i] = fabs(points - nearest) < 1e-5 * points ? (int64_t)nearest : (int64_t)points;
    }
    if (scale[2] == scale[3] && (exact || !whole))
        from->calls->set_number(from, "scale", scale[2]);
    else
        tdm__onnx_set_sizes(from, "size", 2, size);
    return whole || scale[2] == scale[3];
}

/* What opset 18 added: other axes than all in their order, and sizes that are only bounds. */
static const char *unknown_sizes(tdm_onnx_reader *from, const tdm_onnx_node *node) {
    int64_t axes[TDM_ONNX_AXES];
    const int count = from->calls->list(from, node, "axes", TDM_ONNX_AXES, axes);
    for (int i = 0; i < count; i++)
        if (axes[i] != i) return "its `axes` are not all in their order; tandem reads sizes or scales of all axes";
    if (strcmp(from->calls->word(from, node, "keep_aspect_ratio_policy", "stretch"), "stretch") != 0)
        return "it keeps the ratio of the sides (keep_aspect_ratio_policy); tandem takes sizes as they are";
    return NULL;
}

/* PyTorch takes the middle of the input where the output has one point, ONNX's way of that name takes the first. */
static bool takes_first(const char *way, const tdm_shape *in, const int64_t size[2]) {
    return strcmp(way, "pytorch_half_pixel") == 0 &&
           ((size[0] == 1 && in->dim[1] != 1) || (size[1] == 1 && in->dim[2] != 1));
}

static bool from_onnx(tdm_onnx_reader *from, const tdm_onnx_node *node, int output, tdm_onnx_found *out) {
    tdm_shape shape;
    int64_t size[2];
    if (!tdm__onnx_is(node, output, "Resize", 2) || !from->calls->plain(from, node->input[0], &shape) ||
        shape.ndim != 3)
        return false;
    const char *problem = unknown_sizes(from, node);
    if (problem != NULL) {
        snprintf(out->why, sizeof(out->why), "%s", problem);
        return false;
    }
    const char *mode = from->calls->word(from, node, "mode", "nearest"),
               *way = from->calls->word(from, node, "coordinate_transformation_mode",
                                        from->calls->opset(from) < 11 ? "asymmetric" : "half_pixel"),
               *nearest = from->calls->word(from, node, "nearest_mode", "round_prefer_floor");
    const bool linear = strcmp(mode, "linear") == 0, corners = linear && strcmp(way, "align_corners") == 0;
    const bool halves = strcmp(way, "half_pixel") == 0 || strcmp(way, "pytorch_half_pixel") == 0;
    const bool floors = from->calls->opset(from) < 11 || strcmp(nearest, "floor") == 0;
    const bool steps = strcmp(mode, "nearest") == 0 && strcmp(way, "asymmetric") == 0 && floors;
    const bool plain = from->calls->integer(from, node, "antialias", 0) == 0;
    out->x[out->input_count++] = node->input[0];
    if (linear) from->calls->set_word(from, "mode", "bilinear");
    if (corners) from->calls->set_word(from, "align_corners", "true");
    if (plain && (steps || (linear && (corners || halves))) && find_size(from, node, &shape, size) &&
        !takes_first(way, &shape, size))
        return true;
    snprintf(
        out->why, sizeof(out->why),
        "tandem resizes height and width as PyTorch does, nearest or bilinear; mode '%.20s', '%.30s', '%.30s' is another way",
        mode, way, nearest);
    return false;
}

const tdm_op_def tdm__upsample_op = {
    .name = "upsample",
    .also_called = "interpolate resize upsample2d",
    .doc = "enlarges height and width, by the nearest point or bilinearly (torch.nn.Upsample)",
    .doc_zh = "放大高和宽，取最近点或双线性插值（torch.nn.Upsample）",
    .min_inputs = 1,
    .max_inputs = 1,
    .attrs = fields,
    .attrs_bytes = sizeof(tdm_upsample_attrs),
    .infer = infer,
    .onnx = TDM_OF_ONNX(onnx),
    .from_onnx = TDM_OF_ONNX(from_onnx),
};
