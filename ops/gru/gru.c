/* gru: definition. torch.nn.GRU with batch_first, in one direction. */
#include "ops/ops.h"
#include "ops/recurrent/recurrent.h"
#include "runtime/base/field/field_rows.h"

static const char *const outputs[] = {"last", "all", NULL};
static const tdm_field fields[] = {
    {FIELD(INT, tdm_recurrent_attrs, hidden, NULL), RANGE(1, TDM_MAX_FEATURES), FLAGS(REQUIRED | MAIN),
     HELP("features of the state", "状态的特征数")},
    {FIELD(INT, tdm_recurrent_attrs, layers, "1"), RANGE(1, TDM_RECURRENT_LAYERS),
     HELP("layers, each over the states of the one before", "层数，每层以前一层的状态为输入")},
    {FIELD(ENUM, tdm_recurrent_attrs, outputs, "last"), .names = outputs,
     HELP("the state after the last step, or those after all steps", "最后一步的状态，或每一步的状态")},
    {0},
};

static tdm_status infer(tdm_infer *infer) {
    return tdm__recurrent_infer(infer, 3);
}

const tdm_op_def tdm__gru_op = {
    .name = "gru",
    .doc = "gated recurrent units over a series [steps, features] (torch.nn.GRU, batch_first)",
    .doc_zh = "对序列 [步数, 特征] 的门控循环单元（torch.nn.GRU，batch_first）",
    .min_inputs = 1,
    .max_inputs = 1,
    .attrs = fields,
    .attrs_bytes = sizeof(tdm_recurrent_attrs),
    .flags = TDM_OP_READS_X,
    .infer = infer,
};
