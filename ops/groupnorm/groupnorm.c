/* groupnorm: definition. torch.nn.GroupNorm. */
#include "ops/groupnorm/groupnorm.h"

#include <string.h>

#include "ops/fields.h"
#include "ops/onnx/from_onnx.h"
#include "ops/onnx/onnx.h"

static const tdm_field fields[] = {
    {FIELD(INT, tdm_groupnorm_attrs, groups, NULL), RANGE(1, TDM_MAX_FEATURES), FLAGS(REQUIRED | MAIN),
     HELP("groups of channels, each normalised by itself; 1: all channels together",
          "各自归一化的通道分组数；1 表示所有通道一起")},
    {NORM_EPS(tdm_groupnorm_attrs)},
    {FIELD(BOOL, tdm_groupnorm_attrs, affine, "true"),
     HELP("whether weight and bias are learned, one for each channel", "是否为每个通道学习缩放与偏移")},
    {IN_CHANNELS(tdm_groupnorm_attrs)},
    {0},
};

static tdm_status infer(tdm_infer *infer) {
    const tdm_groupnorm_attrs *attrs = infer->attrs;
    const int64_t channels = infer->input[0].dim[0];
    TDM_TRY(tdm__infer_check_in(infer, attrs->in, channels, "channels"));
    if (channels % attrs->groups != 0)
        TDM_INFER_FAIL(infer, "%s: groups must divide the channels of the input, got %lld groups and %lld channels",
                       infer->layer, (long long)attrs->groups, (long long)channels);
    if (attrs->affine) {
        const tdm_shape per_channel = {1, {channels}};
        infer->param[0] = (tdm_param_def){.suffix = "weight", .shape = per_channel, .init = TDM_INIT_ONES};
        infer->param[1] = (tdm_param_def){.suffix = "bias", .shape = per_channel, .init = TDM_INIT_ZEROS};
        infer->param_count = 2;
    }
    if (tdm__shape_count(&infer->input[0]) ==
        attrs->groups) /* a row has one value per group: torch wants two of them */
        infer->least_rows = infer->least_rows_in_evaluation = 2;
    infer->output = infer->input[0];
    infer->flops = 6.0 * (double)tdm__shape_count(&infer->output); /* mean 1, variance 3, scale and shift 2 */
    return TDM_OK;
}

/* A weight or a bias, with dimensions behind its channels. */
static const char *per_channel(tdm_onnx *to, const tdm_onnx_layer *layer, int index) {
    tdm_shape shape = {.ndim = layer->output.ndim, .dim = {layer->output.dim[0], 1, 1, 1, 1, 1}};
    return to->calls->floats(to, &shape, layer->weight[index]);
}

/* Each group is normalised as a channel of its own. */
static tdm_status onnx(tdm_onnx *to, const tdm_onnx_layer *layer) {
    const tdm_groupnorm_attrs *attrs = layer->attrs;
    const int64_t grouped[] = {0, attrs->groups, -1}; /* 0: as it is */
    int64_t back[1 + TDM_MAX_DIMS] = {0};
    const char *v[4];
    for (int i = 0; i < 4; i++) v[i] = to->calls->value(to);
    memcpy(back + 1, layer->output.dim, (size_t)layer->output.ndim * sizeof(*back));
    const char *ones = to->calls->value(to), *zeros = to->calls->value(to),
               *count = to->calls->indices(to, 1, &attrs->groups);
    TDM_ONNX_NODE(to, "ConstantOfShape", zeros, count);
    TDM_ONNX_NODE(to, "Add", ones, zeros, tdm__onnx_scalar(to, 1.0f));
    TDM_ONNX_NODE(to, "Reshape", v[0], layer->x[0], to->calls->indices(to, 3, grouped));
    TDM_ONNX_NODE(to, "InstanceNormalization", v[1], v[0], ones, zeros);
    to->calls->number(to, "epsilon", attrs->eps);
    TDM_ONNX_NODE(to, "Reshape", layer->param_count > 0 ? v[2] : layer->y, v[1],
                  to->calls->indices(to, 1 + layer->output.ndim, back));
    if (layer->param_count == 0) return TDM_OK;
    TDM_ONNX_NODE(to, "Mul", v[3], v[2], per_channel(to, layer, 0));
    TDM_ONNX_NODE(to, "Add", layer->y, v[3], per_channel(to, layer, 1));
    return TDM_OK;
}

