/* silu: definition. torch.nn.SiLU. */
#include "ops/ops.h"

const tdm_op_def tdm__silu_op = {
    .name = "silu",
    .also_called = "swish",
    .doc = "y = x / (1 + exp(-x)) (torch.nn.SiLU, also called swish)",
    .doc_zh = "y = x / (1 + exp(-x))（torch.nn.SiLU，又名 swish）",
    .min_inputs = 1,
    .max_inputs = 1,
    .flags = TDM_OP_READS_X,
    .infer = tdm__infer_elementwise,
};
