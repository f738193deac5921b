/* linear: definition. torch.nn.Linear. */
#include "ops/linear/linear.h"

#include <math.h>

#include "ops/ops.h"
#include "runtime/base/field/field_rows.h"

static const tdm_field fields[] = {
    {FIELD(INT, tdm_linear_attrs, out, NULL), RANGE(1, TDM_MAX_FEATURES), FLAGS(REQUIRED | MAIN),
     HELP("features of the output", "输出特征数")},
    {FIELD(BOOL, tdm_linear_attrs, bias, "true"), HELP("whether a learnable bias is added", "是否加上可学习的偏置")},
    {FIELD(INT, tdm_linear_attrs, in, "null"), RANGE(1, 9007199254740992.0), FLAGS(NULLABLE),
     HELP("features of the input; taken from the previous layer, checked if given",
          "输入特征数；可由上一层得知，写出则检查")},
    {FIELD(FLOAT, tdm_linear_attrs, init_std, "null"), RANGE(0, 1e6), FLAGS(NULLABLE | OPEN_MIN),
     HELP("standard deviation of the first weights, with a bias of 0; null: as torch.nn.Linear",
          "初始权重的标准差，偏置为 0；null 表示同 torch.nn.Linear")},
    {0},
};

static tdm_status infer(tdm_infer *infer) {
    const tdm_linear_attrs *attrs = infer->attrs;
    if (infer->input[0].ndim != 1)
        TDM_INFER_FAIL(infer, "%s needs a flat input, got %s; put `flatten` before it", infer->layer,
                       tdm__shape_text(&infer->input[0]).text);
    int64_t in = infer->input[0].dim[0];
    TDM_TRY(tdm__infer_check_in(infer, attrs->in, in, "features"));
    infer->output = (tdm_shape){1, {attrs->out}};
    tdm__infer_weight_and_bias(infer, (tdm_shape){2, {attrs->out, in}}, in, attrs->bias);
    if (!isnan(attrs->init_std)) tdm__infer_set_again(infer, attrs->init_std);
    infer->flops = 2.0 * (double)in * (double)attrs->out;
    return TDM_OK;
}

const tdm_op_def tdm__linear_op = {
    .name = "linear",
    .also_called = "fc dense",
    .doc = "y = x W^T + b, fully connected (torch.nn.Linear)",
    .doc_zh = "全连接层 y = x W^T + b（torch.nn.Linear）",
    .min_inputs = 1,
    .max_inputs = 1,
    .attrs = fields,
    .attrs_bytes = sizeof(tdm_linear_attrs),
    .flags = TDM_OP_READS_X | TDM_OP_ROUNDS_PARAMS | TDM_OP_WEIGHS_FEATURES,
    .infer = infer,
};
