/* gelu: definition. torch.nn.GELU. */
#include "ops/gelu/gelu.h"

#include "ops/ops.h"
#include "runtime/base/field/field_rows.h"

static const char *const forms[] = {"none", "tanh", NULL};
static const tdm_field fields[] = {
    {FIELD(ENUM, tdm_gelu_attrs, approximate, "none"), .names = forms, FLAGS(MAIN),
     HELP("none: by erf; tanh: by an approximation, as in GPT-2", "none：用 erf；tanh：用近似式，同 GPT-2")},
    {0},
};

const tdm_op_def tdm__gelu_op = {
    .name = "gelu",
    .doc = "y = x P(X <= x) for a normal X (torch.nn.GELU)",
    .doc_zh = "y = x P(X <= x)，X 服从标准正态分布（torch.nn.GELU）",
    .min_inputs = 1,
    .max_inputs = 1,
    .attrs = fields,
    .attrs_bytes = sizeof(tdm_gelu_attrs),
    .flags = TDM_OP_READS_X,
    .infer = tdm__infer_elementwise,
};