/* A parameter's constant has a name that PyTorch gives it; one that stands for no parameter does not. */
static bool is_param(tdm_onnx_reader *from, const char *value, const char *end) {
    const size_t length = strlen(value), behind = strlen(end);
    return length >= behind && strcmp(value + length - behind, end) == 0 && tdm__onnx_is_constant(from, value);
}

/* False: the value is a constant, and not one with a number for each channel. */
static bool may_be_per_channel(tdm_onnx_reader *from, const char *value, int64_t channels) {
    tdm_onnx_constant c;
    return !from->calls->constant(from, value, &c) || c.count == channels;
}

/* Every channel by itself, or, from opset 21 on, groups of them: weight and bias are the next two inputs. */
static bool is_one_node(tdm_onnx_reader *from, const tdm_onnx_node *node, tdm_onnx_found *out) {
    tdm_shape shape;
    const bool each = tdm__onnx_is(node, 0, "InstanceNormalization", 3);
    const bool grouped = tdm__onnx_is(node, 0, "GroupNormalization", 3) && from->calls->opset(from) >= 21;
    if ((!each && !grouped) || !from->calls->plain(from, node->input[0], &shape) ||
        !may_be_per_channel(from, node->input[1], shape.dim[0]) ||
        !may_be_per_channel(from, node->input[2], shape.dim[0]))
        return false;
    const bool learned = is_param(from, node->input[1], ".weight") || is_param(from, node->input[2], ".bias");
    const bool affine =
        learned || !tdm__onnx_is_full_of(from, node->input[1], 1.0) || !tdm__onnx_is_full_of(from, node->input[2], 0.0);
    out->x[out->input_count++] = node->input[0];
    out->param[0] = tdm__onnx_weight_of(node->input[1]);
    out->param[1] = tdm__onnx_weight_of(node->input[2]);
    from->calls->set_integer(from, "groups", each ? shape.dim[0] : from->calls->integer(from, node, "num_groups", 0));
    if (!affine) from->calls->set_word(from, "affine", "false");
    from->calls->set_number(from, "eps", from->calls->number(from, node, "epsilon", (double)1e-5f));
    return true;
}

/* [batch, groups, all the numbers of a group], one of which may be left to the node (-1)? */
static bool are_groups(tdm_onnx_reader *from, const tdm_onnx_node *reshape, const tdm_shape *shape,
                       const tdm_onnx_dims *to) {
    const int64_t batch = from->calls->batch(from), rows = to->item[0], groups = to->item[1], each = to->item[2];
    const bool open = rows == -1, copies = rows == 0 && from->calls->integer(from, reshape, "allowzero", 0) == 0;
    return to->count == 3 && groups > 0 && tdm__shape_count(shape) % groups == 0 &&
           (open || copies || rows == TDM_ONNX_ROWS || (batch > 0 && rows == batch)) &&
           (each == tdm__shape_count(shape) / groups || (each == -1 && !open));
}

