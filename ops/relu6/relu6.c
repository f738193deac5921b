/* relu6: definition. torch.nn.ReLU6. */
#include "ops/ops.h"

const tdm_op_def tdm__relu6_op = {
    .name = "relu6",
    .doc = "y = min(max(0, x), 6) (torch.nn.ReLU6)",
    .doc_zh = "y = min(max(0, x), 6)（torch.nn.ReLU6）",
    .min_inputs = 1,
    .max_inputs = 1,
    .flags = TDM_OP_READS_Y | TDM_OP_IN_PLACE, /* backward needs y alone, so y may be written over x */
    .infer = tdm__infer_elementwise,
};
