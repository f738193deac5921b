/* groupnorm: definition. torch.nn.GroupNorm. */
#include "ops/groupnorm/groupnorm.h"

#include <string.h>

#include "ops/fields.h"
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
    .onnx = onnx,
};
