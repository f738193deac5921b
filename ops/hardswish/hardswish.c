/* hardswish: definition. torch.nn.Hardswish. */
#include "ops/ops.h"

const tdm_op_def tdm__hardswish_op = {
    .name = "hardswish",
    .also_called = "hard_swish",
    .doc = "y = x min(max(0, x + 3), 6) / 6 (torch.nn.Hardswish)",
    .doc_zh = "y = x min(max(0, x + 3), 6) / 6（torch.nn.Hardswish）",
    .min_inputs = 1,
    .max_inputs = 1,
    .flags = TDM_OP_READS_X,
    .infer = tdm__infer_elementwise,
};
