/* batchnorm2d: definition. torch.nn.BatchNorm2d. */
#include "ops/batchnorm2d/batchnorm2d.h"

#include <math.h>
#include <stdio.h>

#include "ops/fields.h"
#include "ops/onnx/from_onnx.h"
#include "ops/onnx/onnx.h"

static const char *const init_names[] = {"ones", "zeros", NULL};
const tdm_field tdm__batchnorm2d_fields[] = {
    {NORM_EPS(tdm_batchnorm2d_attrs)},
    {FIELD(FLOAT, tdm_batchnorm2d_attrs, momentum, "0.1"), RANGE(0, 1), FLAGS(NULLABLE),
     HELP("weight of a new batch in the running statistics; null: plain average over all batches",
          "新批次在滑动统计量中的比重；null 表示对所有批次求平均")},
    {FIELD(BOOL, tdm_batchnorm2d_attrs, affine, "true"),
     HELP("whether weight and bias are learned", "是否学习缩放与偏移")},
    {FIELD(BOOL, tdm_batchnorm2d_attrs, track_running_stats, "true"),
     HELP("whether running statistics are kept for evaluation; false: evaluation uses the batch's own",
          "是否保留滑动统计量供评估使用；false 表示评估时用当前批次的统计量")},
    {IN_CHANNELS(tdm_batchnorm2d_attrs)},
    {FIELD(ENUM, tdm_batchnorm2d_attrs, init, "ones"), .names = init_names,
     HELP("first value of weight; zeros: a residual block begins as its shortcut",
          "weight 的初值；zeros 使残差块初始等于捷径")},
    {0},
};

tdm_status tdm__batchnorm2d_infer(tdm_infer *infer, int64_t points) {
    const tdm_batchnorm2d_attrs *attrs = infer->attrs;
    int64_t channels = infer->input[0].dim[0];
    TDM_TRY(tdm__infer_check_in(infer, attrs->in, channels, "channels"));
    tdm_shape per_channel = {1, {channels}};
    if (attrs->affine) {
        infer->param[0] =
            (tdm_param_def){.suffix = "weight",
                            .shape = per_channel,
                            .init = attrs->init == TDM_BATCHNORM2D_INIT_ZEROS ? TDM_INIT_ZEROS : TDM_INIT_ONES};
        infer->param[1] = (tdm_param_def){.suffix = "bias", .shape = per_channel, .init = TDM_INIT_ZEROS};
        infer->param_count = 2;
    }
    if (attrs->track_running_stats) {
        infer->buffer[0] = (tdm_param_def){.suffix = "running_mean", .shape = per_channel, .init = TDM_INIT_ZEROS};
        infer->buffer[1] = (tdm_param_def){.suffix = "running_var", .shape = per_channel, .init = TDM_INIT_ONES};
        infer->buffer[2] = (tdm_param_def){.suffix = "num_batches_tracked", .init = TDM_INIT_ZEROS, .is_counter = true};
        infer->buffer_count = 3;
    }
    if (points == 1) { /* a row has one value per channel */
        infer->least_rows = 2;
        if (!attrs->track_running_stats) infer->least_rows_in_evaluation = 2;
    }
    infer->statistics = tdm__batchnorm2d_block_numbers(channels);
    infer->output = infer->input[0];
    infer->flops = 6.0 * (double)tdm__shape_count(&infer->output); /* mean 1, variance 3, scale and shift 2 */
    return TDM_OK;
}

static tdm_status infer(tdm_infer *infer) {
    const tdm_shape *x = &infer->input[0];
    if (x->ndim != 3)
        TDM_INFER_FAIL(infer, "%s needs an input of channels x height x width, got %s%s", infer->layer,
                       tdm__shape_text(x).text, x->ndim < 3 ? "; batchnorm1d takes that" : "");
    return tdm__batchnorm2d_infer(infer, x->dim[1] * x->dim[2]);
}

tdm_status tdm__batchnorm2d_onnx(tdm_onnx *to, const tdm_onnx_layer *layer) {
    const tdm_batchnorm2d_attrs *attrs = layer->attrs;
    if (!attrs->affine || !attrs->track_running_stats)
        TDM_FAIL(TDM_E_UNSUPPORTED, "%s: ONNX has it only with affine and track_running_stats", layer->layer);
    TDM_ONNX_NODE(to, "BatchNormalization", layer->y, layer->x[0], layer->param[0], layer->param[1], layer->buffer[0],
                  layer->buffer[1]);
    to->calls->number(to, "epsilon", attrs->eps);
    /* ONNX's is that of the old statistics. A plain average has none: evaluation is the same. */
    if (!isnan(attrs->momentum)) to->calls->number(to, "momentum", 1.0 - attrs->momentum);
    return TDM_OK;
}

bool tdm__batchnorm2d_from_onnx(tdm_onnx_reader *from, const tdm_onnx_node *node, int output, tdm_onnx_found *out,
                                int least, int most) {
    tdm_shape shape;
    if (!tdm__onnx_is(node, output, "BatchNormalization", 5) || !from->calls->plain(from, node->input[0], &shape) ||
        shape.ndim < least || shape.ndim > most)
        return false;
    if (from->calls->integer(from, node, "training_mode", 0) != 0) {
        snprintf(out->why, sizeof(out->why), "it is one for training; export the model for evaluation (model.eval())");
        return false;
    }
    out->x[out->input_count++] = node->input[0];
    for (int i = 0; i < 2; i++) {
        out->param[i] = tdm__onnx_weight_of(node->input[1 + i]);
        out->buffer[i] = tdm__onnx_weight_of(node->input[3 + i]);
    }
    from->calls->set_number(from, "eps", from->calls->number(from, node, "epsilon", (double)1e-5f));
    /* ONNX's is that of the old statistics, a float: 0.9 is 0.899999976 there. */
    const double kept = from->calls->number(from, node, "momentum", 0.9);
    from->calls->set_number(from, "momentum", round((1.0 - kept) * 1e6) / 1e6);
    return true;
}

static bool from_onnx(tdm_onnx_reader *from, const tdm_onnx_node *node, int output, tdm_onnx_found *out) {
    return tdm__batchnorm2d_from_onnx(from, node, output, out, 3, 3);
}

const tdm_op_def tdm__batchnorm2d_op = {
    .name = "batchnorm2d",
    .also_called = "bn batchnorm batch_norm",
    .doc = "normalises each channel over the batch (torch.nn.BatchNorm2d)",
    .doc_zh = "按通道在批次上归一化（torch.nn.BatchNorm2d）",
    .min_inputs = 1,
    .max_inputs = 1,
    .attrs = tdm__batchnorm2d_fields,
    .attrs_bytes = sizeof(tdm_batchnorm2d_attrs),
    .flags = TDM_OP_READS_X,
    .infer = infer,
    .onnx = TDM_OF_ONNX(tdm__batchnorm2d_onnx),
    .from_onnx = TDM_OF_ONNX(from_onnx),
};