/* Reshaped so that groups are channels, each normalised, and reshaped back: x, groups and eps. */
static bool is_grouped(tdm_onnx_reader *from, const tdm_onnx_node *back, tdm_onnx_found *out) {
    tdm_onnx_dims to;
    tdm_shape shape;
    if (back == NULL || strcmp(back->op, "Reshape") != 0) return false;
    const tdm_onnx_node *norm = tdm__onnx_made_by(from, back->input[0], "InstanceNormalization", 3);
    const tdm_onnx_node *there = norm != NULL ? tdm__onnx_made_by(from, norm->input[0], "Reshape", 2) : NULL;
    if (there == NULL || !from->calls->plain(from, there->input[0], &shape) ||
        !tdm__onnx_dims(from, there->input[1], &to) || !are_groups(from, there, &shape, &to))
        return false;
    const int64_t groups = to.item[1];
    if (!tdm__onnx_dims(from, back->input[1], &to) || to.count != shape.ndim + 1) return false;
    for (int i = 0; i < shape.ndim; i++)
        if (to.item[1 + i] != shape.dim[i]) return false;
    if (!tdm__onnx_is_full_of(from, norm->input[1], 1.0) || !tdm__onnx_is_full_of(from, norm->input[2], 0.0))
        return false;
    out->x[out->input_count++] = there->input[0];
    from->calls->set_integer(from, "groups", groups);
    from->calls->set_number(from, "eps", from->calls->number(from, norm, "epsilon", (double)1e-5f));
    return true;
}

/* Does the constant have a number for each channel, with a dimension of 1 for each behind them? */
static bool is_per_channel(tdm_onnx_reader *from, const char *value, const tdm_shape *shape) {
    const int points = shape->ndim - 1;
    tdm_onnx_constant c;
    if (!from->calls->constant(from, value, &c) || c.shape.ndim < points + 1) return false;
    for (int i = 1; i <= points; i++)
        if (c.shape.dim[c.shape.ndim - i] != 1) return false;
    return c.count == shape->dim[0] && c.count == c.shape.dim[c.shape.ndim - points - 1];
}

static bool is_scaled(tdm_onnx_reader *from, const tdm_onnx_node *node, tdm_onnx_found *out) {
    const char *product, *bias, *inner, *weight;
    tdm_shape shape;
    if (strcmp(node->op, "Add") != 0 || node->input_count != 2 || !tdm__onnx_split(from, node, &product, &bias))
        return false;
    const tdm_onnx_node *times = tdm__onnx_made_by(from, product, "Mul", 2);
    if (times == NULL || !tdm__onnx_split(from, times, &inner, &weight) ||
        !is_grouped(from, tdm__onnx_made_by(from, inner, "Reshape", 2), out))
        return false;
    (void)from->calls->plain(from, out->x[0], &shape);
    if (is_per_channel(from, weight, &shape) && is_per_channel(from, bias, &shape)) {
        out->param[0] = (tdm_onnx_weight){.value = weight, .ones_behind = true};
        out->param[1] = (tdm_onnx_weight){.value = bias, .ones_behind = true};
        return true;
    }
    from->calls->set_word(from, "affine", "false");
    return tdm__onnx_is_full_of(from, weight, 1.0) && tdm__onnx_is_full_of(from, bias, 0.0);
}

static bool from_onnx(tdm_onnx_reader *from, const tdm_onnx_node *node, int output, tdm_onnx_found *out) {
    if (output != 0) return false;
    if (is_one_node(from, node, out) || is_scaled(from, node, out)) return true;
    if (out->input_count > 0 || !is_grouped(from, node, out)) return false;
    from->calls->set_word(from, "affine", "false");
    return true;
}

const tdm_op_def tdm__groupnorm_op = {
    .name = "groupnorm",
    .also_called = "gn group_norm",
    .doc = "normalises each group of channels of a row (torch.nn.GroupNorm)",
    .doc_zh = "对每个样本的各通道组分别归一化（torch.nn.GroupNorm）",
    .min_inputs = 1,
    .max_inputs = 1,
    .attrs = fields,
    .attrs_bytes = sizeof(tdm_groupnorm_attrs),
    .flags = TDM_OP_READS_X,
    .infer = infer,
    .onnx = TDM_OF_ONNX(onnx),
    .from_onnx = TDM_OF_ONNX(from_onnx),
};
